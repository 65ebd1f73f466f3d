"""Each method of the service, as Curio calls it."""
import os
import time

import fixture as f
from fixture import expect, refused, same
import grpc

docs = f.documents()
s = f.Service(sim=["start_ms = 30", "finish_ms = 30"], known=docs)
c = s.client()
d = docs[0]

# ---- Prove: the one that Curio uses
r = c.prove("porep-1001-1", d)
same("it is completed", r.status, f.COMPLETED)
same("the proof is the one that was known", r.proof, d.proof)
same("it names its job", r.job_id, "porep-1001-1")
same("the job is a file of the mount", sorted(os.listdir(s.jobs))[0], "grpc-porep-1001-1")
expect("the document is what was sent, with its miner", open(s.jobs + "/grpc-porep-1001-1", "rb").read() == b'{"Miner":"f01001",' + d.bytes[1:])
expect("times are there", r.total_ms >= 60 and r.gpu_compute_ms >= 30, r)
parts = r.queue_wait_ms + r.srs_load_ms + r.synthesis_ms + r.gpu_compute_ms
expect("and are those of a path, not sums", parts <= r.total_ms + 5, r)

# ---- SubmitProof, AwaitProof
j = c.submit("ps-porep-1-2-3", docs[1], sector_size=2048)
same("a job's id is the request's", j.job_id, "ps-porep-1-2-3")
r = c.await_(j.job_id)
same("its proof is awaited", (r.status, r.proof), (f.COMPLETED, docs[1].proof))
j = c.submit("", docs[2])
expect("a request without an id gets one", len(j.job_id) == 32, j.job_id)
same("which is as good as another", c.await_(j.job_id).proof, docs[2].proof)
odd = "a/b .%~\n" + "é" + "x" * 300
same("any id will do", c.prove(odd, docs[3]).proof, docs[3].proof)
same("and is found again", c.await_(odd).proof, docs[3].proof)
refused("a job that is not there", grpc.StatusCode.NOT_FOUND, "no such job", lambda: c.await_("nonesuch"))
refused("a job of no name", grpc.StatusCode.INVALID_ARGUMENT, "job_id", lambda: c.await_(""))

# ---- priority
s.simulate("proofs = " + s.dir + "/true", "start_ms = 160")
s.kill_proofd()
s.start_proofd()
for wanted, name in ((0, "normal"), (1, "low"), (3, "high"), (4, "critical")):
    q = c.request(f"p{wanted}", f.pacing(100, wanted))
    q.priority = wanted
    c.calls["SubmitProof"](q, timeout=60, wait_for_ready=True)
    same(f"priority {wanted}", open(f"{s.jobs}/grpc-p{wanted}.priority").read(), name + "\n")

# ---- AwaitProof's timeout, CancelProof
begin = time.monotonic()
r = c.await_("p4", timeout_ms=300)
took = time.monotonic() - begin
same("a timeout is an answer", r.status, f.TIMEOUT)
expect("given in time", 0.25 < took < 2 * f.SLOW, took)
waiting = [c.begin("p1", f.pacing(100, 1)) for _ in range(2)]
expect("both wait", f.wait_for(20, lambda: "proofd_grpc_waiting 2\n" in c("GetMetrics").prometheus_text))
same("a job that runs is cancelled", c.cancel("p1"), True)
expect("it is gone", not os.path.exists(s.jobs + "/grpc-p1"))
same("who waited for it is told", [w.result().result.status for w in waiting], [f.CANCELLED] * 2)
same("one that is not there is not", c.cancel("p1"), False)

# ---- GetStatus: true, and at once
st = c.status()
q = {x.proof_kind: x for x in st.queues}
same("one queue", list(q), ["porep-seal-commit"])
same("all that have not ended are in it", q["porep-seal-commit"].pending + q["porep-seal-commit"].in_progress, 3)
expect("a job is at the GPU", f.wait_for(20, lambda: c.status().gpus[0].current_job_id in ("p0", "p3", "p4")))
same("the GPU", (st.gpus[0].ordinal, st.gpus[0].name), (0, "simulated"))
same("parameters", [(x.circuit_id, x.tier, x.size_bytes > 1e8) for x in st.loaded_srs], [("porep-2k", 2, True)])
expect("memory", 0 < st.pinned_memory_bytes < st.pinned_memory_limit_bytes, st)
times = []
for _ in range(50):
    begin = time.monotonic()
    c.status()
    times.append(time.monotonic() - begin)
expect("half of the answers within 50 ms", sorted(times)[25] < 0.05 * f.SLOW, sorted(times))
for i in (0, 3, 4):
    same(f"p{i} is cancelled", c.cancel(f"p{i}"), True)
expect("the queue is empty", f.wait_for(10, lambda: sum(x.pending + x.in_progress for x in c.status().queues) == 0))
same("one more", c.prove("again", docs[1]).status, f.COMPLETED)
same("is counted", c.status().total_proofs_completed, 1)  # since proofd's start
same("cancelling what has ended keeps it", (c.cancel("again"), c.await_("again").proof), (False, docs[1].proof))

# ---- a job of anybody's whose name says no id: GetStatus goes on, and the name is told
for name, told in ((b"grpc-%FF", "grpc-%FF"), (b"no-\xff", "no-\\xff")):
    path = s.jobs.encode() + b"/" + name
    with open(path, "wb") as out:
        out.write(f.pacing(100, 9))
    expect(f"{told} is at the GPU", f.wait_for(20, lambda: c.status().gpus[0].current_job_id == told), c.status())
    os.unlink(path)

# ---- GetMetrics
text = c("GetMetrics").prometheus_text
expect("metrics are the mount's", "\nproofd_jobs_done_total 1\n" in text and "\nproofd_grpc_uploads 0\n" in text)

f.finish()
