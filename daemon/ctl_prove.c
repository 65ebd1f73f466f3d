/*
 * proofctl prove: one C1 proved in this process, without the service. The proof is verified before it is
 * written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl.h"
#include "daemon/partition.h"

struct proving {
    const struct ctl_args *args;
    struct workers *workers;
    struct backend *backend;
    struct c1 *c1;
    struct srs *srs;
    uint8_t *proof;
    size_t proof_len;
    struct partition_report sum; /* of all partitions */
    uint32_t partition;
};

static bool show_stage(void *ctx, enum partition_stage stage)
{
    const struct proving *p = ctx;
    char text[64];

    snprintf(text, sizeof(text), "%s %u/%u",
             stage == PARTITION_SYNTHESIZING ? "synthesizing" : "proving", p->partition + 1,
             c1_partitions(p->c1));
    ctl_progress(NULL, text, 0, 0);
    return true;
}

static int prove_partition(struct proving *p, struct errmsg *err)
{
    const struct partition_task task = {.partition = p->partition,
                                        .c1 = p->c1,
                                        .srs = p->srs,
                                        .backend = p->backend,
                                        .workers = p->workers,
                                        .stage = show_stage,
                                        .ctx = p};
    struct partition_result result;

    int ret = partition_prove(&task, &result, err);
    if (ret < 0)
        return ret;
    memcpy(p->proof + (size_t)p->partition * PROOF_BYTES, result.proof, PROOF_BYTES);
    p->sum.synthesis_ms += result.report.synthesis_ms;
    p->sum.transform_ms += result.report.transform_ms;
    p->sum.msm_ms += result.report.msm_ms;
    p->sum.verify_ms += result.report.verify_ms;
    p->sum.total_ms += result.report.total_ms;
    return 0;
}

static int open_params(struct proving *p)
{
    struct errmsg err = {""};
    struct srs_options opt = {
        .dir = p->args->params, .workers = p->workers, .progress = ctl_progress};

    int ret = srs_open(c1_size(p->c1), &opt, &p->srs, &err);
    if (ret < 0)
        return ctl_fail_params(c1_size(p->c1), p->args->params, ret, &err);
    if (p->srs->not_transformed.text[0]) {
        ctl_progress_end();
        fputs("proofctl: ", stderr);
        ctl_put(stderr, p->srs->not_transformed.text);
        fputc('\n', stderr);
    }
    return CTL_OK;
}

static int prove_all(struct proving *p)
{
    struct errmsg err = {""};

    p->proof_len = (size_t)c1_partitions(p->c1) * PROOF_BYTES;
    p->proof = malloc(p->proof_len);
    if (!p->proof)
        return ctl_fail(CTL_CANNOT, "no memory");
    int ret = backend_cpu_create(p->workers, &p->backend, &err);
    for (p->partition = 0; ret == 0 && p->partition < c1_partitions(p->c1); p->partition++)
        ret = prove_partition(p, &err);
    ctl_progress_end();
    if (ret == 0)
        return CTL_OK;
    errmsg_prefix(&err, 0, "%s: not proved", p->args->operands[0]);
    return ctl_fail_with(ctl_exit_of(ret), ret, &err);
}

/* Raw bytes when the file's name ends in .bin, else hex and a newline, as the mount has it. */
static int write_proof(const struct proving *p, const char *path)
{
    size_t n = path ? strlen(path) : 0;

    if (n >= 4 && strcmp(path + n - 4, ".bin") == 0)
        return ctl_write_file(path, p->proof, p->proof_len);
    char *hex = malloc(2 * p->proof_len + 2);
    if (!hex)
        return -ENOMEM;
    hex_encode(hex, p->proof, p->proof_len);
    hex[2 * p->proof_len] = '\n';
    int ret = 0;
    if (path)
        ret = ctl_write_file(path, hex, 2 * p->proof_len + 1);
    else
        fwrite(hex, 1, 2 * p->proof_len + 1, stdout); /* main() sees errors */
    free(hex);
    return ret;
}

static void report(const struct proving *p)
{
    if (p->srs->trust == SRS_INSECURE)
        fputs("proofctl: proved with insecure development parameters\n", stderr);
    if (!p->args->json) {
        fprintf(stderr, "proofctl: %u partitions in %.1f s (synthesis %.1f, proof %.1f)\n",
                c1_partitions(p->c1), p->sum.total_ms / 1e3, p->sum.synthesis_ms / 1e3,
                (p->sum.transform_ms + p->sum.msm_ms) / 1e3);
        return;
    }
    fputs("{\"output\":", stdout);
    if (p->args->output)
        ctl_json_string(stdout, p->args->output);
    else
        fputs("null", stdout);
    printf(",\"partitions\":%u,\"insecure\":%s,\"synthesis_ms\":%.0f,\"transform_ms\":%.0f,"
           "\"msm_ms\":%.0f,\"verify_ms\":%.1f,\"total_ms\":%.0f,",
           c1_partitions(p->c1), p->srs->trust == SRS_INSECURE ? "true" : "false",
           p->sum.synthesis_ms, p->sum.transform_ms, p->sum.msm_ms, p->sum.verify_ms,
           p->sum.total_ms);
    ctl_json_hex(stdout, "proof", p->proof, p->proof_len);
    puts("}");
}

static int run(struct proving *p)
{
    const char *output = p->args->output;
    struct errmsg err = {""};

    int ret = output ? ctl_may_write(output) : 0;
    if (ret < 0)
        return ctl_fail(CTL_CANNOT, "%s: cannot be written: %s", output, strerror(-ret));
    ret = workers_create(p->args->threads, &p->workers, &err);
    if (ret < 0)
        return ctl_fail_with(CTL_CANNOT, ret, &err);
    ret = ctl_read_c1(p->args->operands[0], C1_CHECK_STRICT, p->workers, &p->c1);
    if (ret < 0)
        return ctl_exit_of(ret);
    ctl_progress_lines();
    int code = open_params(p);
    if (code == CTL_OK)
        code = prove_all(p);
    if (code != CTL_OK)
        return code;
    ret = output || !p->args->json ? write_proof(p, output) : 0;
    if (ret < 0)
        return ctl_fail(CTL_CANNOT, "%s: cannot be written: %s", output ? output : "proof",
                        strerror(-ret));
    report(p);
    return CTL_OK;
}

int ctl_prove(const struct ctl_args *args)
{
    struct proving p = {.args = args};

    int code = run(&p);
    free(p.proof);
    backend_destroy(p.backend);
    srs_close(p.srs);
    c1_destroy(p.c1);
    workers_destroy(p.workers);
    return code;
}
