/*
 * Memory of a node for one circuit after another. Parameters are keys alone, by a simulated device.
 */
#include "daemon/ground.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "tests/lib/suite.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static char dir[64];
static struct sim *sim;
static struct backend *backend;
static struct ground_options opt;
static struct ground *ground;
static struct node_memory seen;
static struct pipeline_ground got;
static struct errmsg err;
static double ms;

static const char *const names[] = {"2KiB", "8MiB", "512MiB"};

static const struct sector_size *size_2k(void)
{
    return sector_size_by_name("2KiB");
}

/* A directory of parameters with the keys of 2 KiB, 8 MiB and 512 MiB. */
static void make_dir(void)
{
    char command[512], id[SECTOR_CACHE_ID_MAX];

    strcpy(dir, "/tmp/proofd-ground-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        sector_cache_id(sector_size_by_name(names[i]), id);
        snprintf(command, sizeof(command), "cp 'tests/vectors/vk/%s.vk' '%s'", id, dir);
        ck_assert_int_eq(system(command), 0);
    }
}

static void make_sim(const char *config)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/sim", dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(config, f);
    fclose(f);
    ck_assert_msg(sim_create(path, &sim, &err) == 0, "%s", err.text);
    ck_assert_int_eq(backend_sim_create(sim, &backend, &err), 0);
}

static void setup(void)
{
    log_set_level(0);
    make_dir();
    make_sim("witness = 1M\nevaluation = 2M\n");
    opt = (struct ground_options){.memory_node = ARENA_ANY_NODE,
                                  .permits = 3,
                                  .backends = &backend,
                                  .backends_len = 1,
                                  .params_dir = dir,
                                  .sim = sim};
}

static struct params *params;

static void teardown(void)
{
    char command[128];

    ground_destroy(ground);
    ground = NULL;
    params_destroy(params);
    params = NULL;
    backend_destroy(backend);
    sim_destroy(sim);
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
}

static bool full; /* the machine's memory is, to who asks for arenas (the Makefile wraps this) */
int __real_arena_create(const struct arena_options *o, struct arena **out, struct errmsg *why);
int __wrap_arena_create(const struct arena_options *o, struct arena **out, struct errmsg *why);

int __wrap_arena_create(const struct arena_options *o, struct arena **out, struct errmsg *why)
{
    return full ? errmsg_set(why, -ENOMEM, "no memory for %zu bytes", o->bytes)
                : __real_arena_create(o, out, why);
}

/* What was said of devices: 'd' one is asked, or gets on; '.' it is through. */
static char devices[64];

static void note_device(void *ctx, const struct backend *be)
{
    ck_assert_ptr_eq(ctx, devices);
    ck_assert(!be || be == backend);
    strcat(devices, be ? "d" : ".");
}

static void make(void)
{
    const struct params_options p = {.dir = dir};

    ck_assert_int_eq(params_create(&p, &params), 0);
    opt.params = params;
    ck_assert_int_eq(ground_create(&opt, &ground, &err), 0);
    ground_look(ground, &seen);
}

START_TEST(ground_create__maps_before_anybody_asks)
{
    make();
    ck_assert(seen.mapped);
    ck_assert_uint_ge(seen.arena_bytes, 3 * MIB + 2 * 2 * MIB);
    ck_assert_uint_eq(seen.shape.witnesses, 3);
    ck_assert_uint_eq(seen.shape.evaluations, 2);
    ck_assert_uint_eq(seen.slots.bytes, 0);
    ck_assert_int_eq(seen.misplaced_node, -1);
    ck_assert_uint_eq(ground_permits(ground), 3);
    ck_assert(!ground_get(ground, NULL, &got));
    ck_assert_int_eq(ground_prepare(ground, NULL, 0, &ms, &err), 0);
    ck_assert(ground_get(ground, NULL, &got));
    ck_assert_ptr_null(got.srs);
    ck_assert(!ground_get(ground, size_2k(), &got));
}
END_TEST

/* From one circuit to another and back: what is mapped already is used again. */
START_TEST(ground_prepare__another_circuit)
{
    make();
    uint64_t before = seen.arena_bytes;
    ck_assert_msg(ground_prepare(ground, size_2k(), 0, &ms, &err) == 0, "%s", err.text);
    ck_assert(ground_get(ground, size_2k(), &got));
    ck_assert_ptr_nonnull(got.srs);
    ck_assert_uint_gt(got.srs->vk.ic_len, 1);
    ck_assert(!ground_get(ground, NULL, &got));
    ground_look(ground, &seen);
    uint64_t large = seen.arena_bytes;
    ck_assert_uint_gt(large, before);
    ck_assert_uint_gt(seen.shape.evaluation_bytes, 100 * MIB);
    ck_assert_int_eq(ground_prepare(ground, NULL, 0, &ms, &err), 0);
    ground_look(ground, &seen);
    ck_assert_uint_eq(seen.arena_bytes, large);
    ck_assert_uint_eq(seen.shape.witness_bytes, MIB);
}
END_TEST

START_TEST(ground_prepare__without_parameters)
{
    char command[128];

    make();
    snprintf(command, sizeof(command), "rm '%s'/*.vk", dir);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(ground_prepare(ground, size_2k(), 0, &ms, &err), -ENOKEY);
    ck_assert(!ground_get(ground, size_2k(), &got));
    ck_assert_int_eq(ground_prepare(ground, NULL, 0, &ms, &err), 0); /* as if nothing had been */
}
END_TEST

/* Of a simulated device: its key. */
START_TEST(ground_load__by_name_and_away_again)
{
    struct node_params p;

    make();
    ground_params(ground, size_2k(), &p);
    ck_assert(!p.held);
    ck_assert_int_eq(ground_load(ground, size_2k(), 0, &err), 0);
    ground_params(ground, size_2k(), &p);
    ck_assert(p.held && p.devices == 0 && p.host_bytes == 0);
    ck_assert(ground_get(ground, size_2k(), &got));
    ck_assert_int_eq(ground_load(ground, size_2k(), 1, &err), 0); /* it is there */
    ck_assert_int_eq(ground_evict(ground, size_2k(), 1, &err), -EBUSY);
    ck_assert(ground_get(ground, size_2k(), &got));
    ck_assert_int_eq(ground_evict(ground, size_2k(), 2, &err), 0); /* another's */
    ground_params(ground, size_2k(), &p);
    ck_assert(!p.held);
    ck_assert(!ground_get(ground, size_2k(), &got));
    ck_assert_int_eq(ground_evict(ground, size_2k(), 0, &err), 0); /* there is nothing */
    ck_assert_int_eq(ground_prepare(ground, size_2k(), 0, &ms, &err), 0);
    ck_assert(ground_get(ground, size_2k(), &got));
}
END_TEST

/* ---- a device with memory for parameters: 1.1 GB for 2 KiB, 1.5 for 8 MiB, 1.7 for 512 MiB ---- */

static const struct sector_size *size_of(const char *name)
{
    return sector_size_by_name(name);
}

static uint32_t bit(const char *name)
{
    return UINT32_C(1) << (size_of(name) - sector_sizes);
}

/* So that slots take no memory to speak of. */
static void make_device(const char *config)
{
    backend_destroy(backend);
    sim_destroy(sim);
    make_sim(config);
    opt.sim = sim;
    opt.permits = 1;
    make();
}

static void prepare(const char *name, uint32_t waiting)
{
    ck_assert_msg(ground_prepare(ground, size_of(name), waiting, &ms, &err) == 0, "%s", err.text);
    ck_assert(ground_get(ground, size_of(name), &got));
    ck_assert_ptr_eq(got.srs->size, size_of(name));
}

/* What is on the device, in the order of sizes: "8MiB 512MiB streamed ". */
static void on_device(const char *want)
{
    char text[128] = "";
    struct node_params p;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        ground_params(ground, size_of(names[i]), &p);
        ck_assert_int_eq(p.devices != 0, p.device_bytes > 0);
        if (p.devices)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s", names[i],
                     p.streamed ? "streamed " : "");
    }
    ck_assert_str_eq(text, want);
}

/* Two of the three fit: of those that nobody waits for the longest unused goes. */
START_TEST(ground_prepare__keeps_what_fits_and_drops_the_longest_unused)
{
    make_device("memory = 4G\nload_ms = 1\n");
    prepare("2KiB", 0);
    prepare("8MiB", 0);
    on_device("2KiB 8MiB ");
    for (int i = 0; i < 3; i++) { /* nothing is brought anew */
        prepare("2KiB", bit("8MiB"));
        prepare("8MiB", bit("2KiB"));
    }
    on_device("2KiB 8MiB ");
    prepare("512MiB", 0);
    on_device("8MiB 512MiB ");
    prepare("8MiB", 0);
    prepare("2KiB", 0);
    on_device("2KiB 8MiB ");
    ck_assert(!ground_get(ground, size_of("8MiB"), &got));
}
END_TEST

START_TEST(ground_prepare__what_partitions_wait_with_goes_last)
{
    make_device("memory = 4G\n");
    prepare("2KiB", 0);
    prepare("8MiB", 0);
    prepare("512MiB", bit("2KiB")); /* used before 8 MiB */
    on_device("2KiB 512MiB ");
    prepare("8MiB", bit("2KiB") | bit("512MiB")); /* its turn: something must go */
    on_device("8MiB 512MiB ");
}
END_TEST

START_TEST(ground_load__leaves_what_partitions_wait_with)
{
    make_device("memory = 4G\n");
    prepare("2KiB", 0);
    ck_assert_int_eq(ground_load(ground, size_of("8MiB"), bit("2KiB"), &err), 0);
    on_device("2KiB 8MiB ");
    ck_assert_int_eq(ground_load(ground, size_of("512MiB"), bit("2KiB") | bit("8MiB"), &err),
                     -EBUSY);
    ck_assert_ptr_nonnull(strstr(err.text, "parameters of 2KiB"));
    on_device("2KiB 8MiB ");
    prepare("2KiB", 0); /* as if nothing had been */
    ck_assert_int_eq(ground_evict(ground, size_of("8MiB"), bit("2KiB"), &err), 0);
    on_device("2KiB ");
    ck_assert(ground_get(ground, size_of("2KiB"), &got));
    ck_assert_int_eq(ground_load(ground, size_of("512MiB"), bit("2KiB"), &err), 0);
    on_device("2KiB 512MiB ");
    ck_assert_int_eq(ground_evict(ground, size_of("2KiB"), bit("2KiB"), &err), -EBUSY);
}
END_TEST

/* So that one that does not come back can be told from parameters that are slow to come. */
START_TEST(ground__tells_while_a_device_is_asked)
{
    opt.at_device = note_device;
    opt.ctx = devices;
    make_device("memory = 4G\n");
    ck_assert_str_eq(devices, "");
    prepare("2KiB", 0);
    ck_assert_str_eq(devices, "dd.");
    prepare("8MiB", 0);
    ck_assert_str_eq(devices, "dd.dd.");
    prepare("512MiB", 0); /* asked, without room; one is given up; asked again */
    ck_assert_str_eq(devices, "dd.dd.d.d.dd.");
    ck_assert_int_eq(ground_evict(ground, size_of("8MiB"), 0, &err), 0);
    ck_assert_str_eq(devices, "dd.dd.d.d.dd.d.");
}
END_TEST

/* What does not fit the empty device is streamed, and alone there. */
START_TEST(ground_prepare__streams_what_fits_no_empty_device)
{
    make_device("memory = 1300M\n");
    prepare("2KiB", 0);
    on_device("2KiB ");
    prepare("512MiB", bit("2KiB"));
    on_device("512MiB streamed ");
    ck_assert_int_eq(ground_load(ground, size_of("2KiB"), bit("512MiB"), &err), -EBUSY);
    on_device("512MiB streamed ");
    prepare("2KiB", bit("512MiB"));
    on_device("2KiB ");
}
END_TEST

/* ---- parameters that devices make, whose key is kept on disk ---- */

static bool disk_is_full;
static unsigned makes;

static int make_key(void *ctx, const struct sector_size *size, const struct srs_options *o, struct srs **out,
                    struct errmsg *why)
{
    struct srs *srs = calloc(1, sizeof(*srs));
    bool insecure;

    (void)ctx, (void)o;
    makes++;
    ck_assert_ptr_nonnull(srs);
    int ret = disk_is_full ? errmsg_set(why, -ENOSPC, "%s: cannot keep the key: No space left on device", dir)
                           : srs_open_vk(size, dir, &srs->vk, &insecure, why);
    if (ret < 0) {
        free(srs);
        return ret;
    }
    srs->size = size;
    srs->trust = SRS_INSECURE;
    *out = srs;
    return 0;
}

static int no_file(const struct sector_size *size, const struct srs_options *o, struct srs **out, struct errmsg *why)
{
    (void)o, (void)out;
    return errmsg_set(why, -ENOENT, "no parameters for %s", size->name);
}

static uint64_t no_bytes(const struct sector_size *size, const char *where)
{
    (void)size, (void)where;
    return 0;
}

static void drop_made(struct srs *srs)
{
    if (srs)
        vk_fini(&srs->vk);
    free(srs);
}

static void enough_memory(struct limits *out)
{
    *out = (struct limits){.total_bytes = 64 * GIB, .available_bytes = 64 * GIB};
}

/* Nothing that a device could give up helps, and nothing is given up: the partition waits for the disk, and the reason says so. */
START_TEST(ground_prepare__a_full_disk_keeps_no_key)
{
    static const struct params_source made = {no_file, drop_made, no_bytes, enough_memory};
    const struct params_options p = {.dir = dir, .make = make_key, .source = &made};

    backend_destroy(backend);
    sim_destroy(sim);
    make_sim("witness = 1M\nevaluation = 2M\nmemory = 4G\n");
    ck_assert_int_eq(params_create(&p, &params), 0);
    opt.params = params;
    opt.sim = NULL;
    ck_assert_int_eq(ground_create(&opt, &ground, &err), 0);
    disk_is_full = true;
    makes = 0;
    ck_assert_int_eq(ground_prepare(ground, size_2k(), bit("8MiB"), &ms, &err), -ENOKEY);
    ck_assert_ptr_nonnull(strstr(err.text, "cannot keep the key: No space left on device"));
    ck_assert_uint_eq(makes, 1); /* it is asked for once */
    ck_assert_int_eq(ground_load(ground, size_2k(), bit("8MiB"), &err), -ENOKEY);
    ck_assert_ptr_nonnull(strstr(err.text, "No space left on device"));
    disk_is_full = false;
    ck_assert_msg(ground_prepare(ground, size_2k(), bit("8MiB"), &ms, &err) == 0, "%s", err.text);
    disk_is_full = true; /* what is there stays, and is no reason to say that others wait */
    ck_assert_int_eq(ground_prepare(ground, size_of("8MiB"), bit("2KiB"), &ms, &err), -ENOKEY);
    ck_assert_ptr_nonnull(strstr(err.text, "No space left on device"));
    on_device("2KiB ");
}
END_TEST

/* The engine starts all the same; what is wanted meanwhile fails with the reason, and what comes when there is room does not. */
START_TEST(ground_create__on_a_node_that_is_full)
{
    full = true;
    make();
    ck_assert(!seen.mapped);
    ck_assert_uint_eq(seen.slots.bytes, 0);
    ck_assert_int_eq(ground_prepare(ground, NULL, 0, &ms, &err), -EBUSY);
    ck_assert_ptr_nonnull(strstr(err.text, "no memory for "));
    ck_assert(!ground_get(ground, NULL, &got));
    full = false;
    ck_assert_int_eq(ground_prepare(ground, NULL, 0, &ms, &err), 0);
    ck_assert(ground_get(ground, NULL, &got));
    /* A larger circuit finds no room, and takes what was there: the next one maps anew. */
    full = true;
    ck_assert_int_eq(ground_prepare(ground, size_2k(), 0, &ms, &err), -EBUSY);
    ck_assert(!ground_get(ground, size_2k(), &got));
    ck_assert(!ground_get(ground, NULL, &got));
    full = false;
    ck_assert_int_eq(ground_prepare(ground, NULL, 0, &ms, &err), 0);
    ground_look(ground, &seen);
    ck_assert(seen.mapped);
}
END_TEST

/* A limit: fewer slots, then none, and both numbers. */
START_TEST(ground_create__within_a_limit)
{
    struct ground_needs needs;

    opt.memory_bytes = 5 * MIB;
    make();
    ck_assert_uint_eq(seen.shape.witnesses, 2);
    ck_assert_uint_eq(seen.shape.evaluations, 1);
    ck_assert_uint_eq(seen.limit_bytes, 5 * MIB);
    ck_assert_int_eq(ground_prepare(ground, size_2k(), 0, &ms, &err), -ENOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "2KiB:"));
    ck_assert_ptr_nonnull(strstr(err.text, "the configuration has 0.0 GiB"));
    ground_needs(ground, &needs);
    for (size_t i = 0; i < GROUND_SIZES; i++)
        ck_assert_uint_gt(needs.bytes[i], needs.limit_bytes);
    ck_assert_str_eq(needs.limit_from, "the configuration");
}
END_TEST

/* With parameters on the host and a proof on the CPU: 2 KiB fits, 32 GiB does not. */
START_TEST(ground_needs__of_a_node)
{
    struct backend *cpu = NULL;
    struct ground_needs needs;

    ck_assert_int_eq(backend_cpu_create(NULL, &cpu, &err), 0);
    opt.sim = NULL;
    opt.backends = &cpu;
    opt.memory_node = 0;
    opt.node_bytes = 8 * GIB;
    opt.sharers = _i + 1;
    opt.engines = 4;
    opt.params_dir = "/nonexistent";
    make();
    ck_assert(!seen.mapped); /* no parameters: nothing to map for */
    ground_needs(ground, &needs);
    ck_assert_uint_eq(needs.limit_bytes, 8 * GIB / opt.sharers);
    ck_assert_uint_lt(needs.bytes[0], 4 * GIB);
    ck_assert_uint_gt(needs.bytes[8], 44 * GIB);
    ck_assert_uint_gt(needs.bytes[9], needs.bytes[8]);
    ck_assert_str_eq(needs.limit_from, _i ? "a share of node 0" : "node 0");
    ground_destroy(ground);
    ground = NULL;
    backend_destroy(cpu);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ground");
    TCase *tc = tcase_create("ground");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, ground_create__maps_before_anybody_asks);
    tcase_add_test(tc, ground_prepare__another_circuit);
    tcase_add_test(tc, ground_prepare__without_parameters);
    tcase_add_test(tc, ground_load__by_name_and_away_again);
    tcase_add_test(tc, ground_prepare__keeps_what_fits_and_drops_the_longest_unused);
    tcase_add_test(tc, ground_prepare__what_partitions_wait_with_goes_last);
    tcase_add_test(tc, ground_load__leaves_what_partitions_wait_with);
    tcase_add_test(tc, ground__tells_while_a_device_is_asked);
    tcase_add_test(tc, ground_prepare__streams_what_fits_no_empty_device);
    tcase_add_test(tc, ground_prepare__a_full_disk_keeps_no_key);
    tcase_add_test(tc, ground_create__on_a_node_that_is_full);
    tcase_add_test(tc, ground_create__within_a_limit);
    tcase_add_loop_test(tc, ground_needs__of_a_node, 0, 2);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
