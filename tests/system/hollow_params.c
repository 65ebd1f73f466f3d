/*
 * A file of parameters that looks right from outside and has no points, for simulated devices, which need none: hollow_params SIZE KEYS DIR,
 * the key from the directory KEYS. It has its full length, and takes next to nothing of the disk.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/srs_counts.h"
#include "gpu/vk.h"
#include "numa/circuit/porep.h"
#include "tests/lib/files.h"

static int put_count(FILE *f, uint64_t at, size_t count)
{
    const uint8_t be[4] = {(uint8_t)(count >> 24), (uint8_t)(count >> 16), (uint8_t)(count >> 8),
                           (uint8_t)count};

    return fseeko(f, (off_t)at, SEEK_SET) == 0 && fwrite(be, sizeof(be), 1, f) == 1 ? 0 : -1;
}

static int put_sections(FILE *f, const struct srs_counts *n)
{
    const size_t lens[] = {n->h, n->l, n->a, n->b, n->b};
    uint64_t at = vk_bytes((uint32_t)n->ic);

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        if (put_count(f, at, lens[i]) < 0)
            return -1;
        at += 4 + lens[i] * (i + 1 < ARRAY_LEN(lens) ? G1_BYTES : G2_BYTES);
    }
    return fseeko(f, (off_t)at - 1, SEEK_SET) == 0 && fputc(0, f) == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    const struct sector_size *size = argc == 4 ? sector_size_by_name(argv[1]) : NULL;
    char id[SECTOR_CACHE_ID_MAX], path[4096];
    struct srs_counts counts;
    size_t len;

    if (!size)
        return fprintf(stderr, "usage: hollow_params SIZE KEYS DIR\n"), 2;
    srs_counts(size, &counts);
    sector_cache_id(size, id);
    snprintf(path, sizeof(path), "%s/%s.vk", argv[2], id);
    uint8_t *key = file_read(path, &len);
    snprintf(path, sizeof(path), "%s/%s.params", argv[3], id);
    FILE *f = fopen(path, "we");
    if (!f || fwrite(key, len, 1, f) != 1 || put_sections(f, &counts) < 0 || fclose(f) != 0)
        return fprintf(stderr, "%s: cannot be written\n", path), 1;
    free(key);
    return 0;
}
