"""What is refused, how, and that nothing is left of it."""
import errno
import os
import re
import time

import fixture as f
from fixture import expect, refused, same
from grpc import StatusCode

docs = f.documents()
d = docs[0]
s = f.Service(sim=["start_ms = 50"], known=docs, options=["--max-unfinished", "2"])
c = s.client()
c.status()

# ---- the sector is the miner's
refused("another miner", StatusCode.INVALID_ARGUMENT, f"that of miner f0{d.miner + 1}, sector {d.sector} is",
        lambda: c.prove("m", d, miner=d.miner + 1))
refused("another sector", StatusCode.INVALID_ARGUMENT, f"that of miner f0{d.miner}, sector {d.sector + 1} is",
        lambda: c.submit("m", d, sector=d.sector + 1))
refused("both ids are named", StatusCode.INVALID_ARGUMENT, "replica_id is d6782e0aaca300a46b8f55c74248bf8bca115a41788ff658d5c5caef7a30860b",
        lambda: c.prove("m", d.bytes, miner=1, sector=1))
refused("another size", StatusCode.INVALID_ARGUMENT, "sector_size", lambda: c.prove("m", d, sector_size=34359738368))

# ---- kinds
for kind, name in ((2, "SNAP_DEALS_UPDATE"), (3, "WINDOW_POST_PARTITION"), (4, "WINNING_POST")):
    refused(name, StatusCode.UNIMPLEMENTED, name, lambda: c.prove("k", d, kind=kind))
    refused(name + " submitted", StatusCode.UNIMPLEMENTED, name, lambda: c.submit("k", d, kind=kind))
for kind in (0, 5, 77):
    refused(f"kind {kind}", StatusCode.INVALID_ARGUMENT, "POREP_SEAL_COMMIT", lambda: c.prove("k", d, kind=kind))
for circuit in ("wpost-32g", "winning-32g", "snap-32g"):
    refused(circuit, StatusCode.UNIMPLEMENTED, circuit, lambda: c("PreloadSRS", circuit_id=circuit))
    refused(circuit, StatusCode.UNIMPLEMENTED, circuit, lambda: c("EvictSRS", circuit_id=circuit))
refused("no circuit", StatusCode.INVALID_ARGUMENT, "porep-32g", lambda: c("PreloadSRS", circuit_id="porep-31g"))

# ---- documents
refused("none", StatusCode.INVALID_ARGUMENT, "vanilla_proof is empty", lambda: c.prove("b", b""))
bad = bytearray(d.bare)
at = bad.index(b'"leaf":[') + 8
bad[at:at + 1] = b"x"
wrong = re.sub(rb'("hashes":\[\[)(\d+)', lambda m: m[1] + str(int(m[2]) ^ 1).encode(), d.bare, count=1)
for name, document in (("text", b"hello"), ("half", d.bytes[:len(d.bytes) // 2]), ("no JSON", bytes(bad)), ("wrong path", wrong)):
    direct = s.jobs + "/direct"
    try:
        with open(direct, "wb") as out:
            out.write(document)
        wanted = "accepted"
    except OSError:
        wanted = open(direct + ".error").readline().rstrip("\n")
    refused("text of .error: " + name, StatusCode.INVALID_ARGUMENT, wanted, lambda: c.prove("b", document, miner=d.miner, sector=d.sector))
    if os.path.exists(direct + ".error"):
        os.unlink(direct + ".error")
refused("an id that is not UTF-8", StatusCode.INVALID_ARGUMENT, "not UTF-8",
        lambda: c.channel.unary_unary("/cuzk.v1.ProvingEngine/SubmitProof")(b"\x0a\x01\xff" + c.request("", d).SerializeToString(), timeout=60))
refused("an endless id", StatusCode.INVALID_ARGUMENT, "request_id", lambda: c.prove("x" * 1025, d))
raw = c.channel.unary_unary("/cuzk.v1.ProvingEngine/Prove")
for junk in (b"\xff" * 20, b"\x0a\x7f", b"\x0a\x02\x0a\x7f", b"\x0a\x0b" + b"\x80" * 11, b"\x0a\x02\x0b\x0c"):
    refused(f"junk {junk!r}", StatusCode.INVALID_ARGUMENT, "well-formed", lambda: raw(junk, timeout=20))
refused("nothing", StatusCode.INVALID_ARGUMENT, "proof_kind", lambda: raw(b"", timeout=20))
q = c.request("unknown-fields", d).SerializeToString() + b"\xfa\x07\x03abc\xf8\x07\x05\xfd\x07abcd\xf9\x07abcdefgh"
same("fields that nobody knows are skipped",
     f.curio.Proved.FromString(raw(b"\x0a" + bytes([len(q) & 127 | 128, len(q) >> 7 & 127 | 128, len(q) >> 14]) + q, timeout=60)).result.proof, d.proof)
os.unlink(s.jobs + "/grpc-unknown-fields")
expect("nothing is left of all this", f.wait_for(5, lambda: os.listdir(s.jobs) == []), os.listdir(s.jobs))

# ---- a proof that cannot be made: the simulated device was not given it
s2 = f.Service("without", known=docs[:1], sim=["start_ms = 50"])
c2 = s2.client()
c2.submit("one", f.pacing(100, 1))
expect("job 1 is at the GPU, and its name is told", f.wait_for(20, lambda: c2.status().gpus[0].current_job_id == "one"), c2.status())
seen = {c2.status().gpus[0].current_job_id for _ in range(50)}
expect("and never another", seen <= {"one", ""}, seen)
c2.cancel("one")
r = c2.prove("w", docs[1])
same("a job that fails is an answer", r.status, f.FAILED)
expect("with its reason", "not given this proof" in r.error_message, r)
same("asked again it is tried again, and fails again", c2.prove("w", docs[1]).status, f.FAILED)
same("failed", c2.status().total_proofs_failed, 2)
s2.stop()

# ---- a full queue
for i in range(2):
    c.submit(f"full{i}", f.pacing(100, i))
begin = time.monotonic()
refused("it waits, then says so", StatusCode.RESOURCE_EXHAUSTED, "queue is full", lambda: c.prove("q", d, timeout=4))
took = time.monotonic() - begin
expect("within the deadline", 2 < took < 4 * f.SLOW, took)
waiting = c.begin("q", d)
expect("a place comes free", f.wait_for(10, lambda: c.cancel("full0")))
same("and is taken", waiting.result().result.proof, d.proof)
same("a job that is there needs none", c.prove("q", d).proof, d.proof)
c.cancel("full1")

# ---- nobody there
s.kill_proofd()
f.wait_for(10, lambda: not s.serves())
refused("GetStatus without proofd", StatusCode.UNAVAILABLE, "is proofd running", c.status)
refused("GetMetrics without proofd", StatusCode.UNAVAILABLE, "is proofd running", lambda: c("GetMetrics"))
refused("CancelProof without proofd", StatusCode.UNAVAILABLE, "", lambda: c.cancel("q"))
refused("Prove without proofd waits", StatusCode.UNAVAILABLE, "proofd is not there", lambda: c.prove("q", d, timeout=8))
refused("so does SubmitProof", StatusCode.UNAVAILABLE, "proofd is not there", lambda: c.submit("q", d, timeout=8))

# ---- a service that is stopping is as good as none, and what comes meanwhile waits for the next
s = f.Service("stops", sim=["start_ms = 600000"], known=docs, options=["--stop-wait", "10m"])
c = s.client()
c.submit("long", f.pacing(1, 3))
expect("long is under way", f.wait_for(20, lambda: "proving" in open(s.jobs + "/grpc-long.status").read()))
s.proofd.terminate()


def takes_nothing():
    try:
        open(s.jobs + "/.new", "wb").close()
    except OSError as e:
        return e.errno == errno.ECANCELED
    return False


expect("it takes nothing any more", f.wait_for(10, takes_nothing))
refused("Prove while it stops", StatusCode.UNAVAILABLE, "proofd is stopping", lambda: c.prove("q", d, timeout=8))
refused("SubmitProof while it stops", StatusCode.UNAVAILABLE, "proofd is stopping", lambda: c.submit("q", d, timeout=8))
waiting = c.begin("q", d)
time.sleep(0.5)
expect("it waits", not waiting.done())
s.kill_proofd()
s.simulate("proofs = " + s.dir + "/true", "start_ms = 50")
s.start_proofd()
same("until it is back", waiting.result().result.proof, d.proof)
s.stop()
f.finish()
