#!/usr/bin/env python3
"""Everything at once for a long time, and the books of it: see soak.sh, which starts it.

soak.py WORK SECONDS SEED DEVICE PROOFD ARG...   WORK has mnt, store and log; DEVICE may be none.

Workers, each a user's with names of its own, submit by every way, cancel, overwrite, take proofs along; readers block and are killed;
somebody looks; watchers note what appears; engines are killed all the time, the front in the first part. Now and then everybody
pauses: then each accepted job must have ended with its proof, once, and nothing may be left in the mount, in the kernel, in the
processes and in the store. In the second part the front lives, and must not grow.
"""
import collections
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import traceback

WORK, SECONDS, SEED, DEVICE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
COMMAND = sys.argv[5:]
MOUNT, STORE = WORK + "/mnt", WORK + "/store"
JOBS = MOUNT + "/jobs/"
BUILD = os.path.dirname(COMMAND[0])
PROBE, CLIENT = BUILD + "/tests/system/probe", BUILD + "/doc/examples/device-client"
ROOT = os.getuid() == 0
USERS = [0, 0, 1001, 1001, 1002, 1002] if ROOT else [os.getuid()] * 4
HANG_S = 120      # whatever takes so long hangs
PATIENCE_S = 180  # for all that is accepted to end
GROWS_KB = 6144   # what the front's memory may do between two pauses that are compared
PYTHON = os.path.realpath("/usr/bin/python3")  # one that every user may start

lock = threading.Lock()
ways = collections.Counter()     # what was done, and what came of it
at_kill = collections.Counter()  # states of jobs at the moment of a kill
answers = collections.Counter()  # how long looking took
failures = []
passed = skipped = 0
over = threading.Event()
paused = threading.Event()


def fail(what):
    with lock:
        failures.append(what)
    print("FAILED %s" % what, flush=True)


def check(what, good, said=""):
    global passed
    if good:
        with lock:
            passed += 1
    else:
        fail("%s%s" % (what, ": " + str(said) if said != "" else ""))


def skip(what, why):
    global skipped
    skipped += 1
    print("SKIP  %s: %s" % (what, why), flush=True)


def count(what):
    with lock:
        ways[what] += 1


def wait_for(seconds, condition):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def read(path):
    with open(path, "rb") as f:
        return f.read()


def as_user(uid):
    return {"user": uid, "group": uid, "extra_groups": []} if ROOT and uid else {}


last_said = {}  # by thread: for what was refused


def run(uid, *command, stdin=None):
    """Exit status and what was said; None for one that hangs."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, **as_user(uid))
    try:
        said, _ = p.communicate(stdin, timeout=HANG_S)
    except subprocess.TimeoutExpired:
        fail("%s hangs" % " ".join(command))
        p.kill()
        return None, b""
    last_said[threading.get_ident()] = "%s: %d %r" % (command[0], p.returncode, said)
    return p.returncode, said


# ---- the service

def serves():
    """Not by a name: of a mount whose service was killed a moment ago the kernel still knows some."""
    try:
        return bool(read(MOUNT + "/status"))
    except OSError:
        return False


class Service:
    """`life` is odd while the service is away or about to be: what began or ended then may have failed for that."""

    def __init__(self):
        self.life = 1
        self.up = threading.Event()
        self.watchers = []
        self.process = None
        self.log = open(WORK + "/log", "ab")

    def start(self):
        self.process = subprocess.Popen(COMMAND, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        with open(WORK + "/front", "w") as f:
            f.write("%d\n" % self.process.pid)
        if not wait_for(HANG_S, lambda: serves() or self.process.poll() is not None) or self.process.poll() is not None:
            fail("the service does not start")
            over.set()
            return
        self.watchers = [Watcher(uid) for uid in sorted(set(USERS))[:2]]
        self.life += 1
        self.up.set()

    def end(self, sig):
        self.up.clear()
        self.life += 1
        self.process.send_signal(sig)
        status = self.process.wait(timeout=HANG_S)
        for w in self.watchers:
            w.stop()
        return status

    def engines(self):
        text = read(MOUNT + "/status").decode("utf-8", "replace")
        return {int(n): int(pid) for n, pid in re.findall(r"node (\d+): ready.*?pid (\d+)", text)}


class Watcher:
    """Counts how often the name of each proof appears."""

    def __init__(self, uid):
        self.seen = collections.Counter()
        self.lost = False
        self.process = subprocess.Popen(["inotifywait", "-m", "-e", "create", "--format", "%f", JOBS], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **as_user(uid))
        for line in self.process.stdout:
            if b"established" in line:
                break
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        for line in self.process.stdout:
            name = line.strip().decode("utf-8", "replace")
            if name.endswith(".proof"):
                self.seen[name[:-6]] += 1
            elif "Q_OVERFLOW" in name:
                self.lost = True

    def stop(self):
        self.process.kill()
        self.process.wait()


service = Service()


class Stable:
    """with Stable() as s: ...; s.held(): the service was there all the time."""

    def __enter__(self):
        service.up.wait()
        self.life = service.life
        return self

    def __exit__(self, *_):
        return False

    def held(self):
        return self.life % 2 == 0 and service.life == self.life


# ---- documents

def proof_of(partitions, seed):
    return b"".join((b"proofd-test seed=%d partition=%d/%d" % (seed, i, partitions)).ljust(192, b"\0") for i in range(partitions))


class Document:
    next_seed = SEED % 1000 * 1000000

    def __init__(self, rng):
        with lock:
            Document.next_seed += 1
            self.seed = Document.next_seed
        self.partitions = rng.choice([1, 1, 2, 3, 5, 10, 40])
        text = '{"proofd-test":{"partitions":%d,"seed":%d}}' % (self.partitions, self.seed)
        self.bytes = (text + " " * rng.choice([0, 1, 500, 3000]) + "\n").encode()

    def file(self):
        path = "%s/doc/%d" % (WORK, self.seed)
        with open(path, "wb") as f:
            f.write(self.bytes)
        os.chmod(path, 0o644)
        return path


# ---- workers

class Job:
    def __init__(self, name, documents, sure, life):
        self.name, self.documents, self.sure = name, documents, sure
        self.life = life                     # the whole of it, so far; 0: not one
        self.since = time.monotonic()


class Actor(threading.Thread):
    """act() again and again; `idle` during a pause, once there is nothing left to do."""

    def __init__(self, number):
        super().__init__(daemon=True)
        self.rng = random.Random(SEED * 100 + number)
        self.idle = threading.Event()

    def is_through(self):
        return True

    def run(self):
        try:
            while not over.is_set():
                if paused.is_set() and self.is_through():
                    self.idle.set()
                    time.sleep(0.05)
                    continue
                self.idle.clear()
                self.act()
        except Exception:  # a fault of this program's own
            fail(traceback.format_exc())
            over.set()


class Worker(Actor):
    def __init__(self, number, uid):
        super().__init__(number)
        self.number, self.uid = number, uid
        self.room, self.until = 3, 0  # jobs at a time, for so long
        self.ways = [self.by_cp, self.by_install, self.by_dd, self.by_cat, self.by_tee, self.by_rename, self.by_mv,
                     self.by_nonblock]
        if os.path.exists(PYTHON):
            self.ways.append(self.by_python)
        if DEVICE != "none" and uid == 0:
            self.ways.append(self.by_device)
        self.jobs = {}
        self.removed = {}  # names that a crash may bring back, and the life in which they went
        self.told = {}     # name: proofs that each watcher of this life should have seen
        self.told_life = 0
        self.names = 0

    def new_name(self):
        self.names += 1
        return "w%d-%d%s" % (self.number, self.names, self.rng.choice(["", ".json", " x", "-" + "n" * 200]))

    # -- the ways to submit: true when the service took it

    def by_cp(self, doc, path):
        return run(self.uid, "cp", doc.file(), path)[0] == 0

    def by_install(self, doc, path):
        return run(self.uid, "install", "-m", "640", doc.file(), path)[0] == 0

    def by_dd(self, doc, path):
        return run(self.uid, "dd", "if=" + doc.file(), "of=" + path, "bs=%d" % self.rng.choice([7, 777, 4096]), "status=none")[0] == 0

    def by_cat(self, doc, path):
        return run(self.uid, "sh", "-c", 'cat >"$1"', "sh", path, stdin=doc.bytes)[0] == 0

    def by_tee(self, doc, path):
        return run(self.uid, "tee", path, stdin=doc.bytes)[0] == 0

    def by_rename(self, doc, path):
        part = JOBS + ".%s.part" % os.path.basename(path)[:40]
        if run(self.uid, "cp", doc.file(), part)[0] == 0:
            if run(self.uid, "mv", "-T", part, path)[0] == 0:
                return True
        run(self.uid, "rm", "-f", part)
        return False

    def by_mv(self, doc, path):
        source = doc.file()
        os.chmod(WORK + "/doc", 0o777)
        if ROOT:
            os.chown(source, self.uid, self.uid)
        return run(self.uid, "mv", source, path)[0] == 0

    def by_python(self, doc, path):
        """Two descriptors, a close in the middle, out of order."""
        script = ("import os,sys\nb=sys.stdin.buffer.read()\nf=os.open(sys.argv[1],os.O_WRONLY|os.O_CREAT|os.O_TRUNC,0o600)\n"
                  "g=os.dup(f)\nh=len(b)//2\nos.pwrite(f,b[h:],h)\nos.pwrite(g,b[:h],0)\nos.close(f)\nos.close(g)\n")
        return run(self.uid, PYTHON, "-c", script, path, stdin=doc.bytes)[0] == 0

    def by_nonblock(self, doc, path):
        status, said = run(self.uid, "dd", "if=" + doc.file(), "of=" + path, "oflag=nonblock", "status=none")
        if status != 0 and b"temporarily unavailable" in said:
            count("nonblock: EAGAIN")
            return None
        return status == 0

    def by_device(self, doc, path):
        name = os.path.basename(path)
        status, said = run(0, "env", "PROOF_DEVICE=" + DEVICE, CLIENT, "submit", doc.file(), name)
        if status == 0 and bytes.fromhex(said.decode().strip()) != proof_of(doc.partitions, doc.seed):
            fail("%s: the device gave another proof" % name)
        return status == 0

    def submit(self, name, documents=()):
        """A new job of that name, or one over that of `documents`."""
        way = self.rng.choice(self.ways)
        doc = Document(self.rng)
        with Stable() as s:
            took = way(doc, JOBS + name)
            held = s.held()
        what = way.__name__[3:]
        if took:
            count(what + ": accepted")
            self.jobs[name] = Job(name, [doc], True, s.life if held else 0)
        elif took is None:
            if documents:
                self.jobs[name] = Job(name, list(documents), True, 0)
        elif held:
            fail("%s: %s was refused: %s" % (name, what, last_said.get(threading.get_ident())))
            over.set()
        else:
            count(what + ": unknown")
            self.jobs[name] = Job(name, [doc] + list(documents), False, 0)
        try:
            os.unlink("%s/doc/%d" % (WORK, doc.seed))
        except FileNotFoundError:
            pass

    # -- what is no job

    def submit_rubbish(self):
        name = self.new_name()
        text = self.rng.choice([b"{}", b'{"proofd-test":{"partitions":1,"se', b"\0" * 5000, b'{"proofd-test":{"partitions":0,"seed":1}}',
                                b'{"proofd-test":{"partitions":1,"seed":1}}x'])
        with Stable() as s:
            status, _ = run(self.uid, "dd", "of=" + JOBS + name, "status=none", stdin=text)
            if s.held():
                check("%s: rubbish is refused" % name, status != 0)
                there = os.path.exists(JOBS + name + ".error")
                if s.held():
                    check("%s: with a reason" % name, there)
            count("rubbish")
        self.forget(name)

    def submit_half(self):
        """A writer that dies leaves nothing."""
        name = self.new_name()
        doc = Document(self.rng)
        p = subprocess.Popen(["sh", "-c", 'exec dd of="$1" bs=5 status=none', "sh", JOBS + name], stdin=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, **as_user(self.uid))
        try:
            p.stdin.write(doc.bytes[:self.rng.randrange(len(doc.bytes))].rstrip()[:-1])
            p.stdin.flush()
            time.sleep(self.rng.uniform(0, 0.1))
            p.kill()
            p.wait(timeout=HANG_S)
        except OSError:
            p.kill()
            p.wait(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            fail("%s: its writer cannot be killed" % name)
        try:
            p.stdin.close()
        except OSError:
            pass
        count("half a file")
        self.forget(name)

    def interrupt(self):
        """Ctrl-C at some moment: a whole job or none."""
        name = self.new_name()
        doc = Document(self.rng)
        p = subprocess.Popen(["cp", doc.file(), JOBS + name], stderr=subprocess.DEVNULL, **as_user(self.uid))
        time.sleep(self.rng.uniform(0, 0.03))
        p.send_signal(self.rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
        try:
            p.wait(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            fail("%s: cp cannot be interrupted" % name)
        count("cp interrupted")
        self.jobs[name] = Job(name, [doc], False, 0)

    def forget(self, name, sync=None):
        """What was no job, or may have been one and is not wanted, goes; and stays away, after a crash if that is asked for."""
        if sync is None:
            sync = self.rng.random() < 0.5

        def gone():
            with Stable() as s:
                run(self.uid, "rm", "-f", JOBS + name, JOBS + name + ".error")
                there = os.path.lexists(JOBS + name) or os.path.lexists(JOBS + name + ".error")
                synced = not sync or run(self.uid, "sync", JOBS)[0] == 0
                if not sync:
                    self.removed[name] = s.life
                return not there and synced and s.held()
        if not wait_for(HANG_S, gone):
            fail("%s: cannot be removed" % name)
            return
        if sync:
            self.removed.pop(name, None)

    def forget_again(self):
        """What was removed just before a crash may be there again."""
        for name, life in list(self.removed.items()):
            if life != service.life:
                count("there again" if os.path.lexists(JOBS + name) else "removed before a crash")
                self.forget(name, sync=True)

    # -- what becomes of jobs

    def cancel(self, job):
        with Stable() as s:
            status, said = run(self.uid, "rm", JOBS + job.name)
            if status != 0 and s.held() and job.sure:
                fail("%s: rm: %s" % (job.name, said))
        del self.jobs[job.name]
        self.told[job.name] = None  # it may have ended before
        self.forget(job.name)
        count("cancelled")

    def look_at(self, job):
        """True when it has ended."""
        base = JOBS + job.name
        with Stable() as s:
            try:
                if os.path.exists(base + ".error"):
                    if not s.held():
                        return False
                    fail("%s: %s" % (job.name, read(base + ".error").decode()))
                elif os.path.exists(base + ".proof"):
                    proof, text = read(base + ".proof.bin"), read(base + ".proof")
                    if not s.held():
                        return False
                    wanted = [proof_of(d.partitions, d.seed) for d in job.documents]
                    # An overwrite that nobody knows the fate of leaves the old result or a new one.
                    if proof not in wanted or bytes.fromhex(text.decode().strip()) != proof:
                        if job.sure or proof[:11] != b"proofd-test":
                            fail("%s: a wrong proof: %r, wanted %r" % (job.name, proof[:60], [w[:60] for w in wanted]))
                    else:
                        check("%s: its proof" % job.name, True)
                elif os.path.exists(base):
                    if not job.sure and read(base + ".status").startswith(b"receiving"):
                        # Of a writer that died before its first write: the service waits a minute for another.
                        count("unknown: an empty file")
                        del self.jobs[job.name]
                        self.forget(job.name)
                        return False
                    if time.monotonic() - job.since > PATIENCE_S:
                        fail("%s has not ended: %s" % (job.name, read(base + ".status").decode()))
                        return True
                    return False
                elif s.held():
                    if job.sure:
                        fail("%s is lost" % job.name)
                    else:
                        count("unknown: no job")
                    del self.jobs[job.name]
                    return False
                else:
                    return False
            except (OSError, ValueError) as e:
                if s.held() and job.sure and getattr(e, "errno", 0) != 2:
                    fail("%s: %s" % (job.name, e))
                return False
            if self.told_life != s.life:
                self.told, self.told_life = {}, s.life
            if job.sure and job.life and job.life == s.life:
                n = self.told.get(job.name, 0)
                self.told[job.name] = None if n is None else n + 1
            else:
                self.told[job.name] = None
        return True

    def end(self, job):
        del self.jobs[job.name]
        choice = self.rng.random()
        if choice < 0.15 and not paused.is_set():
            count("overwritten")
            self.submit(job.name, job.documents)
            if job.name in self.jobs and self.told.get(job.name) is not None and not self.jobs[job.name].life:
                self.told[job.name] = None
            return
        if choice < 0.3:
            run(self.uid, "mv", JOBS + job.name + ".proof", WORK + "/taken")
            count("proof taken along")
        self.forget(job.name)

    def is_through(self):
        self.forget_again()
        return not self.jobs

    def act(self):
        if time.monotonic() > self.until:
            self.room, self.until = self.rng.choice([2, 4, 8, 14]), time.monotonic() + self.rng.uniform(5, 20)
        if not paused.is_set() and len(self.jobs) < self.room:
            choice = self.rng.random()
            if choice < 0.08:
                self.submit_rubbish()
            elif choice < 0.14:
                self.submit_half()
            elif choice < 0.2:
                self.interrupt()
            else:
                self.submit(self.new_name())
        for job in list(self.jobs.values()):
            if self.rng.random() < 0.02 and not paused.is_set():
                self.cancel(job)
            elif self.rng.random() < 0.01:
                word = self.rng.choice(["low", "normal", "high"])
                run(self.uid, "sh", "-c", 'echo %s >"$1"' % word, "sh", JOBS + job.name + ".priority")
                count("priority")
            elif self.look_at(job):
                self.end(job)
        time.sleep(0.02)


# ---- those who read and look

class Blocked(Actor):
    """Readers that wait and are ended by a signal."""

    def command(self):
        status = [f for f in glob.glob(JOBS + "*.status")][:1]
        choice = self.rng.random()
        if choice < 0.2 and status:
            return [PROBE, "poll", status[0], "100000"]
        if choice < 0.4:
            return [PROBE, "poll-events", MOUNT + "/events", "100000"]
        if choice < 0.6 and DEVICE != "none":
            return ["cat", DEVICE]
        return ["cat", MOUNT + "/events"]

    def act(self):
        service.up.wait()
        try:
            command = self.command()
        except OSError:
            return
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_user(self.rng.choice(USERS)))
        until = time.monotonic() + self.rng.uniform(0.01, 4)
        while time.monotonic() < until and not paused.is_set() and p.poll() is None:
            time.sleep(0.05)
        p.send_signal(self.rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGALRM]))
        try:
            p.wait(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            fail("a blocked reader cannot be ended: %s" % " ".join(command))
        count("a blocked reader ended")


class Looker(Actor):
    slowest = 0

    def look(self):
        choice = self.rng.randrange(6)
        if choice == 0:
            with os.scandir(JOBS) as entries:
                names = [(e.name, e.inode()) for e in entries]  # a name that is overwritten meanwhile is another file
            if len(names) != len(set(names)):
                fail("a name is listed twice")
        elif choice == 1:
            os.statvfs(MOUNT)
        elif choice == 2:
            for name in os.listdir(JOBS)[:20]:
                try:
                    os.stat(JOBS + name)
                except FileNotFoundError:
                    pass
        elif choice == 3:
            read(MOUNT + "/metrics")
        elif choice == 4:
            read(MOUNT + "/status")
        else:
            for f in glob.glob(JOBS + "*.status")[:20]:
                try:
                    read(f)
                except FileNotFoundError:
                    pass

    def act(self):
        with Stable() as s:
            start = time.monotonic()
            try:
                self.look()
            except OSError as e:
                if s.held():
                    fail("looking: %s" % e)
            took = time.monotonic() - start
            if s.held():
                answers[next((n for n in (1, 10, 50, 200, 1000) if took * 1000 < n), "more")] += 1
                self.slowest = max(self.slowest, took)
        time.sleep(0.05)


class Killer(Actor):
    """Engines all the time, the front while `front` is set."""

    def __init__(self, number):
        super().__init__(number)
        self.front = True
        self.engine_at = self.front_at = self.hup_at = time.monotonic() + 3

    def note(self, what):
        try:
            for state, n in re.findall(r'proofd_jobs\{state="(\w+)"\} (\d+)', read(MOUNT + "/metrics").decode()):
                if int(n):
                    at_kill[what, state] += int(n)
        except OSError:
            pass

    def kill_engine(self):
        engines = service.engines()
        if not engines:
            return
        pid = self.rng.choice(sorted(engines.values()))
        sig = self.rng.choice([signal.SIGKILL] * 5 + [signal.SIGSEGV] * 2 + [signal.SIGSTOP])
        self.note("engine")
        try:
            os.kill(pid, sig)
            count("engine " + sig.name)
        except ProcessLookupError:
            pass

    def kill_front(self):
        sig = self.rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        self.note("front")
        status = service.end(sig)
        count("front " + sig.name)
        if sig == signal.SIGTERM:
            check("SIGTERM under load: a clean end", status == 0, status)
        service.start()

    def act(self):
        now = time.monotonic()
        status = service.process.poll()
        if status is not None:
            fail("the front ended by itself: %d" % status)
            over.set()
        elif self.front and now > self.front_at:
            self.kill_front()
            self.front_at = time.monotonic() + self.rng.uniform(3, 20)
        elif now > self.engine_at:
            self.kill_engine()
            self.engine_at = now + self.rng.uniform(0.3, 4)
        elif now > self.hup_at:
            service.process.send_signal(signal.SIGHUP)
            count("front SIGHUP")
            self.hup_at = now + self.rng.uniform(2, 15)
        time.sleep(0.05)


# ---- pauses

def connection():
    return "/sys/fs/fuse/connections/%d/waiting" % os.minor(os.stat(MOUNT).st_dev)


def children(pid):
    try:
        return [int(c) for t in os.listdir("/proc/%d/task" % pid) for c in read("/proc/%d/task/%s/children" % (pid, t)).split()]
    except OSError:
        return []


def field(pid, name):
    return int(re.search(r"^%s:\s+(\d+)" % name, read("/proc/%d/status" % pid).decode(), re.M).group(1))


def state(pid):
    return read("/proc/%d/stat" % pid).rpartition(b") ")[2][:1].decode()


def in_flight():
    found = []
    for n in (0, 1):
        for line in read(MOUNT + "/nodes/%d/flight" % n).decode().splitlines():
            row = line.split()
            if len(row) == 5 and row[1].isdigit() and int(row[1]) + int(row[2]):
                found.append(line)
        for line in read(MOUNT + "/nodes/%d/permits" % n).decode().splitlines():
            row = line.split()
            if re.search(r"in_use$|^bytes_in_flight$", row[0]) and int(row[1]):
                found.append(line)
    return found


def in_store():
    return [f for pattern in ("/*/c1", "/*/job", "/*.damaged", "/.*", "/*/*.new") for f in glob.glob(STORE + pattern)
            if not f.endswith(("/lock", "/.lock"))]


def sample():
    front = service.process.pid
    return {"descriptors": len(os.listdir("/proc/%d/fd" % front)), "threads": field(front, "Threads"), "kB": field(front, "VmRSS"),
            "engines": sorted(len(os.listdir("/proc/%d/fd" % pid)) for pid in service.engines().values())}


def pause(actors, workers):
    """Everything ends; nothing is left. Returns a sample of the front."""
    paused.set()
    for a in actors:
        if not wait_for(PATIENCE_S + HANG_S, a.idle.is_set):
            fail("%s does not come to an end: %s" % (type(a).__name__, list(getattr(a, "jobs", []))[:5]))
            over.set()
            return None
    service.up.wait()
    told = {w.number: dict(w.told) for w in workers if w.told_life == service.life}
    expected = {name: n for t in told.values() for name, n in t.items() if n is not None}
    unsure = {name for t in told.values() for name, n in t.items() if n is None}

    def all_told():
        return all(w.seen[name] == n for w in service.watchers for name, n in expected.items())
    wait_for(10, all_told)
    for w in service.watchers:
        wrong = {name: (w.seen[name], n) for name, n in expected.items() if w.seen[name] != n and name not in unsure}
        check("each proof is told of once (%d)" % len(expected), not wrong and not w.lost, dict(list(wrong.items())[:5]))
        w.stop()
    check("no name is left", wait_for(10, lambda: not os.listdir(JOBS)), os.listdir(JOBS)[:10])
    for w in workers:
        w.told = {}
        w.removed.clear()
    check("nothing is in flight", wait_for(20, lambda: len(service.engines()) == 2 and not in_flight()), in_flight())
    if os.path.exists(connection()):
        check("no request is left", wait_for(10, lambda: int(read(connection())) == 0), read(connection()))
    check("nothing is left in the store", wait_for(10, lambda: not in_store()), in_store()[:5])
    spawners = children(service.process.pid)
    check("one spawner", len(spawners) == 1 and state(spawners[0]) != "Z", spawners)
    engines = [c for s in spawners for c in children(s)]
    check("two engines and no zombie", len(engines) == 2 and all(state(e) != "Z" for e in engines), [(e, state(e)) for e in engines])
    s = sample()
    print("after %d s: %s" % (time.monotonic() - begun, json.dumps(s)), flush=True)
    return s


def go_on():
    service.watchers = [Watcher(uid) for uid in sorted(set(USERS))[:2]]
    paused.clear()


def work_for(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until and not over.is_set() and len(failures) < 20:
        time.sleep(0.1)


def finish(looker):
    print("ways:")
    for what, n in sorted(ways.items()):
        print("    %-28s %d" % (what, n))
    print("states of jobs at kills:")
    for (what, s), n in sorted(at_kill.items()):
        print("    %-8s %-16s %d" % (what, s, n))
    print("looking took less than ms: %s, at most %.0f ms" %
          (", ".join("%s: %d" % (k, answers[k]) for k in (1, 10, 50, 200, 1000, "more")), looker.slowest * 1000))
    print("%d passed, %d failed, %d skipped" % (passed, len(failures), skipped), flush=True)
    return 1 if failures else 0


begun = time.monotonic()


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so would those we end by it
    os.mkdir(WORK + "/doc")
    os.chmod(WORK + "/doc", 0o777)
    workers = [Worker(i, uid) for i, uid in enumerate(USERS)]
    looker, killer = Looker(70), Killer(90)
    actors = workers + [Blocked(50 + i) for i in range(3)] + [looker, killer]
    service.start()
    if over.is_set():
        return finish(looker)
    if not os.path.exists(connection()):
        skip("requests that are left in the kernel", "no /sys/fs/fuse/connections, and not root to mount it")
    if DEVICE == "none":
        skip("the device", "no /dev/cuse")
    for a in actors:
        a.start()
    for _ in range(4):  # with kills of the front
        work_for(SECONDS * 0.1)
        if over.is_set() or pause(actors, workers) is None:
            return finish(looker)
        go_on()
    killer.front = False
    samples = []
    for part in (0.1, 0.15, 0.15, 0.15):
        work_for(SECONDS * part)
        s = None if over.is_set() else pause(actors, workers)
        if s is None:
            return finish(looker)
        samples.append(s)
        go_on()
    first, last = samples[0], samples[-1]
    for what in ("descriptors", "threads", "engines"):
        check("%s do not grow" % what, first[what] == last[what], (first[what], last[what]))
    if re.search(b"/lib[at]san", read("/proc/%d/maps" % service.process.pid)):
        skip("the front's memory", "a sanitizer keeps what is freed")
    else:
        check("memory does not grow", last["kB"] - first["kB"] <= GROWS_KB, (first["kB"], last["kB"]))
    killer.front = True
    work_for(SECONDS * 0.05)
    pause(actors, workers)
    over.set()
    check("a clean end", service.end(signal.SIGTERM) == 0)
    check("nothing is left in the store", not in_store(), in_store()[:5])
    check("the mount is gone", not os.path.ismount(MOUNT))
    return finish(looker)


status = 1
try:
    status = main()
finally:
    over.set()
    if service.process and service.process.poll() is None:
        service.process.kill()
    for watcher in service.watchers:
        watcher.stop()
os._exit(status)  # threads that hang are no reason to
