"""The messages of `/dev/fuse`: layouts, opcodes and flags, named as in `linux/fuse.h`.

Every message is in the machine's own byte order and has no implicit padding, hence the `=` of
each layout. A request is `fuse_in_header`, a fixed part, then names (NUL ended) or data; a reply
is `fuse_out_header` and a payload. Reply layouts here include the header, so that one `pack`
makes the whole message.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

MAJOR = 7
"""FUSE_KERNEL_VERSION."""
MINOR = 38
"""FUSE_KERNEL_MINOR_VERSION this side speaks; the kernel's own is used when it is lower."""
MINOR_OLDEST = 19
"""The oldest minor spoken (Linux 3.5): earlier ones lack messages the mount needs."""
ROOT_ID = 1
"""FUSE_ROOT_ID."""


class Opcode(IntEnum):
    """enum fuse_opcode."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    SETXATTR = 21
    GETXATTR = 22
    LISTXATTR = 23
    REMOVEXATTR = 24
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    ACCESS = 34
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    IOCTL = 39
    BATCH_FORGET = 42
    FALLOCATE = 43
    READDIRPLUS = 44
    RENAME2 = 45
    SYNCFS = 50


OPCODES = 64
"""Size of a dispatch table; a higher opcode is unknown, and answered with ENOSYS."""

# Notification codes (enum fuse_notify_code): unsolicited messages, `unique` 0, `error` the code.
NOTIFY_INVAL_INODE, NOTIFY_INVAL_ENTRY, NOTIFY_DELETE, NOTIFY_RESEND = 2, 3, 6, 7
EXPIRE_ONLY = 1 << 0
"""FUSE_EXPIRE_ONLY: a flag of NOTIFY_INVAL_ENTRY."""
RESENT = 1 << 63
"""FUSE_UNIQUE_RESEND: in `unique` of a request that is sent again."""

# INIT flags.
ASYNC_READ = 1 << 0
ATOMIC_O_TRUNC = 1 << 3
BIG_WRITES = 1 << 5
AUTO_INVAL_DATA = 1 << 12
DO_READDIRPLUS = 1 << 13
WRITEBACK_CACHE = 1 << 16
NO_OPEN_SUPPORT = 1 << 17
PARALLEL_DIROPS = 1 << 18
MAX_PAGES = 1 << 22
NO_OPENDIR_SUPPORT = 1 << 24
HANDLE_KILLPRIV_V2 = 1 << 28
INIT_EXT = 1 << 30

# Flags of an OPEN reply (FOPEN_*).
FOPEN_KEEP_CACHE = 1 << 1
FOPEN_CACHE_DIR = 1 << 3
FOPEN_NOFLUSH = 1 << 5

# fuse_setattr_in.valid (FATTR_*).
FATTR_MODE, FATTR_UID, FATTR_GID, FATTR_SIZE = 1, 2, 4, 8
FATTR_ATIME, FATTR_MTIME, FATTR_FH = 16, 32, 64
FATTR_ATIME_NOW, FATTR_MTIME_NOW = 128, 256

# Requests. IN_HEADER: len, opcode, unique, nodeid, uid, gid, pid, total_extlen, padding.
IN_HEADER = Struct("=IIQQIIIHH")
IN_HEADER_SIZE = IN_HEADER.size
INIT_IN = Struct("=IIII")  # major, minor, max_readahead, flags (flags2 follows with INIT_EXT)
FALLOCATE_IN = Struct("=QQQII")  # fh, offset, length, mode, padding
FORGET_IN = Struct("=Q")  # nlookup
BATCH_FORGET_IN = Struct("=II")  # count, dummy
FORGET_ONE = Struct("=QQ")  # nodeid, nlookup
SETATTR_IN = Struct("=IIQQQQQQIIIIIIII")
# valid, pad, fh, size, lock_owner, atime, mtime, ctime, *nsec x3, mode, unused, uid, gid, unused
MKNOD_IN = Struct("=IIII")  # mode, rdev, umask, padding
MKDIR_IN = Struct("=II")  # mode, umask
RENAME_IN = Struct("=Q")  # newdir
RENAME2_IN = Struct("=QII")  # newdir, flags, padding
OPEN_IN = Struct("=II")  # flags, open_flags
CREATE_IN = Struct("=IIII")  # flags, mode, umask, open_flags
READ_IN = Struct("=QQI")  # fh, offset, size (read_flags, lock_owner, flags follow)
WRITE_IN = Struct("=QQIIQII")  # fh, offset, size, write_flags, lock_owner, flags, padding
HANDLE_IN = Struct("=Q")  # fh: the start of releasedir, flush and fsync
RELEASE_IN = Struct("=QI")  # fh, flags (release_flags, lock_owner follow)
GETXATTR_IN = Struct("=II")  # size, padding
INTERRUPT_IN = Struct("=Q")  # unique of the request that is interrupted

# Replies. OUT_HEADER: len, error, unique.
OUT_HEADER = Struct("=IiQ")
OUT_HEADER_SIZE = OUT_HEADER.size
_ATTR = "QQQQQQIIIIIIIIII"
# ino, size, blocks, atime, mtime, ctime, *nsec x3, mode, nlink, uid, gid, rdev, blksize, flags
_ENTRY = "QQQQII" + _ATTR
# nodeid, generation, entry_valid, attr_valid, entry_valid_nsec, attr_valid_nsec, attr
ENTRY_REPLY = Struct("=IiQ" + _ENTRY)
ATTR_REPLY = Struct("=IiQQII" + _ATTR)  # attr_valid, attr_valid_nsec, dummy, attr
OPEN_REPLY = Struct("=IiQQII")  # fh, open_flags, padding
CREATE_REPLY = Struct("=IiQ" + _ENTRY + "QII")
WRITE_CACHE = 1
"""A write flag: from the page cache, by a handle the kernel guessed (shared mappings)."""
WRITE_REPLY = Struct("=IiQII")  # size, padding
STATFS_REPLY = Struct("=IiQQQQQQIIII24x")
# blocks, bfree, bavail, files, ffree, bsize, namelen, frsize, padding, spare[6]
GETXATTR_REPLY = Struct("=IiQII")  # size, padding
INIT_OUT = Struct("=IIIIHHIIHHI28x")
# major, minor, max_readahead, flags, max_background, congestion_threshold, max_write, time_gran,
# max_pages, map_alignment, flags2
INIT_OUT_SIZE_BEFORE_23 = 24
"""FUSE_COMPAT_22_INIT_OUT_SIZE: what kernels before protocol 7.23 take."""
DIRENT = Struct("=QQII")  # ino, off, namelen, type; the name follows
DIRENTPLUS = Struct("=" + _ENTRY + "QQII")
NAME_PADDING = tuple(bytes(-length % 8) for length in range(8))
"""FUSE_DIRENT_ALIGN: the zero bytes after a name, by its length modulo 8."""

# Notifications.
INVAL_INODE = Struct("=IiQQqq")  # header, ino, off, len
INVAL_ENTRY = Struct("=IiQQII")  # header, parent, namelen, flags; name and NUL follow
DELETE = Struct("=IiQQQII")  # header, parent, child, namelen, padding; name and NUL follow


def error_reply(unique: int, errno: int) -> bytes:
    """A refusal; `errno` 0 is plain success without a payload."""
    return OUT_HEADER.pack(OUT_HEADER_SIZE, -errno, unique)


def data_reply(unique: int, data: bytes | memoryview) -> bytes:
    """Success with a payload of bytes."""
    return OUT_HEADER.pack(OUT_HEADER_SIZE + len(data), 0, unique) + bytes(data)
