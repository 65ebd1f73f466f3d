/*
 * proofctl verify: needs the verifying key alone, no parameters and no service.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl.h"
#include "daemon/partition.h"

#define PROOF_FILE_MAX ((size_t)1 << 20) /* far over the longest proof as text */

static int answer(const struct ctl_args *args, bool valid, bool insecure, const char *reason)
{
    if (!args->json) {
        puts(valid ? "valid" : "invalid");
        if (!valid && *reason)
            ctl_fail(0, "%s", reason);
        if (insecure)
            fputs("proofctl: checked with insecure development parameters\n", stderr);
        return valid ? CTL_OK : CTL_NO;
    }
    printf("{\"valid\":%s,\"insecure\":%s,\"reason\":", valid ? "true" : "false",
           insecure ? "true" : "false");
    if (valid)
        fputs("null", stdout);
    else
        ctl_json_string(stdout, *reason ? reason : "the pairing check fails");
    puts("}");
    return valid ? CTL_OK : CTL_NO;
}

static int check(const struct ctl_args *args, const struct c1 *c1, const uint8_t *bytes, size_t len)
{
    struct errmsg err = {""};
    struct vk vk;
    bool insecure = false, valid = false;
    size_t wanted = (size_t)c1_partitions(c1) * PROOF_BYTES;

    int ret = srs_open_vk(c1_size(c1), args->params, &vk, &insecure, &err);
    if (ret < 0)
        return ctl_fail_params(c1_size(c1), args->params, ret, &err);
    if (len == wanted) {
        ret = partition_verify_all(c1, &vk, bytes, len, &valid, &err);
    } else {
        errmsg_write(&err, "%s: %zu bytes, a proof of this C1 has %zu", args->operands[1], len,
                     wanted);
    }
    vk_fini(&vk);
    if (ret < 0)
        return ctl_fail_with(CTL_CANNOT, ret, &err);
    return answer(args, valid, insecure, err.text);
}

int ctl_verify(const struct ctl_args *args)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    struct c1 *c1 = NULL;
    const char *path = args->operands[1];

    int ret = ctl_read_file(path, PROOF_FILE_MAX, &bytes, &len);
    if (ret < 0)
        return ctl_fail(CTL_CANNOT, "%s: %s", path, strerror(-ret));
    ctl_proof_from_text(bytes, &len);
    ret = ctl_read_c1(args->operands[0], C1_CHECK_FORM, NULL, &c1);
    int code = ret == 0 ? check(args, c1, bytes, len) : CTL_CANNOT;
    c1_destroy(c1);
    free(bytes);
    return code;
}
