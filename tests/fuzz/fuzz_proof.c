/* The proof decoder: what it accepts is encoded back as it was. */
#include <assert.h>
#include <errno.h>

#include "gpu/proof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[PROOF_BYTES] = {0x80}, again[PROOF_BYTES];
    struct errmsg err;
    struct proof proof;

    bytes[48] = bytes[144] = 0x80;
    for (size_t i = 0; i < size && i < PROOF_BYTES; i++)
        bytes[i] ^= data[i];
    int ret = proof_decode(&proof, bytes, &err);
    assert(ret == 0 || ret == -EBADMSG);
    if (ret == 0) {
        proof_encode(again, &proof);
        assert(memcmp(again, bytes, PROOF_BYTES) == 0);
    }
    return 0;
}
