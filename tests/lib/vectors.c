#include "tests/lib/vectors.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "numa/circuit/graph.h"

static void die(const char *what, const char *about)
{
    fprintf(stderr, "test data: %s: %s\n", about, what);
    exit(2);
}

bool vector_find(char path[VECTOR_PATH_MAX], const char *name)
{
    const char *shared = getenv("PROOFD_SHARED");

    snprintf(path, VECTOR_PATH_MAX, "tests/vectors/%s", name);
    if (access(path, R_OK) == 0)
        return true;
    snprintf(path, VECTOR_PATH_MAX, "%s/vectors/%s", shared ? shared : "../shared", name);
    return access(path, R_OK) == 0;
}

char *vector_read(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    size_t room = 1 << 16, used = 0, n;
    char *text = malloc(room + 1);

    if (!f || !text)
        die("cannot read", path);
    while ((n = fread(text + used, 1, room - used, f)) > 0) {
        used += n;
        if (used == room && !(text = realloc(text, (room *= 2) + 1)))
            die("no memory", path);
    }
    fclose(f);
    text[used] = '\0';
    if (len)
        *len = used;
    return text;
}

const char *vector_json_value(const char *json, const char *key, char out[128])
{
    char quoted[96];
    size_t len = 0;

    snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    const char *at = strstr(json, quoted);
    if (!at)
        die("has no such key", key);
    at += strlen(quoted);
    at += strspn(at, " \"");
    while (at[len] && !strchr("\",}] \n", at[len]) && len < 127)
        len++;
    memcpy(out, at, len);
    out[len] = '\0';
    return out;
}

void vector_json_hex(const char *json, const char *key, uint8_t *out, size_t len)
{
    char hex[128];

    vector_json_value(json, key, hex);
    if (strlen(hex) != 2 * len || hex_decode(out, hex, len) < 0)
        die("is not hex of the length wanted", key);
}

void vector_meta(const char *name, struct vector_meta *out)
{
    char path[VECTOR_PATH_MAX], relative[128], text[128];

    snprintf(relative, sizeof(relative), "c1/%s/meta.json", name);
    if (!vector_find(path, relative))
        die("not there", relative);
    char *json = vector_read(path, NULL);
    out->proof = seal_proof_by_name(vector_json_value(json, "registered_proof", text));
    if (!out->proof)
        die("unknown proof type", relative);
    vector_json_hex(json, "comm_d", out->comm_d, 32);
    vector_json_hex(json, "comm_r", out->comm_r, 32);
    vector_json_hex(json, "prover_id", out->prover_id, 32);
    vector_json_hex(json, "replica_id", out->replica_id, 32);
    vector_json_hex(json, "seed", out->seed, 32);
    vector_json_hex(json, "ticket", out->ticket, 32);
    out->sector_number = strtoull(vector_json_value(json, "sector_number", text), NULL, 10);
    free(json);
}

fr_t *vector_inputs(const char *name, uint32_t partition, size_t *len)
{
    struct vector_meta meta;
    struct errmsg err;

    vector_meta(name, &meta);
    struct public_params params = {
        .proof = meta.proof,
        .comm_r = meta.comm_r,
        .comm_d = meta.comm_d,
        .replica_id = meta.replica_id,
        .seed = meta.seed,
    };
    *len = public_inputs_len(meta.proof->size);
    fr_t *inputs = malloc(*len * sizeof(*inputs));
    if (!inputs)
        die("no memory", name);
    if (public_inputs(&params, partition, inputs, &err) < 0)
        die(err.text, name);
    return inputs;
}

bool vector_proof(const char *name, const char *file, uint32_t partition, uint8_t out[PROOF_BYTES])
{
    char path[VECTOR_PATH_MAX], relative[128], index[16];

    snprintf(relative, sizeof(relative), "c1/%s/%s", name, file);
    if (!vector_find(path, relative))
        return false;
    char *text = vector_read(path, NULL), *line = text;
    int index_len = snprintf(index, sizeof(index), "%u ", partition);
    while (line && strncmp(line, index, (size_t)index_len) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    bool found = line != NULL;
    if (found && (strlen(line) < (size_t)index_len + 2 * PROOF_BYTES ||
                  hex_decode(out, line + index_len, PROOF_BYTES) < 0))
        die("is not a line of a proof", relative);
    free(text);
    return found;
}

void vector_vk(const struct sector_size *size, struct vk *out)
{
    char path[VECTOR_PATH_MAX], relative[256], id[SECTOR_CACHE_ID_MAX];
    struct errmsg err;
    size_t len;

    sector_cache_id(size, id);
    snprintf(relative, sizeof(relative), "vk/%s.vk", id);
    if (!vector_find(path, relative))
        die("not there", relative);
    char *bytes = vector_read(path, &len);
    if (vk_read((const uint8_t *)bytes, len, out, &err) < 0)
        die(err.text, relative);
    free(bytes);
}

fr_t vector_label_scalar(const char *label)
{
    uint8_t hash[32];
    fr_t out;

    SHA256((const uint8_t *)label, strlen(label), hash);
    hash[31] &= 0x3f;
    if (!fr_from_bytes(&out, hash))
        die("is not below the modulus", label);
    return out;
}
