/*
 * A stack of frames, one for each container that is open, follows the tokenizer. From the topmost frame and
 * its current key or index follows what the next value must be and where it goes: a slot. Inside the
 * vanilla proofs frames and slots are read off the layout; outside there are a few by hand.
 *
 * Nothing is missing when the document ends well, since no container ends before it has all that belongs
 * into it, and nothing is there twice, since each remembers what it has.
 */
#include "numa/circuit/c1_document.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "numa/circuit/base64.h"
#include "numa/circuit/graph.h"
#include "numa/circuit/json.h"

#define STRING_MAX 64 /* longer than any name we know */

/* A real document has a few hundred bytes under keys that we do not know, and printed with four spaces a level 66
 * bytes of text for a byte that counts, which is fifteen levels deep. What has far more is made to keep us busy:
 * packed, it costs its sender nothing. */
#define SKIPPED_MAX ((uint64_t)1 << 20)
#define TEXT_PER_BYTE 128
#define TEXT_FREE ((uint64_t)4 << 20) /* before that is asked */

enum want {
    WANT_SKIP,       /* whatever it is */
    WANT_TOP,        /* the object that the document is */
    WANT_C1,         /* the C1 in the task form */
    WANT_VANILLA,    /* { variant: proofs } */
    WANT_SHAPE,      /* as the layout says */
    WANT_DIGEST,     /* 32 numbers */
    WANT_BYTE,       /* one of them */
    WANT_PROOF_NAME, /* a string */
    WANT_SECTOR_NUMBER,
    WANT_SECTOR_SIZE,
    WANT_MINER_ID,
    WANT_MINER, /* "f01000" */
    WANT_PHASE1 /* base64 of the C1 */
};

/* What the next value must be, and where it goes. */
struct slot {
    enum want want;
    const struct shape *shape; /* WANT_SHAPE */
    enum shape_kind digest;    /* WANT_DIGEST */
    uint8_t *to;               /* WANT_SHAPE, WANT_DIGEST, WANT_BYTE */
};

struct frame {
    struct slot slot;  /* what this container is */
    struct slot value; /* what the value of the current key is (objects) */
    const char *key;   /* the current key; NULL between values and for keys nobody knows */
    uint64_t seen;     /* a bit for each key that was there (objects) */
    uint64_t count;    /* values that were there (arrays) */
};

/* What the document turned out to be: which of these keys came first. */
enum content { CONTENT_NONE, CONTENT_BARE, CONTENT_WRAPPER, CONTENT_TASK };

struct c1_document {
    struct c1_build *build;
    const char *text;
    uint64_t offset;
    struct json *json;
    enum content content;
    bool prover_id_given; /* by itself, not by way of the miner */
    uint64_t fed;         /* bytes of text */
    uint64_t gained;      /* bytes that this text has brought to the decoded form, about */
    uint64_t skipped;     /* bytes under unknown keys */
    uint64_t skip_from;   /* where the unknown key in hand began */
    bool skipping;        /* there is one */
    uint64_t string_bytes; /* of the string in hand, all of them */
    struct slot pending;  /* the byte array that the tokenizer is trying to read in one go */
    size_t depth;
    struct frame frames[JSON_DEPTH_MAX];
    char string[STRING_MAX + 1];
    size_t string_len; /* STRING_MAX + 1: longer */
    struct base64 base64;
    uint64_t base64_chars;
    struct c1_document *inner; /* in Phase1Out */
};

/* The keys of a C1, in the order of C1_PROOF_ID .. C1_TICKET. */
static const struct {
    const char *name;
    enum shape_kind digest; /* of the globals */
} c1_keys[] = {
    [C1_PROOF_ID] = {"registered_proof", SHAPE_PROOF_ID},
    [C1_VANILLA] = {"vanilla_proofs", SHAPE_ENUM},
    [C1_COMM_R] = {"comm_r", SHAPE_FR},
    [C1_COMM_D] = {"comm_d", SHAPE_TREE_D},
    [C1_REPLICA_ID] = {"replica_id", SHAPE_FR},
    [C1_SEED] = {"seed", SHAPE_BYTES},
    [C1_TICKET] = {"ticket", SHAPE_BYTES},
};

#define C1_KEYS_SEEN ((UINT64_C(1) << ARRAY_LEN(c1_keys)) - 1)

/* What may be around it. Go reads its keys in any case. */
static const struct {
    const char *name;
    bool any_case;
    enum want want;
} outer_keys[] = {
    {"Phase1Out", true, WANT_PHASE1},       {"SectorNum", true, WANT_SECTOR_NUMBER},
    {"SectorSize", true, WANT_SECTOR_SIZE}, {"Miner", true, WANT_MINER},
    {"c1out", false, WANT_C1},              {"prover_id", false, WANT_DIGEST},
    {"sector_id", false, WANT_SECTOR_NUMBER}, {"miner_id", false, WANT_MINER_ID},
};

#define OUTER_KEY_BIT(i) (UINT64_C(1) << (ARRAY_LEN(c1_keys) + (i)))

/* ----------------------------------------------------------------------------------------- errors */

static bool is_array(const struct frame *f)
{
    return f->slot.want == WANT_DIGEST ||
           (f->slot.want == WANT_SHAPE && f->slot.shape->kind == SHAPE_ARRAY);
}

static void trace(const struct c1_document *d, struct shape_trace *t)
{
    *t = (struct shape_trace){.len = 0};
    for (size_t i = 0; i < d->depth; i++) {
        const struct frame *f = &d->frames[i];
        if (is_array(f))
            shape_trace_index(t, f->count);
        else if (f->key)
            shape_trace_key(t, f->key);
    }
}

/* Completes an error by the place in the document and in the text. */
static int describe(struct c1_document *d, int ret, struct errmsg *err)
{
    struct shape_trace t;

    if (ret == 0 || d->build->described)
        return ret;
    d->build->described = true;
    if (!err)
        return ret;
    struct errmsg what = *err;
    trace(d, &t);
    return errmsg_set(err, ret, "%s%s%s (byte %" PRIu64 " of the %s)", t.text, t.len > 0 ? ": " : "",
                      what.text, d->offset + json_offset(d->json), d->text);
}

/* "found key KEY, wanted WANTED": what the document says is not to be trusted with a terminal. */
static int unexpected_key(const struct json_key *key, const char *wanted, struct errmsg *err)
{
    char shown[ESCAPED_BYTES(JSON_KEY_MAX)];

    escape_name(shown, sizeof(shown), key->text);
    return errmsg_set(err, -EBADMSG, "found key %s, wanted %s", shown, wanted);
}

static const char *slot_wants(const struct slot *s)
{
    switch (s->want) {
    case WANT_TOP:
    case WANT_C1:
    case WANT_VANILLA:
        return "an object";
    case WANT_DIGEST:
        return "an array of 32 bytes";
    case WANT_BYTE:
        return "a number from 0 to 255";
    case WANT_PROOF_NAME:
        return "the name of a registered proof";
    case WANT_MINER:
        return "the address of a miner";
    case WANT_PHASE1:
        return "base64 in a string";
    case WANT_SECTOR_NUMBER:
    case WANT_SECTOR_SIZE:
    case WANT_MINER_ID:
        return "a 64-bit number";
    case WANT_SKIP:
        return "any value";
    case WANT_SHAPE:
        break;
    }
    switch (s->shape->kind) {
    case SHAPE_ARRAY:
        return "an array";
    case SHAPE_U32:
    case SHAPE_LAYER:
        return "a 32-bit number";
    case SHAPE_U64:
    case SHAPE_INDEX:
        return "a 64-bit number";
    case SHAPE_ABSENT:
        return "null";
    default:
        return "an object";
    }
}

static int wrong_type(const struct slot *s, const char *found, struct errmsg *err)
{
    return errmsg_set(err, -EBADMSG, "found %s, wanted %s", found, slot_wants(s));
}

/* ------------------------------------------------------------------------------------------ slots */

static struct slot shape_slot(const struct shape *shape, uint8_t *to)
{
    bool digest = shape->kind == SHAPE_FR || shape->kind == SHAPE_TREE_D || shape->kind == SHAPE_BYTES;

    return (struct slot){digest ? WANT_DIGEST : WANT_SHAPE, shape, shape->kind, to};
}

static struct slot array_slot(const struct frame *f)
{
    const struct shape *s = f->slot.shape;

    if (f->slot.want == WANT_DIGEST)
        return (struct slot){.want = WANT_BYTE, .to = f->slot.to + f->count};
    return shape_slot(s->items + f->count * s->items_step,
                      f->slot.to + (s->bytes - s->limit * s->items->bytes) + f->count * s->items->bytes);
}

static uint64_t array_limit(const struct frame *f)
{
    return f->slot.want == WANT_DIGEST ? 32 : f->slot.shape->limit;
}

/* What the value that begins now must be. False when the array it would be in is full. */
static bool next_slot(const struct c1_document *d, struct slot *out)
{
    if (d->depth == 0) {
        *out = (struct slot){.want = WANT_TOP};
        return true;
    }
    const struct frame *f = &d->frames[d->depth - 1];
    if (!is_array(f)) {
        *out = f->value;
        return true;
    }
    if (f->count == array_limit(f))
        return false;
    *out = array_slot(f);
    return true;
}

/* Who seals non-interactively has more partitions; said before the proof type is, they are all we see. */
static int array_is_full(const struct c1_document *d, struct errmsg *err)
{
    const struct frame *f = &d->frames[d->depth - 1];
    const struct c1_build *b = d->build;

    if (b->c1 && !b->proof && f->slot.shape == &b->c1->layout.partitions)
        return errmsg_set(err, -EINVAL,
                          "more than %" PRIu64 " partitions: non-interactive proofs are not supported by "
                          "this version",
                          f->slot.shape->limit);
    return errmsg_set(err, -EBADMSG, "found more values, wanted %" PRIu64, array_limit(f));
}

static int take_slot(const struct c1_document *d, struct slot *out, struct errmsg *err)
{
    return next_slot(d, out) ? 0 : array_is_full(d, err);
}

static void value_done(struct c1_document *d)
{
    if (d->depth == 0)
        return;
    struct frame *f = &d->frames[d->depth - 1];
    f->count++;
    f->key = NULL;
    if (d->skipping && f->slot.want != WANT_SKIP) {
        d->skipped += json_offset(d->json) - d->skip_from;
        d->skipping = false;
    }
}

/* An unknown key, its value with it: all of it is skipped. Keys in such a value are nothing new. */
static void skip_begin(struct c1_document *d, const struct frame *f)
{
    if (f->slot.want == WANT_SKIP || f->value.want != WANT_SKIP)
        return;
    d->skipping = true;
    d->skip_from = json_offset(d->json);
}

/* Is what was fed worth reading on? */
static int waste_check(const struct c1_document *d, struct errmsg *err)
{
    uint64_t skipped = d->skipped + (d->skipping ? d->fed - d->skip_from : 0);

    if (skipped > SKIPPED_MAX)
        return errmsg_set(err, -EBADMSG, "more than %" PRIu64 " bytes under keys that no C1 has",
                          SKIPPED_MAX);
    if (d->fed > TEXT_FREE && (d->fed - TEXT_FREE) / TEXT_PER_BYTE > d->gained)
        return errmsg_set(err, -EBADMSG,
                          "%" PRIu64 " bytes of text with no more than %" PRIu64 " bytes of a C1 in it",
                          d->fed, d->gained);
    return 0;
}

/* ----------------------------------------------------------------------------------------- digests */

static int digest_check(const struct slot *s, struct errmsg *err)
{
    const char *wants = shape_digest_wants(s->digest, s->to);
    char hex[65];

    if (!wants)
        return 0;
    hex_encode(hex, s->to, 32);
    return errmsg_set(err, -EBADMSG, "found %s, wanted %s", hex, wants);
}

static uint8_t *on_bytes32(void *ctx)
{
    struct c1_document *d = ctx;

    return next_slot(d, &d->pending) && d->pending.want == WANT_DIGEST ? d->pending.to : NULL;
}

static int on_bytes32_end(void *ctx, struct errmsg *err)
{
    struct c1_document *d = ctx;
    int ret = digest_check(&d->pending, err);

    d->gained += 32;
    if (ret == 0)
        value_done(d);
    return ret;
}

/* ------------------------------------------------------------------------------------- containers */

static bool slot_is_container(const struct slot *s, bool array)
{
    switch (s->want) {
    case WANT_SKIP:
        return true;
    case WANT_TOP:
    case WANT_C1:
    case WANT_VANILLA:
        return !array;
    case WANT_DIGEST:
        return array;
    case WANT_SHAPE:
        return array ? s->shape->kind == SHAPE_ARRAY
                     : s->shape->kind == SHAPE_OBJECT || s->shape->kind == SHAPE_ENUM;
    default:
        return false;
    }
}

static int on_begin(void *ctx, bool array, struct errmsg *err)
{
    struct c1_document *d = ctx;
    struct slot s;

    int ret = take_slot(d, &s, err);
    if (ret < 0)
        return ret;
    if (!slot_is_container(&s, array))
        return wrong_type(&s, array ? "an array" : "an object", err);
    d->frames[d->depth++] = (struct frame){.slot = s}; /* the tokenizer bounds the depth */
    return 0;
}

static int missing_key(const char *name, struct errmsg *err)
{
    return errmsg_set(err, -EBADMSG, "key %s is missing", name);
}

static int c1_complete(const struct frame *f, struct errmsg *err)
{
    for (size_t i = 0; i < ARRAY_LEN(c1_keys); i++)
        if (!(f->seen >> i & 1))
            return missing_key(c1_keys[i].name, err);
    return 0;
}

static int object_complete(const struct frame *f, struct errmsg *err)
{
    const struct shape *s = f->slot.shape;

    for (size_t i = 0; i < s->fields_len; i++)
        if (!(f->seen >> i & 1) && s->fields[i].shape->kind != SHAPE_ABSENT)
            return missing_key(s->fields[i].name, err);
    return 0;
}

static int array_complete(const struct frame *f, struct errmsg *err)
{
    if (f->count == array_limit(f))
        return 0;
    return errmsg_set(err, -EBADMSG, "found %" PRIu64 " values, wanted %" PRIu64 "%s", f->count,
                      array_limit(f),
                      f->count == 0 ? " (a C1 made for its synthetic challenges has none; it proves "
                                      "nothing)"
                                    : "");
}

static int top_complete(const struct c1_document *d, const struct frame *f, struct errmsg *err)
{
    if (d->content == CONTENT_NONE)
        return errmsg_set(err, -EBADMSG, "no C1 in here: wanted key vanilla_proofs, Phase1Out or c1out");
    return d->content == CONTENT_BARE ? c1_complete(f, err) : 0;
}

/* Is everything there that belongs into the container that ends? */
static int container_complete(const struct c1_document *d, const struct frame *f, struct errmsg *err)
{
    if (is_array(f))
        return array_complete(f, err);
    switch (f->slot.want) {
    case WANT_TOP:
        return top_complete(d, f, err);
    case WANT_C1:
        return c1_complete(f, err);
    case WANT_VANILLA:
        return f->seen ? 0 : errmsg_set(err, -EBADMSG, "found no key, wanted that of a sector size");
    case WANT_SHAPE:
        return object_complete(f, err);
    default:
        return 0;
    }
}

/* The container has ended in good order; the frame is off the stack. */
static int container_done(struct c1_document *d, const struct frame *f, struct errmsg *err)
{
    const struct c1_build *b = d->build;

    if (f->slot.want == WANT_DIGEST) {
        int ret = digest_check(&f->slot, err);
        if (ret < 0)
            return ret;
    }
    bool proof = b->c1 && f->slot.want == WANT_SHAPE && f->slot.shape == &b->c1->layout.proof;
    value_done(d);
    return proof ? c1_build_proof_there(d->build, err) : 0;
}

static int on_end(void *ctx, bool array, struct errmsg *err)
{
    struct c1_document *d = ctx;
    struct frame f = d->frames[--d->depth];

    (void)array;
    int ret = container_complete(d, &f, err);
    return ret < 0 ? ret : container_done(d, &f, err);
}

/* ------------------------------------------------------------------------------------------- keys */

static int mark_seen(struct frame *f, uint64_t bit, const char *name, struct errmsg *err)
{
    if (f->seen & bit)
        return errmsg_set(err, -EBADMSG, "key %s is there twice", name);
    f->seen |= bit;
    f->key = name;
    return 0;
}

static int set_content(struct c1_document *d, enum content content, struct errmsg *err)
{
    if (d->content != CONTENT_NONE && d->content != content)
        return errmsg_set(err, -EBADMSG, "more than one C1 in one document");
    d->content = content;
    return 0;
}

/* Index in c1_keys, or -1. */
static int c1_key_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(c1_keys); i++)
        if (strcmp(c1_keys[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int c1_key(struct c1_document *d, struct frame *f, int i, struct errmsg *err)
{
    if (i == C1_PROOF_ID)
        f->value = (struct slot){.want = WANT_PROOF_NAME};
    else if (i == C1_VANILLA)
        f->value = (struct slot){.want = WANT_VANILLA};
    else
        f->value = (struct slot){.want = WANT_DIGEST,
                                 .digest = c1_keys[i].digest,
                                 .to = c1_build_global(d->build, (size_t)i)};
    return mark_seen(f, UINT64_C(1) << i, c1_keys[i].name, err);
}

static int outer_key(struct c1_document *d, struct frame *f, size_t i, struct errmsg *err)
{
    enum want want = outer_keys[i].want;
    int ret = 0;

    f->value = (struct slot){.want = want, .digest = SHAPE_BYTES, .to = d->build->extra.prover_id};
    if (want == WANT_PHASE1)
        ret = set_content(d, CONTENT_WRAPPER, err);
    if (want == WANT_C1)
        ret = set_content(d, CONTENT_TASK, err);
    if (want == WANT_DIGEST)
        d->prover_id_given = d->build->extra.has_prover_id = true;
    return ret < 0 ? ret : mark_seen(f, OUTER_KEY_BIT(i), outer_keys[i].name, err);
}

static int top_key(struct c1_document *d, struct frame *f, const struct json_key *key,
                   struct errmsg *err)
{
    for (size_t i = 0; i < ARRAY_LEN(outer_keys); i++)
        if ((outer_keys[i].any_case ? strcasecmp : strcmp)(outer_keys[i].name, key->text) == 0)
            return outer_key(d, f, i, err);
    int i = c1_key_find(key->text);
    if (i < 0 || d->content == CONTENT_WRAPPER || d->content == CONTENT_TASK)
        return 0;
    int ret = set_content(d, CONTENT_BARE, err);
    return ret < 0 ? ret : c1_key(d, f, i, err);
}

static const struct sector_size *variant_find(const char *name)
{
    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        const char *variant = sector_variant_name(size);
        if (variant && strcmp(variant, name) == 0)
            return size;
    }
    return NULL;
}

static int vanilla_key(struct c1_document *d, struct frame *f, const struct json_key *key,
                       struct errmsg *err)
{
    const struct sector_size *size = variant_find(key->text);
    struct c1_build *b = d->build;

    if (!size)
        return unexpected_key(key, "StackedDrg2KiBV1 or of another sector size", err);
    if (f->seen)
        return errmsg_set(err, -EBADMSG, "found a second key, wanted one sector size");
    mark_seen(f, 1, sector_variant_name(size), err);
    int ret = c1_build_set_size(b, size, err);
    if (ret < 0)
        return ret;
    const struct c1_layout *l = &b->c1->layout;
    f->value = shape_slot(&l->partitions, b->c1->bytes + l->root.fields[C1_VANILLA].offset +
                                              l->vanilla.fields[0].offset);
    return 0;
}

static int shape_key(struct frame *f, const struct json_key *key, struct errmsg *err)
{
    const struct shape *s = f->slot.shape;

    for (size_t i = 0; i < s->fields_len; i++)
        if (strcmp(s->fields[i].name, key->text) == 0) {
            f->value = shape_slot(s->fields[i].shape, f->slot.to + s->fields[i].offset);
            return mark_seen(f, UINT64_C(1) << i, s->fields[i].name, err);
        }
    if (s->kind == SHAPE_ENUM)
        return unexpected_key(key, s->fields[0].name, err);
    return 0;
}

static int known_key(struct c1_document *d, struct frame *f, const struct json_key *key,
                     struct errmsg *err)
{
    switch (f->slot.want) {
    case WANT_TOP:
        return top_key(d, f, key, err);
    case WANT_C1: {
        int i = c1_key_find(key->text);
        return i < 0 ? 0 : c1_key(d, f, i, err);
    }
    case WANT_VANILLA:
        return vanilla_key(d, f, key, err);
    case WANT_SHAPE:
        return shape_key(f, key, err);
    default:
        return 0;
    }
}

static int on_key(void *ctx, const struct json_key *key, struct errmsg *err)
{
    struct c1_document *d = ctx;
    struct frame *f = &d->frames[d->depth - 1];
    int ret = 0;

    f->key = NULL;
    f->value = (struct slot){.want = WANT_SKIP};
    if (!key->cut && strlen(key->text) == key->len) /* none of ours is that long or has a NUL in it */
        ret = known_key(d, f, key, err);
    else if (f->slot.want == WANT_VANILLA)
        ret = errmsg_set(err, -EBADMSG, "an unknown sector size");
    skip_begin(d, f);
    return ret;
}

/* ---------------------------------------------------------------------------------------- numbers */

static int number_wanted(const struct json_number *n, const char *wanted, uint64_t limit,
                         struct errmsg *err)
{
    return errmsg_set(err, -EBADMSG, "found %s, wanted %s%" PRIu64, n->text, wanted, limit);
}

/* Writes a number into the decoded form. */
static int shape_number(const struct slot *s, const struct json_number *n, struct errmsg *err)
{
    switch (s->shape->kind) {
    case SHAPE_U32:
        if (n->value > UINT32_MAX)
            return number_wanted(n, "at most ", UINT32_MAX, err);
        store_le32(s->to, (uint32_t)n->value);
        return 0;
    case SHAPE_LAYER:
        if (n->value != s->shape->limit)
            return number_wanted(n, "", s->shape->limit, err);
        store_le32(s->to, (uint32_t)n->value);
        return 0;
    case SHAPE_INDEX:
        if (n->value >= s->shape->limit)
            return number_wanted(n, "below ", s->shape->limit, err);
        store_le64(s->to, n->value);
        return 0;
    case SHAPE_U64:
        store_le64(s->to, n->value);
        return 0;
    default:
        return wrong_type(s, "a number", err);
    }
}

static void set_miner(struct c1_document *d, uint64_t miner)
{
    if (d->prover_id_given)
        return;
    prover_id_from_miner(d->build->extra.prover_id, miner);
    d->build->extra.has_prover_id = true;
}

static int integer(struct c1_document *d, const struct slot *s, const struct json_number *n,
                   struct errmsg *err)
{
    struct c1_extra *x = &d->build->extra;

    switch (s->want) {
    case WANT_BYTE:
        d->gained++;
        if (n->value > 255)
            return wrong_type(s, n->text, err);
        *s->to = (uint8_t)n->value;
        return 0;
    case WANT_SHAPE:
        d->gained += s->shape->bytes;
        return shape_number(s, n, err);
    case WANT_SECTOR_NUMBER:
        x->sector_number = n->value;
        x->has_sector_number = true;
        return 0;
    case WANT_SECTOR_SIZE:
        x->sector_size = n->value;
        x->has_sector_size = true;
        return 0;
    case WANT_MINER: /* its id alone */
    case WANT_MINER_ID:
        set_miner(d, n->value);
        return 0;
    default:
        return wrong_type(s, "a number", err);
    }
}

static int on_number(void *ctx, const struct json_number *n, struct errmsg *err)
{
    struct c1_document *d = ctx;
    struct slot s;

    int ret = take_slot(d, &s, err);
    if (ret == 0 && s.want != WANT_SKIP)
        ret = n->integer && !n->overflow ? integer(d, &s, n, err) : wrong_type(&s, n->text, err);
    if (ret == 0)
        value_done(d);
    return ret;
}

static int on_literal(void *ctx, enum json_literal literal, struct errmsg *err)
{
    static const char *const names[] = {
        [JSON_NULL] = "null", [JSON_FALSE] = "false", [JSON_TRUE] = "true"};
    struct c1_document *d = ctx;
    struct slot s;

    int ret = take_slot(d, &s, err);
    if (ret < 0)
        return ret;
    bool absent = s.want == WANT_SHAPE && s.shape->kind == SHAPE_ABSENT && literal == JSON_NULL;
    if (s.want != WANT_SKIP && !absent)
        return wrong_type(&s, names[literal], err);
    value_done(d);
    return 0;
}

/* ---------------------------------------------------------------------------------------- strings */

static int inner_start(struct c1_document *d, struct errmsg *err)
{
    if (d->inner)
        return 0;
    if (c1_document_create(d->build, "text decoded from Phase1Out", 0, &d->inner) < 0)
        return errmsg_set(err, -ENOMEM, "no memory for the C1 in Phase1Out");
    d->inner->content = CONTENT_BARE; /* no wrapper in a wrapper */
    return 0;
}

static int phase1_piece(struct c1_document *d, const uint8_t *piece, size_t len, struct errmsg *err)
{
    enum { PIECE = 16384 };
    uint8_t decoded[BASE64_DECODED_MAX(PIECE)];

    int ret = inner_start(d, err);
    while (ret == 0 && len > 0) {
        size_t take = min_size(len, PIECE), made;
        ret = base64_feed(&d->base64, piece, take, decoded, &made, err);
        if (ret < 0)
            return errmsg_prefix(err, ret, "character %" PRIu64 " of the string", d->base64_chars + made);
        d->base64_chars += take;
        d->gained += made;
        ret = c1_document_feed(d->inner, decoded, made, err);
        piece += take;
        len -= take;
    }
    return ret;
}

static int phase1_end(struct c1_document *d, struct errmsg *err)
{
    int ret = inner_start(d, err);

    if (ret == 0)
        ret = base64_finish(&d->base64, err);
    return ret < 0 ? ret : c1_document_finish(d->inner, err);
}

static bool slot_is_string(const struct slot *s)
{
    return s->want == WANT_SKIP || s->want == WANT_PROOF_NAME || s->want == WANT_MINER ||
           s->want == WANT_PHASE1;
}

static void string_add(struct c1_document *d, const uint8_t *piece, size_t len)
{
    if (d->string_len + len > STRING_MAX || memchr(piece, '\0', len)) {
        d->string_len = STRING_MAX + 1; /* no name that we know */
        return;
    }
    memcpy(d->string + d->string_len, piece, len);
    d->string_len += len;
}

static int on_string(void *ctx, const uint8_t *piece, size_t len, struct errmsg *err)
{
    struct c1_document *d = ctx;
    struct slot s;

    int ret = take_slot(d, &s, err);
    if (ret < 0)
        return ret;
    if (!slot_is_string(&s))
        return wrong_type(&s, "a string", err);
    if (s.want == WANT_PHASE1)
        return phase1_piece(d, piece, len, err);
    string_add(d, piece, len);
    d->string_bytes += len;
    return 0;
}

static int proof_name(struct c1_document *d, struct errmsg *err)
{
    const struct seal_proof *proof = seal_proof_by_name(d->string);

    if (!proof) {
        char shown[ESCAPED_BYTES(STRING_MAX)];
        escape_name(shown, sizeof(shown), d->string);
        return errmsg_set(err, -EBADMSG, "found \"%s\", wanted the name of a registered proof", shown);
    }
    return c1_build_set_proof(d->build, proof->id, err);
}

/* "f01001": an address that is a miner's actor id says who the prover is, any other does not. */
static void miner_address(struct c1_document *d)
{
    const char *digits = d->string + 2;
    char *end;

    if (d->string[0] != 'f' && d->string[0] != 't')
        return;
    if (d->string[1] != '0' || *digits < '0' || *digits > '9')
        return;
    errno = 0;
    unsigned long long miner = strtoull(digits, &end, 10);
    if (errno == 0 && *end == '\0')
        set_miner(d, miner);
}

static int on_string_end(void *ctx, struct errmsg *err)
{
    struct c1_document *d = ctx;
    struct slot s;

    int ret = take_slot(d, &s, err);
    if (ret == 0 && !slot_is_string(&s))
        ret = wrong_type(&s, "a string", err);
    d->string[d->string_len > STRING_MAX ? 0 : d->string_len] = '\0';
    d->string_len = 0;
    /* The tokenizer tells where a string began; where it is itself what is skipped, its bytes come on top. */
    if (d->skipping && d->frames[d->depth - 1].slot.want != WANT_SKIP)
        d->skipped += d->string_bytes;
    d->string_bytes = 0;
    if (ret == 0 && s.want == WANT_PHASE1)
        ret = phase1_end(d, err);
    if (ret == 0 && s.want == WANT_PROOF_NAME)
        ret = proof_name(d, err);
    if (ret == 0 && s.want == WANT_MINER)
        miner_address(d);
    if (ret == 0)
        value_done(d);
    return ret;
}

/* ----------------------------------------------------------------------------------- the document */

static const struct json_handler handler = {
    .begin = on_begin,
    .end = on_end,
    .key = on_key,
    .number = on_number,
    .literal = on_literal,
    .string = on_string,
    .string_end = on_string_end,
    .bytes32 = on_bytes32,
    .bytes32_end = on_bytes32_end,
};

int c1_document_create(struct c1_build *build, const char *text, uint64_t offset,
                       struct c1_document **out)
{
    struct c1_document *d = calloc(1, sizeof(*d));

    if (!d)
        return -ENOMEM;
    d->build = build;
    d->text = text;
    d->offset = offset;
    if (json_create(&handler, d, &d->json) < 0) {
        c1_document_destroy(d);
        return -ENOMEM;
    }
    *out = d;
    return 0;
}

void c1_document_destroy(struct c1_document *d)
{
    if (!d)
        return;
    c1_document_destroy(d->inner); /* at most one in another */
    json_destroy(d->json);
    free(d);
}

int c1_document_feed(struct c1_document *d, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    int ret = json_feed(d->json, bytes, len, err);

    d->fed += len;
    return describe(d, ret < 0 ? ret : waste_check(d, err), err);
}

int c1_document_finish(struct c1_document *d, struct errmsg *err)
{
    return describe(d, json_finish(d->json, err), err);
}
