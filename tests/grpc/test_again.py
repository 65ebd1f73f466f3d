"""The request id is what a job is known by: again, at once, after the death of anybody."""
import os
import signal
import time

import fixture as f
from fixture import expect, refused, same
import grpc
from grpc import StatusCode

docs = f.documents()
a, b = docs[0], docs[1]
sim = ["start_ms = 400", "finish_ms = 100"]
s = f.Service(sim=sim, known=docs)
c = s.client()


def started():
    """Proofs that the device has begun since proofd's start."""
    with open(s.mount + "/nodes/0/flight") as flight:
        return int([line for line in flight if line.startswith("proving")][0].split()[3])


# ---- the same again
same("first", c.prove("id", a).proof, a.proof)
begin = time.monotonic()
same("at once", c.prove("id", a).proof, a.proof)
expect("without waiting", time.monotonic() - begin < 0.4 * f.SLOW)
same("in another wrapping", c.prove("id", a.bare, miner=a.miner, sector=a.sector).proof, a.proof)
same("one proof was made", started(), 1)
same("another content under it is a new job", c.prove("id", b).proof, b.proof)
same("whose proof is the id's now", c.await_("id").proof, b.proof)
refused("a wrong miner is none, ended or not", StatusCode.INVALID_ARGUMENT, "replica_id", lambda: c.prove("id", b, miner=7))

# ---- while it runs
slow = f.pacing(20, 1)
first = c.begin("busy", slow)
expect("it runs", f.wait_for(10, lambda: os.path.exists(s.jobs + "/grpc-busy")))
refused("another content", StatusCode.ALREADY_EXISTS, "has not ended", lambda: c.prove("busy", f.pacing(20, 2)))
refused("a real one", StatusCode.ALREADY_EXISTS, "has not ended", lambda: c.submit("busy", a))
second = c.begin("busy", slow)
first.cancel()
refused("a deadline", StatusCode.DEADLINE_EXCEEDED, "", lambda: c.prove("busy", slow, timeout=2 / f.SLOW))
expect("who is gone or late has lost nothing", os.path.exists(s.jobs + "/grpc-busy.status"))
same("who stays has it", second.result().result.status, f.COMPLETED)
same("and who comes again", c.prove("busy", slow).proof, second.result().result.proof)

# ---- eight at once
before = started()
calls = [f.Client(s.listen) for _ in range(8)]
same("the same from eight", [w.result().result.proof for w in [x.begin("eight", docs[2]) for x in calls]], [docs[2].proof] * 8)
same("is one proof", started() - before, 1)
wanted = [docs[i % 4] for i in range(8)]
same("different ones from eight", [w.result().result.proof for w in [x.begin(f"eight-{i}", wanted[i]) for i, x in enumerate(calls)]], [d.proof for d in wanted])
for x in calls:
    x.close()

# ---- kill -9 of proofd-grpc: the caller is told, and finds his job
slow = f.pacing(20, 3)
waiting = c.begin("killed", slow)
expect("accepted", f.wait_for(10, lambda: os.path.exists(s.jobs + "/grpc-killed.status")))
s.kill()
try:
    waiting.result()
    expect("who waited is told", False)
except grpc.RpcError as e:
    same("who waited is told", e.code(), StatusCode.UNAVAILABLE)
before = started()
s.start()
same("the next try finds it", c.prove("killed", slow).status, f.COMPLETED)
expect("and nothing is done twice", started() <= 20 + before, started())
same("what was done before is there", c.prove("id", b).proof, b.proof)

# ---- kill -9 of proofd: who waits goes on waiting
slow = f.pacing(20, 4)
waiting = c.begin("front", slow)
expect("accepted", f.wait_for(10, lambda: os.path.exists(s.jobs + "/grpc-front.status")))
s.kill_proofd()
s.start_proofd()
same("through a new mount", waiting.result().result.status, f.COMPLETED)
same("done before", c.prove("eight", docs[2]).proof, docs[2].proof)
same("nothing was proved for that", c.prove("id", b).proof, b.proof)

# ---- kill -9 of an engine
waiting = c.begin("engine", f.pacing(20, 5))
expect("it proves", f.wait_for(10, lambda: "proving" in open(s.jobs + "/grpc-engine.status").read() if os.path.exists(s.jobs + "/grpc-engine.status") else False))
for line in open(s.mount + "/status"):
    if line.startswith("engine") and "pid " in line:
        os.kill(int(line.split("pid ")[1].split(",")[0]), signal.SIGKILL)
same("another engine goes on", waiting.result().result.status, f.COMPLETED)

# ---- an upload that was broken off by kill -9 leaves nothing for long
s.kill()
left, foreign = s.jobs + "/.grpc-upload-999999999-1", s.jobs + "/.grpc-upload-999999999-2"
with open(left, "wb") as out:
    out.write(b"half")
if os.geteuid() == 0:
    s.touch_as_another(os.path.basename(foreign))
s.start()
c = s.client()
expect("it is tidied away", f.wait_for(5, lambda: not os.path.exists(left)))
if os.geteuid() == 0:
    c.status()  # it listens only after that
    expect("another user's is not", os.path.exists(foreign))
    os.unlink(foreign)

# ---- a file of somebody else's in the way of an upload is never written to
guessed = [f".grpc-upload-{s.front.pid}-{i}" for i in range(3)]
for name in guessed:
    s.touch_as_another(name)
same("a new one", c.prove("guessed", docs[3]).proof, docs[3].proof)
same("what was there stays as it was", [os.stat(f"{s.jobs}/{name}").st_size for name in guessed], [0] * 3)
for name in guessed:
    os.unlink(f"{s.jobs}/{name}")

# ---- SIGTERM: whoever waits is sent away
waiting = c.begin("term", f.pacing(20, 6))
expect("accepted", f.wait_for(10, lambda: os.path.exists(s.jobs + "/grpc-term.status")))
begin = time.monotonic()
same("it stops in order", s.stop(), 0)
expect("and soon", time.monotonic() - begin < 5 * f.SLOW, time.monotonic() - begin)
expect("the caller knows", waiting.exception() is not None)
expect("the job stays", os.path.exists(s.jobs + "/grpc-term.status"))
f.finish()
