#include "numa/topology.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];
static cpu_set_t *set;

static void setup(void)
{
    strcpy(root, "/tmp/proofd-sysfs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    set = CPU_ALLOC(TOPOLOGY_CPUS_MAX);
}

static void teardown(void)
{
    char command[128];

    CPU_FREE(set);
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

/* Writes root/devices/system/node/NAME, making its directories. */
static void put(const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/devices/system/node/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static const struct {
    const char *text;
    int count;
} lists[] = {
    {"0-3,8,10-11\n", 7}, {"", 0},      {"\n", 0},          {"5", 1},     {"0-0\n", 1},
    {"0-4095", 4096},     {"4096", -1}, {"3-1", -1},        {"a", -1},    {"1,,2", -1},
    {"1-", -1},           {"-1", -1},   {"0-99999999", -1}, {"0;1", -1},  {"0-3 ", -1},
};

START_TEST(topology_parse_list__as_the_kernel_writes_them)
{
    int n = topology_parse_list(lists[_i].text, set);

    ck_assert_int_eq(n < 0 ? -1 : n, lists[_i].count);
}
END_TEST

START_TEST(topology_read__two_nodes_with_a_gap)
{
    struct topology *t = NULL;

    put("online", "0,2\n");
    put("node0/cpulist", "0-3,8-11\n");
    put("node0/meminfo", "Node 0 MemTotal:       1000 kB\nNode 0 MemFree:         400 kB\n");
    put("node2/cpulist", "4-7\n");
    put("node2/hugepages/hugepages-2048kB/nr_hugepages", "512\n");
    put("node2/hugepages/hugepages-2048kB/free_hugepages", "510\n");
    put("node2/hugepages/hugepages-1048576kB/nr_hugepages", "3\n");
    ck_assert_int_eq(topology_read(root, &t, NULL), 0);
    ck_assert(t->from_sysfs);
    ck_assert_uint_eq(t->nodes_len, 2);
    ck_assert_ptr_null(topology_find(t, 1));
    const struct topology_node *n0 = topology_find(t, 0), *n2 = topology_find(t, 2);
    ck_assert_uint_eq(n0->cpus_len, 8);
    ck_assert_uint_eq(n0->total_bytes, 1000 * 1024);
    ck_assert_uint_eq(n0->free_bytes, 400 * 1024);
    ck_assert_uint_eq(n0->huge_2m_total, 0);
    ck_assert_uint_eq(n2->cpus_len, 4);
    ck_assert_uint_eq(n2->huge_2m_total, 512);
    ck_assert_uint_eq(n2->huge_2m_free, 510);
    ck_assert_uint_eq(n2->huge_1g_total, 3);
    ck_assert_uint_eq(n2->total_bytes, 0);
    topology_destroy(t);
}
END_TEST

START_TEST(topology_read__without_sysfs_there_is_one_node)
{
    static const char *const online[] = {NULL, "", "rubbish\n"};
    struct topology *t = NULL;

    if (online[_i])
        put("online", online[_i]);
    ck_assert_int_eq(topology_read(root, &t, NULL), 0);
    ck_assert(!t->from_sysfs);
    ck_assert_uint_eq(t->nodes_len, 1);
    ck_assert_int_eq(t->nodes[0].id, 0);
    ck_assert_uint_ge(t->nodes[0].cpus_len, 1);
    topology_destroy(t);
}
END_TEST

START_TEST(topology_bind__to_a_node_of_this_machine)
{
    struct topology *t = NULL;
    struct errmsg err;
    cpu_set_t now;

    ck_assert_int_eq(topology_read(TOPOLOGY_SYSFS, &t, NULL), 0);
    ck_assert_int_ge(topology_bind(&t->nodes[0], &err), 0);
    ck_assert_int_eq(sched_getaffinity(0, sizeof(now), &now), 0);
    ck_assert_uint_le((unsigned)CPU_COUNT(&now), t->nodes[0].cpus_len);
    topology_destroy(t);
}
END_TEST

START_TEST(topology_bind__refuses_a_node_without_a_usable_cpu)
{
    struct topology *t = NULL;
    struct errmsg err;

    put("online", "0\n");
    put("node0/cpulist", "4000\n");
    ck_assert_int_eq(topology_read(root, &t, NULL), 0);
    ck_assert_int_lt(topology_bind(&t->nodes[0], &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "node 0"));
    topology_destroy(t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("topology");
    TCase *tc = tcase_create("topology");

    tcase_set_timeout(tc, 60); /* of a busy machine under sanitizers */
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, topology_parse_list__as_the_kernel_writes_them, 0, ARRAY_LEN(lists));
    tcase_add_test(tc, topology_read__two_nodes_with_a_gap);
    tcase_add_loop_test(tc, topology_read__without_sysfs_there_is_one_node, 0, 3);
    tcase_add_test(tc, topology_bind__to_a_node_of_this_machine);
    tcase_add_test(tc, topology_bind__refuses_a_node_without_a_usable_cpu);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
