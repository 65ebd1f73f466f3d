/* The C1 reader on bincode: API form, inner form, the form with the prover's identity. */
#include "tests/fuzz/c1_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct text real[3];

    if (!real[0].bytes) {
        uint8_t identity[40] = {0xe9, 7, [32] = 1};
        real[0].bytes = file_read(c1_path("2KiB-sealed", "c1.bincode"), &real[0].len);
        text_add(&real[1], real[0].bytes + 8, real[0].len - 8);
        text_add(&real[2], "\0\0\0\0", 4);
        text_add(&real[2], real[0].bytes, real[0].len);
        text_add(&real[2], identity, sizeof(identity));
    }
    if (len >= FUZZ_HEADER_BYTES)
        fuzz_one(&real[data[7] % ARRAY_LEN(real)], data, len);
    return 0;
}
