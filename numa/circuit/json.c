/*
 * One state a byte may be met in, and a step function for each; a chunk may end in any. Two shortcuts
 * take most of the bytes: plain stretches of strings, and byte arrays that lie in the chunk as a whole.
 */
#include "numa/circuit/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state {
    BEFORE_VALUE,
    BEFORE_ITEM_OR_END, /* after [ */
    BEFORE_KEY_OR_END,  /* after { */
    BEFORE_KEY,         /* after , in an object */
    BEFORE_COLON,
    AFTER_VALUE,
    IN_STRING,
    IN_ESCAPE,
    IN_UNICODE,
    IN_NUMBER,
    IN_LITERAL,
    AFTER_DOCUMENT
};

/* Where in a number we are: what it says is what the number still needs or may have. */
enum number_state { NUM_START, NUM_MINUS, NUM_ZERO, NUM_INT, NUM_POINT, NUM_FRAC, NUM_E, NUM_E_SIGN, NUM_EXP };

struct json {
    const struct json_handler *handler;
    void *ctx;
    enum state state;
    uint64_t chunk_offset; /* of the chunk in hand, in the text */
    uint64_t fault_offset;
    uint64_t string_offset; /* of the quote that began the string in hand */
    unsigned depth;
    uint64_t arrays; /* bit d: the container at depth d + 1 is an array */

    bool in_key;
    struct json_key key;
    unsigned utf8_more;          /* continuation bytes to come */
    uint8_t utf8_low, utf8_high; /* bounds of the next one */
    unsigned unicode_digits;
    uint32_t unicode;
    uint32_t high_surrogate; /* waits for its partner; 0: none */

    enum number_state number_state;
    unsigned number_len;
    struct json_number number;

    enum json_literal literal;
    unsigned literal_len;
};

int json_create(const struct json_handler *handler, void *ctx, struct json **out)
{
    struct json *j = calloc(1, sizeof(*j));

    if (!j)
        return -ENOMEM;
    j->handler = handler;
    j->ctx = ctx;
    *out = j;
    return 0;
}

void json_destroy(struct json *j)
{
    free(j);
}

bool json_complete(const struct json *j)
{
    return j->state == AFTER_DOCUMENT;
}

uint64_t json_offset(const struct json *j)
{
    return j->fault_offset;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* "found 'x', wanted WANTED" */
static int unexpected(uint8_t c, const char *wanted, struct errmsg *err)
{
    if (c > 0x20 && c < 0x7f)
        return errmsg_set(err, -EBADMSG, "found '%c', wanted %s", c, wanted);
    return errmsg_set(err, -EBADMSG, "found byte 0x%02x, wanted %s", c, wanted);
}

static bool in_array(const struct json *j)
{
    return j->depth > 0 && (j->arrays >> (j->depth - 1) & 1);
}

static void value_ended(struct json *j)
{
    j->state = j->depth == 0 ? AFTER_DOCUMENT : AFTER_VALUE;
}

/* ------------------------------------------------------------------------------------ byte arrays */

/* Reads a number of at most three digits and the character after it, from four bytes that are there.
 * Returns how many bytes they take; *bad collects what is wrong. */
static inline unsigned short_number(const uint8_t *p, unsigned *value, uint32_t *bad)
{
    uint32_t raw = load_le32(p), digits = raw ^ 0x30303030;
    /* The top bit of a byte tells that it is no digit. */
    uint32_t others = (((digits & 0x7f7f7f7f) + 0x76767676) | digits) & 0x80808080;
    unsigned len = others ? (unsigned)__builtin_ctz(others) / 8 : 3;
    uint32_t d = digits << (8 * (3 - len)); /* hundreds, tens, ones from the lowest byte on */

    *value = (d & 0xff) * 100 + (d >> 8 & 0xff) * 10 + (d >> 16 & 0xff);
    *bad |= (others == 0) | (len == 0) | (*value > 255);
    *bad |= (len > 1) & ((raw & 0xff) == '0');
    return len + 1;
}

#define SHORT_ARRAY_MAX (32 * 4 + 1) /* "[255,...,255]" */

/* Reads "[n,n,...]" without white space; `p` is behind the bracket and SHORT_ARRAY_MAX + 4 bytes are
 * there. Returns what follows it, or NULL when it is anything else. */
static const uint8_t *bytes32_tight(const uint8_t *p, uint8_t out[32])
{
    uint8_t bytes[32];
    uint32_t bad = 0;

    for (int i = 0; i < 32; i++) {
        unsigned value, taken = short_number(p, &value, &bad);
        p += taken;
        bad |= p[-1] ^ (i == 31 ? ']' : ',');
        bytes[i] = (uint8_t)value;
    }
    if (bad)
        return NULL;
    memcpy(out, bytes, 32);
    return p;
}

static const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* The same with white space anywhere, as far as the chunk reaches. */
static const uint8_t *bytes32_loose(const uint8_t *p, const uint8_t *end, uint8_t out[32])
{
    uint8_t bytes[32];

    for (int i = 0; i < 32; i++) {
        unsigned value, bad = 0;
        p = skip_space(p, end);
        if (end - p < 4)
            return NULL;
        p += short_number(p, &value, &bad) - 1;
        p = skip_space(p, end);
        if (bad || p == end || *p++ != (i == 31 ? ']' : ','))
            return NULL;
        bytes[i] = (uint8_t)value;
    }
    memcpy(out, bytes, 32);
    return p;
}

/* Tries to take a whole byte array, `p` being behind its bracket. *next is left alone if it is not there
 * in full or not right: then the step functions find out. */
static int bytes32_try(struct json *j, const uint8_t *p, const uint8_t *end, const uint8_t **next,
                       struct errmsg *err)
{
    const uint8_t *after = NULL;
    uint8_t *out = j->handler->bytes32(j->ctx);

    if (!out)
        return 0;
    if (end - p >= SHORT_ARRAY_MAX + 4)
        after = bytes32_tight(p, out);
    if (!after)
        after = bytes32_loose(p, end, out);
    if (!after)
        return 0;
    *next = after;
    value_ended(j);
    return j->handler->bytes32_end(j->ctx, err);
}

/* ------------------------------------------------------------------------------------- containers */

static int container_begin(struct json *j, bool array, struct errmsg *err)
{
    if (j->depth == JSON_DEPTH_MAX)
        return errmsg_set(err, -EBADMSG, "nested deeper than %d", JSON_DEPTH_MAX);
    int ret = j->handler->begin(j->ctx, array, err);
    if (ret < 0)
        return ret;
    uint64_t bit = UINT64_C(1) << j->depth++;
    j->arrays = array ? j->arrays | bit : j->arrays & ~bit;
    j->state = array ? BEFORE_ITEM_OR_END : BEFORE_KEY_OR_END;
    return 0;
}

static int container_end(struct json *j, bool array, struct errmsg *err)
{
    j->depth--;
    value_ended(j);
    return j->handler->end(j->ctx, array, err);
}

/* ---------------------------------------------------------------------------------------- strings */

static void string_begin(struct json *j, bool key)
{
    j->in_key = key;
    j->key.len = 0;
    j->key.cut = false;
    j->string_offset = j->fault_offset;
    j->state = IN_STRING;
}

static int string_piece(struct json *j, const uint8_t *piece, size_t len, struct errmsg *err)
{
    if (!j->in_key)
        return j->handler->string(j->ctx, piece, len, err);
    size_t room = JSON_KEY_MAX - j->key.len;
    if (len > room)
        j->key.cut = true;
    len = min_size(len, room);
    memcpy(j->key.text + j->key.len, piece, len);
    j->key.len += len;
    return 0;
}

static int string_end(struct json *j, struct errmsg *err)
{
    j->fault_offset = j->string_offset;
    if (!j->in_key) {
        value_ended(j);
        return j->handler->string_end(j->ctx, err);
    }
    j->key.text[j->key.len] = '\0';
    j->state = BEFORE_COLON;
    return j->handler->key(j->ctx, &j->key, err);
}

/* Is this the first byte of a multi-byte character (Unicode 15, table 3-7)? Then says what must follow. */
static bool utf8_begin(struct json *j, uint8_t c)
{
    if (c < 0xc2 || c > 0xf4)
        return false;
    j->utf8_more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    j->utf8_low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    j->utf8_high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    return true;
}

static bool utf8_continue(struct json *j, uint8_t c)
{
    if (c < j->utf8_low || c > j->utf8_high)
        return false;
    j->utf8_more--;
    j->utf8_low = 0x80;
    j->utf8_high = 0xbf;
    return true;
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Takes a stretch of plain characters; returns the first that is not. */
static const uint8_t *plain_run(const uint8_t *p, const uint8_t *end)
{
    while (p < end && is_plain(*p))
        p++;
    return p;
}

static int string_step(struct json *j, const uint8_t *p, struct errmsg *err)
{
    if (j->utf8_more > 0) {
        if (!utf8_continue(j, *p))
            return errmsg_set(err, -EBADMSG, "byte 0x%02x: not UTF-8", *p);
        return string_piece(j, p, 1, err);
    }
    if (j->high_surrogate && *p != '\\')
        return errmsg_set(err, -EBADMSG, "half a surrogate pair");
    if (*p == '"')
        return string_end(j, err);
    if (*p == '\\') {
        j->state = IN_ESCAPE;
        return 0;
    }
    if (*p < 0x20)
        return errmsg_set(err, -EBADMSG, "control character 0x%02x in a string", *p);
    if (!utf8_begin(j, *p))
        return errmsg_set(err, -EBADMSG, "byte 0x%02x: not UTF-8", *p);
    return string_piece(j, p, 1, err);
}

static int escape_step(struct json *j, uint8_t c, struct errmsg *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

    if (c == 'u') {
        j->state = IN_UNICODE;
        j->unicode = 0;
        j->unicode_digits = 0;
        return 0;
    }
    const char *at = c ? strchr(from, c) : NULL;
    if (!at)
        return unexpected(c, "an escape character", err);
    if (j->high_surrogate)
        return errmsg_set(err, -EBADMSG, "half a surrogate pair");
    j->state = IN_STRING;
    return string_piece(j, (const uint8_t *)&to[at - from], 1, err);
}

static size_t utf8_encode(uint32_t c, uint8_t out[4])
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(lead[len] | c);
    return len;
}

/* After the four digits of \uXXXX. */
static int unicode_end(struct json *j, struct errmsg *err)
{
    uint32_t c = j->unicode;
    bool high = c >= 0xd800 && c < 0xdc00, low = c >= 0xdc00 && c < 0xe000;
    uint8_t utf8[4];

    j->state = IN_STRING;
    if (low != (j->high_surrogate != 0))
        return errmsg_set(err, -EBADMSG, "half a surrogate pair");
    if (high) {
        j->high_surrogate = c;
        return 0;
    }
    if (low)
        c = 0x10000 + ((j->high_surrogate - 0xd800) << 10) + (c - 0xdc00);
    j->high_surrogate = 0;
    return string_piece(j, utf8, utf8_encode(c, utf8), err);
}

static int unicode_step(struct json *j, uint8_t c, struct errmsg *err)
{
    uint8_t lower = c | 0x20;

    if (is_digit(c))
        j->unicode = j->unicode << 4 | (c - '0');
    else if (lower >= 'a' && lower <= 'f')
        j->unicode = j->unicode << 4 | (lower - 'a' + 10u);
    else
        return unexpected(c, "a hex digit", err);
    return ++j->unicode_digits == 4 ? unicode_end(j, err) : 0;
}

/* ------------------------------------------------------------------------- numbers and literals */

static void number_begin(struct json *j)
{
    j->state = IN_NUMBER;
    j->number_state = NUM_START;
    j->number_len = 0;
    j->number = (struct json_number){.integer = true};
}

static void number_digit(struct json_number *n, unsigned digit)
{
    if (n->value > (UINT64_MAX - digit) / 10)
        n->overflow = true;
    else
        n->value = n->value * 10 + digit;
}

/* Where `c` leads from `s`; -1: nowhere, -2: the number is over before it. */
static int number_next(enum number_state s, uint8_t c)
{
    bool digit = is_digit(c), e = c == 'e' || c == 'E';

    switch (s) {
    case NUM_START:
        return c == '-' ? NUM_MINUS : c == '0' ? NUM_ZERO : digit ? NUM_INT : -1;
    case NUM_MINUS:
        return c == '0' ? NUM_ZERO : digit ? NUM_INT : -1;
    case NUM_ZERO:
        return c == '.' ? NUM_POINT : e ? NUM_E : digit ? -1 : -2;
    case NUM_INT:
        return digit ? NUM_INT : c == '.' ? NUM_POINT : e ? NUM_E : -2;
    case NUM_POINT:
        return digit ? NUM_FRAC : -1;
    case NUM_FRAC:
        return digit ? NUM_FRAC : e ? NUM_E : -2;
    case NUM_E:
        return digit ? NUM_EXP : c == '+' || c == '-' ? NUM_E_SIGN : -1;
    case NUM_E_SIGN:
        return digit ? NUM_EXP : -1;
    case NUM_EXP:
        return digit ? NUM_EXP : -2;
    }
    return -1;
}

/* *taken is cleared when `c` is no longer part of the number. */
static int number_step(struct json *j, uint8_t c, bool *taken, struct errmsg *err)
{
    int next = number_next(j->number_state, c);

    if (next == -1)
        return unexpected(c, "a digit of a number", err);
    if (next == -2) {
        *taken = false;
        value_ended(j);
        return j->handler->number(j->ctx, &j->number, err);
    }
    if (j->number_len == JSON_NUMBER_MAX)
        return errmsg_set(err, -EBADMSG, "a number of more than %d characters", JSON_NUMBER_MAX);
    if (j->number_len < sizeof(j->number.text) - 1)
        j->number.text[j->number_len] = (char)c;
    j->number_len++;
    j->number_state = (enum number_state)next;
    if (next == NUM_ZERO || next == NUM_INT)
        number_digit(&j->number, c - '0');
    else
        j->number.integer = false;
    return 0;
}

static const char *const literals[] = {
    [JSON_NULL] = "null", [JSON_FALSE] = "false", [JSON_TRUE] = "true"};

static int literal_step(struct json *j, uint8_t c, struct errmsg *err)
{
    const char *text = literals[j->literal];

    if (c != (uint8_t)text[j->literal_len])
        return unexpected(c, text, err);
    if (text[++j->literal_len] != '\0')
        return 0;
    value_ended(j);
    return j->handler->literal(j->ctx, j->literal, err);
}

static void literal_begin(struct json *j, enum json_literal literal)
{
    j->state = IN_LITERAL;
    j->literal = literal;
    j->literal_len = 0;
}

/* ------------------------------------------------------------------------------- between tokens */

/* The first byte of a value. *taken is cleared where the value's own step function wants to see it. */
static int value_begin(struct json *j, uint8_t c, bool *taken, struct errmsg *err)
{
    if (c == '{' || c == '[')
        return container_begin(j, c == '[', err);
    if (c == '"') {
        string_begin(j, false);
        return 0;
    }
    *taken = false;
    if (c == '-' || is_digit(c))
        number_begin(j);
    else if (c == 'n' || c == 't' || c == 'f')
        literal_begin(j, c == 'n' ? JSON_NULL : c == 't' ? JSON_TRUE : JSON_FALSE);
    else
        return unexpected(c, "a value", err);
    return 0;
}

static int after_value(struct json *j, uint8_t c, struct errmsg *err)
{
    bool array = in_array(j);

    if (c == ',') {
        j->state = array ? BEFORE_VALUE : BEFORE_KEY;
        return 0;
    }
    if (c == (array ? ']' : '}'))
        return container_end(j, array, err);
    return unexpected(c, array ? "',' or ']'" : "',' or '}'", err);
}

static int key_begin(struct json *j, uint8_t c, struct errmsg *err)
{
    if (c == '}' && j->state == BEFORE_KEY_OR_END)
        return container_end(j, false, err);
    if (c != '"')
        return unexpected(c, "a key", err);
    string_begin(j, true);
    return 0;
}

/* A byte outside strings, numbers and literals that is not white space. */
static int structure_step(struct json *j, uint8_t c, bool *taken, struct errmsg *err)
{
    switch (j->state) {
    case BEFORE_ITEM_OR_END:
        if (c == ']')
            return container_end(j, true, err);
        return value_begin(j, c, taken, err);
    case BEFORE_VALUE:
        return value_begin(j, c, taken, err);
    case BEFORE_KEY_OR_END:
    case BEFORE_KEY:
        return key_begin(j, c, err);
    case BEFORE_COLON:
        j->state = BEFORE_VALUE;
        return c == ':' ? 0 : unexpected(c, "':'", err);
    case AFTER_VALUE:
        return after_value(j, c, err);
    default: /* AFTER_DOCUMENT */
        return unexpected(c, "nothing after the document", err);
    }
}

static bool inside_token(const struct json *j)
{
    return j->state >= IN_STRING && j->state <= IN_LITERAL;
}

static int token_step(struct json *j, const uint8_t *p, bool *taken, struct errmsg *err)
{
    switch (j->state) {
    case IN_STRING:
        return string_step(j, p, err);
    case IN_ESCAPE:
        return escape_step(j, *p, err);
    case IN_UNICODE:
        return unicode_step(j, *p, err);
    case IN_NUMBER:
        return number_step(j, *p, taken, err);
    default: /* IN_LITERAL */
        return literal_step(j, *p, err);
    }
}

/* Takes at least one byte, or changes the state. */
static int step(struct json *j, const uint8_t **at, const uint8_t *end, struct errmsg *err)
{
    const uint8_t *p = *at;
    bool taken = true;
    int ret;

    if (j->state == IN_STRING && j->utf8_more == 0 && !j->high_surrogate && is_plain(*p)) {
        *at = plain_run(p, end);
        return string_piece(j, p, (size_t)(*at - p), err);
    }
    if (inside_token(j)) {
        ret = token_step(j, p, &taken, err);
    } else if (is_space(*p)) {
        *at = skip_space(p, end);
        return 0;
    } else {
        ret = structure_step(j, *p, &taken, err);
    }
    if (taken)
        (*at)++;
    return ret;
}

/* The start of a value that may be a byte array: see whether it can be had in one go. */
static bool may_be_bytes(const struct json *j, uint8_t c)
{
    return c == '[' && (j->state == BEFORE_VALUE || j->state == BEFORE_ITEM_OR_END);
}

int json_feed(struct json *j, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    const uint8_t *p = bytes, *end = bytes + len;
    int ret = 0;

    while (p < end && ret == 0) {
        const uint8_t *start = p;
        if (!inside_token(j) || j->state == IN_STRING)
            j->fault_offset = j->chunk_offset + (uint64_t)(p - bytes);
        if (may_be_bytes(j, *p)) {
            ret = bytes32_try(j, p + 1, end, &p, err);
            if (p != start)
                continue;
        }
        if (ret == 0)
            ret = step(j, &p, end, err);
    }
    j->chunk_offset += len;
    return ret;
}

int json_finish(struct json *j, struct errmsg *err)
{
    if (json_complete(j))
        return 0;
    j->fault_offset = j->chunk_offset;
    return errmsg_set(err, -EBADMSG, "the text ends before the document does");
}
