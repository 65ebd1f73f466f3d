#include "tests/lib/c1_forms.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "numa/circuit/c1_layout.h"

void text_add(struct text *t, const void *bytes, size_t len)
{
    if (t->len + len + 1 > t->room) {
        t->room = 2 * (t->len + len + 1);
        t->bytes = realloc(t->bytes, t->room);
        assert(t->bytes);
    }
    memcpy(t->bytes + t->len, bytes, len);
    t->len += len;
    t->bytes[t->len] = '\0';
}

void text_addf(struct text *t, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    assert(n >= 0 && (size_t)n < sizeof(line));
    text_add(t, line, (size_t)n);
}

struct writer {
    const struct json_style *style;
    uint64_t random; /* xorshift */
    struct text *out;
};

static uint64_t next_random(struct writer *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

static void space(struct writer *w)
{
    static const char *const spaces[] = {"", " ", "\n", "\t\r\n  ", ""};

    if (w->style->spaces)
        text_addf(w->out, "%s", spaces[next_random(w) % ARRAY_LEN(spaces)]);
}

static void token(struct writer *w, const char *text)
{
    space(w);
    text_addf(w->out, "%s", text);
    space(w);
}

static void write_digest(struct writer *w, const uint8_t digest[32])
{
    token(w, "[");
    for (int i = 0; i < 32; i++) {
        text_addf(w->out, "%u", digest[i]);
        if (i < 31)
            token(w, ",");
    }
    token(w, "]");
}

static void write_shape(struct writer *w, const struct shape *s, const uint8_t *at);

static void write_array(struct writer *w, const struct shape *s, const uint8_t *at)
{
    token(w, "[");
    for (uint64_t i = 0; i < s->limit; i++) {
        if (i > 0)
            token(w, ",");
        write_shape(w, s->items + i * s->items_step, at + 8 + i * s->items->bytes);
    }
    token(w, "]");
}

/* The fields' numbers in the order to write them. */
static void field_order(struct writer *w, size_t len, size_t order[SHAPE_FIELDS_MAX])
{
    for (size_t i = 0; i < len; i++)
        order[i] = i;
    for (size_t i = len; w->style->shuffle && i > 1; i--) {
        size_t k = next_random(w) % i, swap = order[i - 1];
        order[i - 1] = order[k];
        order[k] = swap;
    }
}

static void write_unknown(struct writer *w)
{
    static const char *const keys[] = {
        "\"unknown\":{\"a\":[1,-2.5e+10,true,[],{}],\"root\":null},", "\"\":\"\\u00e9\\ud83d\\ude00\\n\",",
        "\"a_key_that_is_longer_than_any_that_we_know_and_so_long_that_a_reader_cuts_it\":[[[[0]]]],",
        "\"n\\u0000de\":1E5,"};

    text_addf(w->out, "%s", keys[next_random(w) % ARRAY_LEN(keys)]);
}

static void write_fields(struct writer *w, const struct shape *s, const uint8_t *at)
{
    size_t order[SHAPE_FIELDS_MAX];
    const char *comma = "";

    field_order(w, s->fields_len, order);
    token(w, "{");
    if (w->style->unknown_keys && s->kind == SHAPE_OBJECT)
        write_unknown(w);
    for (size_t i = 0; i < s->fields_len; i++) {
        const struct shape_field *f = &s->fields[order[i]];
        if (w->style->no_h && f->shape->kind == SHAPE_ABSENT)
            continue;
        text_addf(w->out, "%s", comma);
        space(w);
        text_addf(w->out, "\"%s\"", f->name);
        token(w, ":");
        write_shape(w, f->shape, at + f->offset);
        comma = ",";
    }
    token(w, "}");
}

static void write_shape(struct writer *w, const struct shape *s, const uint8_t *at)
{
    switch (s->kind) {
    case SHAPE_FR:
    case SHAPE_TREE_D:
    case SHAPE_BYTES:
        write_digest(w, at);
        break;
    case SHAPE_U32:
    case SHAPE_LAYER:
        text_addf(w->out, "%" PRIu32, load_le32(at));
        break;
    case SHAPE_U64:
    case SHAPE_INDEX:
        text_addf(w->out, "%" PRIu64, load_le64(at));
        break;
    case SHAPE_PROOF_ID:
        text_addf(w->out, "\"%s\"", seal_proof_by_id(load_le32(at))->name);
        break;
    case SHAPE_ABSENT:
        text_addf(w->out, "null");
        break;
    case SHAPE_ARRAY:
        write_array(w, s, at);
        break;
    case SHAPE_OBJECT:
    case SHAPE_ENUM:
        write_fields(w, s, at);
        break;
    }
}

void write_json(const struct c1 *c1, const struct json_style *style, struct text *out)
{
    struct writer w = {style, style->shuffle ? style->shuffle : 1, out};
    struct c1_layout *layout = malloc(sizeof(*layout));
    size_t len;

    c1_layout_init(layout, c1_size(c1));
    write_shape(&w, &layout->root, c1_bincode(c1, &len));
    free(layout);
}

void write_base64(const void *bytes, size_t len, struct text *out)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = bytes;

    for (size_t i = 0; i < len; i += 3) {
        size_t have = min_size(len - i, 3);
        uint32_t bits = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                        (have > 2 ? p[i + 2] : 0);
        char group[4] = {alphabet[bits >> 18], alphabet[bits >> 12 & 63], alphabet[bits >> 6 & 63],
                         alphabet[bits & 63]};
        for (size_t k = have + 1; k < 4; k++)
            group[k] = '=';
        text_add(out, group, 4);
    }
}

void write_wrapper(const struct text *bare, uint64_t sector_number, uint64_t sector_size,
                   const char *miner, struct text *out)
{
    text_addf(out, "{\"SectorNum\":%" PRIu64 ",\"Phase1Out\":\"", sector_number);
    write_base64(bare->bytes, bare->len, out);
    text_addf(out, "\",\"SectorSize\":%" PRIu64, sector_size);
    if (miner)
        text_addf(out, ",\"Miner\":\"%s\"", miner);
    text_addf(out, "}");
}

void write_task(const struct text *bare, const uint8_t prover_id[32], uint64_t sector_number,
                struct text *out)
{
    struct json_style style = {0};
    struct writer w = {&style, 1, out};

    text_addf(out, "{\"c1out\":");
    text_add(out, bare->bytes, bare->len);
    text_addf(out, ",\"prover_id\":");
    write_digest(&w, prover_id);
    text_addf(out, ",\"sector_id\":%" PRIu64 ",\"miner_id\":1234}", sector_number);
}

void write_gzip(const void *bytes, size_t len, struct text *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)len};
    uint8_t piece[16384];

    deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    do {
        z.next_out = piece;
        z.avail_out = sizeof(piece);
        deflate(&z, Z_FINISH);
        text_add(out, piece, sizeof(piece) - z.avail_out);
    } while (z.avail_out == 0);
    deflateEnd(&z);
}

void write_zstd(const void *bytes, size_t len, struct text *out)
{
    size_t room = ZSTD_compressBound(len);
    uint8_t *packed = malloc(room);
    size_t packed_len = ZSTD_compress(packed, room, bytes, len, 3);

    assert(!ZSTD_isError(packed_len));
    text_add(out, packed, packed_len);
    free(packed);
}
