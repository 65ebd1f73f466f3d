#include "numa/circuit/inflate.h"

#include <errno.h>
#include <stdlib.h>

#define ZLIB_CONST /* input is const */
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define PIECE_BYTES ((size_t)64 << 10)
#define GZIP_WINDOW_BITS (15 + 16) /* the largest window; 16: expect a gzip header */

struct inflate {
    enum inflate_format format;
    z_stream gzip;
    bool gzip_started;
    ZSTD_DStream *zstd;
    bool at_boundary; /* between members or frames */
    uint8_t piece[PIECE_BYTES];
};

static int gzip_init(struct inflate *z)
{
    if (inflateInit2(&z->gzip, GZIP_WINDOW_BITS) != Z_OK)
        return -ENOMEM;
    z->gzip_started = true;
    return 0;
}

static int zstd_init(struct inflate *z)
{
    z->zstd = ZSTD_createDStream();
    if (!z->zstd || ZSTD_isError(ZSTD_initDStream(z->zstd)) ||
        ZSTD_isError(ZSTD_DCtx_setParameter(z->zstd, ZSTD_d_windowLogMax, INFLATE_WINDOW_LOG_MAX)))
        return -ENOMEM;
    return 0;
}

int inflate_create(enum inflate_format format, struct inflate **out)
{
    struct inflate *z = calloc(1, sizeof(*z));

    if (!z)
        return -ENOMEM;
    z->format = format;
    z->at_boundary = true;
    int ret = format == INFLATE_GZIP ? gzip_init(z) : zstd_init(z);
    if (ret < 0) {
        inflate_destroy(z);
        return ret;
    }
    *out = z;
    return 0;
}

void inflate_destroy(struct inflate *z)
{
    if (!z)
        return;
    if (z->gzip_started)
        inflateEnd(&z->gzip);
    ZSTD_freeDStream(z->zstd);
    free(z);
}

/* One call of the decompressor: takes from *in, fills the piece. *more: it may have more to give
 * without further input. */
static int gzip_step(struct inflate *z, ZSTD_inBuffer *in, size_t *made, bool *more, struct errmsg *err)
{
    z->gzip.next_in = (const uint8_t *)in->src + in->pos;
    z->gzip.avail_in = (uInt)min_size(in->size - in->pos, UINT32_MAX);
    uInt before = z->gzip.avail_in;
    z->gzip.next_out = z->piece;
    z->gzip.avail_out = sizeof(z->piece);
    int status = inflate(&z->gzip, Z_NO_FLUSH);
    in->pos += before - z->gzip.avail_in;
    *made = sizeof(z->piece) - z->gzip.avail_out;
    *more = z->gzip.avail_out == 0;
    if (status == Z_MEM_ERROR)
        return errmsg_set(err, -ENOMEM, "no memory to decompress gzip");
    if (status != Z_OK && status != Z_BUF_ERROR && status != Z_STREAM_END)
        return errmsg_set(err, -EBADMSG, "gzip: %s", z->gzip.msg ? z->gzip.msg : "damaged data");
    z->at_boundary = status == Z_STREAM_END;
    if (z->at_boundary) {
        *more = false;
        inflateReset(&z->gzip);
    }
    return 0;
}

static int zstd_fault(size_t code, struct errmsg *err)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
        return errmsg_set(err, -ENOMEM, "no memory to decompress zstd");
    case ZSTD_error_frameParameter_windowTooLarge:
        return errmsg_set(err, -EINVAL,
                          "zstd: the window is larger than %d MiB; compress again at level 19 or below, "
                          "without --long",
                          1 << (INFLATE_WINDOW_LOG_MAX - 20));
    default:
        return errmsg_set(err, -EBADMSG, "zstd: %s", ZSTD_getErrorName(code));
    }
}

static int zstd_step(struct inflate *z, ZSTD_inBuffer *in, size_t *made, bool *more, struct errmsg *err)
{
    ZSTD_outBuffer out = {z->piece, sizeof(z->piece), 0};
    size_t status = ZSTD_decompressStream(z->zstd, &out, in);

    if (ZSTD_isError(status))
        return zstd_fault(status, err);
    *made = out.pos;
    z->at_boundary = status == 0;
    *more = out.pos == out.size && !z->at_boundary;
    return 0;
}

int inflate_feed(struct inflate *z, const uint8_t *bytes, size_t len, const struct inflate_sink *sink,
                 bool *sunk, struct errmsg *err)
{
    ZSTD_inBuffer in = {bytes, len, 0};
    bool more = false;

    while (in.pos < in.size || more) {
        size_t made = 0;
        int ret = z->format == INFLATE_GZIP ? gzip_step(z, &in, &made, &more, err)
                                            : zstd_step(z, &in, &made, &more, err);
        if (ret < 0)
            return ret;
        ret = made > 0 ? sink->take(sink->ctx, z->piece, made, err) : 0;
        if (ret < 0) {
            *sunk = true;
            return ret;
        }
    }
    return 0;
}

int inflate_finish(const struct inflate *z, struct errmsg *err)
{
    if (z->at_boundary)
        return 0;
    return errmsg_set(err, -EBADMSG, "the compressed data ends early");
}
