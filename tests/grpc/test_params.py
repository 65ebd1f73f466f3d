"""PreloadSRS and EvictSRS: engines load parameters and give them up, and the answer comes when they have."""
import fixture as f
from fixture import expect, refused, same
from grpc import StatusCode

docs = f.documents()
d = docs[0]
s = f.Service(sim=["start_ms = 3000"], known=[d])
c = s.client()
c.status()


def held():
    return " trust " in [line for line in open(s.mount + "/params/2KiB") if line.startswith("node 0 host ")][0]


def in_use(n):
    return f" in_use {n}" in open(s.mount + "/params/2KiB").read()


same("nothing is held at first", held(), False)
e = c("EvictSRS", circuit_id="porep-2k")
same("what is not there is not given up", (e.was_loaded, e.freed_bytes), (False, 0))
r = c("PreloadSRS", circuit_id="porep-2k")
same("they are loaded", (r.already_loaded, held()), (False, True))
expect("which takes its time", r.load_time_ms > 0, r)
r = c("PreloadSRS", circuit_id="porep-2k")
same("once", (r.already_loaded, r.load_time_ms), (True, 0))
same("they are given up", (c("EvictSRS", circuit_id="porep-2k").was_loaded, held()), (True, False))
same("once", c("EvictSRS", circuit_id="porep-2k").was_loaded, False)
refused("what has no file", StatusCode.NOT_FOUND, "porep-32g", lambda: c("PreloadSRS", circuit_id="porep-32g"))
same("is not held either", c("EvictSRS", circuit_id="porep-32g").was_loaded, False)

# ---- what is in flight
job = c.begin("busy", d)
expect("a partition is in flight", f.wait_for(60, lambda: in_use(1)))
refused("its parameters stay", StatusCode.FAILED_PRECONDITION, "in flight", lambda: c("EvictSRS", circuit_id="porep-2k"))
same("and it is proved", job.result().result.proof, d.proof)
expect("it is done", f.wait_for(60, lambda: in_use(0)))
same("now they go", c("EvictSRS", circuit_id="porep-2k").was_loaded, True)

# ---- without a service
s.kill_proofd()
refused("a service that is gone", StatusCode.UNAVAILABLE, "is proofd running", lambda: c("PreloadSRS", circuit_id="porep-2k"))
f.finish()
