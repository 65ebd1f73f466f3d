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
#define MAX_COUNT 100000
#define MAX_GPU 255

static const struct ctl_command commands[] = {
    {"setup", "SIZE", "make the insecure development parameters of a sector size",
     "SIZE is 2KiB, 8MiB, 512MiB, 32GiB or 64GiB. The parameters are made from published labels: "
     "whoever\n"
     "knows them can forge proofs, so they are for development alone, and a marker beside the file "
     "says\n"
     "so. Parameters that are there already are kept; files without the marker are never "
     "overwritten.\n",
     "they are there", NULL, "they could not be made", CTL_PARAMS_TO | CTL_THREADS | CTL_JSON, 1, 1,
     ctl_setup},
    {"transform", "SIZE", "make proofs a little quicker, for disk: transformed parameters",
     "SIZE is 2KiB, 8MiB, 512MiB, 32GiB or 64GiB. Works out once and for all what a proof would do "
     "with every witness, and\n"
     "writes NAME.transformed beside NAME.params: at 32 GiB 25 GB of disk and six to eight minutes "
     "of a GPU for\n"
     "proofs that are 4 % quicker, and the same to the byte. Loads take it from then on, but only "
     "of "
     "the user who has\n"
     "made it, on this machine: run it as the user of the service. Removing the file undoes it. "
     "More in "
     "proofctl(1).\n",
     "it is there", NULL, "it could not be made",
     CTL_PARAMS | CTL_GPU | CTL_CPU | CTL_STORE | CTL_THREADS | CTL_JSON, 1, 1, ctl_transform},
    {"prove", "C1", "prove a C1 file in this process, without the service",
     "C1 is a C1 file in any form; - is standard input. The proof is verified before it is "
     "written.\n"
     "FILE appears whole or not at all, as raw bytes when its name ends in .bin, else as "
     "lower-case hex and a newline.\n",
     "proved", "not proved: C1 is none or a wrong one",
     "a file or the parameters are missing, FILE cannot be written",
     CTL_PARAMS | CTL_THREADS | CTL_OUTPUT | CTL_JSON | CTL_STDIN, 1, 1, ctl_prove},
    {"verify", "C1 PROOF", "check a proof against a C1 file",
     "PROOF is hex or raw, whichever its content is; one of both may be -, standard input. Prints\n"
     "`valid` or `invalid`. The verifying key is enough, the parameters themselves are not "
     "needed.\n",
     "valid", "invalid", "a file or the key is missing, or C1 is none",
     CTL_PARAMS | CTL_JSON | CTL_STDIN, 2, 2, ctl_verify},
    {"inspect", "FILE", "say what a file is, and whether it is right",
     "FILE is a C1 in any form, a parameter file, a verifying key or a proof; which of them is "
     "found out\n"
     "by its content. All checks of a C1 are made, Merkle paths and labels included. - is standard "
     "input, which has\n"
     "to be a file as well.\n",
     "known and right", "broken or unknown", "cannot be read", CTL_THREADS | CTL_JSON | CTL_STDIN,
     1, 1, ctl_inspect},
    {"submit", "FILE", "hand a C1 file to the service",
     "Does what `cp FILE MOUNT/jobs/NAME` does, and says why when the file is refused. FILE may be "
     "-, standard input.\n"
     "NAME is that of FILE unless given; it waits while the queue is full.\n",
     "accepted; with --wait: proved", "refused; with --wait: failed or cancelled too",
     "FILE, the service, room or parameters are missing, or NAME is none",
     CTL_MOUNT | CTL_NAME | CTL_WAIT | CTL_JSON, 1, 1, ctl_submit},
    {"wait", "NAME...", "wait until jobs have ended",
     "Prints a line for each job as it ends. Goes on through a restart of the service.\n",
     "all done", "one has failed, was refused or was cancelled", "no such job, or no service",
     CTL_MOUNT | CTL_JSON, 1, SIZE_MAX, ctl_wait},
    {"status", "[NAME]...", "show the service, or jobs",
     "With --json and no NAME: every job, an object a line.\n", "shown, whatever it is", NULL,
     "no such job, or no service", CTL_MOUNT | CTL_JSON, 0, SIZE_MAX, ctl_status},
    {"cancel", "NAME...", "cancel jobs that have not ended",
     "A job that was cancelled is forgotten: of a second time there is no such job.\n",
     "all cancelled", "one has ended already or is not yours", "no such job, or no service",
     CTL_MOUNT | CTL_JSON, 1, SIZE_MAX, ctl_cancel},
    {"top", "", "show engines and unfinished jobs, again and again",
     "Engines with what they hold in each stage, then jobs: what runs before what waits. Every two "
     "seconds on a\n"
     "terminal, until it is interrupted; else once.\n",
     "shown", NULL, "no service", CTL_MOUNT | CTL_ONCE, 0, 0, ctl_top},
    {"bench", "--c1 FILE", "measure the service: hand it documents, time their proofs",
     "A line for each proof, then throughput, spread, memory, permits and provers as the service "
     "has sampled them, and\n"
     "a waterfall of the partitions. Documents that are equal are one computation, so variants of "
     "FILE are made: they\n"
     "differ in the ticket, which no proof depends on. The jobs are removed at the end.\n",
     "all proved", "a document was refused, or a job failed",
     "no service, no FILE, no parameters, interrupted",
     CTL_MOUNT | CTL_C1 | CTL_COUNT | CTL_CONCURRENCY | CTL_SAME | CTL_DISTINCT | CTL_SVG |
         CTL_JSON,
     0, 0, ctl_bench},
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
    {"--params", CTL_PARAMS_TO, "DIR",
     "where they go [proofd/params-insecure in $XDG_DATA_HOME or\n"
     "~/.local/share, where all commands and proofd look]"},
    {"--gpu", CTL_GPU, "N", "the GPU that does it, as CUDA counts them [0]"},
    {"--cpu", CTL_CPU, NULL, "without a GPU: hours at 2KiB, far too long for larger ones"},
    {"--store", CTL_STORE, "DIR",
     "that of a service without a home directory, as under systemd:\n"
     "it remembers there what it trusts [your ~/.cache/proofd]"},
    {"--mount", CTL_MOUNT, "DIR", "where the service is mounted [" DEFAULT_MOUNT "]"},
    {"-o", CTL_OUTPUT, "FILE", "where the proof goes [-: standard output, as hex]"},
    {"--name", CTL_NAME, "NAME", "name of the job [that of FILE]"},
    {"--wait", CTL_WAIT, NULL, "wait until the job has ended"},
    {"--once", CTL_ONCE, NULL, "once, on a terminal too"},
    {"--c1", CTL_C1, "FILE", "a document to be proved; several are taken in turn"},
    {"--count", CTL_COUNT, "N", "so many proofs [10]"},
    {"--concurrency", CTL_CONCURRENCY, "N", "so many at a time [all]"},
    {"--distinct", CTL_DISTINCT, NULL, "each is a computation of its own [this]"},
    {"--same", CTL_SAME, NULL, "FILE as it is each time: what repeated documents cost"},
    {"--svg", CTL_SVG, "FILE", "the waterfall as a picture"},
    {"--threads", CTL_THREADS, "N", "threads that work [one for each CPU]"},
    {"--json", CTL_JSON, NULL, "answer in JSON, an object a line; errors too: {\"error\":...}"},
};

static void print_usage(FILE *out)
{
    fputs("Usage: proofctl COMMAND [OPTION]... ARGUMENT...\n\n", out);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\nproofctl help COMMAND tells more; proofctl --version prints the version.\n"
          "Exit status of all: 0 yes or done, 1 the answer is no, 2 no answer: wrong usage, or "
          "something is missing.\n",
          out);
}

static void print_help(const struct ctl_command *c)
{
    printf("Usage: proofctl %s [OPTION]...%s%s\n%s.\n\n", c->name, *c->usage ? " " : "", c->usage,
           c->summary);
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
    printf("  %-16s print this help; so do -h and proofctl help %s\n\n%sExit status: 0 %s",
           "--help", c->name, c->help, c->yes);
    if (c->no)
        printf(";\n1 %s", c->no);
    printf(";\n2 %s, or wrong usage.\n", c->cannot);
}

static int set_number(unsigned *out, const char *name, const char *value, unsigned long least,
                      unsigned long most)
{
    char *end;

    errno = 0;
    unsigned long n = strtoul(value, &end, 10);
    if (errno || *end || end == value || *value == '-' || n < least || n > most)
        return ctl_fail(-EINVAL, "%s: '%s' is not a number from %lu to %lu", name, value, least,
                        most);
    *out = (unsigned)n;
    return 0;
}

static int set_option(struct ctl_args *args, enum ctl_option_bit bit, const char *value)
{
    switch (bit) {
    case CTL_PARAMS:
    case CTL_PARAMS_TO:
        args->params = value;
        return 0;
    case CTL_MOUNT:
        args->mount = value;
        return 0;
    case CTL_OUTPUT:
        args->output = strcmp(value, "-") == 0 ? NULL : value;
        return 0;
    case CTL_NAME:
        args->name = value;
        return 0;
    case CTL_JSON:
        args->json = true;
        return 0;
    case CTL_ONCE:
        args->once = true;
        return 0;
    case CTL_WAIT:
        args->wait = true;
        return 0;
    case CTL_SAME:
        args->same = true;
        return 0;
    case CTL_DISTINCT:
        args->distinct = true;
        return 0;
    case CTL_SVG:
        args->svg = value;
        return 0;
    case CTL_C1:
        if (args->c1_len == CTL_C1_MAX)
            return ctl_fail(-EINVAL, "--c1: more than %d", CTL_C1_MAX);
        args->c1[args->c1_len++] = value;
        return 0;
    case CTL_CPU:
        args->cpu = true;
        return 0;
    case CTL_STORE:
        args->store = value;
        return 0;
    case CTL_GPU:
        return set_number(&args->gpu, "--gpu", value, 0, MAX_GPU);
    case CTL_COUNT:
        return set_number(&args->count, "--count", value, 1, MAX_COUNT);
    case CTL_CONCURRENCY:
        return set_number(&args->concurrency, "--concurrency", value, 1, MAX_COUNT);
    case CTL_THREADS:
        return set_number(&args->threads, "--threads", value, 1, MAX_THREADS);
    case CTL_STDIN:
        break;
    }
    return -EINVAL;
}

struct command_line {
    const struct ctl_command *command;
    struct ctl_args args;
    const char **operands; /* room for all arguments */
    bool help;
};

static bool is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

/* Takes argv[*i], with its value if it has one. */
static int take_option(struct command_line *cl, char **argv, int *i)
{
    const char *arg = argv[*i];
    size_t name_len = arg[1] == '-' ? strcspn(arg, "=") : strlen(arg);

    if (is_help(arg)) {
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

/* Before anything can go wrong. */
static void choose_language(const struct ctl_command *c, char **argv)
{
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        if ((c->options & CTL_JSON) && strcmp(*argv, "--json") == 0)
            ctl_say_in_json();
}

static int take_stdin(struct command_line *cl)
{
    size_t taken = 0;

    if (!(cl->command->options & CTL_STDIN))
        return 0;
    for (size_t i = 0; i < cl->args.operands_len; i++)
        if (strcmp(cl->operands[i], "-") == 0) {
            cl->operands[i] = CTL_STDIN_PATH;
            taken++;
        }
    return taken <= 1 ? 0 : ctl_fail(-EINVAL, "only one file can be standard input");
}

static int run(struct command_line *cl, char **argv)
{
    const struct ctl_command *c = cl->command;

    choose_language(c, argv);
    if (parse(cl, argv) < 0)
        return CTL_CANNOT;
    if (cl->help) {
        print_help(c);
        return CTL_OK;
    }
    if (cl->args.operands_len < c->operands_min || cl->args.operands_len > c->operands_max)
        return ctl_fail(CTL_CANNOT, "usage: proofctl %s [OPTION]...%s%s (see proofctl help %s)",
                        c->name, *c->usage ? " " : "", c->usage, c->name);
    if (take_stdin(cl) < 0)
        return CTL_CANNOT;
    return c->run(&cl->args);
}

static const struct ctl_command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    if (name)
        ctl_fail(0, "unknown command '%s'", name);
    print_usage(stderr);
    return CTL_CANNOT;
}

static int help_about(const char *name)
{
    const struct ctl_command *c = name ? find_command(name) : NULL;

    if (name && !c)
        return unknown_command(name);
    if (c)
        print_help(c);
    else
        print_usage(stdout);
    return CTL_OK;
}

static int run_command(int argc, char **argv)
{
    const char *name = argc >= 2 ? argv[1] : NULL;
    struct command_line cl = {.args = {.mount = DEFAULT_MOUNT}};

    if (name && (is_help(name) || strcmp(name, "help") == 0))
        return help_about(argv[2]);
    if (name && strcmp(name, "--version") == 0)
        return puts("proofctl " PROOFD_VERSION), CTL_OK;
    cl.command = name ? find_command(name) : NULL;
    if (!cl.command)
        return unknown_command(name);
    cl.operands = calloc((size_t)argc, sizeof(*cl.operands));
    if (!cl.operands)
        return ctl_fail(CTL_CANNOT, "no memory");
    int code = run(&cl, argv + 2);
    free(cl.operands);
    return code;
}

int main(int argc, char **argv)
{
    int code = run_command(argc, argv);

    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("proofctl: cannot write the answer\n", stderr);
        return CTL_CANNOT;
    }
    return code;
}
