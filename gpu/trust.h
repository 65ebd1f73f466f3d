/*
 * What is known of Groth16 parameters, in one of three words, and what tells them apart.
 *
 * Pure functions; any thread may call them.
 */
#ifndef GPU_TRUST_H
#define GPU_TRUST_H

/* The higher the better. Only SRS_CHECKED and SRS_DIGEST are to be taken for secure. */
enum srs_trust {
    SRS_UNCHECKED, /* nobody has looked yet */
    SRS_INSECURE,  /* development parameters: the marker is beside the file, or the key is theirs */
    SRS_CHECKED,   /* every point was checked: on its curve, in the subgroup */
    SRS_DIGEST,    /* the file has the published digest */
    SRS_TRUSTS
};

/* In one word: "unchecked", "insecure", "checked", "official"; and in text, where only the second differs:
 * "insecure development parameters". */
const char *srs_trust_word(enum srs_trust trust);
const char *srs_trust_text(enum srs_trust trust);

/* SHA-256 over the verifying key as a .vk has it: other keys, other parameters. */
#define SRS_VK_DIGEST_BYTES 32

#endif
