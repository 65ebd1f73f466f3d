"""What programs do with descriptors: descriptors.py CASE C1 FILE [OTHER]

Prints what the closes said, one word each: ok or the errno's name.
"""
import errno
import os
import random
import signal
import sys

case, source, path = sys.argv[1:4]
data = open(source, "rb").read()
half = len(data) // 2


def create():
    return os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)


def write_all(fd, piece):
    while piece:
        piece = piece[os.write(fd, piece):]


def close(fd):
    try:
        os.close(fd)
        print("ok")
    except OSError as e:
        print(errno.errorcode[e.errno])


def in_child(work):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        work()
        sys.stdout.flush()
        os._exit(0)
    return pid


def wait(pid):
    return os.waitpid(pid, 0)[1]


def dup():  # half by one, half by the other
    fd = create()
    twin = os.dup(fd)
    write_all(fd, data[:half])
    close(fd)
    write_all(twin, data[half:])
    close(twin)


def dup_early():  # closed before anything is there, as shells do
    fd = create()
    twin = os.dup(fd)
    os.close(fd)
    write_all(twin, data)
    close(twin)


def child_first():  # the child ends in the middle
    fd = create()
    write_all(fd, data[:half])
    wait(in_child(lambda: None))
    write_all(fd, data[half:])
    close(fd)


def child_writes():  # the parent keeps its copy, says so, and waits
    fd = create()
    wait(in_child(lambda: write_all(fd, data)))
    print("written", flush=True)
    sys.stdin.readline()
    close(fd)


def write_after():  # whole at the first close, and written again after it
    fd = create()
    twin = os.dup(fd)
    write_all(fd, data)
    close(fd)
    os.pwrite(twin, data[:1000], 0)
    close(twin)


def spoil_after():  # whole at the first close, not at the last
    fd = create()
    twin = os.dup(fd)
    write_all(fd, data)
    close(fd)
    write_all(twin, b"{")
    close(twin)


def touched():  # made and closed empty, which makes it go, again and again: each open finds the name, or makes it
    for _ in range(2000):
        os.close(create())
    print("ok")


def reopen():  # two opens, one after the other, of a temporary name
    for begin, end in (0, half), (half, len(data)):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        write_all(fd, data[begin:end])
        close(fd)


def two():  # two writers of one name, a piece at a time by turns; the last argument is what the other writes
    theirs = open(sys.argv[4], "rb").read()
    a, b = create(), create()
    for at in range(0, max(len(data), len(theirs)), 5000):
        os.pwrite(a, data[at:at + 5000], at)
        os.pwrite(b, theirs[at:at + 5000], at)
    close(a)
    close(b)


def killed():  # after so many bytes
    def die():
        fd = create()
        write_all(fd, data[:int(sys.argv[4])])
        os.kill(os.getpid(), signal.SIGKILL)

    wait(in_child(die))


def killed_often():  # a hundred of them, each after some number of bytes
    rng = random.Random(1)
    for _ in range(100):
        sys.argv[4:] = [str(rng.randrange(len(data) + 1))]
        killed()


def unlinked():  # rm between write and close
    fd = create()
    write_all(fd, data)
    os.unlink(path)
    close(fd)


def renamed():  # to a final name while it is open; the last argument is that
    fd = create()
    write_all(fd, data)
    os.rename(path, sys.argv[4])


globals()[case]()
