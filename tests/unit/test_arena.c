#include "numa/arena.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/fake_root.h"
#include "tests/lib/suite.h"

#define MIB ((size_t)1 << 20)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static struct arena *arena;
static struct errmsg err;

static const struct arena_info *make(size_t bytes, int node, enum arena_pages largest)
{
    const struct arena_options opt = {.bytes = bytes, .node = node, .largest = largest};

    ck_assert_msg(arena_create(&opt, &arena, &err) == 0, "%s", err.text);
    return arena_get_info(arena);
}

/* What the kernel of a machine that is not this one would answer (the Makefile wraps both). */
static int populate_errno, mbind_errno; /* 0: as here */
static int elsewhere = -1;              /* the node on which move_pages finds every second page */
static unsigned populated;              /* pieces, before it fails */

int __real_madvise(void *p, size_t bytes, int advice);
int __wrap_madvise(void *p, size_t bytes, int advice);
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

int __wrap_madvise(void *p, size_t bytes, int advice)
{
    if (advice != MADV_POPULATE_WRITE || !populate_errno || populated++ % 2 == 0)
        return __real_madvise(p, bytes, advice);
    errno = populate_errno;
    return -1;
}

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_mbind && mbind_errno) {
        errno = mbind_errno;
        return -1;
    }
    if (number != SYS_move_pages || elsewhere < 0)
        return __real_syscall(number, a, b, c, d, e, f);
    for (long i = 0; i < b; i++)
        ((int *)e)[i] = i % 2 ? elsewhere : 0;
    return 0;
}

/* Every page is there before it is touched, and may be written. */
static void expect_resident(void *p, size_t bytes)
{
    size_t pages = (bytes + 4095) / 4096;
    unsigned char *resident = malloc(pages);

    ck_assert_int_eq(mincore(p, bytes, resident), 0);
    for (size_t i = 0; i < pages; i++)
        ck_assert_uint_eq(resident[i] & 1, 1);
    free(resident);
    memset(p, 1, bytes);
}

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define POOL_WANTED 4

static uint64_t pool_read(const char *path)
{
    uint64_t n = 0;
    FILE *f = fopen(path, "r");

    if (f && fscanf(f, "%" SCNu64, &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

static uint64_t pool_free(void)
{
    return pool_read(POOL "free_hugepages");
}

/* What the kernel makes of it, only pool_read knows. */
static void pool_resize(uint64_t pages)
{
    FILE *f = fopen(POOL "nr_hugepages", "w");

    if (f) {
        fprintf(f, "%" PRIu64, pages);
        fclose(f);
    }
}

/* Whatever pages there are: the size is whole pages, every page is there, and it is where it should be. */
START_TEST(arena_create__has_every_page)
{
    enum arena_pages largest = (enum arena_pages)_i;
    const struct arena_info *info = make(33 * MIB + 5, 0, largest);
    void *p = arena_carve(arena, 33 * MIB + 5);

    ck_assert_int_ge((int)info->pages, (int)largest);
    ck_assert_uint_ge(info->bytes, 33 * MIB + 5);
    ck_assert_uint_eq(info->bytes % (info->pages == ARENA_4KIB ? 4096 : 2 * MIB), 0);
    ck_assert_uint_le(info->huge_bytes, info->bytes);
    if (info->pages == ARENA_4KIB)
        ck_assert_uint_eq(info->huge_bytes, 0);
    ck_assert_int_eq(info->misplaced_node, -1);
    ck_assert_uint_eq(info->misplaced_bytes, 0);
    ck_assert_ptr_nonnull(p);
    expect_resident(p, 33 * MIB + 5);
    arena_destroy(arena);
}
END_TEST

/* As root without a limit and as others with one: what is lost is said. */
START_TEST(arena_create__says_what_is_lost)
{
    const struct arena_info *info = make(4 * MIB, 0, ARENA_2MIB);

    if (info->pages != ARENA_2MIB)
        ck_assert_ptr_nonnull(strstr(info->lost, "2 MiB: 2 pages needed, "));
    if (!info->locked)
        ck_assert_ptr_nonnull(strstr(info->lost, "ulimit -l"));
    if (info->pages == ARENA_2MIB && info->locked && info->bound)
        ck_assert_str_eq(info->lost, "");
    bool more = !info->locked || !info->bound || strstr(info->lost, "knowing where");
    ck_assert_int_eq(info->lost_pages_alone, info->lost[0] && !more);
    arena_destroy(arena);
}
END_TEST

START_TEST(arena_create__takes_from_the_pool)
{
    uint64_t before = pool_free();

    ck_assert_uint_ge(before, POOL_WANTED);
    const struct arena_info *info = make(7 * MIB, ARENA_ANY_NODE, ARENA_2MIB);
    ck_assert_int_eq(info->pages, ARENA_2MIB);
    ck_assert_uint_eq(info->huge_bytes, 8 * MIB);
    ck_assert_uint_eq(pool_free(), before - 4);
    arena_destroy(arena);
    ck_assert_uint_eq(pool_free(), before);
}
END_TEST

/* More than the pool has: the next kind, whole. */
START_TEST(arena_create__a_pool_too_small_is_left_alone)
{
    uint64_t before = pool_free();

    if (before > 256)
        return;
    const struct arena_info *info = make((before + 1) * 2 * MIB, 0, ARENA_2MIB);
    ck_assert_int_ne(info->pages, ARENA_2MIB);
    ck_assert_uint_eq(pool_free(), before);
    arena_destroy(arena);
}
END_TEST

START_TEST(arena_create__a_node_that_is_not_there_does_not_bind)
{
    const struct arena_info *info = make(2 * MIB, 1000, ARENA_THP);

    ck_assert(!info->bound);
    ck_assert_ptr_nonnull(strstr(info->lost, "binding to the node"));
    ck_assert(!info->lost_pages_alone);
    arena_destroy(arena);
}
END_TEST

START_TEST(arena_find_misplaced__every_page_of_another_node)
{
    const struct arena_info *info = make(3 * MIB, 0, ARENA_4KIB);
    size_t bytes;
    int other;

    int ret = arena_find_misplaced(arena, 1, &bytes, &other);
    if (ret < 0) {
        suite_skip("arena_find_misplaced__every_page_of_another_node", "move_pages");
    } else {
        ck_assert_uint_eq(bytes, info->bytes);
        ck_assert_int_eq(other, 0);
    }
    arena_destroy(arena);
}
END_TEST

START_TEST(arena_create__refuses_what_the_machine_has_not)
{
    struct arena_options opt = {.bytes = (size_t)3 << 30, .node = 0, .root = fake_root_make()};

    fake_root_put("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 2097152 kB\n");
    opt.largest = ARENA_THP;
    ck_assert_int_eq(arena_create(&opt, &arena, &err), -ENOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "3.0 GiB"));
    ck_assert_ptr_nonnull(strstr(err.text, "2.0 GiB"));
    fake_root_remove();
    opt.root = NULL;
    opt.bytes = (size_t)1 << 50;
    ck_assert_int_eq(arena_create(&opt, &arena, &err), -ENOMEM);
    opt.bytes = 0;
    ck_assert_int_eq(arena_create(&opt, &arena, &err), -EINVAL);
}
END_TEST

/* Pages of all kinds run out in the midst of it: the reason for each, and nothing stays. */
START_TEST(arena_create__on_a_node_that_is_full)
{
    const struct arena_options opt = {.bytes = 256 * MIB, .node = 0};
    uint64_t before = pool_read("/proc/self/statm");

    populate_errno = ENOMEM;
    ck_assert_int_eq(arena_create(&opt, &arena, &err), -ENOMEM);
    populate_errno = 0;
    ck_assert_ptr_nonnull(strstr(err.text, "no memory for 268435456 bytes: "));
    ck_assert_ptr_nonnull(strstr(err.text, "4 KiB: Cannot allocate memory"));
    ck_assert_uint_lt(pool_read("/proc/self/statm"), before + 256 * MIB / 4096);
    make(4 * MIB, 0, ARENA_THP); /* once there is room again */
    arena_destroy(arena);
}
END_TEST

/* The kernel takes pages of other nodes where this one is full: counted, and told of. */
START_TEST(arena_create__with_pages_of_another_node)
{
    elsewhere = 1;
    const struct arena_info *info = make(4 * MIB, 0, ARENA_4KIB);
    elsewhere = -1;
    ck_assert_uint_eq(info->misplaced_bytes, 2 * MIB);
    ck_assert_int_eq(info->misplaced_node, 1);
    arena_destroy(arena);
}
END_TEST

START_TEST(arena_create__where_memory_cannot_be_bound)
{
    mbind_errno = ENOMEM;
    const struct arena_info *info = make(4 * MIB, 0, ARENA_THP);
    mbind_errno = 0;
    ck_assert(!info->bound);
    ck_assert_ptr_nonnull(strstr(info->lost, "binding to the node: Cannot allocate memory"));
    arena_destroy(arena);
}
END_TEST

START_TEST(arena_carve__to_the_end_and_back)
{
    const struct arena_info *info = make(2 * MIB, ARENA_ANY_NODE, ARENA_4KIB);
    char *first = arena_carve(arena, 1), *second = arena_carve(arena, 4097);
    size_t mark = arena_mark(arena);

    ck_assert_int_eq(second - first, 4096);
    ck_assert_uint_eq(arena_carved_bytes(4097), 8192);
    char *rest = arena_carve(arena, info->bytes - mark);
    ck_assert_ptr_nonnull(rest);
    ck_assert_ptr_null(arena_carve(arena, 1));
    arena_rewind(arena, mark);
    ck_assert_ptr_null(arena_carve(arena, info->bytes - mark + 1));
    ck_assert_ptr_eq(arena_carve(arena, 1), rest);
    arena_destroy(arena);
}
END_TEST

/* Faulted in by several threads, which must not miss a piece. */
START_TEST(arena_create__by_workers)
{
    struct arena_options opt = {.bytes = 200 * MIB + 1, .node = 0, .largest = ARENA_THP};

    ck_assert_int_eq(workers_create(3, &opt.workers, &err), 0);
    ck_assert_int_eq(arena_create(&opt, &arena, &err), 0);
    void *p = arena_carve(arena, opt.bytes);
    expect_resident(p, opt.bytes);
    arena_destroy(arena);
    workers_destroy(opt.workers);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("arena");
    TCase *tc = tcase_create("arena");
    uint64_t pages = pool_read(POOL "nr_hugepages");

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, arena_create__has_every_page, 0, ARENA_4KIB + 1);
    tcase_add_test(tc, arena_create__says_what_is_lost);
    /* Root has a pool for as long as the test takes, where there is none. */
    if (pool_free() < POOL_WANTED)
        pool_resize(pages + POOL_WANTED);
    if (pool_free() >= POOL_WANTED)
        tcase_add_test(tc, arena_create__takes_from_the_pool);
    else
        suite_skip("arena_create__takes_from_the_pool",
                   "pages of 2 MiB in the pool (vm.nr_hugepages)");
    tcase_add_test(tc, arena_create__a_pool_too_small_is_left_alone);
    tcase_add_test(tc, arena_create__a_node_that_is_not_there_does_not_bind);
    tcase_add_test(tc, arena_find_misplaced__every_page_of_another_node);
    tcase_add_test(tc, arena_create__refuses_what_the_machine_has_not);
    tcase_add_test(tc, arena_create__on_a_node_that_is_full);
    tcase_add_test(tc, arena_create__with_pages_of_another_node);
    tcase_add_test(tc, arena_create__where_memory_cannot_be_bound);
    tcase_add_test(tc, arena_carve__to_the_end_and_back);
    tcase_add_test(tc, arena_create__by_workers);
    suite_add_tcase(s, tc);
    int status = suite_run(s);
    if (pool_read(POOL "nr_hugepages") != pages)
        pool_resize(pages);
    return status;
}
