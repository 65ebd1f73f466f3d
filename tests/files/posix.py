"""What POSIX and Linux say of files, and what the mount says: posix.py JOBS

Each want() is a call and the errno that it gives, or None. Prints what is found otherwise, then how many were as wanted. As root it takes the part
of two ordinary users as well.
"""
import ctypes
import errno
import fcntl
import os
import stat
import sys
import time

jobs = sys.argv[1]
root = os.path.dirname(jobs)
libc = ctypes.CDLL(None, use_errno=True)
right = wrong = 0
NAME_MAX = 245  # room for the longest suffix
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
E = errno


def at(name):
    return os.fsencode(jobs) + b"/" + (name if isinstance(name, bytes) else name.encode())


def count(what, yes, found):
    global right, wrong
    if yes:
        right += 1
    else:
        wrong += 1
        print(f"{what}: {found}")


def want(what, code, call, *args, **kw):
    """The call fails with that errno; with one of them if it is a tuple; None: it works, and what it gives comes back."""
    found, value = None, None
    try:
        value = call(*args, **kw)
    except OSError as e:
        found = e.errno
    codes = code if isinstance(code, tuple) else (code,)
    count(what, found in codes, errno.errorcode.get(found, found))
    return value


def same(what, found, wanted):
    count(what, found == wanted, f"{found!r}, not {wanted!r}")


def make(name, data=b"", mode=0o644):
    fd = os.open(at(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    os.write(fd, data)
    os.close(fd)


def comes(name):
    """Results appear a moment after what they are of; what hangs is given up."""
    for _ in range(1000):
        if os.path.exists(at(name)):
            return True
        time.sleep(0.01)
    return False


def read(name):
    with open(at(name), "rb") as f:
        return f.read()


def renameat2(old, new, flags):
    if libc.renameat2(-100, at(old), -100, at(new), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def fallocate(fd, size):
    if libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(size)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def gone(name):
    want(f"{name!r} is gone", E.ENOENT, os.lstat, at(name))


def opens():
    make(".t", b"0123456789")
    want("O_EXCL of what is there", E.EEXIST, os.open, at(".t"), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    want("open of what is not", E.ENOENT, os.open, at(".no"), os.O_RDONLY)
    want("O_DIRECTORY of a file", E.ENOTDIR, os.open, at(".t"), os.O_RDONLY | os.O_DIRECTORY)
    want("writing to a directory", E.EISDIR, os.open, jobs, os.O_WRONLY)
    want("O_CREAT of a directory", E.EISDIR, os.open, jobs, os.O_RDONLY | os.O_CREAT)
    want("O_TMPFILE", E.EOPNOTSUPP, os.open, jobs, os.O_WRONLY | os.O_TMPFILE)
    want("a file as a directory", E.ENOTDIR, os.open, at(".t/x"), os.O_RDONLY)
    want("making in a file", E.ENOTDIR, os.open, at(".t/x"), os.O_WRONLY | os.O_CREAT)
    want("a slash behind a file", E.ENOTDIR, os.open, at(".t/"), os.O_RDONLY)
    want("a slash behind a new file", E.EISDIR, os.open, at(".new/"), os.O_WRONLY | os.O_CREAT)
    want("a missing directory", E.ENOENT, os.open, at(".no/x"), os.O_WRONLY | os.O_CREAT)
    want("making beside jobs", (E.EPERM, E.EACCES), os.open, root + "/x", os.O_WRONLY | os.O_CREAT)
    fd = os.open(at(".t"), os.O_RDONLY | os.O_NOFOLLOW)
    want("write by a reader", E.EBADF, os.write, fd, b"x")
    want("ftruncate by a reader", E.EINVAL, os.ftruncate, fd, 0)
    same("behind the end", (os.pread(fd, 10, 10), os.pread(fd, 10, 1 << 40)), (b"", b""))
    same("SEEK_END", os.lseek(fd, -3, os.SEEK_END), 7)
    same("from there", os.read(fd, 10), b"789")
    want("before the beginning", E.EINVAL, os.lseek, fd, -1, os.SEEK_SET)
    os.close(fd)
    fd = os.open(at(".t"), os.O_WRONLY)
    want("read by a writer", E.EBADF, os.read, fd, 1)
    os.close(fd)
    fd = os.open(at(".t"), os.O_WRONLY | os.O_APPEND)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b"ab")
    os.close(fd)
    same("O_APPEND", read(".t"), b"0123456789ab")
    fd = os.open(at(".t"), os.O_RDWR)
    os.pwrite(fd, b"XY", 3)
    same("what was written is read", os.pread(fd, 6, 0), b"012XY5")
    want("fsync", None, os.fsync, fd)
    want("fdatasync", None, os.fdatasync, fd)
    want("lock", None, fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    want("record lock", None, fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    want("fallocate", E.EOPNOTSUPP, fallocate, fd, 100)
    os.close(fd)
    os.close(os.open(at(".t"), os.O_WRONLY | os.O_TRUNC))
    same("O_TRUNC", os.stat(at(".t")).st_size, 0)
    fd = os.open(at(".t"), os.O_PATH)
    same("O_PATH", os.fstat(fd).st_ino, os.stat(at(".t")).st_ino)
    os.close(fd)
    fd = os.open(at(".t"), os.O_WRONLY)
    os.pwrite(fd, b"end", 10000)
    os.close(fd)
    same("a hole", read(".t"), bytes(10000) + b"end")
    want("truncate", None, os.truncate, at(".t"), 5)
    want("truncate to more", None, os.truncate, at(".t"), 9)
    same("truncated", read(".t"), bytes(9))
    want("truncate to less than nothing", E.EINVAL, os.truncate, at(".t"), -1)
    want("truncate to very much", E.EFBIG, os.truncate, at(".t"), 1 << 40)
    want("truncate of nothing", E.ENOENT, os.truncate, at(".no"), 0)
    want("truncate of a directory", E.EISDIR, os.truncate, jobs, 0)
    os.unlink(at(".t"))
    gone(".t")


def names():
    for name in (b".line\nbreak", b".\xff\xfe\x80", b". blank ", b".back\\slash", b".\x01", "." + "ä" * 100,
                 "." + "x" * (NAME_MAX - 1)):
        make(name, b"data")
        raw = name if isinstance(name, bytes) else name.encode()
        same(f"{raw[:20]!r} is listed", raw in os.listdir(os.fsencode(jobs)), True)
        same(f"{raw[:20]!r} is read", read(name), b"data")
        os.unlink(at(name))
        gone(raw[:20])
    want("a byte too long", E.ENAMETOOLONG, make, "." + "x" * NAME_MAX)
    want("255 bytes", E.ENAMETOOLONG, make, "." + "x" * 254)
    want("stat of 255 bytes", E.ENOENT, os.stat, at("." + "x" * 254))
    want("256 bytes", E.ENAMETOOLONG, make, "." + "x" * 255)
    want("stat of 256 bytes", E.ENAMETOOLONG, os.stat, at("." + "x" * 255))
    want("a path too long", E.ENAMETOOLONG, os.stat, at("./" * 2100))
    same("NAME_MAX", os.statvfs(jobs).f_namemax, NAME_MAX)
    want("an empty path", E.ENOENT, os.stat, "")
    same("dots", os.stat(at("../jobs/.")).st_ino, os.stat(jobs).st_ino)
    for end in (".proof", ".proof.bin", ".status", ".report", ".error", ".priority"):
        want(f"a name of the service, *{end}", E.EINVAL, make, "x" + end)


def kinds():
    make(".t")
    for what, new in ("", ".new"), (" of what is there", ".t"):
        code = E.EEXIST if what else E.EPERM
        want("mkdir" + what, code, os.mkdir, at(new))
        want("mkfifo" + what, code, os.mkfifo, at(new))
        want("symlink" + what, code, os.symlink, "x", at(new))
        want("link" + what, code, os.link, at(".t"), at(new))
        if os.getuid() == 0:
            want("mknod" + what, code, os.mknod, at(new), stat.S_IFCHR | 0o600, os.makedev(1, 3))
    want("mknod of a file", None, os.mknod, at(".node"), stat.S_IFREG | 0o600)
    os.unlink(at(".node"))
    want("rmdir of a file", E.ENOTDIR, os.rmdir, at(".t"))
    want("rmdir of jobs", (E.EPERM, E.EACCES), os.rmdir, jobs)
    want("unlink of a directory", E.EISDIR, os.unlink, jobs)
    want("unlink of nothing", E.ENOENT, os.unlink, at(".no"))
    want("unlink of the service's own", (E.EPERM, E.EACCES), os.unlink, root + "/status")
    want("setxattr", E.EOPNOTSUPP, os.setxattr, at(".t"), "user.x", b"y")
    want("getxattr", E.EOPNOTSUPP, os.getxattr, at(".t"), "user.x")
    want("removexattr", E.EOPNOTSUPP, os.removexattr, at(".t"), "user.x")
    want("readlink", E.EINVAL, os.readlink, at(".t"))
    os.unlink(at(".t"))


def renames():
    make(".a", b"a")
    make(".b", b"b")
    ino = os.stat(at(".a")).st_ino
    want("rename of nothing", E.ENOENT, os.rename, at(".no"), at(".c"))
    want("rename to itself", None, os.rename, at(".a"), at(".a"))
    want("NOREPLACE over another", E.EEXIST, renameat2, ".a", ".b", NOREPLACE)
    want("EXCHANGE", E.EINVAL, renameat2, ".a", ".b", EXCHANGE)
    want("WHITEOUT", (E.EINVAL, E.EPERM), renameat2, ".a", ".c", WHITEOUT)
    same("nothing has changed", (read(".a"), read(".b")), (b"a", b"b"))
    want("NOREPLACE", None, renameat2, ".a", ".c", NOREPLACE)
    gone(".a")
    want("over another", None, os.rename, at(".c"), at(".b"))
    gone(".c")
    same("it has replaced it", (read(".b"), os.stat(at(".b")).st_ino), (b"a", ino))
    want("over a directory", (E.EISDIR, E.ENOTEMPTY), os.rename, at(".b"), jobs)
    want("of a directory", (E.EPERM, E.EACCES, E.EXDEV), os.rename, jobs, root + "/other")
    want("out of jobs", (E.EPERM, E.EACCES), os.rename, at(".b"), root + "/x")
    want("to another filesystem", E.EXDEV, os.rename, at(".b"), "/proc/x")
    want("to a name of the service", E.EPERM, os.rename, at(".b"), at("x.proof"))
    want("to a name too long", E.ENAMETOOLONG, os.rename, at(".b"), at("." + "x" * NAME_MAX))
    want("of what is no C1 to a final name", E.EBADMSG, os.rename, at(".b"), at("final"))
    same("it keeps its name", read(".b"), b"a")
    same("the reason is where it was to go", comes("final.error"), True)
    os.unlink(at("final.error"))
    os.unlink(at(".b"))
    gone(".b.error")


def removed():
    fd = os.open(at(".t"), os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, b"data")
    ino = os.fstat(fd).st_ino
    os.unlink(at(".t"))
    gone(".t")
    want("writing to what was removed", E.ECANCELED, os.write, fd, b"more")
    make(".t", b"new")
    same("another file has the name", (read(".t"), os.stat(at(".t")).st_ino != ino), (b"new", True))
    want("the old one's attributes", E.ESTALE, os.fstat, fd)
    want("and its close", E.ECANCELED, os.close, fd)
    same("the other file stays", read(".t"), b"new")
    os.unlink(at(".t"))


def attributes():
    old = os.umask(0o027)
    os.close(os.open(at(".t"), os.O_WRONLY | os.O_CREAT, 0o666))
    os.umask(old)
    st = os.stat(at(".t"))
    same("umask", stat.S_IMODE(st.st_mode), 0o640)
    same("owner", (st.st_uid, st.st_nlink), (os.getuid(), 1))
    same("number", {e.name: e.inode() for e in os.scandir(jobs)}[".t"], st.st_ino)
    os.chmod(at(".t"), 0o4711)
    same("mode", stat.S_IMODE(os.stat(at(".t")).st_mode), 0o711)
    want("times are taken", None, os.utime, at(".t"), (1, 1))
    same("and are the service's own", os.stat(at(".t")).st_mtime > 1e9, True)
    want("chmod of the service's own", E.EPERM, os.chmod, root + "/status", 0o666)
    want("chmod of the directory", E.EPERM, os.chmod, jobs, 0o700)
    os.unlink(at(".t"))


def as_user(uid, gid, case):
    """In a child: what it finds wrong is said there."""
    global right, wrong
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        right = wrong = 0
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        try:
            case()
            os.write(w, f"{right} {wrong}".encode())
        except OSError as e:
            print(f"{case.__name__}: {e}")
        sys.stdout.flush()
        os._exit(0)
    os.close(w)
    counts = os.read(r, 100).split()
    os.waitpid(pid, 0)
    os.close(r)
    right += int(counts[0]) if counts else 0
    wrong += int(counts[1]) if counts else 1


def owner():
    make(".mine", b"data", 0o600)
    want("chmod of one's own", None, os.chmod, at(".mine"), 0o600)
    want("giving it away", E.EPERM, os.chown, at(".mine"), 1002, -1)
    want("to a foreign group", E.EPERM, os.chown, at(".mine"), -1, 1002)
    want("to one's own group", None, os.chown, at(".mine"), -1, os.getgid())
    want("its times", None, os.utime, at(".mine"), (1, 1))
    want("mknod of a device", E.EPERM, os.mknod, at(".dev"), stat.S_IFCHR | 0o600, os.makedev(1, 3))
    make(".shown", b"data", 0o644)


def other():
    for name in ".mine", ".shown":
        want(f"writing {name} of another", E.EACCES, os.open, at(name), os.O_WRONLY)
        want(f"truncating {name}", E.EACCES, os.truncate, at(name), 0)
        want(f"O_TRUNC of {name}", E.EACCES, os.open, at(name), os.O_RDONLY | os.O_TRUNC)
        want(f"removing {name}", E.EPERM, os.unlink, at(name))
        want(f"renaming {name}", E.EPERM, os.rename, at(name), at(".theirs"))
        want(f"chmod of {name}", E.EPERM, os.chmod, at(name), 0o777)
        want(f"chown of {name}", E.EPERM, os.chown, at(name), os.getuid(), -1)
        want(f"times of {name}", E.EPERM, os.utime, at(name), (1, 1))
        want(f"touching {name}", E.EACCES, os.utime, at(name))
    want("reading what is not shown", E.EACCES, os.open, at(".mine"), os.O_RDONLY)
    same("access", (os.access(at(".mine"), os.R_OK), os.access(at(".shown"), os.R_OK)), (False, True))
    same("reading what is shown", read(".shown"), b"data")
    make(".own", b"mine")
    want("renaming one's own over another's", E.EPERM, os.rename, at(".own"), at(".mine"))
    want("O_CREAT of another's", E.EACCES, os.open, at(".shown"), os.O_WRONLY | os.O_CREAT)
    os.unlink(at(".own"))


for case in opens, names, kinds, renames, removed, attributes:
    case()
if os.getuid() == 0:
    as_user(1001, 1001, owner)
    as_user(1002, 1002, other)
    want("root chowns", None, os.chown, at(".mine"), 1002, 1002)
    same("it is another's", os.stat(at(".mine")).st_uid, 1002)
    os.unlink(at(".mine"))
    os.unlink(at(".shown"))
same("nothing is left", [n for n in os.listdir(jobs)], [])
print(right, "right,", wrong, "wrong")
