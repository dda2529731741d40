"""Answers of the file system, packed into replies."""

from __future__ import annotations

import errno
from collections.abc import Iterable

from fuse_mount.kernel import messages
from fuse_mount.kernel.workers import NO_TIMEOUTS, Timeouts
from fuse_mount.vfs.interface import Filesystem, Node, OpenFile, Usage

_ENTRY = messages.ENTRY_REPLY
_ATTR = messages.ATTR_REPLY
_OPEN = messages.OPEN_REPLY
_CREATE = messages.CREATE_REPLY
_WRITE = messages.WRITE_REPLY
_DIRENT = messages.DIRENT
_DIRENTPLUS = messages.DIRENTPLUS
_OUT = messages.OUT_HEADER
_PADDING = messages.NAME_PADDING
_SECOND = 1_000_000_000
BLOCK_SIZE = 4096
"""st_blksize. A page: larger values confuse kernels that derive the inode's block bits from it."""
_DOT_ENTRY = bytes(_ENTRY.size - _OUT.size)


def attributes(node: Node) -> tuple[int, ...]:
    """`fuse_attr` of a node."""
    size = node.size
    atime, atime_ns = divmod(node.atime_ns, _SECOND)
    mtime, mtime_ns = divmod(node.mtime_ns, _SECOND)
    ctime, ctime_ns = divmod(node.ctime_ns, _SECOND)
    return (
        node.st_ino,
        size,
        (size + 511) >> 9,
        atime & _U64,
        mtime & _U64,
        ctime & _U64,
        atime_ns,
        mtime_ns,
        ctime_ns,
        node.mode,
        node.nlink,
        node.uid,
        node.gid,
        0,
        BLOCK_SIZE,
        0,
    )


_U64 = 0xFFFF_FFFF_FFFF_FFFF
"""Times before 1970 travel as two's complement."""


def entry(unique: int, node: Node, valid: Timeouts) -> bytes:
    """`fuse_entry_out`: LOOKUP, MKDIR, MKNOD."""
    entry_s, entry_ns, attr_s, attr_ns, _, _ = valid
    return _ENTRY.pack(
        _ENTRY.size,
        0,
        unique,
        node.ino,
        0,
        entry_s,
        attr_s,
        entry_ns,
        attr_ns,
        *attributes(node),
    )


def missing(unique: int, code: int, valid: Timeouts) -> bytes:
    """A LOOKUP's refusal; ENOENT as node 0, so that the kernel remembers the missing name."""
    if code != errno.ENOENT or valid is NO_TIMEOUTS:
        return messages.error_reply(unique, code)
    return _ENTRY.pack(_ENTRY.size, 0, unique, 0, 0, valid[4], 0, valid[5], 0, *_NO_ATTRIBUTES)


_NO_ATTRIBUTES = (0,) * 16


def attr(unique: int, node: Node, valid: Timeouts) -> bytes:
    """`fuse_attr_out`: GETATTR, SETATTR."""
    return _ATTR.pack(_ATTR.size, 0, unique, valid[2], valid[3], 0, *attributes(node))


_OPEN_FLAGS = {
    (keep, noflush): (messages.FOPEN_KEEP_CACHE if keep else 0)
    | (messages.FOPEN_NOFLUSH if noflush else 0)
    for keep in (False, True)
    for noflush in (False, True)
}
"""FOPEN_* by `keep_cache` and `noflush` of an open."""


def opened(unique: int, answer: OpenFile, _valid: Timeouts) -> bytes:
    """`fuse_open_out`: OPEN."""
    handle, keep_cache, noflush = answer
    return _OPEN.pack(_OPEN.size, 0, unique, handle, _OPEN_FLAGS[keep_cache, noflush], 0)


def created(unique: int, answer: tuple[Node, OpenFile], valid: Timeouts) -> bytes:
    """`fuse_entry_out` and `fuse_open_out`: CREATE."""
    node, (handle, keep_cache, noflush) = answer
    entry_s, entry_ns, attr_s, attr_ns, _, _ = valid
    return _CREATE.pack(
        _CREATE.size,
        0,
        unique,
        node.ino,
        0,
        entry_s,
        attr_s,
        entry_ns,
        attr_ns,
        *attributes(node),
        handle,
        _OPEN_FLAGS[keep_cache, noflush],
        0,
    )


def created_once(unique: int, answer: tuple[Node, OpenFile], _valid: Timeouts) -> bytes:
    """The same, to be used once."""
    return created(unique, answer, NO_TIMEOUTS)


def data(unique: int, answer: bytes | memoryview, _valid: Timeouts) -> bytes:
    """The bytes themselves: READ."""
    return b"".join((_OUT.pack(_OUT.size + len(answer), 0, unique), answer))


def written(unique: int, count: int, _valid: Timeouts) -> bytes:
    """`fuse_write_out`: WRITE."""
    return _WRITE.pack(_WRITE.size, 0, unique, count, 0)


def done(unique: int, _answer: object, _valid: Timeouts) -> bytes:
    """Plain success."""
    return _OUT.pack(_OUT.size, 0, unique)


def usage(unique: int, answer: Usage, _valid: Timeouts) -> bytes:
    """`fuse_kstatfs`: STATFS."""
    layout = messages.STATFS_REPLY
    return layout.pack(
        layout.size,
        0,
        unique,
        answer.blocks,
        answer.blocks_free,
        answer.blocks_free,
        answer.files,
        answer.files_free,
        answer.block_size,
        answer.name_max,
        answer.block_size,
        0,
    )


def xattr(unique: int, value: bytes, room: int) -> bytes:
    """GETXATTR, LISTXATTR: the length when no room was offered, ERANGE when too little."""
    if room == 0:
        layout = messages.GETXATTR_REPLY
        return layout.pack(layout.size, 0, unique, len(value), 0)
    if len(value) > room:
        return messages.error_reply(unique, errno.ERANGE)
    return data(unique, value, NO_TIMEOUTS)


def listing(unique: int, entries: Iterable[tuple[str, Node, int]], room: int) -> bytes:
    """READDIR: as many `fuse_dirent` as fit."""
    parts, used = [b""], 0
    for name, node, cookie in entries:
        raw = name.encode("utf-8", "surrogateescape")
        padding = _PADDING[len(raw) & 7]
        used += _DIRENT.size + len(raw) + len(padding)
        if used > room:
            break
        parts += _DIRENT.pack(node.st_ino, cookie, len(raw), node.mode >> 12), raw, padding
    return data(unique, b"".join(parts), NO_TIMEOUTS)


def listing_plus(
    unique: int,
    entries: Iterable[tuple[str, Node, int]],
    room: int,
    fs: Filesystem,
    valid: Timeouts,
    ascii_only: bool,
) -> bytes:
    """READDIRPLUS: as many `fuse_direntplus` as fit; each but `.` and `..` is looked up.

    Those two carry node 0, which tells the kernel to take no entry from them. With `ascii_only`
    the kernel may not remember other names.
    """
    entry_s, entry_ns, attr_s, attr_ns, _, _ = valid
    parts, used = [b""], 0
    for name, node, cookie in entries:
        raw = name.encode("utf-8", "surrogateescape")
        padding = _PADDING[len(raw) & 7]
        used += _DIRENTPLUS.size + len(raw) + len(padding)
        if used > room:
            break
        kind = node.mode >> 12
        if name in _DOTS:
            head = _DOT_ENTRY + _DIRENT.pack(node.st_ino, cookie, len(raw), kind)
        else:
            ino, once = node.ino, ascii_only and not name.isascii()
            head = _DIRENTPLUS.pack(
                ino,
                0,
                0 if once else entry_s,
                attr_s,
                0 if once else entry_ns,
                attr_ns,
                *attributes(node),
                node.st_ino,
                cookie,
                len(raw),
                kind,
            )
            fs.looked_up(ino)
        parts += head, raw, padding
    return data(unique, b"".join(parts), NO_TIMEOUTS)


_DOTS = (".", "..")
