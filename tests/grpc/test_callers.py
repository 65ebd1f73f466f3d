"""Callers that keep a place and send nothing, or half of it; that ask for what is not theirs; and jobs that are replaced under those who wait for them."""
import os
import socket
import struct
import subprocess
import threading
import time

import fixture as f
from fixture import expect, refused, same
import grpc
from grpc import StatusCode

docs = f.documents()
d = docs[0]
s = f.Service(sim=["start_ms = 100"], known=docs, grpc_options=["--receive-timeout", "2"])
c = s.client()
c.status()


def uploads(n):
    return lambda: f"\nproofd_grpc_uploads {n}\n" in c("GetMetrics").prometheus_text


# ---- four that never send anything hold all places, until somebody else wants one
over = threading.Event()


def silence():
    over.wait()
    yield b""


silent = [f.Client(s.listen) for _ in range(4)]
calls = [x.channel.stream_unary("/cuzk.v1.ProvingEngine/" + m).future(silence(), timeout=120 * f.SLOW, wait_for_ready=True) for x, m in zip(silent, ["Prove", "SubmitProof"] * 2)]
expect("they have all places", f.wait_for(20, uploads(4)))
begin = time.monotonic()
same("another gets his turn", c.prove("turn", d).proof, d.proof)
expect("when their time is over", time.monotonic() - begin < 20 * f.SLOW, time.monotonic() - begin)
refused("one of them is told", StatusCode.CANCELLED, "", lambda: calls[0].result())
over.set()
for x in silent:
    x.close()
expect("no place is lost", f.wait_for(20, uploads(0)))


# ---- half a message, by hand, and then nobody
def literal(name, value):
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def half(document, length):
    """A connection on which a Prove of this length has begun."""
    to = socket.socket(socket.AF_UNIX)
    to.connect(s.socket)
    headers = [(":method", "POST"), (":scheme", "http"), (":path", "/cuzk.v1.ProvingEngine/Prove"), (":authority", "x"), ("te", "trailers"),
               ("content-type", "application/grpc")]
    message = b"\0" + struct.pack(">I", length) + document
    to.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, b"".join(literal(*h) for h in headers)) + frame(0, 0, 1, message))
    return to


halves = [half(d.bytes[:10000], 20000) for _ in range(4)]
expect("four halves have all places", f.wait_for(20, uploads(4)))
for to in halves[:2]:
    to.close()
expect("who goes gives up his", f.wait_for(20, uploads(2)))
for to in halves[2:]:
    to.close()
expect("all of them", f.wait_for(20, uploads(0)))
same("after all that", c.prove("sound", docs[1]).proof, docs[1].proof)

# ---- a job is known by its file, not by its name alone: what somebody puts in its place is not its proof
for what, ask in (("Prove", lambda: c.begin("swap", f.pacing(100, 1))), ("AwaitProof", lambda: c.calls["AwaitProof"].future(f.curio.Await(job_id="swap"), timeout=120 * f.SLOW))):
    name = s.jobs + "/grpc-swap"
    other = f.Client(s.listen)
    other.prove("other", docs[2])
    other.submit("swap", f.pacing(100, 1))
    before = os.stat(name).st_ino
    waiting = ask()
    expect("it waits", f.wait_for(20, lambda: "\nproofd_grpc_waiting 1\n" in c("GetMetrics").prometheus_text))
    os.unlink(name)
    os.rename(s.jobs + "/grpc-other", name)
    expect("another job has the name", os.stat(name).st_ino != before)
    r = waiting.result()
    r = r.result if what == "Prove" else r
    same(f"{what}: another's proof is not given", (r.status, r.proof), (f.CANCELLED, b""))
    expect("and it is said why", "the job was removed" in r.error_message, r)
    same("who asks from now on means the other", c.await_("swap").proof, docs[2].proof)
    os.unlink(name)
    other.close()

# ---- ids are names and nothing else
for odd in ("..", "../../status", "grpc-sound", "a\0b", "sound.proof", ".hidden", "%41"):
    same(f"id {odd!r}", c.prove(odd, docs[2]).proof, docs[2].proof)
    expect("it is a job of its own", os.stat(s.jobs + "/grpc-" + "".join(x if x.isalnum() or x in "-_" else f"%{ord(x):02X}" for x in odd)))
for method in ("AwaitProof", "CancelProof"):
    refused(method + " of an endless id", StatusCode.INVALID_ARGUMENT, "too long", lambda: c(method, job_id="x" * (1 << 20)))
    refused(method + " of none", StatusCode.INVALID_ARGUMENT, "empty", lambda: c(method))
refused("Prove of one", StatusCode.INVALID_ARGUMENT, "request_id", lambda: c.prove("x" * (1 << 20), d))
refused("an endless circuit", StatusCode.INVALID_ARGUMENT, "none of", lambda: c("PreloadSRS", circuit_id="y" * (1 << 20)))
same("what is no job cannot be cancelled", c.cancel("../../status"), False)

# ---- numbers as large as they can be; what was negative comes as one of those
huge = (1 << 64) - 1
for field in ("miner", "sector"):
    refused(f"{field} {huge}", StatusCode.INVALID_ARGUMENT, str(huge), lambda: c.prove("huge", d, **{field: huge}))
refused("size", StatusCode.INVALID_ARGUMENT, str(huge), lambda: c.prove("huge", d, sector_size=huge))
q = c.request("priority", d)
q.priority = (1 << 32) - 1
same("a priority that nobody knows", c.calls["SubmitProof"](q, timeout=60).job_id, "priority")
same("is none", open(s.jobs + "/grpc-priority.priority").read(), "normal\n")
for ms in (huge, 1 << 63, (1 << 63) - 1):
    same(f"a timeout of {ms} ms is for ever", c.await_("priority", timeout_ms=ms).proof, d.proof)
same("one of 1 ms is not", c.await_("priority", timeout_ms=1).status, f.COMPLETED)

# ---- jobs of others
with open(s.jobs + "/plain", "wb") as out:
    out.write(docs[1].bytes)
refused("a job of another name is none of ours", StatusCode.NOT_FOUND, "no such job", lambda: c.await_("plain"))
if os.geteuid() == 0:  # who may write to the directory may take a name, and no more than that
    name = "grpc-theirs"
    with open(f.work + "/theirs", "wb") as out:
        out.write(docs[1].bytes)
    os.chmod(f.work, 0o755)
    subprocess.run(["sh", "-c", f"umask 077; cp {f.work}/theirs {name}"], cwd=s.jobs, user=65534, check=True)
    same("a job of another's is his", os.stat(f"{s.jobs}/{name}").st_uid, 65534)
for target in ("/etc/passwd", "grpc-sound"):
    try:
        os.symlink(target, s.jobs + "/grpc-link")
        expect("no links in the mount", False)
    except OSError:
        expect("no links in the mount", True)
s.stop()
f.finish()
