"""Paths in, inodes out: the operations of libfuse's high-level interface.

Each walks its path through the file system and holds the lookup count of what it found while it
answers, so that the node stays; names are never remembered.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fuse_mount.vfs.interface import ROOT_INO, AttrChange, Filesystem, Later, Node, Requester, now

log = logging.getLogger("memstore.mount")

_REPEATED_S = 1.0
"""How soon the kernel's own repetition of a rename follows."""
_REPEATED_MAX = 64

Mark = tuple[int, int]
NOW: Mark = (0, (1 << 30) - 1)
OMIT: Mark = (0, (1 << 30) - 2)
"""UTIME_NOW and UTIME_OMIT of <sys/stat.h>, as Linux has them; macOS sends times only."""


def mark(spec: Any) -> Mark:
    """A `struct timespec` as utimensat(2) takes it."""
    special = spec.tv_nsec in (NOW[1], OMIT[1])
    return (0 if special else spec.tv_sec, spec.tv_nsec)


def _instant(mark: Mark) -> int | None:
    if mark == OMIT:
        return None
    return time.time_ns() if mark == NOW else mark[0] * 1_000_000_000 + mark[1]


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _answer(method: _Method) -> _Method:
    """Refusals leave with their errno; anything else is a bug, logged and answered EIO."""

    @functools.wraps(method)
    def guarded(*arguments: Any) -> Any:
        try:
            return method(*arguments)
        except OSError as error:
            if error.errno:
                raise
            raise OSError(errno.EIO, os.strerror(errno.EIO)) from error
        except Exception as error:
            log.exception("%s failed unexpectedly", method.__name__)
            raise OSError(errno.EIO, os.strerror(errno.EIO)) from error

    return guarded  # type: ignore[return-value]


class PortableOperations:
    """One method a request of libfuse's high-level interface; called from its threads."""

    use_ns = True
    flag_nullpath_ok = True
    flag_nopath = True
    flag_utime_omit_ok = True

    def __init__(self, fs: Filesystem, binding: Any, connected: Callable[[], None]) -> None:
        self._fs = fs
        self._binding = binding
        self._connected = connected
        self._inos: dict[int, int] = {}
        self._lost_renames: dict[tuple[int, str, str], float] = {}

    # From paths to inodes

    @contextmanager
    def _at(self, path: str) -> Iterator[int]:
        """The inode at a path, its lookup count held meanwhile."""
        fs, held = self._fs, ROOT_INO
        try:
            for name in filter(None, path.split("/")):
                parent, held = held, now(fs.lookup(held, name)).ino
                self._give_back(parent)
            yield held
        finally:
            self._give_back(held)

    @contextmanager
    def _entry(self, path: str) -> Iterator[tuple[int, str]]:
        """The parent's inode and the last name of a path."""
        where, _, name = path.rpartition("/")
        with self._at(where) as parent:
            yield parent, name

    def _give_back(self, ino: int) -> None:
        if ino != ROOT_INO:
            self._fs.forget(ino, 1)

    @contextmanager
    def _of(self, path: str | None, info: Any = None) -> Iterator[int]:
        """The inode of an open file when there is one, else of a path."""
        if info is not None and info.fh in self._inos:
            yield self._inos[info.fh]
        elif path is None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        else:
            with self._at(path) as ino:
                yield ino

    def _who(self) -> Requester:
        return Requester(*self._binding.fuse_get_context())

    # Life

    @_answer
    def init(self, _path: str) -> int:
        """The kernel has connected."""
        self._connected()
        return 0

    # Attributes

    @_answer
    def getattr(self, path: str | None, info: Any = None) -> dict[str, int]:
        """stat(2), and every lookup of a name."""
        with self._of(path, info) as ino:
            return _attributes(now(self._fs.getattr(ino)))

    def _change(self, path: str | None, change: AttrChange, info: Any = None) -> int:
        with self._of(path, info) as ino:
            now(self._fs.setattr(ino, change, self._who()))
        return 0

    @_answer
    def chmod(self, path: str | None, mode: int, info: Any = None) -> int:
        """chmod(2); fchmod(2) with the open file, where libfuse passes it."""
        return self._change(path, AttrChange(mode=mode), info)

    @_answer
    def chown(self, path: str | None, uid: int, gid: int, info: Any = None) -> int:
        """chown(2); -1 leaves one as it is."""
        unsigned = (1 << 32) - 1
        owner, group = (None if who in (-1, unsigned) else who for who in (uid, gid))
        return self._change(path, AttrChange(uid=owner, gid=group), info)

    @_answer
    def set_times(self, path: str | None, times: tuple[Mark, Mark], info: Any = None) -> int:
        """utimensat(2)."""
        atime, mtime = _instant(times[0]), _instant(times[1])
        return self._change(path, AttrChange(atime_ns=atime, mtime_ns=mtime), info)

    utimens = set_times

    @_answer
    def truncate(self, path: str | None, size: int, info: Any = None) -> int:
        """truncate(2), and ftruncate(2) with the open file."""
        handle = None if info is None else info.fh
        return self._change(path, AttrChange(size=size, handle=handle), info)

    # Texts

    @_answer
    def open(self, path: str, info: Any) -> int:
        """open(2); O_TRUNC is among the flags.

        A name the kernel still believed in is ESTALE, not ENOENT: it then looks again, and an
        open with O_CREAT makes the file.
        """
        try:
            with self._at(path) as ino:
                opened = now(self._fs.open(ino, info.flags, self._who()))
                self._opened(info, opened.handle, ino)
        except FileNotFoundError:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE)) from None
        return 0

    @_answer
    def create(self, path: str, mode: int, info: Any) -> int:
        """open(2) of a name that is free."""
        with self._entry(path) as (parent, name):
            made = now(self._fs.create(parent, name, mode, info.flags, self._who()))
            node, opened = made
            self._opened(info, opened.handle, node.ino)
            self._give_back(node.ino)
        return 0

    def _opened(self, info: Any, handle: int, ino: int) -> None:
        self._inos[handle] = ino
        info.fh = handle
        info.direct_io = 1

    @_answer
    def read(self, _path: str | None, size: int, offset: int, info: Any) -> bytes:
        """read(2)."""
        answer = self._fs.read(info.fh, offset, size)
        return answer.run() if isinstance(answer, Later) else bytes(answer)

    @_answer
    def write(self, _path: str | None, data: bytes, offset: int, info: Any) -> int:
        """write(2)."""
        return now(self._fs.write(info.fh, offset, data))

    @_answer
    def flush(self, _path: str | None, info: Any) -> int:
        """close(2) of one descriptor."""
        now(self._fs.flush(info.fh))
        return 0

    @_answer
    def fsync(self, _path: str | None, _datasync: int, info: Any) -> int:
        """fsync(2), fdatasync(2)."""
        now(self._fs.fsync(info.fh))
        return 0

    @_answer
    def release(self, _path: str | None, info: Any) -> int:
        """The last descriptor is closed."""
        self._inos.pop(info.fh, None)
        now(self._fs.release(info.fh))
        return 0

    # Directories

    @_answer
    def opendir(self, path: str) -> int:
        """opendir(3)."""
        with self._at(path) as ino:
            return self._fs.opendir(ino)

    @_answer
    def readdir(self, _path: str | None, handle: int) -> list[tuple[str, dict[str, int], int]]:
        """The whole listing at once; libfuse hands it out in parts."""
        return [
            (name, {"st_mode": node.mode, "st_ino": node.st_ino}, 0)
            for name, node, _ in self._fs.readdir(handle, 0)
        ]

    @_answer
    def releasedir(self, _path: str | None, handle: int) -> int:
        """closedir(3)."""
        self._fs.releasedir(handle)
        return 0

    @_answer
    def mkdir(self, path: str, mode: int) -> int:
        """mkdir(2)."""
        with self._entry(path) as (parent, name):
            self._give_back(self._fs.mkdir(parent, name, mode, self._who()).ino)
        return 0

    @_answer
    def rmdir(self, path: str) -> int:
        """rmdir(2)."""
        with self._entry(path) as (parent, name):
            self._fs.rmdir(parent, name)
        return 0

    # Names

    @_answer
    def mknod(self, path: str, mode: int, _device: int) -> int:
        """mknod(2): a regular file; anything else is refused."""
        with self._entry(path) as (parent, name):
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                self._refuse(parent, name)
            made = now(self._fs.create(parent, name, mode, os.O_WRONLY | os.O_EXCL, self._who()))
            self._give_back(made[0].ino)
            now(self._fs.release(made[1].handle))
        return 0

    @_answer
    def symlink(self, path: str, _target: str) -> int:
        """symlink(2): refused."""
        with self._entry(path) as (parent, name):
            self._refuse(parent, name)
        return 0

    @_answer
    def link(self, path: str, _existing: str) -> int:
        """link(2): refused."""
        return int(self.symlink(path, ""))

    def _refuse(self, parent: int, name: str) -> None:
        code = self._fs.refuse_special(parent, name)
        raise OSError(code, os.strerror(code))

    @_answer
    def unlink(self, path: str) -> int:
        """unlink(2)."""
        with self._entry(path) as (parent, name):
            now(self._fs.unlink(parent, name))
        return 0

    @_answer
    def rename(self, old: str, new: str, flags: int = 0) -> int:
        """rename(2).

        ESTALE tells a writer that it lost. Linux takes it for a name to be looked up again and
        repeats the rename once (`retry_estale`, fs/namei.c): that one does nothing, and says so.
        """
        key = (self._who().pid, old, new)
        if time.monotonic() - self._lost_renames.pop(key, -_REPEATED_S) < _REPEATED_S:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        try:
            with self._entry(old) as (parent, name), self._entry(new) as (new_parent, new_name):
                now(self._fs.rename(parent, name, new_parent, new_name, flags))
        except OSError as error:
            if error.errno == errno.ESTALE and sys.platform.startswith("linux"):
                if len(self._lost_renames) >= _REPEATED_MAX:
                    self._lost_renames.clear()
                self._lost_renames[key] = time.monotonic()
            raise
        return 0

    # Extended attributes and the whole

    @_answer
    def getxattr(self, path: str, name: str, _position: int = 0) -> bytes:
        """getxattr(2)."""
        if not name.startswith("user."):
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        with self._at(path) as ino:
            return now(self._fs.getxattr(ino, name))

    @_answer
    def listxattr(self, path: str) -> list[str]:
        """listxattr(2)."""
        with self._at(path) as ino:
            return self._fs.listxattr(ino)

    @_answer
    def statfs(self, _path: str) -> dict[str, int]:
        """statvfs(3)."""
        usage = now(self._fs.statfs())
        return {
            "f_bsize": usage.block_size,
            "f_frsize": usage.block_size,
            "f_blocks": usage.blocks,
            "f_bfree": usage.blocks_free,
            "f_bavail": usage.blocks_free,
            "f_files": usage.files,
            "f_ffree": usage.files_free,
            "f_favail": usage.files_free,
            "f_namemax": usage.name_max,
        }


class CallableOperations(PortableOperations):
    """For fusepy, which asks by name."""

    def __call__(self, operation: str, *arguments: Any) -> Any:
        """The answer of that operation."""
        return getattr(self, operation)(*arguments)


def _attributes(node: Node) -> dict[str, int]:
    return {
        "st_ino": node.st_ino,
        "st_mode": node.mode,
        "st_nlink": node.nlink,
        "st_uid": node.uid,
        "st_gid": node.gid,
        "st_size": node.size,
        "st_blksize": 4096,
        "st_blocks": (node.size + 511) // 512,
        "st_atime": node.atime_ns,
        "st_mtime": node.mtime_ns,
        "st_ctime": node.ctime_ns,
    }
