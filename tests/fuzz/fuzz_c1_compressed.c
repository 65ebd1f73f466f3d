/* The C1 reader on what it must decompress or decode first: gzip, zstd, base64. */
#include "tests/fuzz/c1_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct text real[3];

    if (!real[0].bytes) {
        struct text bare = {0};
        bare.bytes = file_read(c1_path("2KiB-sealed", "bare.json.zst"), &bare.len);
        write_zstd(bare.bytes, bare.len, &real[0]);
        write_gzip(bare.bytes, bare.len, &real[1]);
        write_base64(bare.bytes, bare.len, &real[2]);
        free(bare.bytes);
    }
    if (len >= FUZZ_HEADER_BYTES)
        fuzz_one(&real[data[7] % ARRAY_LEN(real)], data, len);
    return 0;
}
