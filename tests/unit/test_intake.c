#include "fuse/intake.h"

#include <check.h>
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

static bool note(struct intake_task *task)
{
    struct numbered *n = (struct numbered *)task;
    struct line *line = n->line;

    if (atomic_fetch_add(&line->running, 1) != 0)
        atomic_fetch_add(&line->overlaps, 1);
    if (atomic_fetch_add(&line->next, 1) != n->number)
        atomic_fetch_add(&line->out_of_order, 1);
    atomic_fetch_sub(&line->running, 1);
    free(n);
    return true;
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

static bool free_file(struct intake_task *task)
{
    struct file *f = (struct file *)((char *)task - offsetof(struct file, last));

    atomic_fetch_add(f->freed, 1);
    free(f);
    return false;
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

static bool run_chain(struct intake_task *task)
{
    struct chain *c = (struct chain *)((char *)task - offsetof(struct chain, task));

    atomic_fetch_add(c->ran, 1);
    if (c->next)
        intake_push(c->in, &c->next->lane, &c->next->task);
    return true;
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

int main(void)
{
    Suite *s = suite_create("intake");
    TCase *tc = tcase_create("intake");

    tcase_add_loop_test(tc, intake__lanes_keep_their_order, 1, 5);
    tcase_add_test(tc, intake__the_last_task_frees_its_lane);
    tcase_add_test(tc, intake_destroy__runs_what_tasks_push);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
