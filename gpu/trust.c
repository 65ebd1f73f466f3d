#include "gpu/trust.h"

const char *srs_trust_word(enum srs_trust trust)
{
    static const char *const words[SRS_TRUSTS] = {
        [SRS_UNCHECKED] = "unchecked",
        [SRS_INSECURE] = "insecure",
        [SRS_CHECKED] = "checked",
        [SRS_DIGEST] = "official",
    };

    return words[trust < SRS_TRUSTS ? trust : SRS_UNCHECKED];
}

const char *srs_trust_text(enum srs_trust trust)
{
    return trust == SRS_INSECURE ? "insecure development parameters" : srs_trust_word(trust);
}
