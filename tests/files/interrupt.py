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
AGAIN = 0.5  # the first one may come just before the call, which then waits


class Alarm(Exception):
    pass


armed = False


def alarm(_signal, _frame):
    global armed
    if armed:
        armed = False
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
        armed = True
        signal.setitimer(signal.ITIMER_REAL, AFTER, AGAIN)
        if how == "read":
            os.read(fd, 4096)
        elif how == "poll":
            poller.poll(10000)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Alarm:
        signal.setitimer(signal.ITIMER_REAL, 0)
        late.append(time.monotonic() - begin - AFTER)
late.sort()
print(len(late), int(1000 * late[-20]) if len(late) >= 20 else "?")
