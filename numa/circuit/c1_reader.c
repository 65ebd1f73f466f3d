/*
 * Layers, outermost first: the file; what a gzip or zstd file decompresses to; what base64 decodes to. Each
 * finds out by its first bytes what it holds and passes its bytes on to the layer below it or, the last
 * one, to the reader of JSON or of bincode.
 */
#include "numa/circuit/c1_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numa/circuit/base64.h"
#include "numa/circuit/c1_binary.h"
#include "numa/circuit/c1_build.h"
#include "numa/circuit/c1_document.h"
#include "numa/circuit/inflate.h"

#define MAGIC_BYTES 4
#define SPACE_MAX ((uint64_t)1 << 20) /* white space before a text, or beside the characters of base64 */
#define FILE_BUFFER_BYTES ((size_t)256 << 10)

enum form { FORM_UNKNOWN, FORM_TEXT, FORM_COMPRESSED, FORM_BASE64, FORM_JSON, FORM_BINARY };
enum { LAYER_FILE, LAYER_DECOMPRESSED, LAYER_BASE64, LAYERS };

static const char *const layer_texts[LAYERS] = {"file", "decompressed text", "text decoded from base64"};

struct layer {
    struct c1_reader *reader;
    unsigned index;
    enum form form;
    uint8_t magic[MAGIC_BYTES]; /* FORM_UNKNOWN: the first bytes */
    size_t magic_len;
    uint64_t bytes; /* that came in */
};

struct c1_reader {
    struct c1_build build;
    struct layer layers[LAYERS];
    struct inflate *inflate;
    struct base64 base64;
    struct c1_document *document;
    struct c1_binary binary;
    int ret; /* what went wrong, for good */
    struct errmsg err;
    /* Where documents of the test kind are taken: the head of the file, until it is known not to be one. */
    enum { HEAD_PASSED_ON, HEAD_KEPT, HEAD_IS_TEST } head_state;
    size_t head_len;
    uint8_t head[TEST_DOCUMENT_BYTES_MAX];
};

int c1_reader_create(enum c1_checks checks, struct workers *workers, struct c1_reader **out)
{
    struct c1_reader *r = calloc(1, sizeof(*r));

    if (!r)
        return -ENOMEM;
    c1_build_init(&r->build, checks, workers);
    r->binary.build = &r->build;
    r->head_state = test_documents_allowed() ? HEAD_KEPT : HEAD_PASSED_ON;
    for (unsigned i = 0; i < LAYERS; i++)
        r->layers[i] = (struct layer){.reader = r, .index = i};
    *out = r;
    return 0;
}

void c1_reader_destroy(struct c1_reader *r)
{
    if (!r)
        return;
    inflate_destroy(r->inflate);
    c1_document_destroy(r->document);
    c1_build_fini(&r->build);
    free(r);
}

uint64_t c1_reader_bytes_in(const struct c1_reader *r)
{
    return r->layers[LAYER_FILE].bytes;
}

/* ------------------------------------------------------------------------------ finding out the form */

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_gzip(const uint8_t *magic)
{
    return magic[0] == 0x1f && magic[1] == 0x8b;
}

/* A frame, or a skippable one before it. */
static bool is_zstd(const uint8_t *magic)
{
    uint32_t number = load_le32(magic);

    return number == 0xfd2fb528 || (number & 0xfffffff0) == 0x184d2a50;
}

static int start_inflate(struct c1_reader *r, enum inflate_format format, struct errmsg *err)
{
    if (inflate_create(format, &r->inflate) < 0)
        return errmsg_set(err, -ENOMEM, "no memory to decompress");
    return 0;
}

/* By the first four bytes: numbers in bincode are small and so have zeros among their bytes. */
static int detect_by_magic(struct layer *l, struct errmsg *err)
{
    bool gzip = is_gzip(l->magic), zstd = is_zstd(l->magic);

    if (l->index == LAYER_FILE && (gzip || zstd)) {
        l->form = FORM_COMPRESSED;
        return start_inflate(l->reader, gzip ? INFLATE_GZIP : INFLATE_ZSTD, err);
    }
    l->form = memchr(l->magic, 0, l->magic_len) ? FORM_BINARY : FORM_TEXT;
    return 0;
}

/* By the first character that is no white space, which is at `offset`. */
static int detect_text(struct layer *l, uint8_t c, uint64_t offset, struct errmsg *err)
{
    struct c1_reader *r = l->reader;

    if (c == '{') {
        l->form = FORM_JSON;
        if (c1_document_create(&r->build, layer_texts[l->index], offset, &r->document) < 0)
            return errmsg_set(err, -ENOMEM, "no memory for a document");
        return 0;
    }
    if (l->index < LAYER_BASE64 && base64_is_char(c)) {
        l->form = FORM_BASE64;
        return 0;
    }
    return errmsg_set(err, -EBADMSG,
                      "not a C1 file: found byte 0x%02x, wanted JSON, base64, bincode, gzip or zstd (byte %" PRIu64
                      " of the %s)",
                      c, offset, layer_texts[l->index]);
}

static int too_much_space(const struct layer *l, struct errmsg *err)
{
    return errmsg_set(err, -EBADMSG,
                      "hardly anything but white space in the first %" PRIu64 " bytes of the %s",
                      l->bytes, layer_texts[l->index]);
}

/* ----------------------------------------------------------------------------------- passing it on */

static int layer_feed(struct layer *l, const uint8_t *bytes, size_t len, struct errmsg *err);

static int decompressed(void *ctx, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    struct c1_reader *r = ctx;

    return layer_feed(&r->layers[LAYER_DECOMPRESSED], bytes, len, err);
}

static int feed_compressed(struct layer *l, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    struct inflate_sink sink = {decompressed, l->reader};
    bool sunk = false;
    int ret = inflate_feed(l->reader->inflate, bytes, len, &sink, &sunk, err);

    if (ret < 0 && !sunk)
        return errmsg_prefix(err, ret, "the file, near byte %" PRIu64, l->bytes);
    return ret;
}

/* Any text begins like base64: it is, when what it decodes to has a form. */
static int not_base64(const struct c1_reader *r, int ret, struct errmsg *err)
{
    enum form form = r->layers[LAYER_BASE64].form;

    return form == FORM_JSON || form == FORM_BINARY ? ret : errmsg_prefix(err, ret, "not a C1 file");
}

static int feed_base64(struct layer *l, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    enum { PIECE = 16384 };
    uint8_t decoded[BASE64_DECODED_MAX(PIECE)];
    uint64_t offset = l->bytes - len;
    int ret = 0;

    while (ret == 0 && len > 0) {
        size_t take = min_size(len, PIECE), made;
        struct base64 before = l->reader->base64;
        ret = base64_feed(&l->reader->base64, bytes, take, decoded, &made, err);
        if (ret < 0) {
            errmsg_prefix(err, ret, "byte %" PRIu64 " of the %s", offset + made,
                          layer_texts[l->index]);
            /* What is right of it, for its form alone. */
            if (base64_feed(&before, bytes, made, decoded, &made, NULL) == 0)
                layer_feed(&l->reader->layers[LAYER_BASE64], decoded, made, &(struct errmsg){""});
            return not_base64(l->reader, ret, err);
        }
        ret = layer_feed(&l->reader->layers[LAYER_BASE64], decoded, made, err);
        bytes += take;
        offset += take;
        len -= take;
    }
    /* A character a line is more than anybody writes. */
    if (ret == 0 && offset / 4 > SPACE_MAX + l->reader->layers[LAYER_BASE64].bytes)
        return too_much_space(l, err);
    return ret;
}

/* Text whose form is not clear yet; it is as soon as a character comes that is no white space. */
static int feed_text(struct layer *l, const uint8_t *bytes, size_t len, struct errmsg *err);

static int feed_form(struct layer *l, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    switch (l->form) {
    case FORM_COMPRESSED:
        return feed_compressed(l, bytes, len, err);
    case FORM_TEXT:
        return feed_text(l, bytes, len, err);
    case FORM_BASE64:
        return feed_base64(l, bytes, len, err);
    case FORM_JSON:
        return c1_document_feed(l->reader->document, bytes, len, err);
    default: /* FORM_BINARY */
        return c1_binary_feed(&l->reader->binary, bytes, len, err);
    }
}

static int feed_text(struct layer *l, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    size_t skip = 0;

    while (skip < len && is_space(bytes[skip]))
        skip++;
    if (skip == len)
        return l->bytes <= SPACE_MAX ? 0 : too_much_space(l, err);
    int ret = detect_text(l, bytes[skip], l->bytes - len + skip, err);
    return ret < 0 ? ret : feed_form(l, bytes + skip, len - skip, err);
}

/* Keeps the first bytes until the form is clear, then passes them on. */
static int feed_unknown(struct layer *l, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    size_t take = min_size(len, MAGIC_BYTES - l->magic_len);

    memcpy(l->magic + l->magic_len, bytes, take);
    l->magic_len += take;
    if (l->magic_len < MAGIC_BYTES)
        return 0;
    int ret = detect_by_magic(l, err);
    if (ret < 0)
        return ret;
    uint64_t bytes_in = l->bytes;
    l->bytes = MAGIC_BYTES; /* so that the first bytes are met at their offset */
    ret = feed_form(l, l->magic, MAGIC_BYTES, err);
    l->bytes = bytes_in;
    return ret < 0 || len == take ? ret : feed_form(l, bytes + take, len - take, err);
}

static int layer_feed(struct layer *l, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    l->bytes += len;
    if (l->bytes > C1_TEXT_MAX)
        return errmsg_set(err, -EFBIG, "the %s has more than %" PRIu64 " bytes", layer_texts[l->index],
                          C1_TEXT_MAX);
    return l->form == FORM_UNKNOWN ? feed_unknown(l, bytes, len, err) : feed_form(l, bytes, len, err);
}

static int layer_finish(struct layer *l, struct errmsg *err)
{
    struct c1_reader *r = l->reader;
    int ret;

    switch (l->form) {
    case FORM_COMPRESSED:
        ret = inflate_finish(r->inflate, err);
        return ret < 0 ? ret : layer_finish(&r->layers[LAYER_DECOMPRESSED], err);
    case FORM_BASE64:
        ret = base64_finish(&r->base64, err);
        return ret < 0 ? not_base64(r, ret, err) : layer_finish(&r->layers[LAYER_BASE64], err);
    case FORM_JSON:
        return c1_document_finish(r->document, err);
    case FORM_BINARY:
        return c1_binary_finish(&r->binary, err);
    default:
        return errmsg_set(err, -EBADMSG, "not a C1 file: nothing in the %s but %" PRIu64 " bytes",
                          layer_texts[l->index], l->bytes);
    }
}

/* ------------------------------------------------------------------------------------ the reader */

/* Remembers an error, so that it is the answer to everything that follows. */
static int fail(struct c1_reader *r, int ret, const struct errmsg *what, struct errmsg *err)
{
    r->ret = ret;
    r->err = *what;
    if (err)
        *err = *what;
    return ret;
}

/* To the layers. */
static int pass_head_on(struct c1_reader *r, struct errmsg *err)
{
    r->head_state = HEAD_PASSED_ON;
    return layer_feed(&r->layers[LAYER_FILE], r->head, r->head_len, err);
}

static int feed_head(struct c1_reader *r, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    size_t take = min_size(len, sizeof(r->head) - r->head_len);

    memcpy(r->head + r->head_len, bytes, take);
    r->head_len += take;
    if (r->head_state == HEAD_KEPT && test_document_match(r->head, r->head_len) == TEST_DOCUMENT_YES)
        r->head_state = HEAD_IS_TEST;
    if (r->head_state == HEAD_IS_TEST)
        return take == len ? 0 : errmsg_set(err, -EBADMSG, "a test document has more than %zu bytes",
                                            sizeof(r->head));
    if (test_document_match(r->head, r->head_len) == TEST_DOCUMENT_TOO_SHORT && take == len)
        return 0;
    int ret = pass_head_on(r, err);
    return ret < 0 || take == len
               ? ret
               : layer_feed(&r->layers[LAYER_FILE], bytes + take, len - take, err);
}

int c1_reader_feed(struct c1_reader *r, const void *bytes, size_t len, struct errmsg *err)
{
    struct errmsg what = {""};

    if (r->ret < 0)
        return fail(r, r->ret, &r->err, err);
    int ret = r->head_state == HEAD_PASSED_ON
                  ? layer_feed(&r->layers[LAYER_FILE], bytes, len, &what)
                  : feed_head(r, bytes, len, &what);
    return ret < 0 ? fail(r, ret, &what, err) : 0;
}

static int finish_test(struct c1_reader *r, struct c1 **out, struct errmsg *err)
{
    struct test_document doc;
    int ret = test_document_parse(r->head, r->head_len, &doc, err);

    return ret == 0 ? c1_from_test(&doc, out, err) : ret;
}

static int finish_c1(struct c1_reader *r, struct c1 **out, struct errmsg *err)
{
    int ret = r->head_state == HEAD_KEPT ? pass_head_on(r, err) : 0;

    if (ret == 0)
        ret = layer_finish(&r->layers[LAYER_FILE], err);
    return ret == 0 ? c1_build_finish(&r->build, out, err) : ret;
}

int c1_reader_finish(struct c1_reader *r, struct c1 **out, struct c1_extra *extra, struct errmsg *err)
{
    struct errmsg what = {""};

    if (r->ret < 0)
        return fail(r, r->ret, &r->err, err);
    int ret = r->head_state == HEAD_IS_TEST ? finish_test(r, out, &what) : finish_c1(r, out, &what);
    if (ret < 0)
        return fail(r, ret, &what, err);
    *extra = r->build.extra;
    return 0;
}

static int read_fd(int fd, struct c1_reader *r, struct errmsg *err)
{
    uint8_t *buffer = malloc(FILE_BUFFER_BYTES);
    int ret = 0;

    if (!buffer)
        return errmsg_set(err, -ENOMEM, "no memory for a buffer");
    while (ret == 0) {
        ssize_t n = read(fd, buffer, FILE_BUFFER_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            ret = errmsg_set(err, -errno, "cannot read");
        if (n <= 0)
            break;
        ret = c1_reader_feed(r, buffer, (size_t)n, err);
    }
    free(buffer);
    return ret;
}

int c1_read_fd(int fd, const char *name, enum c1_checks checks, struct workers *workers,
               struct c1 **out, struct c1_extra *extra, struct errmsg *err)
{
    struct c1_reader *r = NULL;
    int ret = c1_reader_create(checks, workers, &r);

    if (ret < 0)
        errmsg_set(err, ret, "no memory for a reader");
    if (ret == 0)
        ret = read_fd(fd, r, err);
    if (ret == 0)
        ret = c1_reader_finish(r, out, extra, err);
    if (ret < 0)
        errmsg_prefix(err, ret, "%s", name);
    c1_reader_destroy(r);
    return ret;
}

int c1_read_file(const char *path, enum c1_checks checks, struct workers *workers, struct c1 **out,
                 struct c1_extra *extra, struct errmsg *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errmsg_set(err, -errno, "%s: cannot open", path);
    int ret = c1_read_fd(fd, path, checks, workers, out, extra, err);
    close(fd);
    return ret;
}
