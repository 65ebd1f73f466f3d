/* The C1 reader on JSON: bare, in the wrapper, in the task form. */
#include "tests/fuzz/c1_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct text real[3];

    if (!real[0].bytes) {
        uint8_t prover_id[32] = {0xe9, 7};
        real[0].bytes = file_read(c1_path("2KiB-sealed", "bare.json.zst"), &real[0].len);
        write_wrapper(&real[0], 1, 2048, "f01001", &real[1]);
        write_task(&real[0], prover_id, 1, &real[2]);
    }
    if (len >= FUZZ_HEADER_BYTES)
        fuzz_one(&real[data[7] % ARRAY_LEN(real)], data, len);
    return 0;
}
