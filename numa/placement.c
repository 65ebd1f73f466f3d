#include "numa/placement.h"

#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SET_BYTES CPU_ALLOC_SIZE(TOPOLOGY_CPUS_MAX)
#define LIST_BYTES 192 /* of a list of CPUs in a message */

static cpu_set_t *set_alloc(void)
{
    cpu_set_t *set = CPU_ALLOC(TOPOLOGY_CPUS_MAX);

    if (set)
        CPU_ZERO_S(SET_BYTES, set);
    return set;
}

static void set_free(cpu_set_t *set)
{
    if (set)
        CPU_FREE(set);
}

/* ---- what is allowed ---- */

void placement_allowed_fini(struct placement_allowed *allowed)
{
    set_free(allowed->cpus);
    set_free(allowed->memory_nodes);
}

static void allow_all(cpu_set_t *set)
{
    memset(set, 0xff, SET_BYTES);
}

static void read_line(char *line, const char *key, cpu_set_t *set)
{
    size_t len = strlen(key);

    if (strncmp(line, key, len) != 0)
        return;
    for (line += len; *line == ' ' || *line == '\t'; line++)
        ;
    if (topology_parse_list(line, set) <= 0)
        allow_all(set);
}

int placement_allowed_read(const char *root, struct placement_allowed *out)
{
    char path[PATH_MAX], line[16384];

    *out = (struct placement_allowed){set_alloc(), set_alloc()};
    if (!out->cpus || !out->memory_nodes) {
        placement_allowed_fini(out);
        return -ENOMEM;
    }
    allow_all(out->cpus);
    allow_all(out->memory_nodes);
    snprintf(path, sizeof(path), "%s/proc/self/status", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        read_line(line, "Cpus_allowed_list:", out->cpus);
        read_line(line, "Mems_allowed_list:", out->memory_nodes);
    }
    if (f)
        fclose(f);
    return 0;
}

/* ---- where ---- */

static void note(struct placement *p, const char *text)
{
    size_t used = strlen(p->lost);

    snprintf(p->lost + used, sizeof(p->lost) - used, "%s%s", used ? "; " : "", text);
}

static bool all_of(const cpu_set_t *set)
{
    return CPU_COUNT_S(SET_BYTES, set) == TOPOLOGY_CPUS_MAX;
}

/* Keeps of the wanted CPUs what is there and allowed, and says what is not. */
static int take_cpus(struct placement *p, const struct placement_allowed *allowed,
                     const cpu_set_t *online, const char *who, struct errmsg *err)
{
    char wanted[LIST_BYTES], found[LIST_BYTES], may[LIST_BYTES] = "all", text[3 * LIST_BYTES];
    int before = CPU_COUNT_S(SET_BYTES, p->cpus);

    topology_format_list(p->cpus, wanted, sizeof(wanted));
    if (!all_of(allowed->cpus))
        topology_format_list(allowed->cpus, may, sizeof(may));
    CPU_AND_S(SET_BYTES, p->cpus, p->cpus, online);
    CPU_AND_S(SET_BYTES, p->cpus, p->cpus, allowed->cpus);
    int after = CPU_COUNT_S(SET_BYTES, p->cpus);
    if (after == 0)
        return errmsg_set(err, -EINVAL,
                          "%s: none of its CPUs (%s) can be used; this process may use %s", who,
                          wanted, may);
    topology_format_list(p->cpus, found, sizeof(found));
    snprintf(text, sizeof(text), "of CPUs %s only %s can be used", wanted, found);
    if (after < before)
        note(p, text);
    p->cpus_len = (uint32_t)after;
    return 0;
}

/* CPUs of all nodes. */
static void find_online(const struct topology *t, cpu_set_t *out)
{
    for (size_t i = 0; i < t->nodes_len; i++)
        CPU_OR_S(SET_BYTES, out, out, t->nodes[i].cpus);
}

static void take_memory(struct placement *p, const struct placement_allowed *allowed,
                        const struct topology_node *node)
{
    char text[128];

    p->memory_node = node->memory_node;
    if (node->memory_node >= 0 && node->memory_node != node->id) {
        snprintf(text, sizeof(text), "node %d has no memory, that of node %d is used", node->id,
                 node->memory_node);
        note(p, text);
    }
    if (node->memory_node < 0 ||
        CPU_ISSET_S((unsigned)node->memory_node, SET_BYTES, allowed->memory_nodes))
        return;
    snprintf(text, sizeof(text), "this process may not use the memory of node %d",
             node->memory_node);
    note(p, text);
    p->memory_node = -1;
}

static int no_such_node(const struct topology *t, int id, struct errmsg *err)
{
    char has[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < t->nodes_len && used < sizeof(has); i++)
        used += (size_t)snprintf(has + used, sizeof(has) - used, "%s%d", i ? ", " : "",
                                 t->nodes[i].id);
    return errmsg_set(err, -EINVAL, "node %d: this machine has no such node; it has %s", id, has);
}

int placement_of_node(const struct topology *t, const struct placement_allowed *allowed, int id,
                      struct placement *out, struct errmsg *err)
{
    const struct topology_node *node = topology_find(t, id);
    struct placement p = {.cpus = set_alloc(), .memory_node = -1};
    char who[32];

    snprintf(who, sizeof(who), "node %d", id);
    if (!p.cpus || !node) {
        set_free(p.cpus);
        return node ? errmsg_set(err, -ENOMEM, "%s: no memory", who) : no_such_node(t, id, err);
    }
    CPU_OR_S(SET_BYTES, p.cpus, p.cpus, node->cpus);
    int ret = take_cpus(&p, allowed, node->cpus, who, err);
    if (ret < 0) {
        placement_fini(&p);
        return ret;
    }
    take_memory(&p, allowed, node);
    *out = p;
    return 0;
}

/* The node that all the CPUs are of, or NULL. */
static const struct topology_node *common_node(const struct topology *t, const cpu_set_t *cpus)
{
    cpu_set_t *both = set_alloc();
    const struct topology_node *found = NULL;

    for (size_t i = 0; both && i < t->nodes_len; i++) {
        CPU_AND_S(SET_BYTES, both, cpus, t->nodes[i].cpus);
        if (CPU_EQUAL_S(SET_BYTES, both, cpus))
            found = &t->nodes[i];
    }
    set_free(both);
    return found;
}

/* Those that are offline or not allowed may be had another time; those that are not there are a mistake. */
static int check_present(const struct topology *t, const cpu_set_t *wanted, const char *who, struct errmsg *err)
{
    char absent[LIST_BYTES], has[LIST_BYTES];
    cpu_set_t *missing = t->present ? set_alloc() : NULL;

    if (!missing)
        return 0;
    CPU_AND_S(SET_BYTES, missing, wanted, t->present);
    CPU_XOR_S(SET_BYTES, missing, missing, wanted);
    bool any = CPU_COUNT_S(SET_BYTES, missing) > 0;
    topology_format_list(missing, absent, sizeof(absent));
    topology_format_list(t->present, has, sizeof(has));
    set_free(missing);
    return any ? errmsg_set(err, -EINVAL, "%s: this machine has no CPU %s; it has %s", who, absent, has) : 0;
}

static int take_list(const struct topology *t, const struct placement_allowed *allowed,
                     const char *list, struct placement *p, cpu_set_t *online, struct errmsg *err)
{
    char who[LIST_BYTES];

    if (topology_parse_list(list, p->cpus) <= 0)
        return errmsg_set(err, -EINVAL, "'%s' is no list of CPUs such as 0-3,8", list);
    snprintf(who, sizeof(who), "CPUs %.150s", list);
    find_online(t, online);
    int ret = check_present(t, p->cpus, who, err);
    if (ret == 0)
        ret = take_cpus(p, allowed, online, who, err);
    if (ret < 0)
        return ret;
    const struct topology_node *node = common_node(t, p->cpus);
    if (node)
        take_memory(p, allowed, node);
    else
        note(p, "the CPUs are of several nodes, memory is not bound");
    return 0;
}

int placement_of_cpus(const struct topology *t, const struct placement_allowed *allowed,
                      const char *list, struct placement *out, struct errmsg *err)
{
    struct placement p = {.cpus = set_alloc(), .memory_node = -1};
    cpu_set_t *online = set_alloc();
    int ret = p.cpus && online ? take_list(t, allowed, list, &p, online, err)
                               : errmsg_set(err, -ENOMEM, "no memory for a list of CPUs");

    set_free(online);
    if (ret < 0) {
        placement_fini(&p);
        return ret;
    }
    *out = p;
    return 0;
}

void placement_fini(struct placement *p)
{
    set_free(p->cpus);
    p->cpus = NULL;
}

/* ---- binding ---- */

int placement_bind(const struct placement *p, struct errmsg *err)
{
    unsigned long mask[TOPOLOGY_CPUS_MAX / (8 * sizeof(unsigned long))] = {0};
    char list[LIST_BYTES];
    size_t word_bits = 8 * sizeof(mask[0]), node = (size_t)p->memory_node;

    if (sched_setaffinity(0, SET_BYTES, p->cpus) < 0) {
        topology_format_list(p->cpus, list, sizeof(list));
        return errmsg_set(err, -errno, "cannot run on CPUs %s: %s", list, strerror(errno));
    }
    if (p->memory_node < 0)
        return 0;
    mask[node / word_bits] = 1ul << node % word_bits;
    /* The kernel reads one bit less than it is told of. */
    if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask, node + 2) < 0)
        return errmsg_set(err, 1, "the kernel does not bind memory to node %d here: %s",
                          p->memory_node, strerror(errno));
    return 0;
}
