"""
A proofd with a simulated device and a proofd-grpc before it, each test's own, and checks that count.

Calls go through Debian's python3-grpcio, with messages of curio.proto. Everything goes when the test ends, whatever way it ends. A test ends
with finish(). PROOFD_QUICK: a slow build, which is given four times as long.
"""
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
VECTORS = os.path.join(ROOT, "tests", "vectors", "c1")
SLOW = 4 if os.environ.get("PROOFD_QUICK") else 1
COMPLETED, FAILED, CANCELLED, TIMEOUT = 1, 2, 3, 4
passed = failed = skipped = 0


def lacks(what):
    print(what)
    sys.exit(77)


if not os.path.exists(BUILD + "/proofd-grpc"):
    lacks("gRPC for C++ when this was built")
try:
    import grpc
except ImportError:
    lacks("python3-grpcio")
if not os.access("/dev/fuse", os.W_OK):
    lacks("/dev/fuse is not open to this user")
if os.geteuid() == 0:
    with open("/proc/self/status") as f:
        caps = [line for line in f if line.startswith("CapEff")][0]
    if not int(caps.split()[1], 16) >> 21 & 1:
        lacks("the right to mount (CAP_SYS_ADMIN)")

work = tempfile.mkdtemp(prefix="proofd-grpc.")
running = []  # whatever was started


def clean_up():
    for p in running:
        if p.poll() is None:
            p.kill()
        p.wait()
    with open("/proc/mounts") as f:
        mounts = [line.split()[1] for line in f if line.split()[1].startswith(work + "/")]
    for m in mounts:
        if subprocess.run(["umount", "-l", m], stderr=subprocess.DEVNULL).returncode:
            subprocess.run(["fusermount3", "-uz", m], stderr=subprocess.DEVNULL)
    shutil.rmtree(work, ignore_errors=True)


atexit.register(clean_up)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
subprocess.run(["protoc", f"--python_out={work}", f"-I{ROOT}/tests/grpc", "curio.proto", "probes.proto"], check=True)
sys.path.insert(0, work)
import curio_pb2 as curio  # noqa: E402
import probes_pb2 as probes  # noqa: E402

# ---- checks


def expect(what, ok, detail=""):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {what}: {str(detail)[:1000]}", flush=True)
    return ok


def same(what, found, wanted):
    return expect(what, found == wanted, f"found {repr(found)[:300]}, wanted {repr(wanted)[:300]}")


def skip(what, why):
    global skipped
    skipped += 1
    print(f"SKIP  {what}: {why}")


def refused(what, code, part, call):
    """The call fails with this code and a text that has this part in it."""
    try:
        found = call()
    except grpc.RpcError as e:
        return expect(what, e.code() == code and part in e.details(), f"{e.code()}: {e.details()}, wanted {code}: {part}")
    return expect(what, False, f"no error, but {str(found)[:200]}")


def wait_for(seconds, condition):
    until = time.monotonic() + seconds * SLOW
    while not condition():
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    return True


def finish():
    if failed:
        for name in sorted(os.listdir(work)):
            if name.endswith(".log"):
                print(f"--- {name}\n" + "".join(open(os.path.join(work, name), errors="replace").readlines()[-15:]))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


# ---- documents


class Document:
    """A C1 as Curio sends it, whose sector it is, and its proof."""

    def __init__(self, name):
        folder = os.path.join(VECTORS, name)
        meta = json.load(open(folder + "/meta.json"))
        self.name, self.bare = name, subprocess.check_output(["zstd", "-qdc", folder + "/bare.json.zst"])
        self.sector = meta["sector_number"]
        self.miner = sum((b & 0x7F) << 7 * i for i, b in enumerate(bytes.fromhex(meta["prover_id"])))
        self.size = meta["registered_proof"]
        self.proofs = folder + "/proof-r3-s5.txt"
        self.proof = bytes.fromhex("".join(line.split()[1] for line in open(self.proofs)))
        self.bytes = wrapped(self.bare, self.sector)


def wrapped(bare, sector, size=2048):
    import base64
    text = base64.b64encode(bare).decode()
    return json.dumps({"SectorNum": sector, "Phase1Out": text, "SectorSize": size}, separators=(",", ":")).encode()


def pacing(partitions, seed):
    """A document of the test kind: nothing is proved, but it takes its time."""
    return json.dumps({"proofd-test": {"partitions": partitions, "seed": seed}}).encode()


def documents():
    return [Document("2KiB-" + kind) for kind in ("sealed", "sparse", "synthetic", "v1")]


# ---- services


class Service:
    """proofd and proofd-grpc. `sim`: lines of the simulated device; `known`: documents whose proofs it is given."""

    def __init__(self, name="service", sim=(), known=(), options=(), grpc_options=(), listen=None, cpu=0):
        self.dir = os.path.join(work, name)
        os.makedirs(self.dir + "/true")
        self.mount, self.jobs = self.dir + "/mnt", self.dir + "/mnt/jobs"
        self.socket, self.cpu = self.dir + "/socket", cpu
        self.listen = listen or "unix:" + self.socket
        self.options, self.grpc_options = list(options), list(grpc_options)
        for d in known:
            path = f"{self.dir}/{d.name}.json"
            with open(path, "wb") as f:
                f.write(d.bare)
            subprocess.run([BUILD + "/tests/system/sim_learn", path, d.proofs, self.dir + "/true"], check=True)
        self.simulate("proofs = " + self.dir + "/true", *sim)
        self.proofd = self.front = None
        self.start_proofd()
        self.start()

    def simulate(self, *lines):
        with open(self.dir + "/sim", "w") as f:
            f.write("\n".join(lines) + "\n")

    def launch(self, program, *args):
        log = open(os.path.join(work, f"{os.path.basename(self.dir)}-{os.path.basename(program)}.log"), "ab")
        p = subprocess.Popen([program, *args], stderr=log, stdout=log, stdin=subprocess.DEVNULL)
        running.append(p)
        return p

    def serves(self):
        return os.path.exists(self.mount + "/status")

    def engine_is_up(self):
        try:
            return '\nproofd_engine_up{node="0"} 1\n' in open(self.mount + "/metrics").read()
        except OSError:
            return False

    def start_proofd(self):
        self.proofd = self.launch(
            BUILD + "/proofd", "--mount", self.mount, "--store", self.dir + "/store", "--params", params(), "--engine", BUILD + "/proofd-engine",
            "--device", "none", "--nodes", f"cpus:{self.cpu}", "--permits", "2", "--simulate", self.dir + "/sim", *self.options)
        if not wait_for(60, self.engine_is_up):
            expect("proofd starts", False)
            finish()

    def start(self):
        self.front = self.launch(BUILD + "/proofd-grpc", "--mount", self.mount, "--listen", self.listen, *self.grpc_options)

    def touch_as_another(self, name):
        """An empty file of the jobs that is another user's, where this one is root."""
        subprocess.run(["touch", name], cwd=self.jobs, user=65534 if os.geteuid() == 0 else None, check=True)

    def kill_proofd(self):
        self.proofd.kill()
        self.proofd.wait()

    def kill(self):
        self.front.kill()
        self.front.wait()

    def stop(self):
        self.front.terminate()
        return self.front.wait()

    def client(self):
        return Client(self.listen)

    def resident(self, what="VmRSS"):
        with open(f"/proc/{self.front.pid}/status") as f:
            return int([line for line in f if line.startswith(what)][0].split()[1]) * 1024


def params():
    return subprocess.check_output([ROOT + "/tests/lib/dev-params.sh"], stderr=subprocess.DEVNULL, cwd=ROOT, text=True).strip()


# ---- calls

METHODS = {
    "SubmitProof": (curio.SubmitProofRequest, curio.Submitted),
    "AwaitProof": (curio.Await, curio.Result),
    "Prove": (curio.ProveArgs, curio.Proved),
    "CancelProof": (curio.Job, curio.Cancelled),
    "GetStatus": (curio.Nothing, curio.Status),
    "GetMetrics": (curio.Nothing, curio.Metrics),
    "PreloadSRS": (curio.Circuit, curio.Preloaded),
    "EvictSRS": (curio.Circuit, curio.Evicted),
}


class Client:
    """One connection, as Curio has it. A service that is still starting is waited for."""

    def __init__(self, address, credentials=None):
        options = [("grpc.max_send_message_length", 1 << 30), ("grpc.max_receive_message_length", 256 << 20), ("grpc.use_local_subchannel_pool", 1)]
        self.channel = grpc.secure_channel(address, credentials, options) if credentials else grpc.insecure_channel(address, options)
        self.calls = {
            name: self.channel.unary_unary("/cuzk.v1.ProvingEngine/" + name, request_serializer=q.SerializeToString, response_deserializer=a.FromString)
            for name, (q, a) in METHODS.items()
        }

    def __call__(self, method, timeout=120, wait=True, **fields):
        request = METHODS[method][0](**fields)
        return self.calls[method](request, timeout=timeout * SLOW, wait_for_ready=wait)

    def request(self, id, document, miner=0, sector=0, kind=1, **more):
        if isinstance(document, Document):
            document, miner, sector = document.bytes, miner or document.miner, sector or document.sector
        return curio.SubmitProofRequest(request_id=id, proof_kind=kind, vanilla_proof=document, miner_id=miner, sector_number=sector, priority=2, **more)

    def prove(self, id, document, timeout=120, wait=True, **more):
        return self("Prove", timeout, wait, submit=self.request(id, document, **more)).result

    def begin(self, id, document, timeout=120, **more):
        """Prove, in the background: a future, to be cancelled or waited for."""
        q = curio.ProveArgs(submit=self.request(id, document, **more))
        return self.calls["Prove"].future(q, timeout=timeout * SLOW, wait_for_ready=True)

    def submit(self, id, document, timeout=120, **more):
        return self.calls["SubmitProof"](self.request(id, document, **more), timeout=timeout * SLOW, wait_for_ready=True)

    def await_(self, id, timeout_ms=0, timeout=120):
        return self("AwaitProof", timeout, job_id=id, timeout_ms=timeout_ms)

    def cancel(self, id):
        return self("CancelProof", job_id=id).was_running

    def status(self):
        return self("GetStatus")

    def close(self):
        self.channel.close()
