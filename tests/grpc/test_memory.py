"""Documents in flight, and no more of them in memory than may be."""
import os
import threading
import time

import fixture as f
from fixture import expect, same
import grpc
from grpc import StatusCode

MB = 1 << 20
if f.SLOW > 1:
    f.lacks("a build whose memory is its own, without sanitizers")
s = f.Service(sim=["start_ms = 20"], known=f.documents()[:1], grpc_options=["--uploads", "2"])
c = s.client()
c.prove("first", f.documents()[0])
idle = s.resident()
expect("idle", idle < 30 * MB, idle / MB)

# As long as a C1 of 32 GiB, with white space where it may stand: it is read to its end, and is the document that is known.
d = f.documents()[0]
filler = b'"filler":"' + b"x" * (1000 * 1000) + b'",'
long_one = b"{" + filler + d.bare[1:]
c.prove("filler", long_one, miner=d.miner, sector=d.sector)

# What no reader has seen the end of: eight clients send 51.6 MB at once.
size = 51600000
document = b'{"proofd-nothing":"' + b"y" * (size - 21) + b'"}'
ends = []


def send(i):
    try:
        f.Client(s.listen).prove(f"big{i}", document, timeout=300)
        ends.append("taken")
    except grpc.RpcError as e:
        ends.append(e.code())


threads = [threading.Thread(target=send, args=(i,)) for i in range(8)]
for t in threads:
    t.start()
slow = []
while any(t.is_alive() for t in threads):
    begin = time.monotonic()
    c.status()
    slow.append(time.monotonic() - begin)
    time.sleep(0.01)
same("each is refused as it is no C1", ends, [StatusCode.INVALID_ARGUMENT] * 8)
peak = s.resident("VmHWM")
bound = 30 * MB + 2 * 2 * size
expect("no more than two copies of the two that may be in flight", peak < bound, (peak / MB, bound / MB))
expect("it is given back", f.wait_for(10, lambda: s.resident() < 30 * MB), s.resident() / MB)
print(f"resident {idle / MB:.1f} MiB idle, {peak / MB:.1f} at most with 2 of 8 uploads of 51.6 MB, {s.resident() / MB:.1f} after; "
      f"GetStatus meanwhile {sorted(slow)[len(slow) // 2] * 1e3:.1f} ms, the slowest of {len(slow)} {max(slow) * 1e3:.1f} ms")
same("nothing is left", [x for x in os.listdir(s.jobs) if "big" in x], [])
f.finish()
