/*
 * The parameter reader over files that an honest one was turned into: the input is a list of edits, each 4 bytes
 * (what, where, value), so that the fuzzer gets past counts and points without having to invent them.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/srs_file.h"
#include "tests/lib/params_image.h"

static const struct srs_counts counts = {.ic = 2, .h = 3, .l = 2, .a = 3, .b = 2};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Edits `bytes`; returns the length that is left of `len`. */
static size_t edit(uint8_t *bytes, size_t len, const uint8_t *data, size_t size)
{
    size_t end = len;

    for (; size >= 4; data += 4, size -= 4) {
        size_t at = (size_t)(data[1] | data[2] << 8) % len;
        if (data[0] % 4 == 0)
            end = at;
        else if (data[0] % 4 == 1)
            bytes[at] ^= data[3];
        else
            bytes[at] = data[3];
    }
    return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct params_image image;
    struct srs_reading how = {.workers = NULL};
    uint8_t digest[SRS_DIGEST_BYTES];
    struct errmsg err;
    struct srs srs;

    if (!image.bytes)
        params_image_init(&image, &counts);
    uint8_t *bytes = malloc(image.len);
    memcpy(bytes, image.bytes, image.len);
    size_t len = edit(bytes, image.len, data, size);

    int fd = memfd_create("params", 0);
    if (fd < 0 || pwrite_full(fd, bytes, len, 0) < 0)
        abort();
    how.digest = digest;
    int ret = srs_read(fd, "fuzz", &counts, &how, &srs, &err);
    assert(ret == 0 || ret == -EBADMSG);
    if (ret == 0)
        srs_fini(&srs);
    close(fd);
    free(bytes);
    return 0;
}
