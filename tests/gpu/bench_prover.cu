/*
 * The sums of a whole partition in the shape of a 32 GiB sector: points of known logarithm, 99 of 100 values 0 or 1. Prints
 * loading, then the median of five runs with a different witness each, least and most, and where the last one spent its time. l,
 * a and both b are checked by logarithms.
 *
 * usage: bench_prover [log2 of the domain, 27]
 */
#include "gpu/cuda/prover.cuh"
#include "tests/gpu/points.cuh"

#include <chrono>

extern "C" {
#include "gpu/groth16.h"
}

static constexpr int RUNS = 5;
static struct workers *all_workers;

static double now_ms()
{
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* Counts of porep-circuit 7.3 for 32 GiB, scaled to the domain. */
struct shape {
    uint32_t log2_domain, inputs, aux, rows, a_aux, b_aux;
};

static shape make_shape(uint32_t log2_domain)
{
    const double part = (double)((uint64_t)1 << log2_domain) / (1 << 27);
    shape s = {log2_domain,
               328,
               (uint32_t)(130169893 * part),
               0,
               (uint32_t)(129753292 * part),
               (uint32_t)(33112281 * part)};

    s.rows = (uint32_t)(130278541 * part);
    return s;
}

/* Everything that a partition has, in vectors. */
struct partition {
    struct srs srs;
    struct assignment w;
    std::vector<g1_point> g1;
    std::vector<g2_point> g2;
    std::vector<fr_t> inputs, aux, a, b;
    std::vector<uint64_t> a_density, b_density, b_input_density;
};

/* Sets `count` bits of `len`, evenly spread. */
static void spread_bits(std::vector<uint64_t> &bits, uint32_t len, uint32_t count)
{
    uint64_t sum = 0;

    bits.assign(len / 64 + 1, 0);
    for (uint32_t i = 0; i < len; i++) {
        sum += count;
        if (sum >= len) {
            sum -= len;
            bits[i / 64] |= (uint64_t)1 << i % 64;
        }
    }
}

struct filling {
    fr_t *out;
    size_t len;
    uint64_t seed;
    bool witness; /* mostly bits */
};

static constexpr size_t FILL = 1u << 16;

static void fill_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const filling &f = *(const filling *)ctx;
    struct random rng = {f.seed * 1000003 + chunk + 1};

    (void)thread;
    for (size_t i = chunk * FILL; i < std::min(f.len, (chunk + 1) * FILL); i++) {
        if (f.witness && random_u64(&rng) % 100)
            f.out[i] = fr_from_u64(random_u64(&rng) & 1);
        else
            f.out[i] = random_fr(&rng);
    }
}

static void fill(std::vector<fr_t> &v, size_t len, uint64_t seed, bool witness)
{
    filling f = {v.data(), len, seed, witness};

    workers_run(all_workers, (len + FILL - 1) / FILL, fill_chunk, &f);
}

static void make_partition(partition &p, const shape &s)
{
    const size_t domain = (size_t)1 << s.log2_domain;

    p.srs = {};
    p.w = {};
    p.srs.vk.ic_len = s.inputs;
    p.srs.vk.alpha_g1 = p.srs.vk.delta_g1 = *blst_p1_affine_generator();
    p.srs.h_len = domain - 1;
    p.srs.l_len = s.aux;
    p.srs.a_len = s.inputs + s.a_aux;
    p.srs.b_len = s.b_aux;
    p.srs.h = p.srs.l = p.srs.a = p.srs.b_g1 = (g1_affine_t *)p.g1.data();
    p.srs.b_g2 = (g2_affine_t *)p.g2.data();
    p.inputs.resize(s.inputs);
    p.aux.resize(s.aux);
    p.a.assign(domain, fr_from_u64(0));
    p.b.assign(domain, fr_from_u64(0));
    spread_bits(p.a_density, s.aux, s.a_aux);
    spread_bits(p.b_density, s.aux, s.b_aux);
    spread_bits(p.b_input_density, s.inputs, 0);
    p.w.n_inputs = s.inputs;
    p.w.n_aux = s.aux;
    p.w.n_rows = s.rows + s.inputs;
    p.w.log2_domain = s.log2_domain;
    p.w.inputs = p.inputs.data();
    p.w.aux = p.aux.data();
    p.w.a = p.a.data();
    p.w.b = p.b.data();
    p.w.a_aux_density = p.a_density.data();
    p.w.b_aux_density = p.b_density.data();
    p.w.b_input_density = p.b_input_density.data();
    p.w.a_aux_total = s.a_aux;
    p.w.b_aux_total = s.b_aux;
    fill(p.inputs, s.inputs, 1, false);
    fill(p.a, p.w.n_rows, 2, false);
    fill(p.b, p.w.n_rows, 3, false);
}

/* The logarithms' sum over the dense variables (all with density NULL). */
static fr_t expected_sum(const table_logs &logs, const std::vector<fr_t> *inputs,
                         const std::vector<fr_t> &aux, const uint64_t *density)
{
    table_sums sums(logs);
    size_t point = 0;

    if (inputs)
        for (const fr_t &v : *inputs)
            sums.add(point++, v);
    for (size_t i = 0; i < aux.size(); i++)
        if (!density || density[i / 64] >> i % 64 & 1)
            sums.add(point++, aux[i]);
    return sums.total();
}

static void check(const char *what, bool right)
{
    printf("    %s %s\n", what, right ? "right" : "WRONG");
}

static void print_load(void *, const char *, uint64_t, uint64_t) {}

int main(int argc, char **argv)
{
    const shape s = make_shape(argc > 1 ? (uint32_t)atoi(argv[1]) : 27);
    table_logs logs1, logs2;
    partition p;
    std::vector<double> times;
    struct groth16_sums sums = {};

    {
        gpu g;
        device_buffer<g1_point> d1;
        device_buffer<g2_point> d2;
        open_gpu_or_skip(g);
        MUST(workers_create(0, &all_workers, err));
        make_points(g, all_workers, s.log2_domain, logs1, d1);
        p.g1 = from_device(d1.ptr, (size_t)1 << s.log2_domain, g);
        d1.reset();
        make_points(g, all_workers, s.log2_domain - 1, logs2, d2);
        p.g2 = from_device(d2.ptr, (size_t)1 << (s.log2_domain - 1), g);
    }
    make_partition(p, s);
    prover pr;
    MUST(pr.open(0, all_workers, err));
    double start = now_ms();
    MUST(pr.load(&p.srs, nullptr, print_load, nullptr, err));
    printf("parameters resident in %.2f s, %.1f GB of device memory\n", (now_ms() - start) / 1e3,
           (double)device_counts().device_bytes / 1e9);
    const uint64_t allocations = device_counts().allocations;
    for (int run = 0; run <= RUNS; run++) {
        fill(p.aux, p.aux.size(), 100 + run, true);
        start = now_ms();
        MUST(pr.sums(&p.srs, &p.w, &sums, err));
        if (run > 0)
            times.push_back(now_ms() - start);
    }
    std::sort(times.begin(), times.end());
    printf("sums of a partition, domain 2^%u     %9.2f ms  [%.2f, %.2f]  %llu allocations\n",
           s.log2_domain, times[RUNS / 2], times[0], times[RUNS - 1],
           (unsigned long long)(device_counts().allocations - allocations));
    const prover_times &t = pr.times;
    printf("    last run: rows up %.1f, witness up %.1f, transforms after that %.1f, msm h %.1f, "
           "selection %.1f, l %.1f, a %.1f, "
           "b_g1 %.1f, b_g2 %.1f ms\n",
           t.upload_rows, t.upload_witness, t.h, t.msm_h, t.classify, t.l, t.a, t.b_g1, t.b_g2);
    print_gpu_state();
    check("l", is_multiple(sums.l, expected_sum(logs1, nullptr, p.aux, nullptr)));
    check("a", is_multiple(sums.a, expected_sum(logs1, &p.inputs, p.aux, p.a_density.data())));
    check("b_g1", is_multiple(sums.b_g1, expected_sum(logs1, nullptr, p.aux, p.b_density.data())));
    check("b_g2", is_multiple(sums.b_g2, expected_sum(logs2, nullptr, p.aux, p.b_density.data())));
    workers_destroy(all_workers);
    return 0;
}
