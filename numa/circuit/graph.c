/*
 * Parents follow the reference to the bit, its slips included: API 1.0 truncates an expander index to
 * 32 bits and puts the predecessor last (porep-circuit 6.3, 6.4, 8.3).
 */
#include "numa/circuit/graph.h"

#include <errno.h>
#include <string.h>

#include <openssl/sha.h>

#include "numa/circuit/blake2b.h"
#include "numa/circuit/c1.h"
#include "numa/circuit/chacha.h"

#define FEISTEL_ROUNDS 3

static void sha256_labelled(uint8_t out[32], const char *label, const uint8_t porep_id[32])
{
    uint8_t message[64];
    size_t len = strlen(label);

    memcpy(message, label, len); /* NOLINT(bugprone-not-null-terminated-result): bytes, no string */
    memcpy(message + len, porep_id, 32);
    SHA256(message, len + 32, out);
}

void graph_init(struct graph *g, uint64_t nodes, const uint8_t porep_id[32], enum api_version api)
{
    uint8_t digest[32];

    g->nodes = nodes;
    g->api = api;
    sha256_labelled(digest, "Filecoin_DRSample", porep_id);
    memcpy(g->drg_seed, digest, sizeof(g->drg_seed));
    sha256_labelled(digest, "Filecoin_Feistel", porep_id);
    for (size_t i = 0; i < ARRAY_LEN(g->feistel_keys); i++)
        g->feistel_keys[i] = load_le64(digest + 8 * i);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bits of v: ceil(log2(v + 1)). */
static unsigned bit_length(uint64_t v)
{
    return v == 0 ? 0 : 64 - (unsigned)__builtin_clzll(v);
}

/* One draw of bucket sampling for `node`; takes two numbers off the stream. */
static uint64_t drg_draw(uint64_t node, const uint64_t random[2])
{
    uint64_t meta = (DRG_PARENTS - 1) * node;
    uint64_t bucket = random[0] % bit_length(meta - 1) + 1;
    uint64_t largest = min_u64(meta, UINT64_C(1) << bucket);
    uint64_t smallest = largest / 2 > 2 ? largest / 2 : 2;
    uint64_t distance = smallest + random[1] % (largest - smallest + 1);
    uint64_t parent = (meta - distance) / (DRG_PARENTS - 1);

    return parent == node ? node - 1 : parent;
}

static void drg_stream(const struct graph *g, uint64_t node, uint64_t random[16])
{
    struct chacha c = {.rounds = 8};
    uint32_t words[2 * CHACHA_BLOCK_WORDS];

    for (size_t i = 0; i < 7; i++)
        c.key[i] = load_le32(g->drg_seed + 4 * i);
    c.key[7] = (uint32_t)node;
    chacha_block(&c, 0, words);
    chacha_block(&c, 1, words + CHACHA_BLOCK_WORDS);
    for (size_t i = 0; i < 16; i++)
        random[i] = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

static void drg_parents(const struct graph *g, uint64_t node, uint64_t parents[DRG_PARENTS])
{
    uint64_t random[16];
    unsigned first = g->api == API_1_0 ? 0 : 1;

    if (node <= 1) {
        memset(parents, 0, DRG_PARENTS * sizeof(parents[0]));
        return;
    }
    drg_stream(g, node, random);
    for (unsigned i = 0; i < DRG_PARENTS - 1; i++)
        parents[first + i] = drg_draw(node, random + (size_t)2 * i);
    parents[first == 0 ? DRG_PARENTS - 1 : 0] = node - 1;
}

static uint64_t feistel_round(uint64_t right, uint64_t key, uint64_t mask)
{
    uint8_t message[16], digest[64];

    store_be64(message, right);
    store_be64(message + 8, key);
    blake2b(digest, sizeof(digest),
            &(struct blake2b_input){.message = message, .message_len = sizeof(message)});
    return load_be64(digest) & mask;
}

static uint64_t feistel(const struct graph *g, uint64_t value, unsigned half_bits)
{
    uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t left = value >> half_bits & mask, right = value & mask;

    for (unsigned round = 0; round < FEISTEL_ROUNDS; round++) {
        uint64_t next = left ^ feistel_round(right, g->feistel_keys[round], mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

static uint64_t exp_parent(const struct graph *g, uint64_t node, unsigned i)
{
    uint64_t edges = EXP_PARENTS * g->nodes;
    unsigned half_bits = (bit_length(edges - 1) + 1) / 2;
    uint64_t edge = EXP_PARENTS * node + i;

    do
        edge = feistel(g, edge, half_bits);
    while (edge >=
           edges); /* walks along its cycle, which holds an edge below: the one it began with */
    if (g->api == API_1_0)
        edge = (uint32_t)edge;
    return edge / EXP_PARENTS;
}

void graph_parents(const struct graph *g, uint64_t node, uint64_t parents[PARENTS])
{
    drg_parents(g, node, parents);
    for (unsigned i = 0; i < EXP_PARENTS; i++)
        parents[DRG_PARENTS + i] = exp_parent(g, node, i);
}

void replica_id_compute(uint8_t out[32], const uint8_t prover_id[32], uint64_t sector_number,
                        const uint8_t ticket[32], const uint8_t comm_d[32],
                        const uint8_t porep_id[32])
{
    uint8_t message[136];

    memcpy(message, prover_id, 32);
    store_be64(message + 32, sector_number);
    memcpy(message + 40, ticket, 32);
    memcpy(message + 72, comm_d, 32);
    memcpy(message + 104, porep_id, 32);
    SHA256(message, sizeof(message), out);
    out[31] &= 0x3f;
}

void prover_id_from_miner(uint8_t out[32], uint64_t miner)
{
    unsigned len = 0;

    memset(out, 0, 32);
    for (; miner >= 0x80; miner >>= 7)
        out[len++] = (uint8_t)(miner | 0x80);
    out[len] = (uint8_t)miner;
}

/* 32 bytes as a little-endian integer, mod (nodes - 1), plus 1. nodes is at most 2^32. */
static uint64_t challenge_from_hash(const uint8_t hash[32], uint64_t nodes)
{
    uint64_t rest = 0;

    for (int i = 7; i >= 0; i--)
        rest = (rest << 32 | load_le32(hash + (ptrdiff_t)4 * i)) % (nodes - 1);
    return rest + 1;
}

static uint64_t interactive_challenge(const struct challenge_params *p, uint32_t j)
{
    uint8_t message[68], hash[32];

    memcpy(message, p->replica_id, 32);
    memcpy(message + 32, p->seed, 32);
    store_le32(message + 64, j);
    SHA256(message, sizeof(message), hash);
    return challenge_from_hash(hash, p->nodes);
}

static uint64_t non_interactive_challenge(const struct challenge_params *p, uint32_t j)
{
    static const char label[] = "filecoin.io|PoRep|1|NonInteractive|1";
    const size_t label_len = sizeof(label) - 1;
    uint8_t message[sizeof(label) - 1 + 68], hash[32];

    memcpy(message, label, label_len);
    memcpy(message + label_len, p->replica_id, 32);
    memcpy(message + label_len + 32, p->comm_r, 32);
    store_le32(message + label_len + 64, j);
    SHA256(message, sizeof(message), hash);
    return challenge_from_hash(hash, p->nodes);
}

/* The key stream of synthetic challenges under BLAKE2b-256(label; a || b). */
static void synthetic_stream(struct chacha *c, const char *label, const uint8_t a[32],
                             const uint8_t b[32])
{
    static const uint8_t nonce[12] = "synth-porep";
    uint8_t message[64], key[32];

    memcpy(message, a, 32);
    memcpy(message + 32, b, 32);
    blake2b(key, sizeof(key),
            &(struct blake2b_input){label, strlen(label), message, sizeof(message)});
    *c = (struct chacha){.rounds = 20};
    for (size_t i = 0; i < 8; i++)
        c->key[i] = load_le32(key + 4 * i);
    for (size_t i = 0; i < 3; i++)
        c->counter_nonce[1 + i] = load_le32(nonce + 4 * i);
}

uint64_t synthetic_challenge(const struct challenge_params *p, uint32_t q)
{
    uint32_t words[CHACHA_BLOCK_WORDS];
    uint8_t hash[32] = {0}; /* for gcc -fanalyzer, which does not see that the loop fills it */
    struct chacha c;

    synthetic_stream(&c, "filecoin.io|PoRep|1|Synthetic|1|Generation", p->replica_id, p->comm_r);
    chacha_block(&c, q / 2, words);
    for (size_t i = 0; i < 8; i++)
        store_le32(hash + 4 * i, words[(size_t)q % 2 * 8 + i]);
    return challenge_from_hash(hash, p->nodes);
}

uint32_t synthetic_selection(const struct challenge_params *p, uint32_t challenges, uint32_t j)
{
    uint32_t words[CHACHA_BLOCK_WORDS];
    struct chacha c;

    synthetic_stream(&c, "filecoin.io|PoRep|1|Synthetic|1|Selection", p->replica_id, p->seed);
    chacha_block(&c, j / CHACHA_BLOCK_WORDS, words);
    return words[j % CHACHA_BLOCK_WORDS] % challenges;
}

void challenges_derive(const struct challenge_params *p, uint32_t n, uint32_t k, uint64_t *out)
{
    uint32_t synthetic = (uint32_t)min_u64(p->nodes, SYNTHETIC_CHALLENGES);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = n * k + i;
        switch (p->kind) {
        case CHALLENGE_INTERACTIVE:
            out[i] = interactive_challenge(p, j);
            break;
        case CHALLENGE_SYNTHETIC:
            out[i] = synthetic_challenge(p, synthetic_selection(p, synthetic, j));
            break;
        case CHALLENGE_NON_INTERACTIVE:
            out[i] = non_interactive_challenge(p, j);
            break;
        }
    }
}

static int public_values(const struct public_params *p, fr_t out[3], struct errmsg *err)
{
    const struct {
        const char *name;
        const uint8_t *bytes;
    } values[3] = {{"replica_id", p->replica_id}, {"comm_d", p->comm_d}, {"comm_r", p->comm_r}};

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        if (!fr_from_bytes(&out[i], values[i].bytes))
            return errmsg_set(err, -EINVAL, "%s is not below the scalar modulus", values[i].name);
    return 0;
}

/* Positions that the proof of one challenge makes public, in the order of the circuit. */
static void challenge_inputs(const struct graph *g, uint64_t challenge, fr_t out[CHALLENGE_INPUTS])
{
    uint64_t parents[PARENTS];
    fr_t self = fr_from_u64(challenge);

    graph_parents(g, challenge, parents);
    out[0] = self; /* tree D */
    for (unsigned i = 0; i < PARENTS; i++)
        out[1 + i] = fr_from_u64(parents[i]);
    for (unsigned i = 1 + PARENTS; i < CHALLENGE_INPUTS; i++)
        out[i] = self; /* the packed number, tree R, tree C */
}

struct public_params public_params_of(const struct c1 *c1)
{
    return (struct public_params){.proof = c1_seal_proof(c1),
                                  .comm_r = c1_comm_r(c1),
                                  .comm_d = c1_comm_d(c1),
                                  .replica_id = c1_replica_id(c1),
                                  .seed = c1_seed(c1)};
}

int public_inputs(const struct public_params *p, uint32_t k, fr_t *out, struct errmsg *err)
{
    const struct sector_size *size = p->proof->size;
    struct challenge_params challenge = {p->proof->kind, size->nodes, p->replica_id, p->comm_r,
                                         p->seed};
    uint8_t porep_id[32];
    fr_t values[3];
    struct graph g;

    int ret = public_values(p, values, err);
    if (ret < 0)
        return ret;
    memcpy(out, values, sizeof(values));
    seal_proof_porep_id(p->proof, porep_id);
    graph_init(&g, size->nodes, p->porep_id ? p->porep_id : porep_id, p->proof->api);
    for (uint32_t i = 0; i < size->challenges; i++) {
        uint64_t node;
        challenges_derive(&challenge, 1, size->challenges * k + i, &node);
        challenge_inputs(&g, node, out + 3 + (size_t)i * CHALLENGE_INPUTS);
    }
    return 0;
}
