#include "daemon/nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS "cpus:"

/* What a list is made from. */
struct making {
    const struct topology *topology;
    const struct placement_allowed *allowed;
    struct nodes *nodes;
};

static int add_numa(const struct making *m, int id, struct errmsg *err)
{
    struct node node = {.id = id, .bound = true};

    if (nodes_find(m->nodes, id))
        return errmsg_set(err, -EINVAL, "node %d twice", id);
    if (m->nodes->len == NODES_MAX)
        return errmsg_set(err, -EINVAL, "more than %d nodes", NODES_MAX);
    int ret = placement_of_node(m->topology, m->allowed, id, &node.where, err);
    if (ret == 0)
        m->nodes->list[m->nodes->len++] = node;
    return ret;
}

static int add_cpus(const struct making *m, const char *list, struct errmsg *err)
{
    struct node node = {.id = (int)m->nodes->len, .bound = true};

    if (m->nodes->len == NODES_MAX)
        return errmsg_set(err, -EINVAL, "more than %d nodes", NODES_MAX);
    int ret = placement_of_cpus(m->topology, m->allowed, list, &node.where, err);
    if (ret == 0)
        m->nodes->list[m->nodes->len++] = node;
    return ret;
}

/* Those without a CPU for this process are left out; that there is none at all is an error. */
static int add_every(const struct making *m, struct errmsg *err)
{
    int ret = -EINVAL;

    for (size_t i = 0; i < m->topology->nodes_len && m->nodes->len < NODES_MAX; i++) {
        int added = add_numa(m, m->topology->nodes[i].id, err);
        if (added == -ENOMEM)
            return added;
        ret = added == 0 ? 0 : ret;
    }
    return ret;
}

static int add_word(const struct making *m, const char *word, struct errmsg *err)
{
    char *end;

    if (strncmp(word, CPUS, strlen(CPUS)) == 0)
        return add_cpus(m, word + strlen(CPUS), err);
    long id = strtol(word, &end, 10);
    if (end == word || *end || id < 0 || id >= TOPOLOGY_CPUS_MAX)
        return errmsg_set(err, -EINVAL, "'%s' is neither a node's number nor cpus:LIST", word);
    return add_numa(m, (int)id, err);
}

static int add_words(const struct making *m, const char *text, struct errmsg *err)
{
    char *copy = strdup(text), *rest = copy, *word;
    bool logical = strstr(text, CPUS) != NULL;
    int ret = copy ? 0 : errmsg_set(err, -ENOMEM, "no memory");

    while (ret == 0 && (word = strsep(&rest, " \t"))) {
        if (!*word)
            continue;
        if (logical && strncmp(word, CPUS, strlen(CPUS)) != 0)
            ret = errmsg_set(err, -EINVAL, "nodes by number and by CPUs do not go together");
        else
            ret = add_word(m, word, err);
    }
    free(copy);
    return ret;
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t")] == '\0';
}

static int add_nodes(const struct making *m, const char *text, struct errmsg *err)
{
    if (is_blank(text))
        return add_every(m, err);
    if (strcmp(text, "all") != 0)
        return add_words(m, text, err);
    m->nodes->list[m->nodes->len++] = (struct node){.id = 0};
    return 0;
}

static void give_gpus(const struct making *m)
{
    for (uint32_t i = 0; i < m->topology->gpus_len; i++) {
        struct node *owner = &m->nodes->list[0];
        for (size_t k = m->nodes->len; k-- > 0;) {
            struct node *n = &m->nodes->list[k];
            if (n->bound && n->where.memory_node >= 0 &&
                n->where.memory_node == m->topology->gpus[i].node)
                owner = n;
        }
        if (owner->gpus_len < NODES_GPUS_MAX)
            owner->gpus[owner->gpus_len++] = i;
    }
}

int nodes_create(const char *text, const struct topology *t,
                 const struct placement_allowed *allowed, struct nodes **out, struct errmsg *err)
{
    struct making m = {t, allowed, calloc(1, sizeof(*m.nodes))};
    int ret = m.nodes ? add_nodes(&m, text, err) : errmsg_set(err, -ENOMEM, "no memory");

    if (ret < 0) {
        nodes_destroy(m.nodes);
        return ret;
    }
    give_gpus(&m);
    *out = m.nodes;
    return 0;
}

void nodes_destroy(struct nodes *nodes)
{
    if (!nodes)
        return;
    for (size_t i = 0; i < nodes->len; i++)
        if (nodes->list[i].bound)
            placement_fini(&nodes->list[i].where);
    free(nodes);
}

int nodes_read(const char *text, struct nodes **out, struct errmsg *err)
{
    struct placement_allowed allowed;
    struct topology *t = NULL;
    int ret = topology_read(TOPOLOGY_SYSFS, &t, err);

    if (ret < 0)
        return ret;
    ret = placement_allowed_read("", &allowed);
    if (ret < 0) {
        topology_destroy(t);
        return errmsg_set(err, ret, "no memory");
    }
    ret = nodes_create(text, t, &allowed, out, err);
    placement_allowed_fini(&allowed);
    topology_destroy(t);
    return ret;
}

const struct node *nodes_find(const struct nodes *nodes, int id)
{
    for (size_t i = 0; i < nodes->len; i++)
        if (nodes->list[i].id == id)
            return &nodes->list[i];
    return NULL;
}
