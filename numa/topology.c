#include "numa/topology.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SET_BYTES CPU_ALLOC_SIZE(TOPOLOGY_CPUS_MAX)
#define NODES "devices/system/node"
#define DEVICES "bus/pci/devices"
#define NODE_FILE_BYTES 16384 /* the longest of the files read: a CPU list in its worst form */

/* Reads a small file of sysfs, DIR/NAME/FILE, as text. False when it cannot be read. */
static bool read_text(char out[NODE_FILE_BYTES], const char *root, const char *dir,
                      const char *name, const char *file)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s/%s/%s", root, dir, name, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(out, 1, NODE_FILE_BYTES - 1, f);
    bool good = !ferror(f);
    fclose(f);
    out[n] = '\0';
    return good;
}

static bool read_node(char out[NODE_FILE_BYTES], const char *root, int id, const char *file)
{
    char name[32];

    snprintf(name, sizeof(name), "node%d", id);
    return read_text(out, root, NODES, name, file);
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

void topology_format_list(const cpu_set_t *set, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < TOPOLOGY_CPUS_MAX; i++) {
        unsigned last = i;
        if (!CPU_ISSET_S(i, SET_BYTES, set))
            continue;
        while (last + 1 < TOPOLOGY_CPUS_MAX && CPU_ISSET_S(last + 1, SET_BYTES, set))
            last++;
        if (used + sizeof(",4095-4095...") > size) {
            snprintf(out + used, size - used, "...");
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%u", used ? "," : "", i);
        if (last > i)
            used += (size_t)snprintf(out + used, size - used, "-%u", last);
        i = last;
    }
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
    char text[NODE_FILE_BYTES];

    if (read_node(text, root, node->id, "cpulist") && topology_parse_list(text, node->cpus) < 0)
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
    char text[NODE_FILE_BYTES];

    if (!read_node(text, root, node->id, "meminfo"))
        return;
    node->total_bytes = meminfo_bytes(text, "MemTotal:");
    node->free_bytes = meminfo_bytes(text, "MemFree:");
    node->available_bytes = node->free_bytes + meminfo_bytes(text, " Active(file):") +
                            meminfo_bytes(text, " Inactive(file):") +
                            meminfo_bytes(text, " SReclaimable:");
}

static uint64_t read_count(const struct topology_node *node, const char *root, const char *file)
{
    char text[NODE_FILE_BYTES];

    return read_node(text, root, node->id, file) ? strtoull(text, NULL, 10) : 0;
}

static void read_hugepages(struct topology_node *node, const char *root)
{
    node->huge_2m_total = read_count(node, root, "hugepages/hugepages-2048kB/nr_hugepages");
    node->huge_2m_free = read_count(node, root, "hugepages/hugepages-2048kB/free_hugepages");
    node->huge_1g_total = read_count(node, root, "hugepages/hugepages-1048576kB/nr_hugepages");
    node->huge_1g_free = read_count(node, root, "hugepages/hugepages-1048576kB/free_hugepages");
}

/* The number in place `at` of a node's distances; they are in the order of the nodes online. */
static unsigned long read_distance(const struct topology_node *node, const char *root, size_t at)
{
    char text[NODE_FILE_BYTES], *next = text;
    unsigned long distance = ULONG_MAX;

    if (!read_node(text, root, node->id, "distance"))
        return ULONG_MAX;
    for (size_t i = 0; i <= at; i++) {
        char *end;
        distance = strtoul(next, &end, 10);
        if (end == next)
            return ULONG_MAX;
        next = end;
    }
    return distance;
}

static void find_memory(struct topology *t, struct topology_node *node, const char *root)
{
    unsigned long nearest = ULONG_MAX;

    node->memory_node = node->total_bytes ? node->id : -1;
    for (size_t i = 0; i < t->nodes_len && !node->total_bytes; i++) {
        unsigned long distance = read_distance(node, root, i);
        if (!t->nodes[i].total_bytes || (node->memory_node >= 0 && distance >= nearest))
            continue;
        nearest = distance;
        node->memory_node = t->nodes[i].id;
    }
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
    for (size_t i = 0; i < t->nodes_len; i++)
        find_memory(t, &t->nodes[i], root);
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
    node->memory_node = -1;
    return 0;
}

/* ---- GPUs ---- */

/* NVIDIA's, and a display controller of any kind. */
static bool is_gpu(const char *root, const char *address)
{
    char text[NODE_FILE_BYTES];

    return read_text(text, root, DEVICES, address, "vendor") && strtoul(text, NULL, 16) == 0x10de &&
           read_text(text, root, DEVICES, address, "class") && strtoul(text, NULL, 16) >> 16 == 3;
}

static int add_gpu(struct topology *t, const char *root, const char *address)
{
    char text[NODE_FILE_BYTES];
    struct topology_gpu *more = realloc(t->gpus, (t->gpus_len + 1) * sizeof(*more));

    if (!more)
        return -ENOMEM;
    t->gpus = more;
    struct topology_gpu *gpu = &t->gpus[t->gpus_len++];
    snprintf(gpu->address, sizeof(gpu->address), "%.31s", address);
    gpu->node = read_text(text, root, DEVICES, address, "numa_node") ? atoi(text) : -1;
    return 0;
}

static int read_gpus(struct topology *t, const char *root)
{
    char path[PATH_MAX];
    struct dirent **list;
    int ret = 0;

    snprintf(path, sizeof(path), "%s/" DEVICES, root);
    int n = scandir(path, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (ret == 0 && list[i]->d_name[0] != '.' && is_gpu(root, list[i]->d_name))
            ret = add_gpu(t, root, list[i]->d_name);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    return ret;
}

static int read_present(struct topology *t, const char *root)
{
    char text[NODE_FILE_BYTES];

    if (!read_text(text, root, "devices/system/cpu", "", "present"))
        return 0;
    t->present = CPU_ALLOC(TOPOLOGY_CPUS_MAX);
    if (!t->present)
        return -ENOMEM;
    if (topology_parse_list(text, t->present) <= 0) {
        CPU_FREE(t->present);
        t->present = NULL;
    }
    return 0;
}

int topology_read(const char *sysfs_root, struct topology **out, struct errmsg *err)
{
    char text[NODE_FILE_BYTES];
    struct topology *t = calloc(1, sizeof(*t));
    cpu_set_t *online = CPU_ALLOC(TOPOLOGY_CPUS_MAX);
    int ret = t && online ? 0 : -ENOMEM, count = 0;

    if (ret == 0 && read_text(text, sysfs_root, NODES, "", "online"))
        count = topology_parse_list(text, online);
    if (ret == 0) {
        t->from_sysfs = count > 0;
        t->nodes = calloc(count > 0 ? (size_t)count : 1, sizeof(*t->nodes));
        ret = !t->nodes       ? -ENOMEM
              : t->from_sysfs ? read_nodes(t, online, sysfs_root)
                              : make_up_node(t);
    }
    if (online)
        CPU_FREE(online);
    if (ret == 0)
        ret = read_present(t, sysfs_root);
    if (ret == 0)
        ret = read_gpus(t, sysfs_root);
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
    if (t->present)
        CPU_FREE(t->present);
    free(t->nodes);
    free(t->gpus);
    free(t);
}

const struct topology_node *topology_find(const struct topology *t, int id)
{
    for (size_t i = 0; i < t->nodes_len; i++)
        if (t->nodes[i].id == id)
            return &t->nodes[i];
    return NULL;
}
