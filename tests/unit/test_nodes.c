#include "daemon/nodes.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/fake_root.h"
#include "tests/lib/suite.h"

static const char *root;
static struct topology *t;
static struct placement_allowed allowed;
static struct nodes *nodes;
static struct errmsg err;

static void put_gpu(const char *address, const char *node)
{
    const char *const files[] = {"vendor", "0x10de\n", "class", "0x030200\n", "numa_node", node};
    char path[128];

    for (size_t i = 0; i < ARRAY_LEN(files); i += 2) {
        snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/%s", address, files[i]);
        fake_root_put(path, files[i + 1]);
    }
}

/* Nodes 0 and 2 with CPUs and a GPU each, node 1 memory alone; a third GPU that nobody knows the place of. */
static void setup(void)
{
    char path[128];

    root = fake_root_make();
    fake_root_put("sys/devices/system/node/online", "0-2\n");
    fake_root_put("sys/devices/system/node/node0/cpulist", "0-3\n");
    fake_root_put("sys/devices/system/node/node1/cpulist", "\n");
    fake_root_put("sys/devices/system/node/node2/cpulist", "4-7\n");
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "sys/devices/system/node/node%d/meminfo", i);
        fake_root_put(path, "Node 0 MemTotal: 8388608 kB\n");
    }
    put_gpu("0000:10:00.0", "2\n");
    put_gpu("0000:20:00.0", "0\n");
    put_gpu("0000:30:00.0", "-1\n");
    snprintf(path, sizeof(path), "%s/sys", root);
    ck_assert_int_eq(topology_read(path, &t, &err), 0);
    ck_assert_int_eq(placement_allowed_read(root, &allowed), 0);
    nodes = NULL;
}

static void teardown(void)
{
    nodes_destroy(nodes);
    placement_allowed_fini(&allowed);
    topology_destroy(t);
    fake_root_remove();
}

static void make(const char *text)
{
    ck_assert_msg(nodes_create(text, t, &allowed, &nodes, &err) == 0, "%s", err.text);
}

static void expect(size_t i, int id, const char *cpus, int memory_node)
{
    char list[64];

    ck_assert_uint_lt(i, nodes->len);
    ck_assert_int_eq(nodes->list[i].id, id);
    ck_assert(nodes->list[i].bound);
    topology_format_list(nodes->list[i].where.cpus, list, sizeof(list));
    ck_assert_str_eq(list, cpus);
    ck_assert_int_eq(nodes->list[i].where.memory_node, memory_node);
}

START_TEST(nodes_create__every_node_with_cpus)
{
    make(_i ? "  " : "");
    ck_assert_uint_eq(nodes->len, 2);
    expect(0, 0, "0-3", 0);
    expect(1, 2, "4-7", 2);
    ck_assert_uint_eq(nodes->list[0].gpus_len, 2);
    ck_assert_uint_eq(nodes->list[0].gpus[0], 1);
    ck_assert_uint_eq(nodes->list[0].gpus[1], 2);
    ck_assert_uint_eq(nodes->list[1].gpus_len, 1);
    ck_assert_uint_eq(nodes->list[1].gpus[0], 0);
    ck_assert_ptr_eq(nodes_find(nodes, 2), &nodes->list[1]);
    ck_assert_ptr_null(nodes_find(nodes, 1));
}
END_TEST

START_TEST(nodes_create__by_number)
{
    make("2");
    ck_assert_uint_eq(nodes->len, 1);
    expect(0, 2, "4-7", 2);
    ck_assert_uint_eq(nodes->list[0].gpus_len, 3); /* nobody else is there */
}
END_TEST

/* Two logical nodes on one: a GPU is given once. */
START_TEST(nodes_create__logical)
{
    make("cpus:0-1 \t cpus:2-3 cpus:3,4");
    ck_assert_uint_eq(nodes->len, 3);
    expect(0, 0, "0-1", 0);
    expect(1, 1, "2-3", 0);
    expect(2, 2, "3-4", -1);
    ck_assert_uint_eq(nodes->list[0].gpus_len, 3);
    ck_assert_uint_eq(nodes->list[1].gpus_len + nodes->list[2].gpus_len, 0);
}
END_TEST

START_TEST(nodes_create__all)
{
    make("all");
    ck_assert_uint_eq(nodes->len, 1);
    ck_assert(!nodes->list[0].bound);
    ck_assert_uint_eq(nodes->list[0].gpus_len, 3);
}
END_TEST

static const struct {
    const char *text, *word;
} wrong[] = {{"1", "node 1"},      {"3", "node 3"},      {"0 0", "twice"},
             {"x", "'x'"},         {"-1", "'-1'"},       {"0 cpus:1", "do not go together"},
             {"cpus:", "no list"}, {"cpus:9", "CPUs 9"}, {"0,2", "'0,2'"},
             {"99999", "'99999'"}};

START_TEST(nodes_create__refuses)
{
    ck_assert_int_eq(nodes_create(wrong[_i].text, t, &allowed, &nodes, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, wrong[_i].word) != NULL, "%s", err.text);
    ck_assert_ptr_null(nodes);
}
END_TEST

START_TEST(nodes_read__this_machine)
{
    ck_assert_msg(nodes_read("", &nodes, &err) == 0, "%s", err.text);
    ck_assert_uint_ge(nodes->len, 1);
    ck_assert_uint_ge(nodes->list[0].where.cpus_len, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nodes");
    TCase *tc = tcase_create("nodes");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, nodes_create__every_node_with_cpus, 0, 2);
    tcase_add_test(tc, nodes_create__by_number);
    tcase_add_test(tc, nodes_create__logical);
    tcase_add_test(tc, nodes_create__all);
    tcase_add_loop_test(tc, nodes_create__refuses, 0, ARRAY_LEN(wrong));
    tcase_add_test(tc, nodes_read__this_machine);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
