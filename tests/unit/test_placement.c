#include "numa/placement.h"

#include <check.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/fake_root.h"
#include "tests/lib/suite.h"

static const char *root;
static struct topology *t;
static struct placement_allowed allowed;
static struct placement p;
static struct errmsg err;

/* Two nodes of four CPUs; CPU 3 is offline. Node 1 is a smaller one. */
static void setup(void)
{
    root = fake_root_make();
    fake_root_put("sys/devices/system/cpu/present", "0-7\n");
    fake_root_put("sys/devices/system/node/online", "0-1\n");
    fake_root_put("sys/devices/system/node/node0/cpulist", "0-2\n");
    fake_root_put("sys/devices/system/node/node1/cpulist", "4-7\n");
    fake_root_put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8388608 kB\n");
    fake_root_put("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 8388608 kB\n");
    fake_root_put("sys/devices/system/node/node0/distance", "10 21\n");
    fake_root_put("sys/devices/system/node/node1/distance", "21 10\n");
}

static void look(void)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/sys", root);
    ck_assert_int_eq(topology_read(path, &t, &err), 0);
    ck_assert_int_eq(placement_allowed_read(root, &allowed), 0);
}

static void teardown(void)
{
    placement_fini(&p);
    placement_allowed_fini(&allowed);
    topology_destroy(t);
    fake_root_remove();
}

static void expect(const char *cpus, int memory_node, const char *lost)
{
    char text[256];

    topology_format_list(p.cpus, text, sizeof(text));
    ck_assert_str_eq(text, cpus);
    ck_assert_int_eq(p.memory_node, memory_node);
    ck_assert_str_eq(p.lost, lost);
}

START_TEST(placement_of_node__all_of_it)
{
    look();
    ck_assert_int_eq(placement_of_node(t, &allowed, 1, &p, &err), 0);
    expect("4-7", 1, "");
    ck_assert_uint_eq(p.cpus_len, 4);
}
END_TEST

START_TEST(placement_of_node__a_cpuset_leaves_less)
{
    fake_root_put("proc/self/status",
                  "Name:\tx\nCpus_allowed_list:\t0-5\nMems_allowed_list:\t0-1\n");
    look();
    ck_assert_int_eq(placement_of_node(t, &allowed, 1, &p, &err), 0);
    expect("4-5", 1, "of CPUs 4-7 only 4-5 can be used");
}
END_TEST

START_TEST(placement_of_node__a_cpuset_leaves_nothing)
{
    fake_root_put("proc/self/status", "Cpus_allowed_list:\t0-1\n");
    look();
    ck_assert_int_eq(placement_of_node(t, &allowed, 1, &p, &err), -EINVAL);
    ck_assert_str_eq(err.text,
                     "node 1: none of its CPUs (4-7) can be used; this process may use 0-1");
}
END_TEST

START_TEST(placement_of_node__a_cpuset_without_its_memory)
{
    fake_root_put("proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0\n");
    look();
    ck_assert_int_eq(placement_of_node(t, &allowed, 1, &p, &err), 0);
    expect("4-7", -1, "this process may not use the memory of node 1");
}
END_TEST

START_TEST(placement_of_node__without_memory)
{
    fake_root_put("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 0 kB\n");
    look();
    ck_assert_int_eq(placement_of_node(t, &allowed, 1, &p, &err), 0);
    expect("4-7", 0, "node 1 has no memory, that of node 0 is used");
}
END_TEST

START_TEST(placement_of_node__that_is_not_there)
{
    look();
    ck_assert_int_eq(placement_of_node(t, &allowed, 2, &p, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "node 2"));
}
END_TEST

START_TEST(placement_of_cpus__one_of_them_is_offline)
{
    look();
    ck_assert_int_eq(placement_of_cpus(t, &allowed, "2-3", &p, &err), 0);
    expect("2", 0, "of CPUs 2-3 only 2 can be used");
}
END_TEST

START_TEST(placement_of_cpus__one_that_there_is_not)
{
    look();
    ck_assert_int_eq(placement_of_cpus(t, &allowed, "6-9,99", &p, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "CPUs 6-9,99: this machine has no CPU 8-9,99; it has 0-7"));
}
END_TEST

/* Where nobody knows which there are it is as if those were offline. */
START_TEST(placement_of_cpus__nobody_knows_which_there_are)
{
    fake_root_put("sys/devices/system/cpu/present", "\n");
    look();
    ck_assert_int_eq(placement_of_cpus(t, &allowed, "6-9", &p, &err), 0);
    expect("6-7", 1, "of CPUs 6-9 only 6-7 can be used");
}
END_TEST

START_TEST(placement_of_cpus__a_cpuset_leaves_less)
{
    fake_root_put("proc/self/status", "Cpus_allowed_list:\t4-5\nMems_allowed_list:\t0-1\n");
    look();
    ck_assert_int_eq(placement_of_cpus(t, &allowed, "4-7", &p, &err), 0);
    expect("4-5", 1, "of CPUs 4-7 only 4-5 can be used");
    placement_fini(&p);
    ck_assert_int_eq(placement_of_cpus(t, &allowed, "0-2", &p, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "this process may use 4-5"));
}
END_TEST

START_TEST(placement_of_cpus__of_two_nodes)
{
    look();
    ck_assert_int_eq(placement_of_cpus(t, &allowed, "0-2,4", &p, &err), 0);
    expect("0-2,4", -1, "the CPUs are of several nodes, memory is not bound");
}
END_TEST

START_TEST(placement_of_cpus__what_is_no_list)
{
    static const char *const lists[] = {"", "x", "3-1", "99999"};

    look();
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        ck_assert_int_eq(placement_of_cpus(t, &allowed, lists[i], &p, &err), -EINVAL);
    ck_assert_int_eq(placement_of_cpus(t, &allowed, "3", &p, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "CPUs 3: none"));
}
END_TEST

/* On this machine: the calling thread, and what it starts, and its memory. */
START_TEST(placement_bind__this_thread)
{
    struct topology *here = NULL;
    struct placement_allowed mine;
    cpu_set_t now;
    int mode = -1;

    look();
    ck_assert_int_eq(topology_read(TOPOLOGY_SYSFS, &here, &err), 0);
    ck_assert_int_eq(placement_allowed_read("", &mine), 0);
    ck_assert_int_eq(placement_of_node(here, &mine, here->nodes[0].id, &p, &err), 0);
    int ret = placement_bind(&p, &err);
    ck_assert_msg(ret >= 0, "%s", err.text);
    ck_assert_int_eq(sched_getaffinity(0, sizeof(now), &now), 0);
    ck_assert_uint_eq((unsigned)CPU_COUNT(&now), p.cpus_len);
    if (ret == 0 && p.memory_node >= 0) {
        ck_assert_int_eq((int)syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul), 0);
        ck_assert_int_eq(mode, MPOL_PREFERRED);
    }
    placement_allowed_fini(&mine);
    topology_destroy(here);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("placement");
    TCase *tc = tcase_create("placement");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, placement_of_node__all_of_it);
    tcase_add_test(tc, placement_of_node__a_cpuset_leaves_less);
    tcase_add_test(tc, placement_of_node__a_cpuset_leaves_nothing);
    tcase_add_test(tc, placement_of_node__a_cpuset_without_its_memory);
    tcase_add_test(tc, placement_of_node__without_memory);
    tcase_add_test(tc, placement_of_node__that_is_not_there);
    tcase_add_test(tc, placement_of_cpus__one_of_them_is_offline);
    tcase_add_test(tc, placement_of_cpus__one_that_there_is_not);
    tcase_add_test(tc, placement_of_cpus__nobody_knows_which_there_are);
    tcase_add_test(tc, placement_of_cpus__a_cpuset_leaves_less);
    tcase_add_test(tc, placement_of_cpus__of_two_nodes);
    tcase_add_test(tc, placement_of_cpus__what_is_no_list);
    tcase_add_test(tc, placement_bind__this_thread);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
