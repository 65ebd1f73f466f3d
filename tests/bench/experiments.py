"""What experiments.sh measured, as tables in markdown and as a picture.

experiments.py permits SIM CPU SVG    lines "PERMITS JSON"
experiments.py log PACED QUICK PROOF  lines "PAIR LEVEL MS CPU_NS LINES"
experiments.py fill TABLES DOCUMENT   puts them between the marks
"""
import json
import statistics
import sys

TIME_SCALE = 64
SIZE_SCALE = 1024
MARKS = "<!-- make experiments: begin -->\n", "<!-- make experiments: end -->\n"


# ---- permits


def read_runs(path):
    """[(permits, [total of a run, ...]), ...]"""
    runs = {}
    for line in open(path):
        permits, text = line.split(" ", 1)
        runs.setdefault(int(permits), []).append(json.loads(text))
    return sorted(runs.items())


def spread(values, digits=1):
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f}" if len(values) == 1 else f"{middle:.{digits}f} ({least:.{digits}f} to {most:.{digits}f})"


def seconds_for_ten(run, scale):
    return 600 / run["partitions_per_minute"] * scale


def seconds_for_one(run):
    return 60 / run["partitions_per_minute"]


def peak_mib(run):
    """Of the engine's process, from /proc: pages of a pool are counted apart there."""
    return max(n["resident_bytes_peak"] + n["hugetlb_bytes_peak"] for n in run["nodes"]) / 2**20


def used(run):
    return max(n["in_use_peak"] for n in run["nodes"])


def share(run, what):
    return 100 * max(p[what] for p in run["provers"])


def put_permits(sim, cpu):
    print("A simulated device, five jobs of ten partitions at once; `proofctl bench` has the times, the service has read the memory in /proc.")
    print(f"Seconds are by {TIME_SCALE}, as if it were 32 GiB; memory is as read (a slot is 15.5 MiB, a 1024th).\n")
    print("| permits | s for a proof | device in use | permits in use at most | resident MiB at most |")
    print("|---|---|---|---|---|")
    for permits, runs in sim:
        print(f"| {permits} | {spread([seconds_for_ten(r, TIME_SCALE) for r in runs])} | {spread([share(r, 'starting') for r in runs])} % |"
              f" {max(used(r) for r in runs):.0f} | {spread([peak_mib(r) for r in runs], 0)} |")
    if cpu:
        put_cpu(cpu)
    print("\n![throughput and peak memory against permits](permits.svg)")


def put_cpu(cpu):
    print("\nThe CPU prover, 2 KiB, four proofs at once, parameters in the engine's memory included:\n")
    print("| permits | s for a proof | prover in use | permits in use at most | resident MiB at most |")
    print("|---|---|---|---|---|")
    for permits, runs in cpu:
        print(f"| {permits} | {spread([seconds_for_one(r) for r in runs], 2)} | {spread([share(r, 'busy') for r in runs])} % |"
              f" {max(used(r) for r in runs):.0f} | {spread([peak_mib(r) for r in runs], 0)} |")


WIDTH, HEIGHT, LEFT, TOP = 320, 200, 60, 40


def chart(at, title, points):
    """Points are (x, [values]): the median as a line, least and most as a bar."""
    right = max(x for x, _ in points)
    top = 1.1 * max(max(v) for _, v in points)

    def place(x, y):
        return at + LEFT + WIDTH * x / right, TOP + HEIGHT * (1 - y / top)

    out = [f"<text x='{at + LEFT}' y='{TOP - 14}'>{title}</text>"]
    for i in range(5):
        x0, y = place(0, top * i / 4)
        out.append(f"<line x1='{x0:.1f}' x2='{x0 + WIDTH:.1f}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>")
        out.append(f"<text x='{x0 - 6:.1f}' y='{y + 4:.1f}' text-anchor='end'>{top * i / 4:.3g}</text>")
    for x, values in points:
        px, low = place(x, min(values))
        out.append(f"<line x1='{px:.1f}' x2='{px:.1f}' y1='{low:.1f}' y2='{place(x, max(values))[1]:.1f}' stroke='#4e79a7' stroke-width='4' opacity='0.4'/>")
        out.append(f"<text x='{px:.1f}' y='{TOP + HEIGHT + 16}' text-anchor='middle'>{x}</text>")
    line = " ".join("%.1f,%.1f" % place(x, statistics.median(v)) for x, v in points)
    out.append(f"<polyline points='{line}' fill='none' stroke='#4e79a7' stroke-width='2'/>")
    out.append(f"<text x='{at + LEFT + WIDTH / 2}' y='{TOP + HEIGHT + 34}' text-anchor='middle'>permits</text>")
    return out


def draw_permits(sim, path):
    step = WIDTH + LEFT + 30
    lines = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{2 * step}' height='{TOP + HEIGHT + 50}' font-family='sans-serif' font-size='12'>",
             "<rect width='100%' height='100%' fill='white'/>"]
    lines += chart(0, "partitions a minute, simulated device", [(p, [r["partitions_per_minute"] for r in runs]) for p, runs in sim])
    lines += chart(step, "resident MiB of the engine, at most", [(p, [peak_mib(r) for r in runs]) for p, runs in sim])
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n</svg>\n")


def permits(sim_path, cpu_path, svg_path):
    sim, cpu = read_runs(sim_path), read_runs(cpu_path)
    put_permits(sim, cpu)
    draw_permits(sim, svg_path)


# ---- the log


def read_pairs(path):
    """{level: [(ms, cpu_ns, lines), ...]}, of one length, pair by pair."""
    levels = {}
    for line in open(path):
        _, level, ms, cpu, lines = line.split()
        levels.setdefault(level, []).append((float(ms), float(cpu), int(lines)))
    return levels


def difference(levels, level, column):
    """Mean of the differences to `err`, and half the width of its 95 % interval (Student's t, within 0.2 % from 20 pairs on)."""
    d = [x[column] - y[column] for x, y in zip(levels[level], levels["err"])]
    t = 1.96 + 2.4 / (len(d) - 1)
    return statistics.mean(d), t * statistics.stdev(d) / len(d) ** 0.5


def put_row(what, levels, column, unit, factor):
    base = statistics.mean(x[column] for x in levels["err"])
    row = f"| {what} | {base * factor:.4g} {unit} |"
    for level in "info", "debug":
        if level not in levels:
            row += " not measured |"
            continue
        mean, half = difference(levels, level, column)
        row += f" {100 * mean / base:+.2f} % ({100 * (mean - half) / base:+.2f} to {100 * (mean + half) / base:+.2f}) |"
    print(row)


def log(paced_path, quick_path, proof_path):
    paced, quick, proof = read_pairs(paced_path), read_pairs(quick_path), read_pairs(proof_path)
    with_prover = f", {len(proof['err'])} with the CPU prover" if proof else ""
    print(f"Levels by turns in one service, its log into a file: {len(paced['err'])} of each with simulated devices{with_prover}. Mean of the differences to `err`, which writes nothing, with its 95 % interval. CPU time is that"
          " of all threads of proofd and its engine; beside other work it is the fairer measure of the two.\n")
    print("| what | `err` | `info` | `debug` |")
    print("|---|---|---|---|")
    put_row("ten partitions at the pace of 32 GiB, by 64: wall", paced, 0, "ms", 1)
    put_row("the same: CPU time", paced, 1, "ms", 1e-6)
    put_row("a hundred partitions that take no time: CPU time", quick, 1, "ms", 1e-6)
    if proof:
        put_row("2 KiB on the CPU prover: CPU time", proof, 1, "s", 1e-9)
        put_row("the same: wall", proof, 0, "s", 1e-3)
    print()
    for level in "info", "debug":
        mean, half = difference(quick, level, 1)
        lines = statistics.mean(x[2] for x in quick[level]) / 100
        text = (f"From the third line: `{level}` ({lines:.1f} lines a partition) costs {mean / 1e5:.1f} µs of CPU time for each partition"
                f" ({(mean - half) / 1e5:.1f} to {(mean + half) / 1e5:.1f})")
        if proof:
            base = statistics.mean(x[1] for x in proof["err"])
            text += f": at most {(mean + half) / base:.4f} % of what a proof of 2 KiB takes"
        print(text + ".")


# ---- the document


def fill(tables, document):
    text = open(document).read()
    head, rest = text.split(MARKS[0])
    _, tail = rest.split(MARKS[1])
    with open(document, "w") as f:
        f.write(head + MARKS[0] + open(tables).read() + MARKS[1] + tail)


{"permits": permits, "log": log, "fill": fill}[sys.argv[1]](*sys.argv[2:])
