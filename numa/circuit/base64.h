/*
 * Base64 (RFC 4648 section 4: standard alphabet, padded) as it arrives. White space between characters is
 * skipped, as the tools do that break lines.
 *
 * A struct base64 belongs to one thread.
 */
#ifndef CIRCUIT_BASE64_H
#define CIRCUIT_BASE64_H

#include "numa/base.h"

/* All zero at the beginning. */
struct base64 {
    uint32_t bits;    /* of the group in hand */
    unsigned chars;   /* of the group in hand, 0 to 3 */
    unsigned padding; /* '=' seen so far */
};

bool base64_is_char(uint8_t c);

/* Most bytes that `len` characters give. */
#define BASE64_DECODED_MAX(len) (((len) / 4 + 1) * 3)

/* Decodes `len` characters to `out`, which has room for BASE64_DECODED_MAX(len) bytes. Returns 0 with
 * *out_len set, or -EBADMSG with *out_len telling how many characters were good. */
int base64_feed(struct base64 *b, const uint8_t *text, size_t len, uint8_t *out, size_t *out_len,
                struct errmsg *err);

/* After the last character: -EBADMSG when a group is incomplete. */
int base64_finish(const struct base64 *b, struct errmsg *err);

#endif
