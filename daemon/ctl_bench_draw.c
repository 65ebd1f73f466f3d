/*
 * The waterfall: time goes to the right, each partition has a line, each of its stages a sign or a colour.
 */
#include <stddef.h>

#include "daemon/ctl_bench.h"

#define TEXT_WIDTH 72
#define TEXT_LINES 60
#define SAMPLE_LINES 20
#define MIB 1048576.0

struct range {
    double from, to;
};

static struct range range_of(const struct bench_history *h)
{
    struct range r = {h->begin_ms, h->end_ms};

    return r.to > r.from ? r : (struct range){r.from, r.from + 1};
}

static bool is_drawn(const struct bench_course *c)
{
    return c->proof > 0;
}

static size_t count_drawn(const struct bench_history *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->courses_len; i++)
        n += is_drawn(&h->courses[i]);
    return n;
}

/* ---- as text ---- */

static void put_line(const struct bench_course *c, const struct range *r, FILE *out)
{
    static const char signs[FLIGHT_STAGES + 1] = ".s-Pf";
    char line[TEXT_WIDTH + 1];

    for (int i = 0; i < TEXT_WIDTH; i++) {
        double at = r->from + (r->to - r->from) * (i + 0.5) / TEXT_WIDTH;
        int stage = -1;
        while (stage < FLIGHT_STAGES && at >= c->ms[stage + 1])
            stage++;
        line[i] = stage < 0 || stage == FLIGHT_STAGES ? ' ' : signs[stage];
    }
    line[TEXT_WIDTH] = '\0';
    fprintf(out, "%5u.%-3u %4d |%s|\n", c->proof, c->partition, c->node, line);
}

void bench_draw_text(const struct bench_history *h, FILE *out)
{
    const struct range r = range_of(h);
    size_t n = count_drawn(h), lines = 0;

    if (n == 0)
        return;
    fprintf(out, "\nPROOF.PART NODE %.3g s; . waits, s synthesis, - ready, P prover, f finish\n",
            (r.to - r.from) / 1e3);
    for (size_t i = 0; i < h->courses_len && lines < TEXT_LINES; i++) {
        if (!is_drawn(&h->courses[i]))
            continue;
        put_line(&h->courses[i], &r, out);
        lines++;
    }
    if (lines < n)
        fprintf(out, "and %zu more (--svg FILE has all)\n", n - lines);
}

static void put_sample(const struct bench_history *h, const struct bench_node *n,
                       const struct bench_sample *s, FILE *out)
{
    fprintf(out, "%4d %8.1f %10.1f %10.1f %10.1f %6.0f of %-3.0f", n->node,
            (s->ms - h->begin_ms) / 1e3, s->front / MIB, s->resident / MIB,
            (s->huge > s->hugetlb ? s->huge : s->hugetlb) / MIB, s->in_use, s->permits);
    for (int i = 0; i < FLIGHT_STAGES; i++)
        fprintf(out, " %7.0f", s->stages[i]);
    fputc('\n', out);
}

void bench_draw_samples(const struct bench_history *h, FILE *out)
{
    fputs("\nNODE  SECONDS  FRONT MiB ENGINE MiB   HUGE MiB     PERMITS WAITING SYNTHES   READY "
          "PROVING  FINISH\n",
          out);
    for (size_t i = 0; i < h->nodes_len; i++) {
        const struct bench_node *n = &h->nodes[i];
        size_t step = n->samples_len / SAMPLE_LINES + 1;
        for (size_t k = 0; k < n->samples_len; k += step)
            put_sample(h, n, &n->samples[k], out);
    }
}

/* ---- as a picture ---- */

#define LEFT 90.0
#define WIDTH 900.0
#define CHART 120.0 /* height of a chart below the waterfall */
#define TOP 50.0

static double x_of(const struct range *r, double ms)
{
    return LEFT + WIDTH * (ms - r->from) / (r->to - r->from);
}

static void put_legend(FILE *out, const char *const *colours)
{
    double x = LEFT;

    for (int i = 0; i < FLIGHT_STAGES; i++, x += 110) {
        fprintf(out, "<rect x='%.0f' y='26' width='10' height='10' fill='%s'/>", x, colours[i]);
        fprintf(out, "<text x='%.0f' y='35'>%s</text>\n", x + 14,
                flight_stage_name((enum flight_stage)i));
    }
}

static void put_axis(FILE *out, const struct range *r, double top, double bottom)
{
    for (int i = 0; i <= 10; i++) {
        double x = LEFT + WIDTH * i / 10;
        fprintf(out, "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' stroke='#ddd'/>", x, x, top,
                bottom);
        fprintf(out, "<text x='%.1f' y='%.1f' text-anchor='middle'>%.3g s</text>\n", x, bottom + 12,
                (r->to - r->from) / 1e3 * i / 10);
    }
}

static void put_bar(FILE *out, const struct range *r, const struct bench_course *c, double y,
                    double height, const char *const *colours)
{
    fprintf(out, "<g><title>proof %u partition %u, node %d, GPU %d</title>", c->proof, c->partition,
            c->node, c->gpu);
    for (int i = 0; i < FLIGHT_STAGES; i++) {
        double from = x_of(r, c->ms[i]), to = x_of(r, c->ms[i + 1]);
        fprintf(out, "<rect x='%.2f' y='%.1f' width='%.2f' height='%.1f' fill='%s'/>", from, y,
                to - from, height, colours[i]);
    }
    fputs("</g>\n", out);
}

/* A column of a node's samples, as steps. */
static void put_steps(FILE *out, const struct range *r, const struct bench_node *n, size_t offset,
                      double most, double bottom, const char *colour)
{
    double y = bottom;

    fprintf(out, "<path fill='none' stroke='%s' d='M%.1f %.1f", colour, LEFT, bottom);
    for (size_t i = 0; i < n->samples_len; i++) {
        double x = x_of(r, n->samples[i].ms), value = bench_column(&n->samples[i], offset);
        fprintf(out, " L%.1f %.1f", x, y);
        y = bottom - (most > 0 ? CHART * value / most : 0);
        fprintf(out, " L%.1f %.1f", x, y);
    }
    fputs("'/>\n", out);
}

/* Permits in use and memory of one node. Returns where it ends. */
static double put_chart(FILE *out, const struct range *r, const struct bench_node *n, double top)
{
    const size_t resident = offsetof(struct bench_sample, resident);
    const size_t in_use = offsetof(struct bench_sample, in_use);
    const double bottom = top + CHART;

    put_axis(out, r, top, bottom);
    fprintf(out, "<text x='4' y='%.1f' fill='#e15759'>permits</text>", top + 12);
    fprintf(out, "<text x='4' y='%.1f' fill='#e15759'>%.0f used</text>", top + 26,
            bench_most(n, in_use));
    fprintf(out, "<text x='4' y='%.1f' fill='#4e79a7'>resident</text>", top + 46);
    fprintf(out, "<text x='4' y='%.1f' fill='#4e79a7'>%.0f MiB</text>", top + 60,
            bench_most(n, resident) / MIB);
    fprintf(out, "<text x='4' y='%.1f'>node %d</text>\n", top + 84, n->node);
    put_steps(out, r, n, in_use, bench_most(n, in_use), bottom, "#e15759");
    put_steps(out, r, n, resident, bench_most(n, resident), bottom, "#4e79a7");
    return bottom + 30;
}

void bench_draw_svg(const struct bench_history *h, FILE *out)
{
    static const char *const colours[FLIGHT_STAGES] = {"#dddddd", "#4e79a7", "#f1ce63", "#e15759",
                                                       "#59a14f"};
    const struct range r = range_of(h);
    size_t n = count_drawn(h);
    double row = n > 400 ? 2 : n > 100 ? 5 : 12, y = TOP;
    double bottom = TOP + (double)n * row + 4;
    double height = bottom + 30 + (double)h->nodes_len * (CHART + 30);

    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' "
            "font-family='sans-serif' font-size='11'>\n",
            LEFT + WIDTH + 40, height);
    fprintf(out,
            "<rect width='100%%' height='100%%' fill='white'/>"
            "<text x='%.0f' y='16'>%zu partitions in %.3g s</text>\n",
            LEFT, n, (r.to - r.from) / 1e3);
    put_legend(out, colours);
    put_axis(out, &r, TOP, bottom);
    for (size_t i = 0; i < h->courses_len; i++) {
        const struct bench_course *c = &h->courses[i];
        if (!is_drawn(c))
            continue;
        put_bar(out, &r, c, y, row - 1, colours);
        if (row > 10)
            fprintf(out, "<text x='%.0f' y='%.1f' text-anchor='end'>%u.%u</text>\n", LEFT - 6,
                    y + row - 2, c->proof, c->partition);
        y += row;
    }
    for (size_t i = 0; i < h->nodes_len; i++)
        bottom = put_chart(out, &r, &h->nodes[i], i == 0 ? bottom + 30 : bottom);
    fputs("</svg>\n", out);
}
