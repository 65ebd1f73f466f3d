/*
 * JSON (RFC 8259) as it arrives: a tokenizer that takes chunks cut anywhere and calls a handler.
 *
 * Made for documents that are nearly all arrays of 32 small integers: where the handler expects one,
 * it is read in one go, straight to its place. Nothing grows with the input: depth, keys and the
 * length of a number are bounded, strings are handed on in pieces. What is not JSON is refused: bad
 * escapes, bytes that are not UTF-8, control characters in strings, leading zeros.
 *
 * A struct json belongs to one thread.
 */
#ifndef CIRCUIT_JSON_H
#define CIRCUIT_JSON_H

#include "numa/base.h"

#define JSON_DEPTH_MAX 64
#define JSON_KEY_MAX 64     /* longer keys are handed on cut and marked so */
#define JSON_NUMBER_MAX 128 /* characters; a longer number is refused */

enum json_literal { JSON_NULL, JSON_FALSE, JSON_TRUE };

struct json_number {
    bool integer;  /* digits alone: no sign, fraction or exponent */
    bool overflow; /* an integer that does not fit value */
    uint64_t value;
    char text[24]; /* for messages, cut */
};

/* A key, whole but for what is beyond JSON_KEY_MAX, escapes resolved, NUL-terminated. */
struct json_key {
    char text[JSON_KEY_MAX + 1];
    size_t len;
    bool cut;
};

/* Each returns 0 to go on or a negative errno with err set, which ends the reading. `array` tells
 * [ ] from { }. */
struct json_handler {
    int (*begin)(void *ctx, bool array, struct errmsg *err);
    int (*end)(void *ctx, bool array, struct errmsg *err);
    int (*key)(void *ctx, const struct json_key *key, struct errmsg *err);
    int (*number)(void *ctx, const struct json_number *number, struct errmsg *err);
    int (*literal)(void *ctx, enum json_literal literal, struct errmsg *err);
    /* A string comes as any number of pieces (also none), then one call of string_end. Escapes are
     * resolved. */
    int (*string)(void *ctx, const uint8_t *piece, size_t len, struct errmsg *err);
    int (*string_end)(void *ctx, struct errmsg *err);
    /* Where the 32 numbers of an array go that begins as the next value: NULL if none is expected.
     * After a place was given, bytes32_end is called in place of begin, 32 numbers and end; or, when the
     * array is not there in full or not right, begin and so on as ever. */
    uint8_t *(*bytes32)(void *ctx);
    int (*bytes32_end)(void *ctx, struct errmsg *err);
};

struct json;

/* `ctx` goes to the handler's calls. Returns 0 or -ENOMEM. */
int json_create(const struct json_handler *handler, void *ctx, struct json **out);
void json_destroy(struct json *j);

/* Takes the next bytes. Returns 0, or -EBADMSG for what is not JSON, or what the handler returned; the
 * reading is over then. */
int json_feed(struct json *j, const uint8_t *bytes, size_t len, struct errmsg *err);

/* After the last byte. Returns 0 if the document is complete, else -EBADMSG. */
int json_finish(struct json *j, struct errmsg *err);

/* Whether the outermost value has ended. */
bool json_complete(const struct json *j);

/* The offset in the text of what json_feed or the handler stumbled over: the byte itself, or the first
 * byte of a number, string or literal. */
uint64_t json_offset(const struct json *j);

#endif
