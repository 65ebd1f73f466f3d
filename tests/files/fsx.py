"""Random operations on a file of a temporary name, with plain bytes beside it: fsx.py JOBS SEED OPERATIONS

What is read must be what the model has. Prints the seed and the operation at which they differ, and ends with status 1.
"""
import os
import random
import sys

jobs, seed, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
MAX = 300000
paths = [f"{jobs}/.fsx{seed}", f"{jobs}/.fsx{seed}-b"]
model = bytearray()
log = []
fd = os.open(paths[0], os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)


def grow(size):
    if len(model) < size:
        model.extend(bytes(size - len(model)))


def put(at, data):
    grow(at)
    model[at:at + len(data)] = data


def some():
    return rng.randbytes(rng.choice((1, 100, 4096, 4097, 20000, 140000))), rng.randrange(MAX // 2)


def write():
    data, at = some()
    assert os.pwrite(fd, data, at) == len(data)
    put(at, data)
    return at, len(data)


def append():
    data, _ = some()
    if len(model) + len(data) > MAX:
        return "no room"
    end = os.open(paths[0], os.O_WRONLY | os.O_APPEND)
    assert os.write(end, data) == len(data)
    os.close(end)
    put(len(model), data)
    return len(data)


def read():
    at, size = rng.randrange(MAX), rng.randrange(1, MAX)
    found = os.pread(fd, size, at)
    assert found == bytes(model[at:at + size]), f"{len(found)} bytes from {at}"
    return at, size


def truncate():
    size = rng.choice((0, len(model), rng.randrange(MAX)))
    rng.choice((lambda: os.ftruncate(fd, size), lambda: os.truncate(paths[0], size)))()
    del model[size:]
    grow(size)
    return size


def reopen():
    global fd
    flags = rng.choice((0, os.O_TRUNC, os.O_CREAT))
    os.close(fd)
    fd = os.open(paths[0], os.O_RDWR | flags)
    if flags & os.O_TRUNC:
        model.clear()
    return flags


def look():
    same = os.stat(paths[0]).st_size, os.fstat(fd).st_size
    assert same == (len(model), len(model)), same


def other_reader():
    with open(paths[0], "rb") as f:
        assert f.read() == model


def dup():
    twin = os.dup(fd)
    os.pwrite(twin, b"dup", 0)
    os.close(twin)
    put(0, b"dup")


def rename():
    os.rename(*paths)
    paths.reverse()


def sync():
    os.fsync(fd)


operations = [write, write, write, append, read, read, truncate, reopen, look, other_reader, dup, rename, sync]
for i in range(n):
    operation = rng.choice(operations)
    try:
        log.append(f"{i} {operation.__name__} {operation()}")
    except (AssertionError, OSError) as e:
        print(f"seed {seed}: {i} {operation.__name__}: {e}; the file has {len(model)} bytes. Before that:")
        print("\n".join(log[-10:]))
        sys.exit(1)
os.close(fd)
with open(paths[0], "rb") as f:
    assert f.read() == model
os.unlink(paths[0])
print(f"seed {seed}: {n} operations, alike")
