#include "numa/circuit/test_document.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "numa/circuit/json.h"

#define KEY "proofd-test"

static bool allowed;

void test_documents_allow(void)
{
    allowed = true;
}

bool test_documents_allowed(void)
{
    return allowed;
}

/* White space may stand at the start and behind the brace. */
enum test_document_match test_document_match(const void *text, size_t len)
{
    static const char begin[] = "{\"" KEY "\"";
    const char *p = text;
    size_t matched = 0;

    for (size_t i = 0; i < len && begin[matched]; i++) {
        if (p[i] == begin[matched])
            matched++;
        else if (matched > 1 || !p[i] || !strchr(" \t\r\n", p[i]))
            return TEST_DOCUMENT_NO;
    }
    return begin[matched] ? TEST_DOCUMENT_TOO_SHORT : TEST_DOCUMENT_YES;
}

struct parsing {
    struct test_document doc;
    unsigned depth;
    enum { NOTHING, PARTITIONS, SEED } expected;
    bool has[SEED + 1];
};

static int bad(struct errmsg *err, const char *what)
{
    return errmsg_set(err, -EBADMSG, "a test document has %s", what);
}

static int on_begin(void *ctx, bool array, struct errmsg *err)
{
    struct parsing *p = ctx;

    if (array || p->depth == 2)
        return bad(err, "an array or object where there is none");
    p->depth++;
    return 0;
}

static int on_end(void *ctx, bool array, struct errmsg *err)
{
    (void)array, (void)err;
    ((struct parsing *)ctx)->depth--;
    return 0;
}

static int on_key(void *ctx, const struct json_key *key, struct errmsg *err)
{
    static const char *const names[] = {[PARTITIONS] = "partitions", [SEED] = "seed"};
    struct parsing *p = ctx;

    if (p->depth == 1)
        return strcmp(key->text, KEY) == 0 ? 0 : bad(err, "a key beside \"" KEY "\"");
    for (int i = PARTITIONS; i <= SEED; i++)
        if (strcmp(key->text, names[i]) == 0) {
            p->expected = i;
            return p->has[i] ? bad(err, "a key twice") : 0;
        }
    return bad(err, "a key that is neither partitions nor seed");
}

static int on_number(void *ctx, const struct json_number *number, struct errmsg *err)
{
    struct parsing *p = ctx;

    if (p->depth != 2 || !number->integer || number->overflow)
        return bad(err, "a number that is none of its own");
    p->has[p->expected] = true;
    if (p->expected == SEED)
        p->doc.seed = number->value;
    else if (number->value < 1 || number->value > TEST_DOCUMENT_PARTITIONS_MAX)
        return bad(err, "less than 1 partition, or more than 100");
    else
        p->doc.partitions = (uint32_t)number->value;
    return 0;
}

static int on_literal(void *ctx, enum json_literal literal, struct errmsg *err)
{
    (void)ctx, (void)literal;
    return bad(err, "a value that is no number");
}

static int on_string(void *ctx, const uint8_t *piece, size_t len, struct errmsg *err)
{
    (void)ctx, (void)piece, (void)len;
    return bad(err, "a value that is no number");
}

static int on_string_end(void *ctx, struct errmsg *err)
{
    (void)ctx;
    return bad(err, "a value that is no number");
}

static uint8_t *no_bytes32(void *ctx)
{
    (void)ctx;
    return NULL;
}

static int parse(struct json *json, struct parsing *p, const void *text, size_t len,
                 struct errmsg *err)
{
    int ret = json_feed(json, text, len, err);

    if (ret == 0)
        ret = json_finish(json, err);
    if (ret == 0 && (!p->has[PARTITIONS] || !p->has[SEED]))
        ret = bad(err, "no partitions or no seed");
    return ret;
}

int test_document_parse(const void *text, size_t len, struct test_document *out, struct errmsg *err)
{
    static const struct json_handler handler = {.begin = on_begin,
                                                .end = on_end,
                                                .key = on_key,
                                                .number = on_number,
                                                .literal = on_literal,
                                                .string = on_string,
                                                .string_end = on_string_end,
                                                .bytes32 = no_bytes32};
    struct parsing p = {.depth = 0};
    struct json *json;

    if (len > TEST_DOCUMENT_BYTES_MAX)
        return bad(err, "more than 4096 bytes");
    if (json_create(&handler, &p, &json) < 0)
        return errmsg_set(err, -ENOMEM, "no memory");
    int ret = parse(json, &p, text, len, err);
    json_destroy(json);
    if (ret == 0)
        *out = p.doc;
    return ret;
}

size_t test_document_format(const struct test_document *doc, char *out)
{
    return (size_t)snprintf(out, TEST_DOCUMENT_BYTES_MAX,
                            "{\"" KEY "\":{\"partitions\":%" PRIu32 ",\"seed\":%" PRIu64 "}}\n",
                            doc->partitions, doc->seed);
}
