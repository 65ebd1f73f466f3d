"""Blocked and interrupted by a signal, again and again: interrupt.py read|poll|open FILE N

Prints how many were, and by how many milliseconds the slowest but twenty of them was late.
"""
import os
import select
import signal
import sys
import time

how, path, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
AFTER = 0.003


class Alarm(Exception):
    pass


def alarm(_signal, _frame):
    raise Alarm


signal.signal(signal.SIGALRM, alarm)
fd = os.open(path, os.O_RDONLY) if how != "open" else -1
poller = select.poll()
if how == "poll":
    os.pread(fd, 4096, 0)
    poller.register(fd, select.POLLPRI)

late = []
for _ in range(n):
    begin = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, AFTER)
        if how == "read":
            os.read(fd, 4096)
        elif how == "poll":
            poller.poll(10000)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Alarm:
        late.append(time.monotonic() - begin - AFTER)
late.sort()
print(len(late), int(1000 * late[-20]) if len(late) >= 20 else "?")
