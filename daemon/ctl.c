/*
 * proofctl: the table of commands and what is common to their command lines.
 */
#include "daemon/ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/version.h"

#define DEFAULT_MOUNT "/proof"
#define MAX_THREADS 4096

static const struct ctl_command commands[] = {
    {"setup", "SIZE", "make the insecure development parameters of a sector size",
     "SIZE is 2KiB, 8MiB, 512MiB, 32GiB or 64GiB. The parameters are made from published labels: whoever\n"
     "knows them can forge proofs, so they are for development alone, and a marker beside the file says\n"
     "so. Parameters that are there already are kept. Without --params they go where proofd and proofctl\n"
     "look for development parameters: proofd/params-insecure in $XDG_DATA_HOME or ~/.local/share.\n",
     CTL_PARAMS | CTL_THREADS | CTL_JSON, 1, 1, ctl_setup},
    {"prove", "C1", "prove a C1 file in this process, without the service",
     "C1 is a C1 file in any form. The proof is verified before it is written; FILE appears whole or not\n"
     "at all, as raw bytes when its name ends in .bin, else as lower-case hex and a newline.\n"
     "Exit status: 0 proved, 1 not proved (bad C1, no parameters, no memory), 2 wrong usage.\n",
     CTL_PARAMS | CTL_THREADS | CTL_OUTPUT | CTL_JSON, 1, 1, ctl_prove},
    {"verify", "C1 PROOF", "check a proof against a C1 file",
     "PROOF is hex or raw, whichever its content is. Prints `valid` or `invalid`. The verifying key is\n"
     "enough, the parameters themselves are not needed.\n"
     "Exit status: 0 valid, 1 invalid, 2 could not tell (a file is missing or is no C1, no key).\n",
     CTL_PARAMS | CTL_JSON, 2, 2, ctl_verify},
    {"inspect", "FILE", "say what a file is, and whether it is right",
     "FILE is a C1 in any form, a parameter file, a verifying key or a proof; which of them is found out\n"
     "by its content. All checks of a C1 are made, Merkle paths and labels included.\n"
     "Exit status: 0 known and right, 1 broken or unknown, 2 cannot be read.\n",
     CTL_THREADS | CTL_JSON, 1, 1, ctl_inspect},
    {"submit", "FILE", "hand a C1 file to the service",
     "Does what `cp FILE MOUNT/jobs/NAME` does, and says why when the file is refused. FILE may be -.\n"
     "NAME is that of FILE unless given; it waits while the queue is full.\n"
     "Exit status: 0 accepted (with --wait: proved), 1 refused (with --wait: failed or cancelled too),\n"
     "2 no service there, or wrong usage.\n",
     CTL_MOUNT | CTL_NAME | CTL_WAIT | CTL_JSON, 1, 1, ctl_submit},
    {"wait", "NAME...", "wait until jobs have ended",
     "Prints a line for each job as it ends.\n"
     "Exit status: 0 all done, 1 one has failed or was cancelled, 2 no such job, or no service there.\n",
     CTL_MOUNT | CTL_JSON, 1, SIZE_MAX, ctl_wait},
    {"status", "[NAME]...", "show the service, or jobs",
     "Exit status: 0 shown, 2 no such job, or no service there.\n", CTL_MOUNT | CTL_JSON, 0, SIZE_MAX,
     ctl_status},
    {"cancel", "NAME...", "cancel jobs that have not ended",
     "Exit status: 0 all cancelled, 1 one has ended already or is not yours, 2 no such job, or no service\n"
     "there.\n",
     CTL_MOUNT | CTL_JSON, 1, SIZE_MAX, ctl_cancel},
};

static const struct {
    const char *name; /* "--name", or "-n" */
    enum ctl_option_bit bit;
    const char *value_name; /* NULL: takes no value */
    const char *help;
} options[] = {
    {"--params", CTL_PARAMS, "DIR",
     "Groth16 parameters [$FIL_PROOFS_PARAMETER_CACHE or\n"
     "/var/tmp/filecoin-proof-parameters, then those of setup]"},
    {"--mount", CTL_MOUNT, "DIR", "where the service is mounted [" DEFAULT_MOUNT "]"},
    {"-o", CTL_OUTPUT, "FILE", "where the proof goes"},
    {"--name", CTL_NAME, "NAME", "name of the job"},
    {"--wait", CTL_WAIT, NULL, "wait until the job has ended"},
    {"--threads", CTL_THREADS, "N", "threads that work [one for each CPU]"},
    {"--json", CTL_JSON, NULL, "answer in JSON, an object a line"},
};

static void print_usage(FILE *out)
{
    fputs("Usage: proofctl COMMAND [OPTION]... ARGUMENT...\n\n", out);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\nproofctl COMMAND --help tells more; proofctl --version prints the version.\n", out);
}

static void print_help(const struct ctl_command *c)
{
    printf("Usage: proofctl %s [OPTION]... %s\n%s.\n\n", c->name, c->usage, c->summary);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        char name[32];
        if (!(c->options & options[i].bit))
            continue;
        snprintf(name, sizeof(name), "%s %s", options[i].name,
                 options[i].value_name ? options[i].value_name : "");
        printf("  %-16s ", name);
        for (const char *p = options[i].help; *p; p++) {
            putchar(*p);
            if (*p == '\n')
                printf("%19s", "");
        }
        putchar('\n');
    }
    printf("  %-16s print this help\n\n%s", "--help", c->help);
}

static int set_option(struct ctl_args *args, enum ctl_option_bit bit, const char *value)
{
    char *end;

    switch (bit) {
    case CTL_PARAMS:
        args->params = value;
        return 0;
    case CTL_MOUNT:
        args->mount = value;
        return 0;
    case CTL_OUTPUT:
        args->output = value;
        return 0;
    case CTL_NAME:
        args->name = value;
        return 0;
    case CTL_JSON:
        args->json = true;
        return 0;
    case CTL_WAIT:
        args->wait = true;
        return 0;
    case CTL_THREADS:
        errno = 0;
        unsigned long n = strtoul(value, &end, 10);
        if (errno || *end || end == value || *value == '-' || n < 1 || n > MAX_THREADS)
            return ctl_fail(-EINVAL, "--threads: '%s' is not a number from 1 to %d", value,
                            MAX_THREADS);
        args->threads = (unsigned)n;
        return 0;
    }
    return -EINVAL;
}

struct command_line {
    const struct ctl_command *command;
    struct ctl_args args;
    const char **operands; /* room for all arguments */
    bool help;
};

/* Takes argv[*i], with its value if it has one. */
static int take_option(struct command_line *cl, char **argv, int *i)
{
    const char *arg = argv[*i];
    size_t name_len = arg[1] == '-' ? strcspn(arg, "=") : strlen(arg);

    if (strcmp(arg, "--help") == 0) {
        cl->help = true;
        return 0;
    }
    for (size_t k = 0; k < ARRAY_LEN(options); k++) {
        if (!(cl->command->options & options[k].bit) || strlen(options[k].name) != name_len ||
            memcmp(options[k].name, arg, name_len) != 0)
            continue;
        if (!options[k].value_name)
            return arg[name_len] ? ctl_fail(-EINVAL, "%s takes no value", options[k].name)
                                 : set_option(&cl->args, options[k].bit, NULL);
        const char *value = arg[name_len] ? arg + name_len + 1 : argv[++*i];
        if (!value)
            return ctl_fail(-EINVAL, "%s needs a value", arg);
        return set_option(&cl->args, options[k].bit, value);
    }
    return ctl_fail(-EINVAL, "%s: unknown option '%s' (see proofctl %s --help)", cl->command->name,
                    arg, cl->command->name);
}

static int parse(struct command_line *cl, char **argv)
{
    bool only_operands = false;

    for (int i = 0; argv[i]; i++) {
        if (!only_operands && strcmp(argv[i], "--") == 0) {
            only_operands = true;
            continue;
        }
        if (only_operands || argv[i][0] != '-' || !argv[i][1]) {
            cl->operands[cl->args.operands_len++] = argv[i];
            continue;
        }
        int ret = take_option(cl, argv, &i);
        if (ret < 0)
            return ret;
        if (!argv[i])
            break;
    }
    cl->args.operands = cl->operands;
    return 0;
}

static int run(struct command_line *cl, char **argv)
{
    const struct ctl_command *c = cl->command;

    if (parse(cl, argv) < 0)
        return CTL_CANNOT;
    if (cl->help) {
        print_help(c);
        return CTL_OK;
    }
    if (cl->args.operands_len < c->operands_min || cl->args.operands_len > c->operands_max)
        return ctl_fail(CTL_CANNOT, "usage: proofctl %s [OPTION]... %s", c->name, c->usage);
    int code = c->run(&cl->args);
    if (fflush(stdout) != 0 || ferror(stdout))
        return ctl_fail(CTL_CANNOT, "cannot write the answer");
    return code;
}

int main(int argc, char **argv)
{
    struct command_line cl = {.args = {.mount = DEFAULT_MOUNT}};

    if (argc >= 2 && strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return CTL_OK;
    }
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        puts("proofctl " PROOFD_VERSION);
        return CTL_OK;
    }
    for (size_t i = 0; argc >= 2 && i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i].name, argv[1]) == 0)
            cl.command = &commands[i];
    if (!cl.command) {
        if (argc >= 2)
            ctl_fail(0, "unknown command '%s'", argv[1]);
        print_usage(stderr);
        return CTL_CANNOT;
    }
    cl.operands = calloc((size_t)argc, sizeof(*cl.operands));
    if (!cl.operands)
        return ctl_fail(CTL_CANNOT, "no memory");
    int code = run(&cl, argv + 2);
    free(cl.operands);
    return code;
}
