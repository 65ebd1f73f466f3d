#include "tests/lib/r1cs.h"

#include <stdio.h>
#include <stdlib.h>

#include "numa/base.h"

/* Test programs have no use for going on without memory. */
static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "out of memory\n");
        abort();
    }
    return p;
}

static EVP_MD_CTX *sha_begin(void)
{
    EVP_MD_CTX *md = must(EVP_MD_CTX_new());

    EVP_DigestInit_ex(md, EVP_sha256(), NULL);
    return md;
}

static void sha_hex(EVP_MD_CTX *md, char hex[R1CS_DIGEST_HEX])
{
    uint8_t digest[32];

    EVP_DigestFinal_ex(md, digest, NULL);
    hex_encode(hex, digest, sizeof(digest));
}

/* Bytes on their way into a hash. */
struct stream {
    EVP_MD_CTX *md;
    size_t len;
    uint8_t bytes[1 << 15];
};

static void stream_flush(struct stream *s)
{
    EVP_DigestUpdate(s->md, s->bytes, s->len);
    s->len = 0;
}

static uint8_t *stream_room(struct stream *s, size_t len)
{
    if (s->len + len > sizeof(s->bytes))
        stream_flush(s);
    uint8_t *at = s->bytes + s->len;
    s->len += len;
    return at;
}

/* Canonical bytes of the coefficients seen last: few are ever used, and conversion costs more than all
 * else. */
#define CACHE_LEN 4096
struct cached {
    fr_t value;
    uint8_t bytes[FR_BYTES];
};

struct r1cs_digest {
    struct stream stream;
    struct cached cache[CACHE_LEN];
};

struct r1cs_digest *r1cs_digest_create(void)
{
    struct r1cs_digest *d = must(calloc(1, sizeof(*d)));

    d->stream.md = sha_begin();
    return d; /* the cache of zeros is right: the bytes of 0 are zeros */
}

void r1cs_digest_destroy(struct r1cs_digest *d)
{
    if (d)
        EVP_MD_CTX_free(d->stream.md);
    free(d);
}

static const uint8_t *canonical(struct r1cs_digest *d, const fr_t *value)
{
    const uint64_t mix = (value->l[0] ^ value->l[3]) * UINT64_C(0x9e3779b97f4a7c15);
    struct cached *entry = &d->cache[mix >> 52];

    if (!fr_equal(&entry->value, value)) {
        entry->value = *value;
        fr_to_bytes(entry->bytes, value);
    }
    return entry->bytes;
}

static void digest_lc(struct r1cs_digest *d, const struct cs_lc *lc)
{
    store_le32(stream_room(&d->stream, 4), (uint32_t)lc->len);
    for (size_t i = 0; i < lc->len; i++) {
        uint8_t *at = stream_room(&d->stream, 4 + FR_BYTES);
        store_le32(at, lc->terms[i].var);
        memcpy(at + 4, canonical(d, &lc->terms[i].coeff), FR_BYTES);
    }
}

void r1cs_digest_row(void *digest, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                     const struct cs_lc *c)
{
    (void)row;
    digest_lc(digest, a);
    digest_lc(digest, b);
    digest_lc(digest, c);
}

struct cs_sink r1cs_digest_sink(struct r1cs_digest *d)
{
    return (struct cs_sink){.row = r1cs_digest_row, .ctx = d};
}

void r1cs_digest_finish(struct r1cs_digest *d, const struct cs *cs, char hex[R1CS_DIGEST_HEX])
{
    store_le64(stream_room(&d->stream, 8), cs->n_inputs);
    store_le64(stream_room(&d->stream, 8), cs->n_aux);
    store_le64(stream_room(&d->stream, 8), cs->n_rows);
    stream_flush(&d->stream);
    sha_hex(d->stream.md, hex);
}

struct aux_digest {
    struct stream stream;
};

struct aux_digest *aux_digest_create(void)
{
    struct aux_digest *d = must(malloc(sizeof(*d)));

    d->stream.len = 0;
    d->stream.md = sha_begin();
    return d;
}

void aux_digest_destroy(struct aux_digest *d)
{
    if (d)
        EVP_MD_CTX_free(d->stream.md);
    free(d);
}

void aux_digest_value(void *digest, uint32_t index, const fr_t *value)
{
    static const fr_t one = FR_ONE;
    struct aux_digest *d = digest;
    uint8_t *at = stream_room(&d->stream, FR_BYTES);

    (void)index;
    if (fr_is_zero(value) || fr_equal(value, &one)) {
        memset(at, 0, FR_BYTES);
        at[0] = !fr_is_zero(value);
    } else {
        fr_to_bytes(at, value);
    }
}

void aux_digest_finish(struct aux_digest *d, char hex[R1CS_DIGEST_HEX])
{
    stream_flush(&d->stream);
    sha_hex(d->stream.md, hex);
}

/* Growing arrays. */
struct values {
    fr_t *at;
    size_t len, room;
};

struct r1cs {
    struct values inputs, aux;
    struct cs_term *terms; /* of all combinations, one after another */
    size_t n_terms, terms_room;
    size_t *ends; /* of combination k: where its terms end; three a row */
    size_t n_ends, ends_room;
};

static void *grown(void *at, size_t *room, size_t len, size_t bytes)
{
    if (len <= *room)
        return at;
    *room = len + len / 2 + 1024;
    return must(realloc(at, *room * bytes));
}

struct r1cs *r1cs_create(void)
{
    return must(calloc(1, sizeof(struct r1cs)));
}

void r1cs_destroy(struct r1cs *r)
{
    if (!r)
        return;
    free(r->inputs.at);
    free(r->aux.at);
    free(r->terms);
    free(r->ends);
    free(r);
}

static void keep_value(struct values *v, const fr_t *value)
{
    v->at = grown(v->at, &v->room, v->len + 1, sizeof(*v->at));
    v->at[v->len++] = *value;
}

static void keep_input(void *ctx, uint32_t index, const fr_t *value)
{
    (void)index;
    keep_value(&((struct r1cs *)ctx)->inputs, value);
}

static void keep_aux(void *ctx, uint32_t index, const fr_t *value)
{
    (void)index;
    keep_value(&((struct r1cs *)ctx)->aux, value);
}

static void keep_lc(struct r1cs *r, const struct cs_lc *lc)
{
    r->terms = grown(r->terms, &r->terms_room, r->n_terms + lc->len, sizeof(*r->terms));
    if (lc->len > 0)
        memcpy(&r->terms[r->n_terms], lc->terms, lc->len * sizeof(*lc->terms));
    r->n_terms += lc->len;
    r->ends = grown(r->ends, &r->ends_room, r->n_ends + 1, sizeof(*r->ends));
    r->ends[r->n_ends++] = r->n_terms;
}

static void keep_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                     const struct cs_lc *c)
{
    (void)row;
    keep_lc(ctx, a);
    keep_lc(ctx, b);
    keep_lc(ctx, c);
}

struct cs_sink r1cs_sink(struct r1cs *r)
{
    return (struct cs_sink){.row = keep_row, .input = keep_input, .aux = keep_aux, .ctx = r};
}

static const fr_t *value_of(const struct r1cs *r, cs_var var)
{
    return var & CS_AUX ? &r->aux.at[var & ~CS_AUX] : &r->inputs.at[var];
}

/* Value of combination `k`. */
static fr_t lc_value(const struct r1cs *r, size_t k)
{
    fr_t sum = {{0}}, t;

    for (size_t i = k ? r->ends[k - 1] : 0; i < r->ends[k]; i++) {
        fr_mul(&t, &r->terms[i].coeff, value_of(r, r->terms[i].var));
        fr_add(&sum, &sum, &t);
    }
    return sum;
}

static bool satisfied(const fr_t *abc)
{
    fr_t product;

    fr_mul(&product, &abc[0], &abc[1]);
    return fr_equal(&product, &abc[2]);
}

int64_t r1cs_first_unsatisfied(const struct r1cs *r)
{
    for (size_t k = 0; k < r->n_ends; k += 3) {
        const fr_t abc[3] = {lc_value(r, k), lc_value(r, k + 1), lc_value(r, k + 2)};
        if (!satisfied(abc))
            return (int64_t)(k / 3);
    }
    return -1;
}

/* Numbers variables without a gap: inputs, then aux. */
static size_t flat(const struct r1cs *r, cs_var var)
{
    return var & CS_AUX ? r->inputs.len + (var & ~CS_AUX) : var;
}

/* Does changing `var` by `delta` leave the row of combinations k.. satisfied? */
static bool row_survives(const struct r1cs *r, size_t k, const fr_t *values, cs_var var,
                         const fr_t *delta)
{
    fr_t abc[3] = {values[k], values[k + 1], values[k + 2]}, t;

    for (size_t side = 0; side < 3; side++)
        for (size_t i = k + side ? r->ends[k + side - 1] : 0; i < r->ends[k + side]; i++)
            if (r->terms[i].var == var) {
                fr_mul(&t, &r->terms[i].coeff, delta);
                fr_add(&abc[side], &abc[side], &t);
            }
    return satisfied(abc);
}

static fr_t random_delta(void)
{
    uint8_t bytes[FR_BYTES] = {1};
    fr_t out;

    for (int i = 1; i < FR_BYTES - 1; i++)
        bytes[i] = (uint8_t)(random() >> 7);
    fr_from_bytes(&out, bytes); /* below 2^248, and not 0 */
    return out;
}

void r1cs_tamper(const struct r1cs *r, void (*survivor)(void *ctx, cs_var var), void *ctx)
{
    const size_t n_vars = r->inputs.len + r->aux.len;
    static const fr_t one = FR_ONE;
    fr_t *values = must(malloc(r->n_ends * sizeof(*values)));
    fr_t *delta = must(malloc(2 * n_vars * sizeof(*delta)));
    bool *noticed = must(calloc(2 * n_vars, sizeof(*noticed)));

    for (size_t k = 0; k < r->n_ends; k++)
        values[k] = lc_value(r, k);
    for (size_t v = 0; v < n_vars; v++) {
        const fr_t *value = v < r->inputs.len ? &r->inputs.at[v] : &r->aux.at[v - r->inputs.len];
        fr_sub(&delta[2 * v], &one, value);
        fr_sub(&delta[2 * v], &delta[2 * v], value); /* to 1 - v */
        delta[2 * v + 1] = random_delta();
    }
    for (size_t k = 0; k < r->n_ends; k += 3)
        for (size_t i = k ? r->ends[k - 1] : 0; i < r->ends[k + 2]; i++) {
            const cs_var var = r->terms[i].var;
            for (size_t change = 2 * flat(r, var); change < 2 * flat(r, var) + 2; change++)
                if (!noticed[change])
                    noticed[change] = !row_survives(r, k, values, var, &delta[change]);
        }
    for (size_t v = 1; v < n_vars; v++)
        if (!noticed[2 * v] || !noticed[2 * v + 1])
            survivor(ctx, v < r->inputs.len ? (cs_var)v : CS_AUX | (cs_var)(v - r->inputs.len));
    free(values);
    free(delta);
    free(noticed);
}
