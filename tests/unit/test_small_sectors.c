/*
 * Small sectors replicated here, from made-up data to comm_r, and proved about: commitments, challenges, public inputs, assignments
 * and the values of all rows are as recorded (porep-circuit 7.5), for every kind of challenge, both versions of the graph and trees of
 * one, two and three parts. Whoever recorded them had neither this code nor these sectors' C1 files.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include "numa/circuit/compact.h"
#include "numa/circuit/graph.h"
#include "numa/circuit/porep.h"
#include "numa/circuit/poseidon.h"
#include "tests/lib/r1cs.h"
#include "tests/lib/suite.h"

#define MAX_NODES 1024
#define MAX_ROWS_OF_TREE 12
#define LAYERS 2

static void check_hex(const uint8_t *found, const char *wanted)
{
    char hex[65];

    hex_encode(hex, found, 32);
    ck_assert_str_eq(hex, wanted);
}

static void check_fr(const fr_t *found, const char *wanted)
{
    uint8_t bytes[FR_BYTES];

    fr_to_bytes(bytes, found);
    check_hex(bytes, wanted);
}

static fr_t fr_of(const uint8_t bytes[FR_BYTES])
{
    fr_t out;

    ck_assert(fr_from_bytes(&out, bytes));
    return out;
}

/* A digest below 2^254. */
static void sha256_trimmed(uint8_t out[32], const void *message, size_t len)
{
    SHA256(message, len, out);
    out[31] &= 0x3f;
}

/* ---------------------------------------------------------------------------------------- trees */

/* All rows of a tree, leaves first. */
struct tree {
    uint32_t levels, arity[MAX_ROWS_OF_TREE];
    fr_t row[MAX_ROWS_OF_TREE + 1][MAX_NODES];
};

static void hash_sha256(uint32_t arity, const fr_t *children, fr_t *out)
{
    uint8_t bytes[2 * FR_BYTES], digest[32];

    ck_assert_uint_eq(arity, 2);
    fr_to_bytes(bytes, &children[0]);
    fr_to_bytes(bytes + FR_BYTES, &children[1]);
    sha256_trimmed(digest, bytes, sizeof(bytes));
    *out = fr_of(digest);
}

/* Over the leaves in row 0. */
static void tree_build(struct tree *t, uint64_t leaves,
                       void (*hash)(uint32_t arity, const fr_t *children, fr_t *out))
{
    uint64_t len = leaves;

    for (uint32_t level = 0; level < t->levels; level++) {
        const uint32_t arity = t->arity[level];
        len /= arity;
        for (uint64_t i = 0; i < len; i++)
            hash(arity, &t->row[level][i * arity], &t->row[level + 1][i]);
    }
    ck_assert_uint_eq(len, 1);
}

static const fr_t *tree_root(const struct tree *t)
{
    return &t->row[t->levels][0];
}

static void tree_path(const struct tree *t, uint64_t leaf, struct merkle_level *out)
{
    for (uint32_t level = 0; level < t->levels; level++) {
        const uint32_t arity = t->arity[level];
        uint32_t n = 0;
        out[level].arity = arity;
        out[level].index = (uint32_t)(leaf % arity);
        for (uint32_t i = 0; i < arity; i++)
            if (i != out[level].index)
                out[level].siblings[n++] = t->row[level][leaf / arity * arity + i];
        leaf /= arity;
    }
}

/* -------------------------------------------------------------------------------------- sectors */

struct sector {
    const struct sector_size *size;
    struct seal_proof proof; /* those of 16 and 32 KiB are not registered */
    struct graph graph;
    uint8_t porep_id[32], replica_id[32], labels[LAYERS][MAX_NODES][32];
    struct tree d, c, r;
    fr_t comm_r;
};

static void make_data(struct sector *s)
{
    uint8_t message[23], digest[32];

    memcpy(message, "porep-test-data", 15);
    for (uint64_t i = 0; i < s->size->nodes; i++) {
        store_le64(message + 15, i);
        sha256_trimmed(digest, message, sizeof(message));
        s->d.row[0][i] = fr_of(digest);
    }
    s->d.levels = s->size->log2_nodes;
    for (uint32_t i = 0; i < s->d.levels; i++)
        s->d.arity[i] = 2;
    tree_build(&s->d, s->size->nodes, hash_sha256);
}

static void make_replica_id(struct sector *s)
{
    uint8_t prover_id[32], ticket[32], comm_d[32];

    memset(prover_id, 1, 32);
    memset(ticket, 2, 32);
    fr_to_bytes(comm_d, tree_root(&s->d));
    replica_id_compute(s->replica_id, prover_id, 7, ticket, comm_d, s->porep_id);
}

static void make_label(struct sector *s, uint32_t layer, uint64_t node)
{
    const uint32_t used = layer == 1 ? DRG_PARENTS : PARENTS;
    uint8_t message[64 + LABEL_PARENTS * 32] = {0};
    uint64_t parents[PARENTS];

    memcpy(message, s->replica_id, 32);
    store_be32(message + 32, layer);
    store_be64(message + 36, node);
    graph_parents(&s->graph, node, parents);
    for (uint32_t i = 0; i < LABEL_PARENTS; i++) {
        const uint32_t k = i % used, from = k < DRG_PARENTS ? layer : layer - 1;
        memcpy(message + 64 + 32 * (size_t)i, s->labels[from - 1][parents[k]], 32);
    }
    sha256_trimmed(s->labels[layer - 1][node], message, node == 0 ? 64 : sizeof(message));
}

static void make_replica(struct sector *s)
{
    for (uint32_t layer = 1; layer <= LAYERS; layer++)
        for (uint64_t node = 0; node < s->size->nodes; node++)
            make_label(s, layer, node);
    for (uint64_t node = 0; node < s->size->nodes; node++) {
        const fr_t column[LAYERS] = {fr_of(s->labels[0][node]), fr_of(s->labels[1][node])};
        poseidon_hash(LAYERS, column, &s->c.row[0][node]);
        fr_add(&s->r.row[0][node], &column[LAYERS - 1], &s->d.row[0][node]);
    }
    s->c.levels = s->r.levels = sector_path_levels(s->size);
    for (uint32_t i = 0; i < s->c.levels; i++)
        s->c.arity[i] = s->r.arity[i] = sector_path_arity(s->size, i);
    tree_build(&s->c, s->size->nodes, poseidon_hash);
    tree_build(&s->r, s->size->nodes, poseidon_hash);
    const fr_t roots[2] = {*tree_root(&s->c), *tree_root(&s->r)};
    poseidon_hash(2, roots, &s->comm_r);
}

static const struct recorded_sector {
    const char *size;
    uint32_t proof_id;
    const char *replica_id, *comm_d, *comm_c, *comm_r_last, *comm_r, *label_1, *label_2;
} recorded_sectors[] = {
    {"2KiB", 5, "e1b337ee8afb002cbb65c0c570bcbd10c0a9520ad9c64752165a3adb081b0933",
     "3b8d86eb49cba4cdd343529b9950709bfe18b641a5e5e6fed30eb5be40542b12",
     "0eb94800383a9ffea49ccc55fc62b148a6946088ea4341e7b8edd0422102196a",
     "9c06ed2cabad94ecce932e33427abccb557dbd63051c3324a161d5ea9c538a13",
     "a985cd54d1104c316bd7fda7db9814887e2309bb7115ab1691794b653bc16c37",
     "6e3c50e8702ebbd55b4f239977df411700ae4eeb460542fdc71673005135033e",
     "2e655831c31fa85c6fca3530c6a4b708fef18a02dd49785305d58f62ea637825"},
    {"2KiB", 0, "e346d277ca0b05ff05105693eb6970abb0c6eb558d7ab06a4ee017af5a37aa21",
     "3b8d86eb49cba4cdd343529b9950709bfe18b641a5e5e6fed30eb5be40542b12",
     "6cd5d990f5bf62e3a67f319ee5d62fbdc39b6919a3b386a03252493526dd1711",
     "26eecd1768256bba0e95ad17a31aa9df701a5858bd88b2b81f201bbbfe7a4358",
     "ee6a37db76de6482fafba4f28646ef6e2898ee9f91d065b66e69be95b3ac6d6b",
     "f995748266a8e30155252069498768fdc17a20ae8fb5930fdecdcd3e7ca8f015",
     "8c3474aa684da115e40d3153582f47b14840c5b07558636dcdf077c74a86cf18"},
    {"16KiB", 5, "abf89d29604c2dedbbac303b743b297bcf60e3bd977eca9094cfa2b4401f672e",
     "156358697f37a22cb57b47554bd96e20b43d723bb499e4fc95274f6b8a500f34",
     "d8d402feab14c4762da8c3f56a1f54f62477c49aff48aaf832fbc00ca2488704",
     "a4f9aa9d24596e764ae1d9e0285372e3fb8363974853b9d9dae9829bb4d27656",
     "b15c4b8e5d7764d3dfd89d1f9ffc94dc23bd02e8e41b6697f236947fdc291b6c", NULL,
     "f39e26e0ea8b34c7d4f25b14b412f1bcf81176ed02191b054522d5e00b4e3e00"},
    {"32KiB", 5, "a75f51be81ecb10762b331aa8ac06e1190124b20759b5303356cfb1904153a0c",
     "a06422a6e8c189914ead5e40610f54df5a67a618ff394897028a7c68f482f024",
     "91e6e09eec92d59a17e60997ff25e9ea2461f2369b0c75d54769ed12e4219f00",
     "63ce91a62fb2b59637507f6111dc1b82696e4a75568a4ff0e4d0f869d7f33840",
     "a18106bfb7e2f184c9c570ec3d3a781e463d65e9d6cde7c056afb7cfd2f16269", NULL,
     "14f8eda8777d72471a640ccd3e67c736314bab55612f541fe468f666e8816335"},
};
enum { SECTOR_2K, SECTOR_2K_LEGACY, SECTOR_16K, SECTOR_32K };

static struct sector *replicate(int which)
{
    const struct recorded_sector *rec = &recorded_sectors[which];
    struct sector *s = calloc(1, sizeof(*s));

    ck_assert_ptr_nonnull(s);
    s->proof = *seal_proof_by_id(rec->proof_id);
    s->size = s->proof.size = sector_size_by_name(rec->size);
    seal_proof_porep_id(&s->proof, s->porep_id);
    graph_init(&s->graph, s->size->nodes, s->porep_id, s->proof.api);
    make_data(s);
    make_replica_id(s);
    make_replica(s);
    return s;
}

START_TEST(small_sectors__have_the_recorded_commitments)
{
    const struct recorded_sector *rec = &recorded_sectors[_i];
    struct sector *s = replicate(_i);

    check_hex(s->replica_id, rec->replica_id);
    check_fr(tree_root(&s->d), rec->comm_d);
    check_fr(tree_root(&s->c), rec->comm_c);
    check_fr(tree_root(&s->r), rec->comm_r_last);
    check_fr(&s->comm_r, rec->comm_r);
    if (rec->label_1)
        check_hex(s->labels[0][s->size->nodes - 1], rec->label_1);
    check_hex(s->labels[1][s->size->nodes - 1], rec->label_2);
    free(s);
}
END_TEST

/* ---------------------------------------------------------------------------------- assignments */

static const struct recorded_proof {
    int sector;
    enum challenge_kind kind;
    uint32_t partition;
    uint64_t challenges[2];
    const char *witness, *rows; /* rows may be NULL: not recorded */
} recorded_proofs[] = {
    {SECTOR_2K,
     CHALLENGE_INTERACTIVE,
     0,
     {43, 60},
     "9fbf26d3feab6caf3b9a68ff6870b21464ad50e28950bd52d0ecb5fe0a93edac",
     "1db7f5443ff7eef8ca2a95082cc060955d1be63a1880c507930c59321b818784"},
    {SECTOR_2K,
     CHALLENGE_SYNTHETIC,
     0,
     {20, 60},
     "67d2a413e44657bb8392cc83894107043d8d686c5112e45f531ac1712529aa50",
     "035d5c951c49652776a3834f0543fda421d025018456dd74b0b2e8465247a54e"},
    {SECTOR_2K,
     CHALLENGE_NON_INTERACTIVE,
     0,
     {24, 57},
     "b4d6b02cd10107a0eeb03e0c0fe2862b446dcbec25f5313ecd32ef80ff2e4dd9",
     "5cab5620958249ac2614099de251994cd7fce12f272b35cbe11005e31d763d63"},
    {SECTOR_2K,
     CHALLENGE_NON_INTERACTIVE,
     1,
     {62, 4},
     "54f944f9ce9fc506e6ff6f0b07091ceee55e49d3e767e39ee4a3473d2a7307bb",
     "4383887aa4ffb5fb5fe69ce1af8272c2314d709ea49fa8fd0a3e07ab3fff18af"},
    {SECTOR_2K_LEGACY,
     CHALLENGE_INTERACTIVE,
     0,
     {47, 20},
     "24a8a1310d9371619ae06cbaa4b0dd85cdeb69e70b3d37cc1947e34d1f417ead",
     "348b433a505064bde231f27d94cacc1946c3b0ec4d6ffc7d0af264f1934abfab"},
    {SECTOR_16K,
     CHALLENGE_INTERACTIVE,
     0,
     {216, 281},
     "1795d7801617ee2b7e3bf0be5866f735cb5b5150dd34b65b42cf814f14454383",
     "cb9a84f2d690f5a2df8e49307801f607c8069554deba8e27fd8894915f5ec5d2"},
    {SECTOR_16K,
     CHALLENGE_SYNTHETIC,
     0,
     {60, 259},
     "66892efaa9d11999a889144dc9d4569c25e4e510a1ac52787a415c228d46b05c",
     NULL},
    {SECTOR_16K,
     CHALLENGE_NON_INTERACTIVE,
     0,
     {367, 159},
     "3d82b2cb70cb27e4a178731146c68c500efc0d35ad66a4caa9fad0cca190e9f2",
     NULL},
    {SECTOR_32K,
     CHALLENGE_INTERACTIVE,
     0,
     {344, 238},
     "35dac3ed8edb710d1f6ef938637eb861cf91367c904935713e94595d00aa1451",
     "2da1c5fbc0905cd97af4e0048c02e1c7e6d3702f044c5df5e4f5b19d3448c7f3"},
    {SECTOR_32K,
     CHALLENGE_SYNTHETIC,
     0,
     {11, 792},
     "d6a85900ac9a69e028d71302c10c4b575cc6407cd89490996f31958990b5443b",
     NULL},
    {SECTOR_32K,
     CHALLENGE_NON_INTERACTIVE,
     0,
     {63, 758},
     "291d2cf5758d40851df07d4b79f9a4192ef209e3d2c66fe361b59eab3bdc6f05",
     "5d1fd4d3dcc8f9d89602ac4f1f42081c6a513a4e5710206e387e08dc327332f6"},
};

/* Inputs 3 to 38 of the first of them. */
static const uint64_t first_inputs[36] = {43, 42, 40, 42, 40, 41, 39, 22, 17, 18, 50, 23,
                                          42, 22, 34, 43, 43, 43, 60, 59, 12, 19, 59, 59,
                                          58, 14, 8,  18, 27, 13, 17, 59, 33, 60, 60, 60};

static void make_challenge(const struct sector *s, uint64_t node, struct porep_challenge *out)
{
    uint64_t parents[PARENTS];

    out->node = node;
    out->data_leaf = s->d.row[0][node];
    tree_path(&s->d, node, out->d_path);
    tree_path(&s->r, node, out->r_path);
    tree_path(&s->c, node, out->c_path);
    graph_parents(&s->graph, node, parents);
    for (uint32_t i = 0; i < PARENTS; i++) {
        for (uint32_t layer = 0; layer < LAYERS; layer++)
            out->parents[i].labels[layer] = fr_of(s->labels[layer][parents[i]]);
        tree_path(&s->c, parents[i], out->parents[i].path);
    }
}

/* What is proved: a partition, decoded. */
struct statement {
    struct sector *sector;
    struct porep_roots roots;
    struct porep_challenge challenges[2];
    fr_t inputs[64]; /* as a verifier computes them, without ONE */
    size_t inputs_len;
};

static void statement_make(struct statement *st, const struct recorded_proof *rec)
{
    struct sector *s = st->sector = replicate(rec->sector);
    uint8_t comm_d[32], comm_r[32], seed[32];
    uint64_t nodes[2];
    struct errmsg err = {{0}};

    s->proof.kind = rec->kind;
    memset(seed, 3, 32);
    fr_to_bytes(comm_d, tree_root(&s->d));
    fr_to_bytes(comm_r, &s->comm_r);
    const struct challenge_params p = {rec->kind, s->size->nodes, s->replica_id, comm_r, seed};
    challenges_derive(&p, 2, rec->partition, nodes);
    st->roots = (struct porep_roots){.replica_id = fr_of(s->replica_id),
                                     .comm_d = *tree_root(&s->d),
                                     .comm_r = s->comm_r,
                                     .comm_r_last = *tree_root(&s->r),
                                     .comm_c = *tree_root(&s->c)};
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(nodes[i], rec->challenges[i]);
        make_challenge(s, nodes[i], &st->challenges[i]);
    }
    const struct public_params pub = {.proof = &s->proof,
                                      .porep_id = s->porep_id,
                                      .comm_r = comm_r,
                                      .comm_d = comm_d,
                                      .replica_id = s->replica_id,
                                      .seed = seed};
    st->inputs_len = public_inputs_len(s->size);
    ck_assert_uint_le(st->inputs_len, ARRAY_LEN(st->inputs));
    ck_assert_msg(public_inputs(&pub, rec->partition, st->inputs, &err) == 0, "%s", err.text);
}

static void check_inputs(const struct statement *st, const fr_t *inputs)
{
    ck_assert(fr_equal(&inputs[0], fr_bit(true)));
    for (size_t i = 0; i < st->inputs_len; i++)
        ck_assert_msg(fr_equal(&inputs[1 + i], &st->inputs[i]), "input %zu", i);
}

static void check_digest(struct aux_digest *d, const char *wanted)
{
    char hex[R1CS_DIGEST_HEX];

    aux_digest_finish(d, hex);
    aux_digest_destroy(d);
    ck_assert_str_eq(hex, wanted);
}

#define PIECE ((size_t)1 << 14) /* variables or rows at a time */

static void digest_assignment(const struct compact *w, struct aux_digest *d)
{
    const struct circuit *c = w->circuit;
    static fr_t aux[PIECE];

    for (uint32_t i = 0; i < c->n_inputs; i++)
        aux_digest_value(d, i, &w->values[i]);
    for (uint32_t first = 0, end; first < c->n_aux; first = end) {
        end = c->n_aux - first < PIECE ? c->n_aux : first + (uint32_t)PIECE;
        compact_expand(w, first, end, aux);
        for (uint32_t i = first; i < end; i++)
            aux_digest_value(d, i, &aux[i - first]);
    }
}

/* C is A times B. */
static void digest_rows(const struct compact *w, struct aux_digest *d)
{
    const uint64_t rows = w->circuit->n_rows;
    static fr_t a[PIECE], b[PIECE];
    fr_t c;

    for (uint64_t first = 0, end; first < rows; first = end) {
        end = rows - first < PIECE ? rows : first + PIECE;
        compact_rows(w, first, end, a, b);
        for (uint64_t i = 0; i < end - first; i++) {
            fr_mul(&c, &a[i], &b[i]);
            aux_digest_value(d, 0, &a[i]);
            aux_digest_value(d, 0, &b[i]);
            aux_digest_value(d, 0, &c);
        }
    }
}

START_TEST(compact_compute__gives_the_recorded_assignment_and_rows)
{
    const struct recorded_proof *rec = &recorded_proofs[_i];
    struct aux_digest *assignment = aux_digest_create();
    static struct statement st;
    struct circuit *circuit = NULL;
    struct compact *w = NULL;

    statement_make(&st, rec);
    if (_i == 0)
        for (size_t i = 0; i < ARRAY_LEN(first_inputs); i++) {
            const fr_t wanted = fr_from_u64(first_inputs[i]);
            ck_assert_msg(fr_equal(&st.inputs[3 + i], &wanted), "input %zu", 3 + i);
        }
    ck_assert_int_eq(circuit_create(st.sector->size, &circuit, NULL), 0);
    ck_assert_int_eq(compact_create(circuit, &w, NULL), 0);
    compact_compute(w, &st.roots, st.challenges, NULL);
    ck_assert_uint_eq(circuit->n_inputs, st.inputs_len + 1);
    check_inputs(&st, w->values);
    digest_assignment(w, assignment);
    check_digest(assignment, rec->witness);
    if (rec->rows) {
        struct aux_digest *rows = aux_digest_create();
        digest_rows(w, rows);
        check_digest(rows, rec->rows);
    }
    compact_destroy(w);
    circuit_destroy(circuit);
    free(st.sector);
}
END_TEST

/* By the gadgets, A, B and C of each row evaluated as it comes. */
struct evaluation {
    fr_t *inputs, *aux;
    struct aux_digest *rows;
};

static void keep_input(void *ctx, uint32_t index, const fr_t *value)
{
    ((struct evaluation *)ctx)->inputs[index] = *value;
}

static void keep_aux(void *ctx, uint32_t index, const fr_t *value)
{
    ((struct evaluation *)ctx)->aux[index] = *value;
}

static fr_t evaluate(const struct evaluation *e, const struct cs_lc *lc)
{
    fr_t sum = {{0}}, t;

    for (size_t i = 0; i < lc->len; i++) {
        const cs_var var = lc->terms[i].var;
        fr_mul(&t, &lc->terms[i].coeff, var & CS_AUX ? &e->aux[var & ~CS_AUX] : &e->inputs[var]);
        fr_add(&sum, &sum, &t);
    }
    return sum;
}

static void digest_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                       const struct cs_lc *c)
{
    struct evaluation *e = ctx;
    const fr_t va = evaluate(e, a), vb = evaluate(e, b), vc = evaluate(e, c);
    fr_t product;

    fr_mul(&product, &va, &vb);
    if (!fr_equal(&product, &vc))
        ck_abort_msg("row %lu is not satisfied", (unsigned long)row);
    aux_digest_value(e->rows, 0, &va);
    aux_digest_value(e->rows, 0, &vb);
    aux_digest_value(e->rows, 0, &vc);
}

/* The two large sectors: the gadgets take seconds, and what they give for 2 KiB is compared with the reference elsewhere. */
static const int by_gadgets[] = {5, 10};

START_TEST(porep_synthesize__gives_the_recorded_assignment_and_rows)
{
    const struct recorded_proof *rec = &recorded_proofs[by_gadgets[_i]];
    struct aux_digest *assignment = aux_digest_create();
    static struct statement st;
    struct porep_counts n;
    struct porep_header header;
    struct cs cs;

    statement_make(&st, rec);
    porep_counts(st.sector->size, &n);
    struct evaluation e = {.inputs = malloc(n.inputs * sizeof(fr_t)),
                           .aux = malloc(n.aux * sizeof(fr_t)),
                           .rows = aux_digest_create()};
    const struct cs_sink sink = {
        .row = digest_row, .input = keep_input, .aux = keep_aux, .ctx = &e};
    cs_init(&cs, &sink);
    porep_synthesize_header(&cs, &st.roots, &header);
    for (int i = 0; i < 2; i++)
        porep_synthesize_challenge(&cs, st.sector->size, &header, &st.challenges[i]);
    cs_close(&cs);
    ck_assert_uint_eq(cs.n_inputs, n.inputs);
    ck_assert_uint_eq(cs.n_aux, n.aux);
    ck_assert_uint_eq(cs.n_rows, n.rows);
    check_inputs(&st, e.inputs);
    for (uint32_t i = 0; i < n.inputs; i++)
        aux_digest_value(assignment, i, &e.inputs[i]);
    for (uint32_t i = 0; i < n.aux; i++)
        aux_digest_value(assignment, i, &e.aux[i]);
    check_digest(assignment, rec->witness);
    check_digest(e.rows, rec->rows);
    free(e.inputs);
    free(e.aux);
    free(st.sector);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("small_sectors");
    TCase *tc = tcase_create("small_sectors");

    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, small_sectors__have_the_recorded_commitments, 0,
                        ARRAY_LEN(recorded_sectors));
    const bool quick = getenv("PROOFD_QUICK") != NULL;
    if (quick)
        suite_skip("most assignments of small sectors", "time (PROOFD_QUICK is set)");
    tcase_add_loop_test(tc, compact_compute__gives_the_recorded_assignment_and_rows, 0,
                        quick ? 2 : ARRAY_LEN(recorded_proofs));
    tcase_add_loop_test(tc, porep_synthesize__gives_the_recorded_assignment_and_rows, 0,
                        quick ? 1 : ARRAY_LEN(by_gadgets));
    suite_add_tcase(s, tc);
    return suite_run(s);
}
