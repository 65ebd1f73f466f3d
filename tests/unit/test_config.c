#include "daemon/config_check.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/proofd-config-XXXXXX";
static struct config cfg;
static struct errmsg err;

static void setup(void)
{
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    memset(&err, 0, sizeof(err));
    config_defaults(&cfg);
}

static void teardown(void)
{
    unlink(path);
}

static void write_text(const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static int read_text(const char *text)
{
    write_text(text);
    return config_read_file(path, &cfg, &err);
}

static int load(const char *const *args, enum config_action *action)
{
    char *argv[16] = {"proofd"};
    int argc = 1;

    for (; *args; args++)
        argv[argc++] = (char *)(uintptr_t)*args;
    return config_load(argc, argv, &cfg, action, &err);
}

START_TEST(config_defaults__are_sane)
{
    ck_assert_str_eq(cfg.mount, "/proof");
    ck_assert_str_eq(cfg.store, "/var/lib/proofd");
    ck_assert_str_eq(cfg.params, "");
    ck_assert_uint_eq(cfg.threads, 0);
    ck_assert_str_eq(cfg.nodes, "");
    ck_assert_str_eq(cfg.gpus, "auto");
    ck_assert_str_eq(cfg.simulate, "");
    ck_assert_uint_eq(cfg.memory_bytes, 0);
    ck_assert_uint_eq(cfg.log_levels, LOG_LEVELS(LOG_LEVEL_INFO));
    ck_assert_uint_eq(cfg.max_unfinished, 1000);
    ck_assert_uint_eq(cfg.keep_finished_age_s, 7 * 86400);
    ck_assert_uint_eq(cfg.max_unsubmitted, 10000);
    ck_assert_uint_eq(cfg.unsubmitted_age_s, 86400);
}
END_TEST

START_TEST(config_read_file__sets_each_type)
{
    ck_assert_int_eq(read_text("# comment\n; another\n\n[proofd]\n  mount = /mnt/my proofs \n"
                               "threads=3\nlog_level = debug\nmax_store = 2G\n"
                               "keep_finished_age = 12h\nnodes = cpus:0-1 cpus:2\n"
                               "memory = 3G"),
                     0);
    ck_assert_str_eq(cfg.mount, "/mnt/my proofs");
    ck_assert_uint_eq(cfg.threads, 3);
    ck_assert_uint_eq(cfg.log_levels, LOG_LEVELS(LOG_LEVEL_DEBUG));
    ck_assert_uint_eq(cfg.max_store_bytes, 2ull << 30);
    ck_assert_uint_eq(cfg.keep_finished_age_s, 12 * 3600);
    ck_assert_str_eq(cfg.nodes, "cpus:0-1 cpus:2");
    ck_assert_uint_eq(cfg.memory_bytes, 3ull << 30);
}
END_TEST

static const struct {
    const char *text;
    const char *said;
} bad[] = {
    {"mount = /a\nmuont = /b\n", ":2: unknown key 'muont'"},
    {"gpu-memory = 1G\n", ":1: unknown key 'gpu-memory', in a file it is gpu_memory"},
    {"\nthreads = -1\n", ":2: threads: '-1' is not a number from 0 to 4096"},
    {"threads = 4097\n", ":1: threads: '4097'"},
    {"threads = 12x\n", ":1: threads: '12x'"},
    {"threads =\n", ":1: threads: ''"},
    {"threads = 99999999999999999999\n", ":1: threads:"},
    {"threads = 2K\n", ":1: threads: '2K'"},
    {"max_store = 9999999999999T\n", ":1: max_store:"},
    {"keep_finished_age = 3w\n", ":1: keep_finished_age: '3w'"},
    {"log_level = loud\n", ":1: log_level: 'loud' is none of off, err, warn, info, debug"},
    {"log_level = info shed=debug\n", ":1: log_level: 'shed' is none of front, jobs, sched"},
    {"mount =\n", ":1: mount: must not be empty"},
    {"mount = \"/a\n", ":1: mount: \"/a: quotes that do not belong together"},
    {"mount = /a'\n", ":1: mount: /a': quotes"},
    {"mount = \"/a'\n", ":1: mount: \"/a': quotes"},
    {"mount = \"/a\"/b\"\n", ":1: mount: \"/a\"/b\": quotes"},
    {"mount = \"\n", ":1: mount: \": quotes"},
    {"mount = \"\"\n", ":1: mount: must not be empty"},
    {"mount = /a\x01/b\n", ":1: mount: a control character"},
    {"mount = /tmp/m # here\n", ":1: mount: /tmp/m # here: a comment needs a line of its own"},
    {"mount = /tmp/m\t; here\n", ":1: mount: /tmp/m\t; here: a comment"},
    {"params = # none\n", ":1: params: # none: a comment"},
    {"threads\n", ":1: 'threads' is not of the form key = value"},
    {"[nodes]\n", ":1: unknown section [nodes]"},
    {"threads = 1\n\nthreads = 2\n", ":3: threads: already given on line 1"},
};

START_TEST(config_read_file__says_line_key_and_reason)
{
    ck_assert_int_eq(read_text(bad[_i].text), -EINVAL);
    ck_assert_msg(strncmp(err.text, path, strlen(path)) == 0, "%s", err.text);
    ck_assert_msg(strstr(err.text, bad[_i].said) != NULL, "%s", err.text);
}
END_TEST

START_TEST(config_read_file__waits_for_nobody)
{
    char pipe_path[64];

    snprintf(pipe_path, sizeof(pipe_path), "/tmp/proofd-fifo.%d", (int)getpid());
    ck_assert_int_eq(mkfifo(pipe_path, 0600), 0);
    ck_assert_int_eq(config_read_file(pipe_path, &cfg, &err), -EINVAL);
    unlink(pipe_path);
    ck_assert_ptr_nonnull(strstr(err.text, "not a regular file"));
    ck_assert_int_eq(config_read_file("/dev/zero", &cfg, &err), -EINVAL);
    ck_assert_int_eq(config_read_file("/dev/null", &cfg, &err), 0);
}
END_TEST

START_TEST(config_read_file__refuses_a_zero_byte_and_an_endless_path)
{
    char text[CONFIG_PATH_MAX + 64] = "mount = /";
    FILE *f = fopen(path, "w");

    fwrite("mount = /a\0b\n", 1, 13, f);
    fclose(f);
    ck_assert_int_eq(config_read_file(path, &cfg, &err), -EINVAL);
    memset(text + strlen(text), 'a', CONFIG_PATH_MAX);
    ck_assert_int_eq(read_text(text), -EINVAL);
}
END_TEST

START_TEST(config_read_file__quotes_are_no_part_of_a_value)
{
    ck_assert_int_eq(read_text("mount = \" /with blanks \"\nstore = '/it/\"s'\nparams = \"\"\n"
                               "threads = '3'\nengine = /it's\n"),
                     0);
    ck_assert_str_eq(cfg.mount, " /with blanks ");
    ck_assert_str_eq(cfg.store, "/it/\"s");
    ck_assert_str_eq(cfg.params, "");
    ck_assert_str_eq(cfg.engine, "/it's");
    ck_assert_uint_eq(cfg.threads, 3);
}
END_TEST

START_TEST(config_print__quotes_what_needs_them)
{
    static const char *const paths[] = {"/plain", "/in side", " /before", "/after ", "\"/quoted\"",
                                        "/at end'", "/it's", "/a #b", "#", "/a ;b", "/a#b"};

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char *text = NULL;
        size_t len;
        strcpy(cfg.mount, paths[i]);
        FILE *f = open_memstream(&text, &len);
        config_print(&cfg, f);
        fclose(f);
        cfg.mount[0] = '\0';
        ck_assert_msg(read_text(text) == 0, "%s", err.text);
        ck_assert_str_eq(cfg.mount, paths[i]);
        free(text);
    }
}
END_TEST

/* ---- on this machine ---- */

static char dir[64];

static void make_dir(void)
{
    setup();
    strcpy(dir, "/tmp/proofd-check-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(cfg.mount, sizeof(cfg.mount), "%s/mnt", dir);
    snprintf(cfg.store, sizeof(cfg.store), "%s/store", dir);
    snprintf(cfg.params, sizeof(cfg.params), "%s", dir);
}

static void remove_dir(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
    teardown();
}

static void refuses(int (*check)(void), const char *text)
{
    ck_assert_int_lt(check(), 0);
    ck_assert_msg(strstr(err.text, text), "'%s' does not say '%s'", err.text, text);
}

static int check(void)
{
    return config_check(&cfg, &err);
}

static int check_mount(void)
{
    return config_check_mount(&cfg, &err);
}

static int check_machine(void)
{
    FILE *null = fopen("/dev/null", "w");
    int ret = config_check_machine(&cfg, null, &err);

    fclose(null);
    return ret;
}

START_TEST(config_check__what_can_never_work)
{
    ck_assert_int_eq(check(), 0);
    snprintf(cfg.store, sizeof(cfg.store), "%s/mnt/store", dir);
    refuses(check, "lies inside the mount");
    snprintf(cfg.store, sizeof(cfg.store), "%s/store", dir);
    snprintf(cfg.params, sizeof(cfg.params), "%s/mnt/../mnt/params", dir);
    refuses(check, "lies inside the mount");
    cfg.params[0] = '\0';
    strcpy(cfg.nodes, "1023");
    refuses(check, "node 1023: this machine has no such node; it has 0");
    cfg.nodes[0] = '\0';
    strcpy(cfg.gpus, "two");
    refuses(check, "gpus: 'two' is neither auto nor none");
    strcpy(cfg.gpus, "none");
    static const char *const odd[] = {"", "a/b", ".x", "..", "a b", "a-name-of-more-than-thirty-two-bytes"};
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        strcpy(cfg.device, odd[i]);
        refuses(check, "is neither none nor a name for a node in /dev");
    }
    strcpy(cfg.device, "proof-2");
    strcpy(cfg.development_parameters, "cpu");
    refuses(check, "development_parameters: 'cpu' is neither none nor device");
    strcpy(cfg.development_parameters, "device"); /* and gpus is none */
    refuses(check, "only GPUs make parameters, and none is to be used");
    strcpy(cfg.gpus, "auto");
    strcpy(cfg.simulate, "file");
    refuses(check, "only GPUs make parameters, and none is to be used");
    cfg.simulate[0] = '\0';
    ck_assert_int_eq(check(), 0);
    strcpy(cfg.development_parameters, "none");
    strcpy(cfg.gpus, "none");
    strcpy(cfg.confine, "yes");
    refuses(check, "confine: 'yes' is none of auto, on, off");
    strcpy(cfg.confine, "on");
    ck_assert_int_eq(check(), 0);
}
END_TEST

/* What is wrong with a text is found later than what is wrong with a number, and told alike. */
START_TEST(config_check__names_where_a_text_is_from)
{
    enum config_action action;
    const char *const args[] = {"--config", path, NULL};
    const char *const more[] = {"--config", path, "--gpus", "two", NULL};
    static const struct {
        const char *text, *says;
    } wrong[] = {{"\ngpus = yes\n", ":2: gpus: 'yes' is neither"},
                 {"confine = maybe\n", ":1: confine: 'maybe' is none"},
                 {"nodes = abc\n", ":1: nodes: "},
                 {"development_parameters = yes\n", ":1: development_parameters: 'yes'"},
                 {"threads = 1\n\ncritical_group = no such\n", ":3: critical_group: there is no group"},
                 {"shared_group = no such\n", ":1: shared_group: there is no group"},
                 {"device = a/b\n", ":1: device: 'a/b'"},
                 {"mount = /\n\nstore = /x\n", ":3: store /x lies inside the mount /"},
                 {"store = /x\nmount = /x/y\n", ":2: mount /x/y lies inside the store"}};
    static const struct {
        const char *text, *says;
    } absent[] = {{"engine = /nonexistent\n", ":1: engine program /nonexistent: No such file"},
                  {"\nsimulate = /nonexistent\n", ":2: simulate: "},
                  {"store = /etc/passwd\n", ":1: store /etc/passwd: not a directory"},
                  {"params = /etc/passwd\n", ":1: params /etc/passwd: not a directory"}};
    char says[256];

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        write_text(wrong[i].text);
        ck_assert_msg(load(args, &action) == 0, "%s", err.text);
        snprintf(says, sizeof(says), "%s%s", path, wrong[i].says);
        refuses(check, says);
    }
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        write_text(absent[i].text);
        ck_assert_msg(load(args, &action) == 0, "%s", err.text);
        if (strcmp(cfg.store, "/var/lib/proofd") == 0) /* which may be there or not */
            snprintf(cfg.store, sizeof(cfg.store), "%s/store", dir);
        snprintf(says, sizeof(says), "%s%s", path, absent[i].says);
        refuses(check_machine, says);
    }
    write_text("\nmount = /etc/passwd\n");
    ck_assert_int_eq(load(args, &action), 0);
    snprintf(says, sizeof(says), "%s:2: mount /etc/passwd: not a directory", path);
    refuses(check_mount, says);
    write_text("gpus = yes\n");
    ck_assert_int_eq(load(more, &action), 0);
    refuses(check, "command line: gpus: 'two' is neither");
}
END_TEST

START_TEST(config_check_machine__directories_and_programs)
{
    char *text = NULL, file[128];
    size_t len;

    FILE *f = open_memstream(&text, &len);
    ck_assert_msg(config_check_machine(&cfg, f, &err) == 0, "%s", err.text);
    fclose(f);
    ck_assert_msg(strstr(text, "no parameters that can be used"), "%s", text);
    free(text);
    ck_assert_int_ne(access(cfg.store, F_OK), 0); /* nothing is made */
    snprintf(cfg.store, sizeof(cfg.store), "%s/a/b/store", dir);
    ck_assert_int_eq(check_machine(), 0);
    char name[300];
    memset(name, 'x', 256);
    name[256] = '\0';
    snprintf(cfg.store, sizeof(cfg.store), "%s/absent/%s/store", dir, name);
    refuses(check_machine, "a name of more than 255 bytes");
    snprintf(cfg.store, sizeof(cfg.store), "%s/nowhere/store", dir);
    snprintf(file, sizeof(file), "%s/nowhere", dir);
    ck_assert_int_eq(symlink("/nonexistent/a", file), 0);
    refuses(check_machine, "nowhere: a symbolic link to what is not there");
    strcpy(cfg.store, "/proc/proofd/store");
    refuses(check_machine, geteuid() == 0 ? "/proc is of the kernel's own files" : "cannot be made");
    snprintf(cfg.store, sizeof(cfg.store), "%s/full", dir);
    ck_assert_int_eq(mkdir(cfg.store, 0700), 0);
    ck_assert_int_eq(check_machine(), 0);
    snprintf(file, sizeof(file), "%s/full/store", dir);
    FILE *counter = fopen(file, "w");
    fputs("a shopping list\n", counter);
    fclose(counter);
    refuses(check_machine, "store: not a job store of this version");
    snprintf(file, sizeof(file), "%s/file", dir);
    fclose(fopen(file, "w"));
    snprintf(cfg.store, sizeof(cfg.store), "%s/file/b/store", dir);
    refuses(check_machine, "Not a directory");
    snprintf(cfg.store, sizeof(cfg.store), "%s/store", dir);
    snprintf(cfg.simulate, sizeof(cfg.simulate), "%s/absent", dir);
    refuses(check_machine, "absent: cannot open: No such file");
    strcpy(cfg.simulate, file); /* an empty one is good */
    ck_assert_int_eq(check_machine(), 0);
    strcpy(cfg.engine, file);
    refuses(check_machine, "engine program");
    strcpy(cfg.params, file);
    refuses(check_machine, "not a directory");
    cfg.engine[0] = '\0';
    strcpy(cfg.params, "/nonexistent"); /* which may be mounted later */
    f = open_memstream(&text, &len);
    ck_assert_msg(config_check_machine(&cfg, f, &err) == 0, "%s", err.text);
    fclose(f);
    ck_assert_msg(
        strstr(text,
               "no parameters that can be used in /nonexistent (no such directory): every"),
        "%s", text);
    free(text);
    strcpy(cfg.mount, file);
    refuses(check_mount, "mount");
    if (geteuid() == 0) /* who may write everywhere */
        return;
    strcpy(cfg.store, "/nonexistent/a/b/");
    refuses(check_machine, "store /nonexistent/a/b/ cannot be made");
}
END_TEST

START_TEST(config_load__command_line_beats_file_beats_default)
{
    enum config_action action;
    const char *args[] = {"--threads", "7", "--config", path, NULL};

    read_text("threads = 3\nmount = /from/file\nmax_unfinished = 5\n");
    ck_assert_int_eq(load(args, &action), 0);
    ck_assert_int_eq(action, CONFIG_RUN);
    ck_assert_uint_eq(cfg.threads, 7);
    ck_assert_str_eq(cfg.mount, "/from/file");
    ck_assert_uint_eq(cfg.max_unfinished, 5);
    ck_assert_uint_eq(cfg.keep_finished, 1000);
}
END_TEST

START_TEST(config_load_again__all_or_nothing)
{
    char *argv[] = {"proofd", "--threads", "7", "--config", path, NULL};
    const int argc = ARRAY_LEN(argv) - 1;
    enum config_action action;

    write_text("max_unfinished = 5\nmount = /m\n");
    ck_assert_int_eq(config_load(argc, argv, &cfg, &action, &err), 0);

    write_text("max_unfinished = 6\nkeep_finished_bytes = 9K\nlog_level = warn\nmount = "
               "/m\nthreads = 8\n");
    ck_assert_int_eq(config_load_again(argc, argv, &cfg, &err), 0);
    ck_assert_uint_eq(cfg.max_unfinished, 6);
    ck_assert_uint_eq(cfg.keep_finished_bytes, 9216);
    ck_assert_uint_eq(cfg.log_levels, LOG_LEVELS(LOG_LEVEL_WARN));
    ck_assert_uint_eq(cfg.threads, 7); /* the command line's, as before */

    write_text("max_unfinished = 7\nmount = /n\n"); /* needs a restart */
    ck_assert_int_eq(config_load_again(argc, argv, &cfg, &err), -EINVAL);
    ck_assert_msg(strncmp(err.text, "mount has changed", 17) == 0, "%s", err.text);
    ck_assert_uint_eq(cfg.max_unfinished, 6);
    ck_assert_str_eq(cfg.mount, "/m");

    write_text("max_unfinished = 7\nmount = /m\nkeep_finished = many\n");
    ck_assert_int_eq(config_load_again(argc, argv, &cfg, &err), -EINVAL);
    ck_assert_uint_eq(cfg.max_unfinished, 6);
}
END_TEST

START_TEST(config_load__equals_sign_and_dashes)
{
    enum config_action action;
    const char *args[] = {"--max-unfinished=9", "--check-config", NULL};

    ck_assert_int_eq(load(args, &action), 0);
    ck_assert_int_eq(action, CONFIG_CHECK);
    ck_assert_uint_eq(cfg.max_unfinished, 9);
}
END_TEST

START_TEST(config_load__names_what_is_wrong)
{
    enum config_action action;
    const char *unknown[] = {"--frobnicate", "1", NULL}, *stray[] = {"stray", NULL};
    const char *missing[] = {"--threads", NULL}, *value[] = {"--threads=x", NULL};
    const char *forgotten[] = {"--mount", "--check-config", NULL};
    const char *odd[] = {"--mount=--check-config", NULL};
    const char *absent[] = {"--config", "/nonexistent/proofd.conf", NULL};

    ck_assert_int_eq(load(unknown, &action), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "--frobnicate"));
    ck_assert_int_eq(load(stray, &action), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "stray"));
    ck_assert_int_eq(load(missing, &action), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "needs a value"));
    ck_assert_int_eq(load(forgotten, &action), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "option '--mount' needs a value, and '--check-config' is an option"));
    ck_assert_int_eq(load(odd, &action), 0);
    ck_assert_str_eq(cfg.mount, "--check-config");
    ck_assert_int_eq(load(value, &action), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "command line: threads: 'x'"));
    ck_assert_int_eq(load(absent, &action), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/proofd.conf"));
}
END_TEST

START_TEST(config_load__help_needs_no_good_file)
{
    static const char *const words[] = {"--help", "-h", "help"};
    enum config_action action;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const char *args[] = {"--config", "/nonexistent", words[i], NULL};
        action = CONFIG_RUN;
        ck_assert_int_eq(load(args, &action), 0);
        ck_assert_int_eq(action, CONFIG_HELP);
    }
}
END_TEST

START_TEST(config_print__reads_back_the_same)
{
    struct config again;

    read_text("threads = 3\nkeep_finished_age = 2d\nmax_store = 5T\n"
              "log_level = warn sched=debug fuse=off\nparams = /p\nnodes = 0\n");
    FILE *f = fopen(path, "w");
    config_print(&cfg, f);
    fclose(f);
    config_defaults(&again);
    ck_assert_int_eq(config_read_file(path, &again, &err), 0);
    ck_assert_int_eq(memcmp(&again, &cfg, offsetof(struct config, file)), 0); /* all values */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("config");
    TCase *tc = tcase_create("config");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, config_defaults__are_sane);
    tcase_add_test(tc, config_read_file__sets_each_type);
    tcase_add_loop_test(tc, config_read_file__says_line_key_and_reason, 0, ARRAY_LEN(bad));
    tcase_add_test(tc, config_read_file__waits_for_nobody);
    tcase_add_test(tc, config_read_file__refuses_a_zero_byte_and_an_endless_path);
    tcase_add_test(tc, config_load__command_line_beats_file_beats_default);
    tcase_add_test(tc, config_load_again__all_or_nothing);
    tcase_add_test(tc, config_load__equals_sign_and_dashes);
    tcase_add_test(tc, config_load__names_what_is_wrong);
    tcase_add_test(tc, config_load__help_needs_no_good_file);
    tcase_add_test(tc, config_print__reads_back_the_same);
    tcase_add_test(tc, config_read_file__quotes_are_no_part_of_a_value);
    tcase_add_test(tc, config_print__quotes_what_needs_them);
    suite_add_tcase(s, tc);
    TCase *machine = tcase_create("machine");
    tcase_add_checked_fixture(machine, make_dir, remove_dir);
    tcase_add_test(machine, config_check__what_can_never_work);
    tcase_add_test(machine, config_check__names_where_a_text_is_from);
    tcase_add_test(machine, config_check_machine__directories_and_programs);
    suite_add_tcase(s, machine);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
