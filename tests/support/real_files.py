"""System calls on a real mount, served from a thread of this process, by each binding."""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from fuse_mount.kernel import mounting
from fuse_mount.kernel.notify import KernelNotifier
from fuse_mount.kernel.session import Session, handshake
from fuse_mount.portable import PortableOptions, serve_portable
from fuse_mount.vfs.interface import Filesystem, Usage
from fuse_mount.vfs.opening import open_store
from fuse_mount.vfs.options import Options
from memstore.backend import Backend
from tests.support.files import Silence, Stat
from tests.support.requirements import need

_libc = ctypes.CDLL(None, use_errno=True)
START_SECONDS = 20.0


class RealFiles:
    """Files below a mount point, by the calls a program makes. A binding says how it is served."""

    def __init__(self, backend: Backend, store_id: str, options: Options) -> None:
        need(os.geteuid() == 0 and Path(mounting.DEVICE).exists(), "root and /dev/fuse")
        self._folder = tempfile.TemporaryDirectory(prefix="memstore-mount-")
        os.chmod(self._folder.name, 0o755)
        self.root = Path(self._folder.name) / "notes"
        self.root.mkdir()
        self._ready = threading.Event()
        self._descriptors: set[int] = set()
        self._thread = threading.Thread(target=self._serve, name="mount", daemon=True)
        self.vfs = self._make_vfs(backend, store_id, options)
        self.vfs.start()
        self._thread.start()
        assert self._ready.wait(START_SECONDS), "the mount did not come up"

    def _make_vfs(self, backend: Backend, store_id: str, options: Options) -> Filesystem:
        raise NotImplementedError

    def _serve(self) -> None:
        raise NotImplementedError

    def unmount(self) -> list[str]:
        """Drain and go, as the driver does on SIGTERM; what is still open is closed last."""
        failed = self.vfs.drain(20.0)
        mounting.unmount(self.root, lazy=True)
        for fd in list(self._descriptors):
            with contextlib.suppress(OSError):
                self.close(fd)
        self._thread.join(START_SECONDS)
        assert not self._thread.is_alive(), "the mount did not end"
        self.vfs.stop()
        self._folder.cleanup()
        return failed

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}" if path else str(self.root)

    # Descriptors

    def open(self, path: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
        """open(2)."""
        fd = os.open(self._at(path), flags, mode)
        self._descriptors.add(fd)
        return fd

    def dup(self, fd: int) -> int:
        """dup(2)."""
        copy = os.dup(fd)
        self._descriptors.add(copy)
        return copy

    def close(self, fd: int) -> None:
        """close(2)."""
        self._descriptors.discard(fd)
        os.close(fd)

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """pread(2)."""
        return os.pread(fd, size, offset)

    def write(self, fd: int, data: bytes) -> int:
        """write(2)."""
        return os.write(fd, data)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """pwrite(2)."""
        return os.pwrite(fd, data, offset)

    def lseek(self, fd: int, offset: int) -> None:
        """lseek(2), from the start."""
        os.lseek(fd, offset, os.SEEK_SET)

    def fsync(self, fd: int) -> None:
        """fsync(2)."""
        os.fsync(fd)

    def ftruncate(self, fd: int, size: int) -> None:
        """ftruncate(2)."""
        os.ftruncate(fd, size)

    # Paths

    def truncate(self, path: str, size: int) -> None:
        """truncate(2)."""
        os.truncate(self._at(path), size)

    def stat(self, path: str) -> Stat:
        """stat(2)."""
        return _stat(os.stat(self._at(path)))

    def fstat(self, fd: int) -> Stat:
        """fstat(2)."""
        return _stat(os.fstat(fd))

    def listdir(self, path: str = "") -> list[str]:
        """Names in a directory but `.` and `..`."""
        return os.listdir(self._at(path))

    def mkdir(self, path: str) -> None:
        """mkdir(2)."""
        os.mkdir(self._at(path), 0o755)

    def rmdir(self, path: str) -> None:
        """rmdir(2)."""
        os.rmdir(self._at(path))

    def unlink(self, path: str) -> None:
        """unlink(2)."""
        os.unlink(self._at(path))

    def rename(self, old: str, new: str, flags: int = 0) -> None:
        """renameat2(2)."""
        if not flags:
            os.rename(self._at(old), self._at(new))
            return
        names = os.fsencode(self._at(old)), os.fsencode(self._at(new))
        if _libc.renameat2(-100, names[0], -100, names[1], flags):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), new)

    def chmod(self, path: str, mode: int) -> None:
        """chmod(2)."""
        os.chmod(self._at(path), mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        """chown(2)."""
        os.chown(self._at(path), uid, gid)

    def utime(self, path: str, mtime_ns: int) -> None:
        """utimensat(2)."""
        os.utime(self._at(path), ns=(mtime_ns, mtime_ns))

    def getxattr(self, path: str, name: str) -> bytes:
        """getxattr(2)."""
        return os.getxattr(self._at(path), name)

    def listxattr(self, path: str) -> list[str]:
        """listxattr(2)."""
        return os.listxattr(self._at(path))

    def symlink(self, target: str, path: str) -> None:
        """symlink(2)."""
        os.symlink(target, self._at(path))

    def statfs(self) -> Usage:
        """statfs(2)."""
        told = os.statvfs(self.root)
        return Usage(
            block_size=told.f_bsize,
            blocks=told.f_blocks,
            blocks_free=told.f_bfree,
            files=told.f_files,
            files_free=told.f_ffree,
            name_max=told.f_namemax,
        )


class LinuxFiles(RealFiles):
    """Served by the kernel's protocol."""

    def _make_vfs(self, backend: Backend, store_id: str, options: Options) -> Filesystem:
        self._notifier = KernelNotifier()
        chosen = mounting.Options("notes", options.read_only, allow_other=True)
        self._mountpoint = mounting.mount(str(self.root), chosen)
        self._read_only = options.read_only and not options.versions
        return open_store(backend, store_id, options, self._notifier)

    def _serve(self) -> None:
        fd = self._mountpoint.fd
        negotiated = handshake(fd, read_only=self._read_only)
        session = Session(fd, self.vfs, negotiated, self._notifier)
        self._ready.set()
        session.serve()
        self._notifier.stop()
        os.close(fd)


class PortableFiles(RealFiles):
    """Served by libfuse."""

    def _make_vfs(self, backend: Backend, store_id: str, options: Options) -> Filesystem:
        self._options = PortableOptions("notes", options.read_only, allow_other=True)
        return open_store(backend, store_id, options, Silence())

    def _serve(self) -> None:
        serve_portable(self.vfs, self.root, self._options, self._ready.set)


def _stat(found: os.stat_result) -> Stat:
    return Stat(
        found.st_ino,
        found.st_mode,
        found.st_nlink,
        found.st_size,
        found.st_mtime_ns,
        found.st_uid,
        found.st_gid,
    )


BINDINGS: dict[str, Callable[[Backend, str, Options], RealFiles]] = {
    "linux": LinuxFiles,
    "portable": PortableFiles,
}
"""Every binding, by the name its tests show."""
