#include "numa/topology.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/fake_root.h"
#include "tests/lib/suite.h"

static const char *root;
static cpu_set_t *set;

static void setup(void)
{
    root = fake_root_make();
    set = CPU_ALLOC(TOPOLOGY_CPUS_MAX);
}

static void teardown(void)
{
    CPU_FREE(set);
    fake_root_remove();
}

static void put(const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "devices/system/node/%s", name);
    fake_root_put(path, text);
}

static const struct {
    const char *text;
    int count;
} lists[] = {
    {"0-3,8,10-11\n", 7}, {"", 0},      {"\n", 0},          {"5", 1},    {"0-0\n", 1},
    {"0-4095", 4096},     {"4096", -1}, {"3-1", -1},        {"a", -1},   {"1,,2", -1},
    {"1-", -1},           {"-1", -1},   {"0-99999999", -1}, {"0;1", -1}, {"0-3 ", -1},
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

START_TEST(topology_format_list__as_the_kernel_writes_them)
{
    static const char *const texts[] = {"", "0", "0-3", "0-1,3,7-4095", "5,7,9"};
    char text[64];

    for (size_t i = 0; i < 5; i++) {
        topology_parse_list(texts[i], set);
        topology_format_list(set, text, sizeof(text));
        ck_assert_str_eq(text, texts[i]);
    }
    topology_parse_list("0,2,4,6,8,10,12,14,16,18,20,22", set);
    topology_format_list(set, text, 32);
    ck_assert_str_eq(text, "0,2,4,6,8,10,12,14,16...");
}
END_TEST

/* Node 0 has CPUs alone, node 1 memory alone, node 2 both; 1 is nearer. */
START_TEST(topology_read__whose_memory_a_node_uses)
{
    struct topology *t = NULL;

    put("online", "0-2\n");
    put("node0/cpulist", "0-1\n");
    put("node1/cpulist", "\n");
    put("node2/cpulist", "2-3\n");
    put("node0/meminfo", "Node 0 MemTotal: 0 kB\n");
    put("node1/meminfo", "Node 1 MemTotal: 1024 kB\nNode 1 MemFree: 100 kB\n"
                         "Node 1 Active(file): 30 kB\nNode 1 Inactive(file): 20 kB\n"
                         "Node 1 SReclaimable: 1 kB\n");
    put("node2/meminfo", "Node 2 MemTotal: 2048 kB\n");
    put("node0/distance", "10 17 28\n");
    ck_assert_int_eq(topology_read(root, &t, NULL), 0);
    ck_assert_int_eq(t->nodes[0].memory_node, 1);
    ck_assert_int_eq(t->nodes[1].memory_node, 1);
    ck_assert_int_eq(t->nodes[2].memory_node, 2);
    ck_assert_uint_eq(t->nodes[1].available_bytes, 151 * 1024);
    topology_destroy(t);
}
END_TEST

static void put_device(const char *address, const char *vendor, const char *class, const char *node)
{
    const char *const files[] = {"vendor", vendor, "class", class, "numa_node", node};
    char path[128];

    for (size_t i = 0; i < ARRAY_LEN(files); i += 2) {
        snprintf(path, sizeof(path), "bus/pci/devices/%s/%s", address, files[i]);
        fake_root_put(path, files[i + 1]);
    }
}

START_TEST(topology_read__gpus_in_the_order_of_their_addresses)
{
    struct topology *t = NULL;

    put_device("0000:d8:00.0", "0x10de\n", "0x030200\n", "1\n");
    put_device("0000:3b:00.0", "0x10de\n", "0x030200\n", "0\n");
    put_device("0000:3b:00.1", "0x10de\n", "0x040300\n", "0\n");  /* its sound */
    put_device("0000:00:02.0", "0x8086\n", "0x030000\n", "-1\n"); /* another maker's */
    ck_assert_int_eq(topology_read(root, &t, NULL), 0);
    ck_assert_uint_eq(t->gpus_len, 2);
    ck_assert_str_eq(t->gpus[0].address, "0000:3b:00.0");
    ck_assert_int_eq(t->gpus[0].node, 0);
    ck_assert_str_eq(t->gpus[1].address, "0000:d8:00.0");
    ck_assert_int_eq(t->gpus[1].node, 1);
    topology_destroy(t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("topology");
    TCase *tc = tcase_create("topology");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, topology_parse_list__as_the_kernel_writes_them, 0, ARRAY_LEN(lists));
    tcase_add_test(tc, topology_read__two_nodes_with_a_gap);
    tcase_add_loop_test(tc, topology_read__without_sysfs_there_is_one_node, 0, 3);
    tcase_add_test(tc, topology_format_list__as_the_kernel_writes_them);
    tcase_add_test(tc, topology_read__whose_memory_a_node_uses);
    tcase_add_test(tc, topology_read__gpus_in_the_order_of_their_addresses);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
