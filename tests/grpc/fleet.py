"""
A fleet on one machine: three network namespaces with a service each, and nodes that do as Curio's do, each with one service. They share a list of tasks; a
node takes one while the queues of its service are below MaxPending, calls Prove, and puts it back when that fails, for whichever node comes next, with the
same request id. Sectors are sealed and their proofs forged beforehand, so that a simulated device has true proofs to give.

One service first, for the pace of one; then all three; half-way one is killed, another cut off by its link, and both come back. Needs root and
c2-reference. FLEET_JOBS=N: another number than 600.
"""
import collections
import concurrent.futures
import json
import os
import subprocess
import threading
import time

import fixture as f
from fixture import expect, same
import grpc

JOBS = int(os.environ.get("FLEET_JOBS", 600))
ONE = JOBS // 10        # jobs of the one service, before
START_MS = 2000         # what a proof takes at the device: much more than it takes of these CPUs, which the three share
MAX_PENDING = 6         # of a node
PROVE_TIMEOUT = 60      # a cut link is noticed by this alone
SERVICES = 3
PORT = 9820

if os.geteuid() != 0:
    f.lacks("root, for network namespaces")
reference = subprocess.run([f.ROOT + "/tests/lib/find-reference.sh"], capture_output=True, text=True, cwd=f.ROOT).stdout.strip()
if not reference:
    f.lacks("c2-reference")

# ---- sectors and their proofs: kept in the build directory, for the next time

cache = f.BUILD + "/fleet"
os.makedirs(cache + "/true", exist_ok=True)
Task = collections.namedtuple("Task", "id path miner sector")


def seal(i):
    path = f"{cache}/{i}"
    if not os.path.exists(path + "/c1.json"):
        subprocess.run([reference, "seal", "StackedDrg2KiBV1_1", path + ".new", str(i)], check=True, capture_output=True)
        os.rename(path + ".new", path)
    return path + "/c1.json"


def task_of(path):
    with open(os.path.dirname(path) + "/meta.json") as meta:
        meta = json.load(meta)
    miner = sum((b & 0x7F) << 7 * i for i, b in enumerate(bytes.fromhex(meta["prover_id"])))
    return Task(f"porep-{miner}-{meta['sector_number']}", path, miner, meta["sector_number"])


def make_tasks(count):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(seal, range(1, count + 1)))
    vk = [p for p in os.listdir(f.params()) if p.endswith(".vk")][0]
    subprocess.run([f.BUILD + "/tests/system/sim_forge", os.path.join(f.params(), vk), cache + "/true", *paths], check=True)
    return [task_of(p) for p in paths]


# ---- services, each behind a link of its own


def ip(*args):
    subprocess.run(["ip", *args], check=True, capture_output=True)


class Machine(f.Service):
    def __init__(self, number):
        self.number, self.space = number, f"fleet{os.getpid()}-{number}"
        self.near, self.far = f"fl{os.getpid() % 100000}a{number}", f"fl{os.getpid() % 100000}b{number}"
        ip("netns", "add", self.space)
        ip("link", "add", self.near, "type", "veth", "peer", "name", self.far, "netns", self.space)
        ip("addr", "add", f"10.213.{number}.1/30", "dev", self.near)
        ip("link", "set", self.near, "up")
        ip("-n", self.space, "addr", "add", f"10.213.{number}.2/30", "dev", self.far)
        ip("-n", self.space, "link", "set", self.far, "up")
        ip("-n", self.space, "link", "set", "lo", "up")
        super().__init__(f"machine{number}", listen=f"10.213.{number}.2:{PORT}", cpu=number % os.cpu_count(), grpc_options=["--insecure", "yes"])

    def simulate(self, *lines):
        super().simulate(f"proofs = {cache}/true", f"start_ms = {START_MS}")

    def launch(self, program, *args):
        log = open(os.path.join(f.work, f"{os.path.basename(self.dir)}-{os.path.basename(program)}.log"), "ab")
        p = subprocess.Popen(["nsenter", f"--net=/run/netns/{self.space}", program, *args], stderr=log, stdout=log, stdin=subprocess.DEVNULL)
        f.running.append(p)
        return p

    def cut(self):
        ip("link", "set", self.near, "down")

    def mend(self):
        ip("link", "set", self.near, "up")

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.space], capture_output=True)
        subprocess.run(["ip", "link", "del", self.near], capture_output=True)


# ---- nodes


class Run:
    """Tasks, from the first hand-out to the last result."""

    def __init__(self, tasks):
        self.tasks, self.left = collections.deque(tasks), len(tasks)
        self.results, self.retries, self.twice = {}, 0, 0
        self.lock = threading.Lock()
        self.begin = time.monotonic()
        self.ended = []  # when each came

    def take(self):
        with self.lock:
            return self.tasks.popleft() if self.tasks else None

    def end(self, task, proof):
        with self.lock:
            if proof is None:
                self.tasks.append(task)
                self.retries += 1
                return
            self.twice += task.id in self.results
            self.results[task.id] = proof
            self.left -= 1
            self.ended.append(time.monotonic() - self.begin)

    def pace(self, first, last):
        return (last - first) / (self.ended[last - 1] - (self.ended[first - 1] if first else 0))


def attempt(run, client, task):
    try:
        with open(task.path, "rb") as c1:
            r = client.prove(task.id, c1.read(), miner=task.miner, sector=task.sector, timeout=PROVE_TIMEOUT, wait=False)
        run.end(task, r.proof if r.status == f.COMPLETED else None)
    except grpc.RpcError as e:
        if e.code() == grpc.StatusCode.INVALID_ARGUMENT:  # no try will help
            run.end(task, b"")
            print(e.details())
            return
        time.sleep(0.2)
        run.end(task, None)


def node(run, machine):
    client = machine.client()
    with concurrent.futures.ThreadPoolExecutor(2 * MAX_PENDING) as pool:
        while run.left > 0:
            try:
                pending = sum(q.pending + q.in_progress for q in client("GetStatus", timeout=5 / f.SLOW, wait=False).queues)
            except grpc.RpcError:
                time.sleep(0.5)
                continue
            for _ in range(MAX_PENDING - pending):
                task = run.take()
                if task:
                    pool.submit(attempt, run, client, task)
            time.sleep(0.1)
    client.close()


def go(tasks, machines, meanwhile=lambda run: None):
    run = Run(tasks)
    nodes = [threading.Thread(target=node, args=(run, m), daemon=True) for m in machines]
    for n in nodes:
        n.start()
    meanwhile(run)
    for n in nodes:
        n.join()
    return run


def fault(machines, run):
    """Half-way: one dies whole, another cannot be reached; in a while both are there again."""
    while run.left > JOBS // 2:
        time.sleep(0.05)
    machines[1].kill()
    machines[1].kill_proofd()
    machines[2].cut()
    print(f"at {time.monotonic() - run.begin:.0f} s, {JOBS - run.left} jobs done: one killed, one cut off", flush=True)
    time.sleep(10)
    subprocess.run(["umount", "-l", machines[1].mount], capture_output=True)
    machines[1].start_proofd()
    machines[1].start()
    machines[2].mend()
    print(f"at {time.monotonic() - run.begin:.0f} s, {JOBS - run.left} jobs done: both are back", flush=True)


def all_verify(tasks, results):
    def verify(task):
        path = f"{f.work}/{task.sector}.bin"
        with open(path, "wb") as out:
            out.write(results[task.id])
        return subprocess.run([f.BUILD + "/proofctl", "verify", "--params", f.params_dir, task.path, path], capture_output=True).returncode == 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(verify, tasks))


machines = []
try:
    tasks = make_tasks(ONE + JOBS)
    f.params_dir = f.params()
    machines += [Machine(i) for i in range(SERVICES)]
    one = go(tasks[:ONE], machines[:1])
    print(f"one service: {one.pace(ONE // 4, ONE) * 60:.1f} jobs a minute", flush=True)
    same("all of the one's", len(one.results), ONE)
    # Of the undisturbed half, without its beginning.
    fleet = go(tasks[ONE:], machines, lambda run: fault(machines, run))
    ratio = fleet.pace(JOBS // 10, JOBS // 2) / one.pace(ONE // 4, ONE)
    print(f"three: {fleet.pace(JOBS // 10, JOBS // 2) * 60:.1f} jobs a minute, {ratio:.2f} times; {JOBS} jobs in {fleet.ended[-1]:.0f} s, "
          f"{fleet.retries} tries that failed", flush=True)
    # Where others have the CPUs, not even one keeps its device busy, and the ratio is none of services.
    busy = one.pace(ONE // 4, ONE) * START_MS / 1000
    if ratio < 2.8 and busy < 0.9:
        f.skip("three services are at least 2.8 times one", f"{ratio:.2f} times, but others had the CPUs: the device of the one was busy {busy:.0%} of the time")
    else:
        expect("three services are at least 2.8 times one", ratio >= 2.8, ratio)
    same("every job has ended", len(fleet.results), JOBS)
    same("once", fleet.twice, 0)
    expect("the faults were felt", fleet.retries > 0)
    same("with a proof that verifies", all_verify(tasks[ONE:], fleet.results), JOBS)
finally:
    for m in machines:
        m.remove()
f.finish()
