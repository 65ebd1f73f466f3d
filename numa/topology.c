#include "numa/topology.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SET_BYTES CPU_ALLOC_SIZE(TOPOLOGY_CPUS_MAX)
#define NODE_FILE_BYTES 16384 /* the longest of the files read: a CPU list in its worst form */

/* Reads a small file of sysfs as text. False when it cannot be read. */
static bool read_text(char out[NODE_FILE_BYTES], const char *root, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/devices/system/node/%s", root, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(out, 1, NODE_FILE_BYTES - 1, f);
    bool good = !ferror(f);
    fclose(f);
    out[n] = '\0';
    return good;
}

static bool parse_index(const char **text, unsigned long *out)
{
    char *end;

    if (!isdigit((unsigned char)**text))
        return false;
    *out = strtoul(*text, &end, 10);
    *text = end;
    return *out < TOPOLOGY_CPUS_MAX;
}

int topology_parse_list(const char *text, cpu_set_t *set)
{
    CPU_ZERO_S(SET_BYTES, set);
    while (*text && *text != '\n') {
        unsigned long first, last;
        if (!parse_index(&text, &first))
            return -EINVAL;
        last = first;
        if (*text == '-') {
            text++;
            if (!parse_index(&text, &last) || last < first)
                return -EINVAL;
        }
        for (unsigned long i = first; i <= last; i++)
            CPU_SET_S(i, SET_BYTES, set);
        if (*text == ',')
            text++;
        else if (*text && *text != '\n')
            return -EINVAL;
    }
    return CPU_COUNT_S(SET_BYTES, set);
}

static int init_node(struct topology_node *node, int id)
{
    node->id = id;
    node->cpus = CPU_ALLOC(TOPOLOGY_CPUS_MAX);
    if (!node->cpus)
        return -ENOMEM;
    CPU_ZERO_S(SET_BYTES, node->cpus);
    return 0;
}

static void read_cpus(struct topology_node *node, const char *root)
{
    char text[NODE_FILE_BYTES], name[64];

    snprintf(name, sizeof(name), "node%d/cpulist", node->id);
    if (read_text(text, root, name) && topology_parse_list(text, node->cpus) < 0)
        CPU_ZERO_S(SET_BYTES, node->cpus);
    node->cpus_len = (uint32_t)CPU_COUNT_S(SET_BYTES, node->cpus);
}

/* "Node 0 MemTotal:       24683612 kB" */
static uint64_t meminfo_bytes(const char *text, const char *key)
{
    uint64_t kib;
    const char *at = strstr(text, key);

    if (!at || sscanf(at + strlen(key), " %" SCNu64, &kib) != 1)
        return 0;
    return kib * 1024;
}

static void read_memory(struct topology_node *node, const char *root)
{
    char text[NODE_FILE_BYTES], name[64];

    snprintf(name, sizeof(name), "node%d/meminfo", node->id);
    if (!read_text(text, root, name))
        return;
    node->total_bytes = meminfo_bytes(text, "MemTotal:");
    node->free_bytes = meminfo_bytes(text, "MemFree:");
}

static uint64_t read_count(const struct topology_node *node, const char *root, const char *file)
{
    char text[NODE_FILE_BYTES], name[128];

    snprintf(name, sizeof(name), "node%d/hugepages/%s", node->id, file);
    return read_text(text, root, name) ? strtoull(text, NULL, 10) : 0;
}

static void read_hugepages(struct topology_node *node, const char *root)
{
    node->huge_2m_total = read_count(node, root, "hugepages-2048kB/nr_hugepages");
    node->huge_2m_free = read_count(node, root, "hugepages-2048kB/free_hugepages");
    node->huge_1g_total = read_count(node, root, "hugepages-1048576kB/nr_hugepages");
    node->huge_1g_free = read_count(node, root, "hugepages-1048576kB/free_hugepages");
}

static int read_nodes(struct topology *t, const cpu_set_t *online, const char *root)
{
    for (int id = 0; id < TOPOLOGY_CPUS_MAX; id++) {
        if (!CPU_ISSET_S((unsigned)id, SET_BYTES, online))
            continue;
        struct topology_node *node = &t->nodes[t->nodes_len++];
        if (init_node(node, id) < 0)
            return -ENOMEM;
        read_cpus(node, root);
        read_memory(node, root);
        read_hugepages(node, root);
    }
    return 0;
}

/* No sysfs, or none that makes sense: one node with what this thread may run on. */
static int make_up_node(struct topology *t)
{
    struct topology_node *node = &t->nodes[0];

    t->nodes_len = 1;
    if (init_node(node, 0) < 0)
        return -ENOMEM;
    if (sched_getaffinity(0, SET_BYTES, node->cpus) < 0)
        CPU_SET_S(0, SET_BYTES, node->cpus);
    node->cpus_len = (uint32_t)CPU_COUNT_S(SET_BYTES, node->cpus);
    return 0;
}

int topology_read(const char *sysfs_root, struct topology **out, struct errmsg *err)
{
    char text[NODE_FILE_BYTES];
    struct topology *t = calloc(1, sizeof(*t));
    cpu_set_t *online = CPU_ALLOC(TOPOLOGY_CPUS_MAX);
    int ret = t && online ? 0 : -ENOMEM, count = 0;

    if (ret == 0 && read_text(text, sysfs_root, "online"))
        count = topology_parse_list(text, online);
    if (ret == 0) {
        t->from_sysfs = count > 0;
        t->nodes = calloc(count > 0 ? (size_t)count : 1, sizeof(*t->nodes));
        ret = !t->nodes ? -ENOMEM : t->from_sysfs ? read_nodes(t, online, sysfs_root) : make_up_node(t);
    }
    if (online)
        CPU_FREE(online);
    if (ret < 0) {
        topology_destroy(t);
        return errmsg_set(err, ret, "topology: no memory");
    }
    *out = t;
    return 0;
}

void topology_destroy(struct topology *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->nodes_len; i++)
        if (t->nodes[i].cpus)
            CPU_FREE(t->nodes[i].cpus);
    free(t->nodes);
    free(t);
}

const struct topology_node *topology_find(const struct topology *t, int id)
{
    for (size_t i = 0; i < t->nodes_len; i++)
        if (t->nodes[i].id == id)
            return &t->nodes[i];
    return NULL;
}

static int bind_cpus(const struct topology_node *node, struct errmsg *err)
{
    cpu_set_t *allowed = CPU_ALLOC(TOPOLOGY_CPUS_MAX);
    int ret = 0;

    if (!allowed)
        return errmsg_set(err, -ENOMEM, "node %d: no memory", node->id);
    if (sched_getaffinity(0, SET_BYTES, allowed) < 0)
        ret = -errno;
    CPU_AND_S(SET_BYTES, allowed, allowed, node->cpus);
    if (ret == 0 && sched_setaffinity(0, SET_BYTES, allowed) < 0)
        ret = -errno; /* EINVAL when nothing is left */
    CPU_FREE(allowed);
    return ret == 0 ? 0
                    : errmsg_set(err, ret, "node %d: cannot run on its CPUs: %s", node->id,
                                 strerror(-ret));
}

int topology_bind(const struct topology_node *node, struct errmsg *err)
{
    unsigned long mask[TOPOLOGY_CPUS_MAX / (8 * sizeof(unsigned long))] = {0};
    unsigned bit = (unsigned)node->id % (8 * sizeof(unsigned long));

    int ret = bind_cpus(node, err);
    if (ret < 0)
        return ret;
    mask[(unsigned)node->id / (8 * sizeof(unsigned long))] = 1ul << bit;
    /* The kernel reads one bit less than it is told of. */
    if (syscall(SYS_set_mempolicy, MPOL_BIND, mask, (unsigned long)node->id + 2) < 0)
        return errmsg_set(err, 1, "node %d: the kernel does not bind memory here: %s", node->id,
                          strerror(errno));
    return 0;
}
