#!/usr/bin/env python3
"""Kills engines of a running service at random moments while it has plenty to do, and keeps the books.

kill_engines.py MOUNT KILLS SEED. The service has two nodes, simulated devices, and --silence 2. A kill is a SIGKILL, a SIGSEGV or a
SIGSTOP, which the service has to notice. Jobs of ten partitions come one after another, so that there are always more than ten; each
proof is read and compared, then the job is removed. Prints what it counted; exit status 0: every job ended with its proof.
"""
import collections
import os
import random
import re
import select
import signal
import sys
import time

MOUNT, KILLS, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
JOBS = MOUNT + "/jobs/"
PARTITIONS, AT_ONCE, LEAST = 10, 16, 10
SIGNALS = [signal.SIGKILL] * 6 + [signal.SIGSEGV] * 3 + [signal.SIGSTOP]
LIMIT_S = 120  # without anything new: then it hangs
rng = random.Random(SEED)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def status_pids():
    text = read(MOUNT + "/status").decode()
    return {int(n): int(pid) for n, pid in re.findall(r"node (\d+): ready.*?pid (\d+)", text)}


def is_running(pid):
    try:
        return read("/proc/%d/stat" % pid).rpartition(b") ")[2][:1] not in b"ZX"
    except OSError:
        return False


class Jobs:
    def __init__(self):
        self.open = {}
        self.submitted = self.done = 0
        self.wrong = []

    def fill(self):
        while len(self.open) < AT_ONCE:
            self.submitted += 1
            name = "k%d" % self.submitted
            with open(JOBS + name, "w") as f:
                f.write('{"proofd-test":{"partitions":%d,"seed":%d}}\n' % (PARTITIONS, self.submitted))
            self.open[name] = self.submitted

    def look(self):
        for name in [n for n in self.open if os.path.exists(JOBS + n + ".proof")]:
            proof, seed = read(JOBS + name + ".proof.bin"), self.open.pop(name)
            want = b"".join(
                (b"proofd-test seed=%d partition=%d/%d" % (seed, i, PARTITIONS)).ljust(192, b"\0")
                for i in range(PARTITIONS))
            if proof != want:
                self.wrong.append(name)
            os.unlink(JOBS + name)
            self.done += 1
        self.wrong += [n for n in self.open if os.path.exists(JOBS + n + ".error")]


class Node:
    def __init__(self, number):
        self.number = number
        self.up()

    def up(self):
        self.pid = None
        self.kill_at = time.monotonic() + rng.uniform(0.005, 0.15)

    def down(self):
        self.kill_at = None

    def due(self, now):
        return self.kill_at is not None and now >= self.kill_at


def stages(node):
    """Partitions of each stage, as the engine said last."""
    rows = [line.split() for line in read(MOUNT + "/nodes/%d/flight" % node).decode().splitlines()]
    return {r[0]: int(r[1]) for r in rows if len(r) == 5 and r[1].isdigit()}


def main():
    jobs = Jobs()
    kills = collections.Counter()
    histogram = collections.Counter()
    fewest = AT_ONCE
    events = os.open(MOUNT + "/events", os.O_RDONLY | os.O_NONBLOCK)
    jobs.fill()
    nodes = {n: Node(n) for n in (0, 1)}
    text, progress = "", time.monotonic()
    while sum(kills.values()) < KILLS:
        now = time.monotonic()
        for node in nodes.values():
            if not node.due(now):
                continue
            pid = status_pids().get(node.number)
            if pid is None or not is_running(pid):
                node.up()
                continue
            sig = rng.choice(SIGNALS)
            seen = stages(node.number)
            jobs.look()
            jobs.fill()
            os.kill(pid, sig)
            fewest = min(fewest, len(jobs.open))
            kills[sig.name] += 1
            histogram.update(seen)
            node.down()
        select.select([events], [], [], 0.01)
        try:
            piece = os.read(events, 65536).decode()
        except BlockingIOError:
            piece = ""
        text += piece
        lines, text = text.split("\n")[:-1], text.rpartition("\n")[2]
        for n in (int(m.group(1)) for m in map(re.compile(r"- engine node=(\d+) started$").search, lines) if m):
            nodes[n].up()
            progress = now
        jobs.look()
        jobs.fill()
        if jobs.wrong or now - progress > LIMIT_S:
            break
    while jobs.open and not jobs.wrong and time.monotonic() - progress < LIMIT_S:
        had = jobs.done
        jobs.look()
        progress = time.monotonic() if jobs.done > had else progress
        time.sleep(0.02)
    os.close(events)
    print("seed %d: %d kills (%s), %d jobs, never fewer than %d at a kill" %
          (SEED, sum(kills.values()), ", ".join("%s %d" % k for k in sorted(kills.items())), jobs.submitted, fewest))
    for stage in ("waiting", "synthesizing", "ready", "proving", "finishing"):
        print("stage %s %d" % (stage, histogram[stage]))
    print("jobs_submitted %d\njobs_done %d\nkills %d\nfewest %d" % (jobs.submitted, jobs.done, sum(kills.values()), fewest))
    if jobs.wrong or jobs.open:
        print("WRONG or without an end: %s" % (jobs.wrong + list(jobs.open)))
        sys.exit(1)
    sys.exit(0 if sum(kills.values()) >= KILLS and fewest >= LEAST else 1)


main()
