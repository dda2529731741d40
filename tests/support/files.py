"""File calls as a program makes them, on a store mounted without a kernel.

`Files` is what the file-system suite knows: paths relative to the mount, OSError on refusal.
`VfsFiles` answers it on the bare vfs, doing what the kernel does between a system call and the
driver: walking paths, counting descriptors, keeping offsets. Another implementation answers it
with `os` on a real mount.
"""

# ruff: noqa: D102  (methods are the system calls of the same name)
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fuse_mount.vfs.interface import ROOT_INO, AttrChange, Node, Requester, Usage, now
from fuse_mount.vfs.opening import open_store
from fuse_mount.vfs.options import Options
from memstore.backend import Backend

ME = Requester(uid=0, gid=0, pid=1)


@dataclass(frozen=True, slots=True)
class Stat:
    """What stat(2) says of a file."""

    st_ino: int
    st_mode: int
    st_nlink: int
    st_size: int
    st_mtime_ns: int
    st_uid: int
    st_gid: int


class Files(Protocol):
    """System calls on one mount."""

    def open(self, path: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int: ...
    def dup(self, fd: int) -> int: ...
    def close(self, fd: int) -> None: ...
    def pread(self, fd: int, size: int, offset: int) -> bytes: ...
    def write(self, fd: int, data: bytes) -> int: ...
    def pwrite(self, fd: int, data: bytes, offset: int) -> int: ...
    def lseek(self, fd: int, offset: int) -> None: ...
    def fsync(self, fd: int) -> None: ...
    def ftruncate(self, fd: int, size: int) -> None: ...
    def truncate(self, path: str, size: int) -> None: ...
    def stat(self, path: str) -> Stat: ...
    def fstat(self, fd: int) -> Stat: ...
    def listdir(self, path: str = "") -> list[str]: ...
    def mkdir(self, path: str) -> None: ...
    def rmdir(self, path: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def rename(self, old: str, new: str, flags: int = 0) -> None: ...
    def chmod(self, path: str, mode: int) -> None: ...
    def chown(self, path: str, uid: int, gid: int) -> None: ...
    def utime(self, path: str, mtime_ns: int) -> None: ...
    def getxattr(self, path: str, name: str) -> bytes: ...
    def listxattr(self, path: str) -> list[str]: ...
    def symlink(self, target: str, path: str) -> None: ...
    def statfs(self) -> Usage: ...
    def unmount(self) -> list[str]:
        """Drain and go; the paths that could not be saved."""
        ...


MakeFiles = Callable[[Backend, str, Options], Files]
"""Mounts a store; the suite's fixture takes one by name."""


class Silence:
    """A kernel that has nothing to forget."""

    def inval_inode(self, ino: int) -> None:
        """Nothing."""

    def inval_entry(self, parent: int, name: str) -> None:
        """Nothing."""

    def deleted(self, parent: int, ino: int, name: str) -> None:
        """Nothing."""


class _Description:
    """An open file description: the driver's handle, the offset, how many descriptors share it."""

    def __init__(self, handle: int, ino: int, flags: int) -> None:
        self.handle, self.ino, self.flags = handle, ino, flags
        self.offset, self.count = 0, 1


class VfsFiles:
    """System calls on the bare vfs."""

    def __init__(self, backend: Backend, store_id: str, options: Options) -> None:
        self.vfs = open_store(backend, store_id, options, Silence())
        self.vfs.start()
        self._descriptors: dict[int, _Description] = {}
        self._last = 2

    # Walking

    def _walk(self, path: str) -> Node:
        node: Node = now(self.vfs.getattr(ROOT_INO))
        for name in path.split("/") if path else []:
            self._directory(node)
            node = now(self.vfs.lookup(node.ino, name))
        return node

    def _directory(self, node: Node) -> None:
        if not stat.S_ISDIR(node.mode):
            raise OSError(errno.ENOTDIR, "not a directory")

    def _parent(self, path: str) -> tuple[int, str]:
        above, _, name = path.rpartition("/")
        node = self._walk(above)
        self._directory(node)
        return node.ino, name

    # Descriptors

    def open(self, path: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
        """open(2)."""
        parent, name = self._parent(path)
        try:
            node = now(self.vfs.lookup(parent, name))
        except OSError as error:
            if error.errno != errno.ENOENT or not flags & os.O_CREAT:
                raise
            node, opened = now(self.vfs.create(parent, name, mode, flags, ME))
        else:
            if flags & os.O_CREAT and flags & os.O_EXCL:
                raise OSError(errno.EEXIST, path)
            if stat.S_ISDIR(node.mode) and flags & os.O_ACCMODE != os.O_RDONLY:
                raise OSError(errno.EISDIR, path)
            opened = now(self.vfs.open(node.ino, flags, ME))
        self._last += 1
        self._descriptors[self._last] = _Description(opened.handle, node.ino, flags)
        return self._last

    def dup(self, fd: int) -> int:
        """dup(2)."""
        self._last += 1
        self._descriptors[self._last] = self._descriptors[fd]
        self._descriptors[fd].count += 1
        return self._last

    def close(self, fd: int) -> None:
        """close(2): a flush each, and a release at the last, whose refusal nobody hears."""
        description = self._descriptors.pop(fd)
        description.count -= 1
        try:
            rest = self.vfs.flush(description.handle)
            if rest is not None:
                rest.run()
        finally:
            if not description.count:
                last = self.vfs.release(description.handle)
                if last is not None:
                    last.run()

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """pread(2)."""
        return bytes(now(self.vfs.read(self._descriptors[fd].handle, offset, size)))

    def write(self, fd: int, data: bytes) -> int:
        """write(2)."""
        description = self._descriptors[fd]
        written = now(self.vfs.write(description.handle, description.offset, data))
        description.offset += written
        return written

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """pwrite(2)."""
        return now(self.vfs.write(self._descriptors[fd].handle, offset, data))

    def lseek(self, fd: int, offset: int) -> None:
        """lseek(2), from the start."""
        self._descriptors[fd].offset = offset

    def fsync(self, fd: int) -> None:
        """fsync(2)."""
        rest = self.vfs.fsync(self._descriptors[fd].handle)
        if rest is not None:
            rest.run()

    def ftruncate(self, fd: int, size: int) -> None:
        """ftruncate(2)."""
        description = self._descriptors[fd]
        change = AttrChange(size=size, handle=description.handle)
        now(self.vfs.setattr(description.ino, change, ME))

    # Paths

    def truncate(self, path: str, size: int) -> None:
        """truncate(2)."""
        self._change(path, AttrChange(size=size))

    def _change(self, path: str, change: AttrChange) -> None:
        now(self.vfs.setattr(self._walk(path).ino, change, ME))

    def stat(self, path: str) -> Stat:
        """stat(2)."""
        return _stat(self._walk(path))

    def fstat(self, fd: int) -> Stat:
        """fstat(2)."""
        return _stat(now(self.vfs.getattr(self._descriptors[fd].ino)))

    def listdir(self, path: str = "") -> list[str]:
        """Names in a directory but `.` and `..`."""
        node = self._walk(path)
        self._directory(node)
        handle = self.vfs.opendir(node.ino)
        names, cookie = [], 0
        while True:
            batch = [entry for entry, _ in zip(self.vfs.readdir(handle, cookie), range(50))]  # noqa: B905
            if not batch:
                break
            names += [name for name, _, _ in batch]
            cookie = batch[-1][2]
        self.vfs.releasedir(handle)
        assert names[:2] == [".", ".."]
        return names[2:]

    def mkdir(self, path: str) -> None:
        """mkdir(2)."""
        parent, name = self._parent(path)
        self.vfs.mkdir(parent, name, 0o755, ME)

    def rmdir(self, path: str) -> None:
        """rmdir(2)."""
        parent, name = self._parent(path)
        self.vfs.rmdir(parent, name)

    def unlink(self, path: str) -> None:
        """unlink(2)."""
        parent, name = self._parent(path)
        rest = self.vfs.unlink(parent, name)
        if rest is not None:
            rest.run()

    def rename(self, old: str, new: str, flags: int = 0) -> None:
        """renameat2(2)."""
        parent, name = self._parent(old)
        above, new_name = self._parent(new)
        rest = self.vfs.rename(parent, name, above, new_name, flags)
        if rest is not None:
            rest.run()

    def chmod(self, path: str, mode: int) -> None:
        """chmod(2)."""
        self._change(path, AttrChange(mode=mode))

    def chown(self, path: str, uid: int, gid: int) -> None:
        """chown(2)."""
        self._change(path, AttrChange(uid=uid, gid=gid))

    def utime(self, path: str, mtime_ns: int) -> None:
        """utimensat(2)."""
        self._change(path, AttrChange(mtime_ns=mtime_ns, atime_ns=mtime_ns))

    def getxattr(self, path: str, name: str) -> bytes:
        """getxattr(2)."""
        return now(self.vfs.getxattr(self._walk(path).ino, name))

    def listxattr(self, path: str) -> list[str]:
        """listxattr(2)."""
        return self.vfs.listxattr(self._walk(path).ino)

    def symlink(self, target: str, path: str) -> None:
        """symlink(2)."""
        parent, name = self._parent(path)
        raise OSError(self.vfs.refuse_special(parent, name), path)

    def statfs(self) -> Usage:
        """statfs(2)."""
        return now(self.vfs.statfs())

    def unmount(self) -> list[str]:
        """Drain and go."""
        failed = self.vfs.drain(20.0)
        self.vfs.stop()
        return failed


def _stat(node: Node) -> Stat:
    return Stat(node.st_ino, node.mode, node.nlink, node.size, node.mtime_ns, node.uid, node.gid)


# What programs do with them


def read(files: Files, path: str) -> bytes:
    """`cat path`."""
    fd = files.open(path)
    try:
        parts, at = [], 0
        while part := files.pread(fd, 65536, at):
            parts.append(part)
            at += len(part)
        return b"".join(parts)
    finally:
        files.close(fd)


def save(files: Files, path: str, text: str | bytes) -> None:
    """`printf text > path`: truncate, write, close."""
    _put(files, path, text, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def append(files: Files, path: str, text: str | bytes) -> None:
    """`printf text >> path`."""
    _put(files, path, text, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _put(files: Files, path: str, text: str | bytes, flags: int) -> None:
    fd = files.open(path, flags)
    try:
        files.write(fd, text.encode() if isinstance(text, str) else text)
    finally:
        files.close(fd)


def refused(call: Callable[..., Any], *arguments: Any) -> str:
    """The name of the errno a call is refused with."""
    try:
        call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "nothing"
