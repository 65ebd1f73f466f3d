#include "fuse/intake.h"

#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/lib/suite.h"

#define LANES 16
#define TASKS 500

/* A lane, and what its tasks saw: their order, and whether two ran at once. */
struct line {
    struct intake_lane lane;
    atomic_int running, next, out_of_order, overlaps;
};

struct numbered {
    struct intake_task task;
    struct line *line;
    int number;
};

static enum intake_result note(struct intake_task *task)
{
    struct numbered *n = (struct numbered *)task;
    struct line *line = n->line;

    if (atomic_fetch_add(&line->running, 1) != 0)
        atomic_fetch_add(&line->overlaps, 1);
    if (atomic_fetch_add(&line->next, 1) != n->number)
        atomic_fetch_add(&line->out_of_order, 1);
    atomic_fetch_sub(&line->running, 1);
    free(n);
    return INTAKE_DONE;
}

static void push(struct intake *in, struct line *line, int number)
{
    struct numbered *n = calloc(1, sizeof(*n));

    n->task.run = note;
    n->line = line;
    n->number = number;
    intake_push(in, &line->lane, &n->task);
}

START_TEST(intake__lanes_keep_their_order)
{
    static struct line lines[LANES];
    struct intake *in = NULL;

    for (unsigned l = 0; l < LANES; l++)
        lines[l].lane.user = l / 3;
    ck_assert_int_eq(intake_create((unsigned)_i, &in, NULL), 0);
    push(in, &lines[0], 0); /* before a thread is there */
    ck_assert_int_eq(intake_start(in, NULL), 0);
    for (int t = 0; t < TASKS; t++)
        for (int l = 0; l < LANES; l++)
            if (l > 0 || t > 0)
                push(in, &lines[l], t);
    intake_destroy(in); /* runs them all */
    for (int l = 0; l < LANES; l++) {
        ck_assert_int_eq(atomic_load(&lines[l].next), TASKS);
        ck_assert_int_eq(atomic_load(&lines[l].out_of_order), 0);
        ck_assert_int_eq(atomic_load(&lines[l].overlaps), 0);
    }
}
END_TEST

/* A lane that a task of its own frees, as the release of an open file does. */
struct file {
    struct intake_lane lane;
    struct intake_task last;
    atomic_int *freed;
};

static enum intake_result free_file(struct intake_task *task)
{
    struct file *f = (struct file *)((char *)task - offsetof(struct file, last));

    atomic_fetch_add(f->freed, 1);
    free(f);
    return INTAKE_GONE;
}

START_TEST(intake__the_last_task_frees_its_lane)
{
    atomic_int freed = 0;
    struct intake *in = NULL;

    ck_assert_int_eq(intake_create(4, &in, NULL), 0);
    ck_assert_int_eq(intake_start(in, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        struct file *f = calloc(1, sizeof(*f));
        f->last.run = free_file;
        f->freed = &freed;
        intake_push(in, &f->lane, &f->last);
    }
    intake_destroy(in);
    ck_assert_int_eq(atomic_load(&freed), 1000);
    intake_destroy(NULL);
}
END_TEST

/* A task that pushes to another lane while the pool is being ended. */
struct chain {
    struct intake_lane lane;
    struct intake_task task;
    struct intake *in;
    struct chain *next;
    atomic_int *ran;
};

static enum intake_result run_chain(struct intake_task *task)
{
    struct chain *c = (struct chain *)((char *)task - offsetof(struct chain, task));

    atomic_fetch_add(c->ran, 1);
    if (c->next)
        intake_push(c->in, &c->next->lane, &c->next->task);
    return INTAKE_DONE;
}

START_TEST(intake_destroy__runs_what_tasks_push)
{
    static struct chain links[50];
    atomic_int ran = 0;
    struct intake *in = NULL;

    ck_assert_int_eq(intake_create(3, &in, NULL), 0);
    for (int i = 0; i < 50; i++)
        links[i] = (struct chain){.task.run = run_chain,
                                  .in = in,
                                  .next = i + 1 < 50 ? &links[i + 1] : NULL,
                                  .ran = &ran};
    ck_assert_int_eq(intake_start(in, NULL), 0);
    intake_push(in, &links[0].lane, &links[0].task);
    intake_destroy(in);
    ck_assert_int_eq(atomic_load(&ran), 50);
}
END_TEST

/* Tasks that write down whose they are, in the order in which they run. */
struct turn {
    struct intake_lane lane;
    struct intake_task task;
    int pieces;
    char name;
};

static char turns[64];
static atomic_int turns_len;

static enum intake_result take_turn(struct intake_task *task)
{
    struct turn *t = (struct turn *)((char *)task - offsetof(struct turn, task));

    turns[atomic_fetch_add(&turns_len, 1)] = t->name;
    return --t->pieces > 0 ? INTAKE_AGAIN : INTAKE_DONE;
}

START_TEST(intake__users_take_turns)
{
    struct turn t[] = {{.lane.user = 1, .name = 'a', .pieces = 3},
                       {.lane.user = 1, .name = 'b'},
                       {.lane.user = 1, .name = 'c'},
                       {.lane.user = 2, .name = 'D'},
                       {.lane.user = 2, .name = 'E', .pieces = 2},
                       {.lane.user = 3, .name = '3'}};
    struct intake *in = NULL;

    ck_assert_int_eq(intake_create(1, &in, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        t[i].task.run = take_turn;
        intake_push(in, &t[i].lane, &t[i].task);
    }
    ck_assert_int_eq(intake_start(in, NULL), 0);
    intake_destroy(in);
    /* Pieces of one task come before the user's next, and after everybody else's turn. */
    ck_assert_str_eq(turns, "aD3aEaEbc");
}
END_TEST

/* A task that stays until it is let go. */
struct guest {
    struct intake_lane lane;
    struct intake_task task;
    atomic_bool *leave;
    atomic_int *in_house;
};

static enum intake_result stay(struct intake_task *task)
{
    struct guest *g = (struct guest *)((char *)task - offsetof(struct guest, task));

    atomic_fetch_add(g->in_house, 1);
    while (!atomic_load(g->leave))
        sched_yield();
    atomic_fetch_sub(g->in_house, 1);
    return INTAKE_DONE;
}

START_TEST(intake__one_thread_is_left_for_others)
{
    atomic_bool leave = false, other_leave = true;
    atomic_int in_house = 0, other = 0;
    struct guest many[20], one = {.lane.user = 2, .leave = &other_leave, .in_house = &other};
    struct intake *in = NULL;

    ck_assert_int_eq(intake_create(4, &in, NULL), 0);
    ck_assert_int_eq(intake_start(in, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        many[i] = (struct guest){.lane.user = 1, .leave = &leave, .in_house = &in_house};
        many[i].task.run = stay;
        intake_push(in, &many[i].lane, &many[i].task);
    }
    while (atomic_load(&in_house) < 3)
        sched_yield();
    other_leave = false;
    one.task.run = stay;
    intake_push(in, &one.lane, &one.task);
    while (atomic_load(&other) == 0) /* it runs, though twenty came before */
        sched_yield();
    ck_assert_int_eq(atomic_load(&in_house), 3);
    atomic_store(&other_leave, true);
    atomic_store(&leave, true);
    intake_destroy(in);
    ck_assert_int_eq(atomic_load(&in_house), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("intake");
    TCase *tc = tcase_create("intake");

    tcase_add_loop_test(tc, intake__lanes_keep_their_order, 1, 5);
    tcase_add_test(tc, intake__the_last_task_frees_its_lane);
    tcase_add_test(tc, intake_destroy__runs_what_tasks_push);
    tcase_add_test(tc, intake__users_take_turns);
    tcase_add_test(tc, intake__one_thread_is_left_for_others);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
