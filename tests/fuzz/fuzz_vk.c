/* The verifying key reader: what it accepts is written back as it was. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "gpu/vk.h"
#include "tests/lib/params_image.h"

static const struct srs_counts counts = {.ic = 3, .h = 1, .l = 1, .a = 1, .b = 1};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(const uint8_t *bytes, size_t len)
{
    struct errmsg err;
    struct vk vk;

    int ret = vk_read(bytes, len, &vk, &err);
    assert(ret == 0 || ret == -EBADMSG);
    if (ret < 0)
        return;
    uint8_t *again = malloc(vk_bytes(vk.ic_len));
    vk_write(again, &vk);
    assert(memcmp(again, bytes, vk_bytes(vk.ic_len)) == 0);
    free(again);
    vk_fini(&vk);
}

/* The bytes themselves, and an honest key that they are laid over from an offset on. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct params_image image;

    if (!image.bytes)
        params_image_init(&image, &counts);
    read_back(data, size);
    if (size < 2)
        return 0;
    size_t len = vk_bytes(counts.ic), at = (size_t)(data[0] | data[1] << 8) % len;
    uint8_t *bytes = malloc(len);
    memcpy(bytes, image.bytes, len);
    memcpy(bytes + at, data + 2, min_size(size - 2, len - at));
    read_back(bytes, len);
    free(bytes);
    return 0;
}
