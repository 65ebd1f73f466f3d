#include "tests/lib/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

const char *const c1_names[] = {"2KiB-sealed", "2KiB-v1",     "2KiB-synthetic",
                                "2KiB-sparse", "8MiB-sealed", "512MiB-sparse",
                                NULL};

static _Noreturn void give_up(const char *what, const char *which)
{
    fprintf(stderr, "%s: %s\n", which, what);
    exit(2);
}

const char *c1_path(const char *name, const char *file)
{
    static char path[512];

    snprintf(path, sizeof(path), "tests/vectors/c1/%s/%s", name, file);
    return path;
}

static uint8_t *file_read_as_is(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");

    if (!f || fseek(f, 0, SEEK_END) != 0)
        give_up("cannot open", path);
    long end = ftell(f);
    rewind(f);
    uint8_t *bytes = malloc((size_t)end + 1);
    if (!bytes || fread(bytes, 1, (size_t)end, f) != (size_t)end)
        give_up("cannot read", path);
    fclose(f);
    bytes[end] = '\0';
    *len = (size_t)end;
    return bytes;
}

uint8_t *file_read(const char *path, size_t *len)
{
    uint8_t *packed = file_read_as_is(path, len);
    size_t name_len = strlen(path);

    if (name_len < 4 || strcmp(path + name_len - 4, ".zst") != 0)
        return packed;
    unsigned long long plain_len = ZSTD_getFrameContentSize(packed, *len);
    if (plain_len == ZSTD_CONTENTSIZE_UNKNOWN || plain_len == ZSTD_CONTENTSIZE_ERROR)
        give_up("no content size", path);
    uint8_t *plain = malloc(plain_len + 1);
    if (!plain || ZSTD_decompress(plain, plain_len, packed, *len) != plain_len)
        give_up("cannot decompress", path);
    free(packed);
    plain[plain_len] = '\0';
    *len = plain_len;
    return plain;
}
