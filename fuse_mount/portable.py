"""The same directory behind `fusepy`: macOS, and kernels whose `/dev/fuse` is not Linux's.

libfuse hands over paths and keeps inodes, timeouts and descriptors to itself. Each request walks
its path through the file system, holds the lookup count of what it found while it is answered,
and gives it back after: nothing here remembers a name, so nothing here can be wrong about one.

What libfuse and the kernel may remember is bounded instead of invalidated: names and attributes
for `REMEMBER_S`, texts never (`direct_io`: without invalidation, pages of an old and a new text
could mix in one read). A request has its own thread, and a `Later` runs on it.

`fusepy` (module `fuse`, over libfuse 2) and its fork `mfusepy` (over libfuse 2 or 3) both serve.
"""

from __future__ import annotations

import codecs
import ctypes
import fcntl
import importlib
import logging
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuse_mount.errors import MountError
from fuse_mount.portable_operations import NOW, CallableOperations, PortableOperations, mark
from fuse_mount.vfs.interface import Filesystem

log = logging.getLogger("memstore.mount")

REMEMBER_S = 1.0
"""How long the kernel may believe a name or an attribute: the lag bound of the contract."""

LIMITS: dict[str, str] = {
    "shared mmap": "mmap(MAP_SHARED) of a file is ENODEV: texts bypass the kernel's page cache, "
    "since libfuse 2 offers no invalidation by path.",
    "nameless files": "fstat, fchmod and futimens of an open file that was unlinked or replaced "
    "fail (ENOENT or ESTALE): libfuse asks by path. Its reads, writes and closes work.",
    "RENAME_NOREPLACE": "renameat2 with flags onto a free name is EINVAL: libfuse 2 knows no "
    "flags. Onto a taken name it is EEXIST, as it should be.",
    "pushed coherence": f"A change made elsewhere is seen within {REMEMBER_S:g} s in names, sizes "
    "and times, not at once; in an opened file's text at once.",
    "inotify": "Watchers hear of changes made through this mount only.",
    "deadlines": "No watchdog: a request waits as long as a commit may be retried (retry_s).",
    "inherited descriptor": "A mount prepared by a privileged helper (/dev/fd/N) is refused: "
    "libfuse 2 mounts itself.",
    "supervised restart": "The mount ends with its process; libfuse owns the descriptor.",
    "cached speed": "Each stat after a second and each read is a request: a warm `grep -r` costs "
    "what a cold one does.",
}
"""What this binding cannot do, by the name tests and documents use for it."""


@dataclass(frozen=True, slots=True)
class PortableOptions:
    """What libfuse is told. `name` shows as `memstore:<name>` in `mount` and `df`."""

    name: str
    read_only: bool = False
    allow_other: bool = False


def serve_portable(
    fs: Filesystem,
    mountpoint: Path,
    options: PortableOptions,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Mount, and serve until the mount is gone; blocks in this thread, which need not be the main.

    `ready` is called once when the kernel has connected: what is asked from then on is answered.
    Unmount (umount(2), `fusermount -u`) to end it; signals are the caller's.
    MountError when the library is missing or the mount was refused.
    """
    binding = prepare()
    started: list[bool] = []

    def connected() -> None:
        started.append(True)
        _close_on_exec(binding)
        ready()

    operations = _operations_for(binding)(fs, binding, connected)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            _adapted(binding)(
                operations,
                str(mountpoint),
                raw_fi=True,
                encoding=_CODEC,
                foreground=True,
                **_mount_options(options, binding),
            )
    except RuntimeError as error:
        if started:
            log.error("libfuse ended with status %s", error)
            return
        raise MountError.refused(
            f"{mountpoint} could not be mounted by libfuse (status {error}; its own message is "
            "above). Check that the directory is yours and empty, and that /dev/fuse may be used."
        ) from None
    finally:
        # libfuse takes the ignored signal for its own doing and undoes it.
        ctypes.CDLL(None).signal(signal.SIGPIPE, ctypes.c_void_p(int(signal.SIG_IGN)))


def prepare() -> Any:
    """The binding's module; call it before threads start, to be told early what is missing.

    From then on a peer that hangs up is an error to whoever writes, never the end of the process:
    libfuse sets SIGPIPE back to deadly while it unmounts, so it is kept from these threads too.
    """
    binding = load_binding()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    return binding


def load_binding() -> Any:
    """The module `fuse` of fusepy, or `mfusepy`; MountError says what to install."""
    reasons: list[str] = []
    without = ""
    for name in ("fuse", "mfusepy"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        except OSError as error:
            without = str(error)
            continue
        if hasattr(module, "FUSE") and hasattr(module, "fuse_operations"):
            return module
        reasons.append(f"the module {name!r} is another package of that name")
    if without:
        raise MountError.unavailable(
            f"binding=portable needs libfuse, which could not be loaded ({without}). Install the "
            "package libfuse2 (Debian, Ubuntu) or macFUSE (macOS), or let FUSE_LIBRARY_PATH name "
            "the library."
        )
    because = f" ({'; '.join(reasons)})" if reasons else ""
    raise MountError.unavailable(
        f"binding=portable needs the Python package fusepy{because}. Run `pip install fusepy`."
    )


_CODEC = "memstore_filenames"


def _find_codec(name: str) -> codecs.CodecInfo | None:
    """UTF-8 in which bytes that are none survive: fusepy takes a codec, but no error handler."""
    if name != _CODEC:
        return None
    return codecs.CodecInfo(
        name=_CODEC,
        encode=lambda text, _errors="strict": (text.encode("utf-8", "surrogateescape"), len(text)),
        decode=lambda raw, _errors="strict": (
            bytes(raw).decode("utf-8", "surrogateescape"),
            len(raw),
        ),
    )


codecs.register(_find_codec)


def _is_libfuse3(binding: Any) -> bool:
    return getattr(binding, "fuse_version_major", 2) >= 3


def _mount_options(options: PortableOptions, binding: Any) -> dict[str, Any]:
    """`hard_remove`: no `.fuse_hidden` names. `use_ino`: inode numbers are the memories'."""
    chosen: dict[str, Any] = {
        "fsname": f"memstore:{options.name.replace(',', '')}",
        "hard_remove": True,
        "use_ino": True,
        "default_permissions": True,
        "attr_timeout": REMEMBER_S,
        "entry_timeout": REMEMBER_S,
        "negative_timeout": 0,
        "allow_other": options.allow_other,
        "ro": options.read_only,
    }
    if sys.platform.startswith("linux"):
        chosen |= {"subtype": "memstore", "nosuid": True, "nodev": True, "noatime": True}
        if not _is_libfuse3(binding):
            chosen |= {"atomic_o_trunc": True, "big_writes": True}
    elif sys.platform == "darwin":
        chosen |= {"volname": options.name, "noappledouble": True}
    return chosen


def _close_on_exec(binding: Any) -> None:
    """Keep libfuse's descriptor from programs started here: one that inherits it would hold the
    dead mount, and whoever waits on it, after this process has gone."""
    library = binding._libfuse
    try:
        if _is_libfuse3(binding):
            return  # libfuse 3 opens it close-on-exec
        library.fuse_get_session.restype = ctypes.c_void_p
        library.fuse_session_next_chan.restype = ctypes.c_void_p
        context = library.fuse_get_context().contents
        session = library.fuse_get_session(ctypes.c_void_p(context.fuse))
        channel = library.fuse_session_next_chan(ctypes.c_void_p(session), None)
        fd = library.fuse_chan_fd(ctypes.c_void_p(channel))
        fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    except (AttributeError, OSError) as error:
        log.warning("libfuse's descriptor is left open for programs started here: %s", error)


def _adapted(binding: Any) -> Any:
    """The binding's `FUSE` with what it loses put back: exact time marks; in `mfusepy` over libfuse
    3 also rename's flags, and the open file of a change, which comes without a path then."""

    class Adapted(binding.FUSE):  # type: ignore[misc]
        def _set_times(self, path: bytes | None, buf: Any, file: Any = None) -> int:
            times = (mark(buf.contents.actime), mark(buf.contents.modtime)) if buf else (NOW, NOW)
            return int(self.operations.set_times(_text(path), times, _opened(file)))

    if not hasattr(binding.FUSE, "utimens_fuse_2"):
        Adapted.utimens = Adapted._set_times
        return Adapted

    class AdaptedTo3(Adapted):
        utimens_fuse_2 = utimens_fuse_3 = Adapted._set_times

        def rename_fuse_3(self, old: bytes, new: bytes, flags: int) -> int:
            return int(self.operations.rename(_text(old), _text(new), flags))

        def truncate_fuse_3(self, path: bytes | None, size: int, file: Any) -> int:
            return int(self.operations.truncate(_text(path), size, _opened(file)))

        def chmod_fuse_3(self, path: bytes | None, mode: int, file: Any) -> int:
            return int(self.operations.chmod(_text(path), mode, _opened(file)))

        def chown_fuse_3(self, path: bytes | None, uid: int, gid: int, file: Any) -> int:
            return int(self.operations.chown(_text(path), uid, gid, _opened(file)))

    return AdaptedTo3


def _text(path: bytes | None) -> str | None:
    return None if path is None else codecs.decode(path, _CODEC)


def _opened(file: Any) -> Any:
    return file.contents if file else None


def _operations_for(binding: Any) -> type[PortableOperations]:
    """fusepy calls the object with an operation's name; mfusepy warns of one that can be called."""
    return PortableOperations if binding.__name__ == "mfusepy" else CallableOperations
