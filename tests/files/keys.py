"""Runs a program on a terminal of its own and types: keys.py KEYS COMMAND...

KEYS is typed, escapes as in Python, once the program has drawn its first screen. Ends with the program's status.
"""
import os
import pty
import select
import sys

keys = sys.argv[1].encode().decode("unicode_escape").encode("latin-1")
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "vt100"
    os.execvp(sys.argv[2], sys.argv[2:])

typed = False
shown = b""
while True:
    ready, _, _ = select.select([fd], [], [], 0.3)
    if ready:
        try:
            data = os.read(fd, 65536)
        except OSError:  # its end of the terminal is closed
            break
        if not data:
            break
        shown += data
    elif shown and not typed:  # quiet: it waits for keys
        os.write(fd, keys)
        typed = True
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(shown[-2000:])
sys.exit(os.waitstatus_to_exitcode(status))
