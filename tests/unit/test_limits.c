#include "numa/limits.h"

#include <check.h>
#include <string.h>

#include "tests/lib/fake_root.h"
#include "tests/lib/suite.h"

#define GIB ((uint64_t)1 << 30)

static const char *root;
static struct limits l;

static void setup(void)
{
    root = fake_root_make();
    fake_root_put("proc/meminfo",
                  "MemTotal:       16777216 kB\nMemFree:  1 kB\nMemAvailable:   8388608 kB\n");
}

START_TEST(limits_read__the_machine)
{
    limits_read(root, &l);
    ck_assert_uint_eq(l.total_bytes, 16 * GIB);
    ck_assert_uint_eq(l.available_bytes, 8 * GIB);
    ck_assert_str_eq(l.from, "this machine");
    ck_assert(!l.grouped);
}
END_TEST

START_TEST(limits_read__nothing_there_limits_nothing)
{
    limits_read("/nonexistent", &l);
    ck_assert_uint_eq(l.total_bytes, UINT64_MAX);
    ck_assert_uint_eq(l.available_bytes, UINT64_MAX);
}
END_TEST

/* The group has no limit of its own, but lies in one that has; page cache is not held for ever. */
START_TEST(limits_read__groups_of_version_2)
{
    fake_root_put("proc/self/cgroup", "0::/system.slice/proofd.service\n");
    fake_root_put("sys/fs/cgroup/system.slice/proofd.service/memory.max", "max\n");
    fake_root_put("sys/fs/cgroup/system.slice/memory.max", "4294967296\n");
    fake_root_put("sys/fs/cgroup/system.slice/memory.current", "3221225472\n");
    fake_root_put("sys/fs/cgroup/system.slice/memory.stat",
                  "anon 1\ninactive_file 1073741824\nactive_file 1073741824\n");
    limits_read(root, &l);
    ck_assert_uint_eq(l.total_bytes, 4 * GIB);
    ck_assert_uint_eq(l.available_bytes, 3 * GIB);
    ck_assert_str_eq(l.from, "control group /system.slice");
}
END_TEST

START_TEST(limits_read__groups_of_version_1)
{
    fake_root_put("proc/self/cgroup", "5:cpu,memory:/a\n3:cpuset:/a\n");
    fake_root_put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n");
    fake_root_put("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1073741824\n");
    fake_root_put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    limits_read(root, &l);
    ck_assert_uint_eq(l.total_bytes, 2 * GIB);
    ck_assert_uint_eq(l.available_bytes, 1 * GIB);
    ck_assert_str_eq(l.from, "control group /a");
    ck_assert(l.grouped);
}
END_TEST

/* In a container the path of the host leads nowhere, and the mount itself is the group. */
START_TEST(limits_read__the_root_of_a_container)
{
    fake_root_put("proc/self/cgroup", "0::/../../docker/x\n");
    fake_root_put("sys/fs/cgroup/memory.max", "1073741824\n");
    fake_root_put("sys/fs/cgroup/memory.current", "2147483648\n");
    limits_read(root, &l);
    ck_assert_uint_eq(l.total_bytes, 1 * GIB);
    ck_assert_uint_eq(l.available_bytes, 0);
}
END_TEST

START_TEST(limits_read__this_machine_has_memory)
{
    limits_read("", &l);
    ck_assert_uint_gt(l.available_bytes, 0);
    ck_assert_uint_le(l.available_bytes, l.total_bytes);
    ck_assert_uint_ne(l.from[0], 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("limits");
    TCase *tc = tcase_create("limits");

    tcase_add_checked_fixture(tc, setup, fake_root_remove);
    tcase_add_test(tc, limits_read__the_machine);
    tcase_add_test(tc, limits_read__nothing_there_limits_nothing);
    tcase_add_test(tc, limits_read__groups_of_version_2);
    tcase_add_test(tc, limits_read__groups_of_version_1);
    tcase_add_test(tc, limits_read__the_root_of_a_container);
    tcase_add_test(tc, limits_read__this_machine_has_memory);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
