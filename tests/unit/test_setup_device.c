/*
 * Development parameters that devices make: devices that are made up, whose keys are true ones and whose points are numbers that say
 * where they came from.
 */
#include "gpu/setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu/qap.h"
#include "gpu/secrets.h"
#include "gpu/srs.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

#define DEVICES 3

struct fake_device {
    struct backend base;
    unsigned developed, evicted;
    uint64_t limit; /* while it made them */
    size_t fetched[SRS_SECTIONS];
    bool lies; /* another key */
    int fails; /* fetch */
};

static const struct sector_size *size;
static const struct circuit *circuit;
static fr_t *true_ic;
static struct fake_device fakes[DEVICES];
static struct backend *devices[DEVICES];
static struct errmsg err;
static char dir[64];

/* (beta u + alpha v + w) / gamma of the inputs, by the polynomials that setup takes as well. */
static int make_ic(void)
{
    const struct secrets t = secrets_from_labels();
    struct porep_counts counts;
    struct workers *workers = NULL;
    struct qap *q = NULL;
    fr_t scale, part;

    porep_counts(size, &counts);
    true_ic = malloc(counts.inputs * sizeof(*true_ic));
    if (!true_ic || workers_create(0, &workers, NULL) < 0 ||
        qap_create(&counts, &t.tau, workers, &q, NULL) < 0 ||
        qap_take_circuit(q, circuit, workers, NULL) < 0)
        return -1;
    fr_inverse(&scale, &t.gamma);
    for (uint32_t i = 0; i < q->n_inputs; i++) {
        fr_mul(&true_ic[i], &t.beta, &q->u[i]);
        fr_mul(&part, &t.alpha, &q->v[i]);
        fr_add(&true_ic[i], &true_ic[i], &part);
        fr_add(&true_ic[i], &true_ic[i], &q->w[i]);
        fr_mul(&true_ic[i], &true_ic[i], &scale);
    }
    qap_destroy(q);
    workers_destroy(workers);
    return 0;
}

static int fake_develop(struct backend *be, const struct circuit *c, const struct secrets *t,
                        fr_t *ic, backend_progress progress, void *ctx, struct errmsg *why)
{
    struct fake_device *f = (struct fake_device *)be;

    (void)t, (void)why;
    if (progress)
        progress(ctx, "h", 1, 1);
    memcpy(ic, true_ic, c->n_inputs * sizeof(*ic));
    if (f->lies)
        ic[1] = fr_from_u64(7);
    f->developed++;
    f->limit = be->memory_limit;
    return 0;
}

/* The first word of the first point of each call says which section and where; the rest stays as it is, and untouched memory is none. */
static int fake_fetch(struct backend *be, enum srs_section section, size_t first, size_t len,
                      void *points, struct errmsg *why)
{
    struct fake_device *f = (struct fake_device *)be;

    if (f->fails && section == SRS_B_G1)
        return errmsg_set(why, f->fails, "no luck");
    ck_assert_uint_eq(first, f->fetched[section]);
    f->fetched[section] += len;
    *(uint64_t *)points = section * UINT64_C(1000000000) + first;
    return 0;
}

static void fake_evict(struct backend *be, const struct srs *srs)
{
    ck_assert_ptr_nonnull(srs);
    ((struct fake_device *)be)->evicted++;
}

static const struct backend_ops fake_ops = {
    .name = "fake", .develop = fake_develop, .fetch = fake_fetch, .evict = fake_evict};

static void begin(void)
{
    snprintf(dir, sizeof(dir), "/tmp/proofd-keys-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    memset(fakes, 0, sizeof(fakes));
    err.text[0] = '\0';
    for (int i = 0; i < DEVICES; i++) {
        fakes[i].base.ops = &fake_ops;
        devices[i] = &fakes[i].base;
    }
}

static void end(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static struct srs *must_make(void)
{
    struct srs *srs = NULL;

    ck_assert_msg(setup_on_devices(circuit, devices, DEVICES, NULL, NULL, &srs, &err) == 0, "%s",
                  err.text);
    ck_assert_ptr_eq(srs->size, size);
    ck_assert_int_eq(srs->trust, SRS_INSECURE);
    return srs;
}

/* A key that was made before: the published vector, which is the reference's. */
static void put_vector_key(const char *suffix)
{
    char command[600], id[SECTOR_CACHE_ID_MAX];

    sector_cache_id(size, id);
    snprintf(command, sizeof(command), "cp tests/vectors/vk/%s.vk %s/%s%s", id, dir, id, suffix);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(setup_on_devices__each_has_them_and_the_key_is_the_reference_s)
{
    struct srs *srs = must_make();

    for (int i = 0; i < DEVICES; i++)
        ck_assert_uint_eq(fakes[i].developed, 1);
    ck_assert(!srs_has_points(srs));
    put_vector_key(".vk");
    put_vector_key(".insecure");
    ck_assert_msg(setup_keep_key(size, dir, &srs->vk, &err) == 0, "%s", err.text);
    srs_close(srs);
}
END_TEST

START_TEST(setup_on_devices__devices_that_disagree)
{
    struct srs *srs = NULL;

    fakes[2].lies = true;
    ck_assert_int_eq(setup_on_devices(circuit, devices, DEVICES, NULL, NULL, &srs, &err), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "devices 1 and 2 made different parameters"));
    ck_assert_ptr_null(srs);
}
END_TEST

START_TEST(setup_on_devices__a_device_that_makes_none_says_so)
{
    struct srs *srs = NULL;
    struct backend *cpu = NULL;

    ck_assert_int_eq(backend_cpu_create(NULL, &cpu, NULL), 0);
    ck_assert_int_eq(setup_on_devices(circuit, &cpu, 1, NULL, NULL, &srs, &err), -EINVAL);
    ck_assert_str_eq(err.text, "cpu makes no parameters of its own");
    devices[1] = cpu;
    ck_assert_int_eq(setup_on_devices(circuit, devices, DEVICES, NULL, NULL, &srs, &err), -EINVAL);
    ck_assert_ptr_null(srs);
    backend_destroy(cpu);
}
END_TEST

START_TEST(setup_on_devices__less_memory_than_points_take)
{
    struct srs_counts counts;

    fakes[0].base.memory_limit = fakes[1].base.memory_limit = 1 << 20;
    struct srs *srs = must_make();
    srs_counts(size, &counts);
    ck_assert_uint_eq(fakes[0].developed, 1);
    ck_assert_uint_eq(fakes[0].limit, 0);
    ck_assert_uint_eq(fakes[0].base.memory_limit, 1 << 20);
    ck_assert_uint_eq(fakes[0].evicted, 1);
    ck_assert_uint_eq(fakes[1].developed + fakes[2].developed, 0);
    ck_assert(srs_has_points(srs));
    const size_t lens[] = {counts.h, counts.l, counts.a, counts.b, counts.b};
    const void *const points[] = {srs->h, srs->l, srs->a, srs->b_g1, srs->b_g2};
    for (uint64_t s = 0; s < SRS_SECTIONS; s++) {
        const size_t bytes = s == SRS_B_G2 ? sizeof(g2_affine_t) : sizeof(g1_affine_t);
        ck_assert_uint_eq(fakes[0].fetched[s], lens[s]);
        ck_assert_uint_eq(*(const uint64_t *)points[s], s * 1000000000);
        if (lens[s] > 1 << 20) /* of the second call */
            ck_assert_uint_eq(
                *(const uint64_t *)((const char *)points[s] + ((size_t)1 << 20) * bytes),
                s * 1000000000 + (1 << 20));
    }
    srs_close(srs);
}
END_TEST

START_TEST(setup_on_devices__points_that_do_not_come)
{
    struct srs *srs = NULL;

    fakes[0].base.memory_limit = 1 << 20;
    fakes[0].fails = -EIO;
    ck_assert_int_eq(setup_on_devices(circuit, devices, DEVICES, NULL, NULL, &srs, &err), -EIO);
    ck_assert_str_eq(err.text, "no luck");
    ck_assert_uint_eq(fakes[0].evicted, 1);
    ck_assert_uint_eq(fakes[0].base.memory_limit, 1 << 20);
    ck_assert_ptr_null(srs);
}
END_TEST

START_TEST(setup_keep_key__the_first_one_stays)
{
    char below[96];
    struct vk found;
    bool insecure = false;

    struct srs *srs = must_make();
    snprintf(below, sizeof(below), "%s/a/b", dir);
    for (int again = 0; again < 2; again++)
        ck_assert_msg(setup_keep_key(size, below, &srs->vk, &err) == 0, "%s", err.text);
    ck_assert_int_eq(srs_open_vk(size, below, &found, &insecure, &err), 0);
    ck_assert(insecure);
    vk_fini(&found);
    srs->vk.ic[1] = srs->vk.ic[0];
    ck_assert_int_eq(setup_keep_key(size, below, &srs->vk, &err), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "is not the key of the parameters that were made now"));
    put_vector_key(".vk");
    ck_assert_int_eq(setup_keep_key(size, dir, &srs->vk, &err), -EEXIST); /* perhaps official */
    srs_close(srs);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("setup on devices");
    TCase *tc = tcase_create("setup on devices");

    size = sector_size_by_name("2KiB");
    if (circuit_of_size(size, &circuit, &err) < 0 || make_ic() < 0)
        return 1;
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, setup_on_devices__each_has_them_and_the_key_is_the_reference_s);
    tcase_add_test(tc, setup_on_devices__devices_that_disagree);
    tcase_add_test(tc, setup_on_devices__a_device_that_makes_none_says_so);
    tcase_add_test(tc, setup_on_devices__less_memory_than_points_take);
    tcase_add_test(tc, setup_on_devices__points_that_do_not_come);
    tcase_add_test(tc, setup_keep_key__the_first_one_stays);
    suite_add_tcase(s, tc);
    const int ret = suite_run(s);
    free(true_ic);
    return ret;
}
