"""A mount's life: connect, load, mount, serve; drain, unmount.

It ends by a signal (SIGTERM, SIGINT, SIGHUP) or because the kernel has unmounted it. By a signal:
what is dirty is committed while everything still works; then the mount leaves the tree, lazily
when it is in use, and open files are served a little longer; what they left is committed; then
the descriptor is closed. Each wait is bounded. A failure is logged with its path.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from fuse_mount.errors import MountError
from fuse_mount.kernel import mounting
from fuse_mount.kernel.notify import KernelNotifier
from fuse_mount.kernel.session import Negotiated, ProtocolError, Session, handshake
from fuse_mount.spec import Spec
from fuse_mount.vfs.interface import Filesystem
from fuse_mount.vfs.opening import open_store
from memstore.backend import Backend
from memstore.model.errors import MemstoreError
from memstore.urls import connect

if TYPE_CHECKING:
    from fuse_mount.keeping import Keeper

log = logging.getLogger("memstore.mount")

END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
BUSY_S = 2.0
"""How long open files are served after a busy mount was detached."""
SETTLE_S = 10.0
"""How long a drain may take beyond what a commit may be retried for."""

Ready = Callable[[str], None]


class Ends:
    """Why the mount ends: the first reason is taken, later ones are too late.

    A SimpleQueue, because its `put` may be called from a signal handler.
    """

    def __init__(self) -> None:
        self._reasons: SimpleQueue[str] = SimpleQueue()

    def wait(self) -> str:
        """Wait for a reason; signals are handled meanwhile."""
        return self._reasons.get()

    def end(self, reason: str) -> None:
        """The mount should end, or has ended."""
        self._reasons.put(reason)

    @contextmanager
    def on_signals(self, *, hangup: bool) -> Iterator[None]:
        """Signals end the mount. Without `hangup`, SIGHUP is ignored: a daemon has no terminal."""

        def note(number: int, _frame: object) -> None:
            self.end(signal.Signals(number).name)

        before: dict[int, Any] = {}
        for number in END_SIGNALS:
            ignored = number == signal.SIGHUP and not hangup
            before[number] = signal.signal(number, signal.SIG_IGN if ignored else note)
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


class CannotGoOn(Exception):
    """The kernel cannot ask again for what was in flight when the driver before this one died."""


def run(spec: Spec, ready: Ready, ends: Ends, keeper: Keeper | None = None) -> list[str]:
    """Mount and serve until `ends` says so or the kernel unmounts; the paths not saved.

    `ready` is called with the place once the first listing is in memory and the kernel has been
    answered. MountError and the refusals of the backend come before that. With a `keeper` the
    mount may be one that an earlier driver made; CannotGoOn when it cannot be taken over.
    """
    if spec.binding == "portable":
        _prepare_portable(spec)
    backend = connect(spec.url, key=spec.key)
    notifier = KernelNotifier()
    journal = keeper.journal if keeper is not None and spec.binding == "kernel" else None
    vfs = open_store(backend, spec.store_id, spec.vfs, notifier, journal)
    try:
        vfs.start()
        _settle_memory()
        if spec.binding == "portable":
            return _serve_portable(spec, vfs, ready, ends)
        return _serve(spec, vfs, notifier, ready, ends, keeper)
    finally:
        if keeper is not None:
            keeper.tell({"ending": spec.place})
        vfs.stop()
        _end_session(spec)
        backend.close()


def _serve(
    spec: Spec,
    vfs: Filesystem,
    notifier: KernelNotifier,
    ready: Ready,
    ends: Ends,
    keeper: Keeper | None,
) -> list[str]:
    resumed = None if keeper is None else keeper.resumed()
    point, negotiated = resumed or _mounted(spec)
    if keeper is not None and resumed is None:
        keeper.mounted(point, negotiated)
    session = Session(
        point.fd,
        vfs,
        negotiated,
        notifier,
        deadline_s=spec.vfs.retry_s + SETTLE_S,
        identity=identity(os.getpid() if keeper is None else keeper.pid),
    )
    if resumed is not None:
        _go_on(spec, session, vfs)
    thread = threading.Thread(target=_loop, args=(session, ends), name="fuse-loop", daemon=True)
    thread.start()
    ready(str(point.path or spec.place))
    reason = ends.wait()
    if keeper is not None:
        keeper.tell({"ending": reason})
    log.info("%s: ending (%s)", spec.place, reason)
    return _finish(spec, vfs, session, point, thread)


def _go_on(spec: Spec, session: Session, vfs: Filesystem) -> None:
    """Take over from a driver that died: ask again for what it did not answer, and have the
    kernel look again at what it remembers. In a thread, for the kernel may wait for an answer."""
    if not session.resend():
        raise CannotGoOn(f"{spec.place}: this kernel lost what was in flight (it is before 6.9)")
    log.warning("%s: going on with the mount of a driver that died", spec.place)
    notifier = session.notifier

    def look_again() -> None:
        for ino, parent, name in vfs.known_before():
            notifier.inval_inode(ino)
            if parent:
                notifier.expire_entry(parent, name)

    threading.Thread(target=look_again, name="fuse-look-again", daemon=True).start()


def _mounted(spec: Spec) -> tuple[mounting.Mountpoint, Negotiated]:
    """Mount, and agree with the kernel; MountError."""
    options = mounting.Options(spec.name, spec.read_only, spec.allow_other)
    point = mounting.mount(spec.place, options)
    try:
        # Whether a version was redacted is asked at open, so those must reach the driver.
        opened_unasked = spec.read_only and not spec.vfs.versions
        return point, handshake(point.fd, read_only=opened_unasked)
    except (OSError, ProtocolError) as error:
        point.unmount()
        os.close(point.fd)
        point.remove_created()
        raise MountError.unavailable(f"{spec.place} could not be mounted: {error}") from None


def _loop(session: Session, ends: Ends) -> None:
    try:
        session.serve()
        ends.end("unmounted")
    except Exception as error:
        log.exception("the loop has ended")
        ends.end(str(error))


def _finish(
    spec: Spec,
    vfs: Filesystem,
    session: Session,
    point: mounting.Mountpoint,
    thread: threading.Thread,
) -> list[str]:
    """Drain, leave the tree, drain again, close; the paths that could not be saved."""
    end = time.monotonic() + spec.vfs.retry_s + SETTLE_S
    if thread.is_alive():
        session.workers.wait_idle(_left(end))
        vfs.drain(_left(end))
        _leave(point, thread)
    session.workers.wait_idle(_left(end))
    failed = vfs.drain(_left(end))
    session.notifier.stop()
    session.workers.stop()
    if thread.is_alive():
        mounting.abort(point)
        thread.join(BUSY_S)
    session.channel.close()
    point.remove_created()
    return failed


def _leave(point: mounting.Mountpoint, thread: threading.Thread) -> None:
    if point.path is None:
        return  # whoever mounted it unmounts it; closing the descriptor ends it
    try:
        if point.unmount():
            log.warning("%s was in use; open files are served %g s more", point.path, BUSY_S)
    except OSError as error:
        log.error("%s could not be unmounted: %s", point.path, error)
    thread.join(BUSY_S)


def _left(end: float) -> float:
    return max(1.0, end - time.monotonic())


def _prepare_portable(spec: Spec) -> None:
    """Say what is in the way before anything is loaded or started."""
    from fuse_mount.portable import prepare

    if spec.place.startswith("/dev/fd/"):
        raise MountError.usage(
            "binding=portable mounts itself and takes no /dev/fd/N. Name a directory, or leave "
            "the option out."
        )
    prepare()


def _serve_portable(spec: Spec, vfs: Filesystem, ready: Ready, ends: Ends) -> list[str]:
    """The same life behind fusepy: libfuse mounts, and serves in a thread."""
    from fuse_mount.portable import PortableOptions, serve_portable

    path = Path(spec.place).absolute()
    created = mounting.prepare(path)
    point = mounting.Mountpoint(fd=-1, path=path, created=created)
    options = PortableOptions(spec.name, spec.read_only, spec.allow_other)
    failures: list[BaseException] = []
    started = threading.Event()

    def connected() -> None:
        started.set()
        point.device = mounting.device_at(path)
        ready(str(path))

    def serve() -> None:
        try:
            serve_portable(vfs, path, options, connected)
        except BaseException as error:
            failures.append(error)
        ends.end("unmounted")

    thread = threading.Thread(target=serve, name="fuse-portable", daemon=True)
    thread.start()
    reason = ends.wait()
    if failures and not started.is_set():
        point.remove_created()
        raise failures[0]
    log.info("%s: ending (%s)", spec.place, reason)
    end = time.monotonic() + spec.vfs.retry_s + SETTLE_S
    if thread.is_alive():
        vfs.drain(_left(end))
        point.device = mounting.device_at(path)
        _leave(point, thread)
    failed = vfs.drain(_left(end))
    point.remove_created()
    return failed


def identity(pid: int) -> bytes:
    """`<pid> <start time>` of a process (proc(5): field 22 of stat); empty when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return b""
    return b"%d %s" % (pid, fields[19])


def _settle_memory() -> None:
    """The tree stays for the mount's life: keep the collector from walking it again and again."""
    gc.collect()
    gc.freeze()


def _end_session(spec: Spec) -> None:
    """End the session that was made for this mount alone."""
    if not spec.ends_session:
        return
    try:
        minter: Backend = connect(spec.url, key=spec.minter)
        try:
            minter.archive_session(spec.ends_session)
        finally:
            minter.close()
    except MemstoreError as error:
        log.warning("session %s could not be ended: %s", spec.ends_session, error.message)
