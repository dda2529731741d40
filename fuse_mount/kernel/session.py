"""A session with the kernel: the INIT handshake, then the loop until the mount is gone."""

from __future__ import annotations

import errno
import logging
import os
import select
from dataclasses import dataclass

from fuse_mount.kernel import messages
from fuse_mount.kernel.channel import GONE, Channel
from fuse_mount.kernel.messages import Opcode
from fuse_mount.kernel.notify import KernelNotifier
from fuse_mount.kernel.operations import Header, Operations
from fuse_mount.kernel.workers import Timeouts, Workers
from fuse_mount.vfs import interface

log = logging.getLogger(__name__)

MAX_WRITE = 256 * 1024
"""Bytes in one READ or WRITE: a whole memory travels in one."""
BUFFER_SIZE = MAX_WRITE + 4096
"""The kernel wants room for the headers beside MAX_WRITE."""
_PAGE = 4096
_BACKGROUND = 64
"""Requests nobody waits for (RELEASE, read-ahead) in flight: more than the workers can hold up."""

_EAGER = 20
"""How often an empty queue is asked again before the loop sleeps: some 25 microseconds. On an idle
machine it makes a warm `grep -r` a third faster, on a busy one it makes no difference."""
_DEFERRED = 16
"""How many RELEASEs are put off under steady load."""
_AGAIN = frozenset({errno.ENOENT, errno.EINTR})
"""Errors of a read after which the next is tried: the request was interrupted before it came."""

WANTED = (
    messages.ASYNC_READ
    | messages.ATOMIC_O_TRUNC
    | messages.BIG_WRITES
    | messages.AUTO_INVAL_DATA
    | messages.DO_READDIRPLUS
    | messages.PARALLEL_DIROPS
    | messages.MAX_PAGES
    | messages.HANDLE_KILLPRIV_V2
)
"""What is asked for, where the kernel offers it. Never WRITEBACK_CACHE: the kernel would own size
and mtime, and hide other writers' texts. No locks: the kernel's own are right for one mount. Not
READDIRPLUS_AUTO: entries come with every listing, for the tree is in memory. Not
EXPLICIT_INVAL_DATA: a new mtime must drop pages also when an invalidation was lost."""

STATELESS = messages.NO_OPEN_SUPPORT | messages.NO_OPENDIR_SUPPORT
"""Needed to do without OPEN and OPENDIR. Only for read-only mounts: with ATOMIC_O_TRUNC and no
OPEN a truncation would be lost."""


class ProtocolError(Exception):
    """The kernel speaks no protocol this side knows."""


@dataclass(frozen=True, slots=True)
class Negotiated:
    """What INIT settled."""

    minor: int
    flags: int
    stateless: bool


def handshake(fd: int, *, read_only: bool) -> Negotiated:
    """Answer the kernel's INIT; blocks until it comes.

    ProtocolError for another major version than 7 or a minor older than 7.19; OSError when the
    mount goes away meanwhile.
    """
    buffer = bytearray(BUFFER_SIZE)
    while True:
        length = _receive(fd, buffer)
        header = messages.IN_HEADER.unpack_from(buffer)
        unique = header[2]
        if header[1] != Opcode.INIT or length < messages.IN_HEADER_SIZE + messages.INIT_IN.size:
            os.write(fd, messages.error_reply(unique, errno.EIO))
            continue
        request = messages.INIT_IN.unpack_from(buffer, messages.IN_HEADER_SIZE)
        major, minor, _, _ = request
        if major > messages.MAJOR:
            os.write(fd, _init_reply(unique, messages.MINOR, 0, 0))
            continue  # it asks again with our major version
        if major < messages.MAJOR or minor < messages.MINOR_OLDEST:
            os.write(fd, messages.error_reply(unique, errno.EPROTO))
            raise ProtocolError(
                f"The kernel speaks FUSE {major}.{minor}; a mount needs 7.{messages.MINOR_OLDEST} "
                "or newer (Linux 3.5)."
            )
        answer, message = negotiate(unique, request, read_only=read_only)
        os.write(fd, message)
        return answer


def negotiate(
    unique: int, request: tuple[int, int, int, int], *, read_only: bool
) -> tuple[Negotiated, bytes]:
    """What to agree on with a kernel that sent this `fuse_init_in`, and the reply that says so."""
    _, minor, max_readahead, offered = request
    wanted = WANTED
    stateless = read_only and offered & STATELESS == STATELESS
    if stateless:
        wanted = (wanted | STATELESS) & ~messages.ATOMIC_O_TRUNC
    flags = offered & wanted
    assert not flags & messages.WRITEBACK_CACHE
    assert read_only or not flags & messages.NO_OPEN_SUPPORT
    minor = min(minor, messages.MINOR)
    return (
        Negotiated(minor=minor, flags=flags, stateless=stateless),
        _init_reply(unique, minor, max_readahead, flags),
    )


def _init_reply(unique: int, minor: int, max_readahead: int, flags: int) -> bytes:
    body = messages.INIT_OUT.pack(
        messages.MAJOR,
        minor,
        max_readahead,
        flags,
        _BACKGROUND,
        _BACKGROUND * 3 // 4,
        MAX_WRITE,
        1,  # times are in nanoseconds
        MAX_WRITE // _PAGE if flags & messages.MAX_PAGES else 0,
        0,
        0,
    )
    if minor < 23:
        body = body[: messages.INIT_OUT_SIZE_BEFORE_23]
    return messages.data_reply(unique, body)


def _receive(fd: int, buffer: bytearray) -> int:
    """One request into the buffer. OSError when the mount is gone."""
    while True:
        try:
            length = os.readv(fd, (buffer,))
        except OSError as error:
            if error.errno not in _AGAIN:
                raise
            continue
        if length >= messages.IN_HEADER_SIZE:
            return length
        if length == 0:
            raise OSError(errno.ENODEV, "the connection has ended")


class Session:
    """A mounted file system being served."""

    def __init__(
        self,
        fd: int,
        fs: interface.Filesystem,
        negotiated: Negotiated,
        notifier: KernelNotifier,
        *,
        threads: int = 8,
        deadline_s: float = 60.0,
        identity: bytes = b"",
    ) -> None:
        """`deadline_s` bounds every request; it should exceed what a commit may retry for."""
        self._fs = fs
        self._known: interface.Timeouts | None = None
        self._split: Timeouts = (0, 0, 0, 0, 0, 0)
        self.channel = Channel(fd)
        self.notifier = notifier
        self.workers = Workers(self.channel, self._timeouts, threads=threads, deadline_s=deadline_s)
        self._buffer = bytearray(BUFFER_SIZE)
        self._operations = Operations(
            fs,
            self.channel,
            self.workers,
            self._buffer,
            self._timeouts,
            notifier,
            stateless=negotiated.stateless,
            identity=identity,
        )
        notifier.attach(self.channel)

    def resend(self) -> bool:
        """FUSE_NOTIFY_RESEND: have the kernel send again what an earlier driver read and did not
        answer; False when it cannot (before protocol 7.40). A mount that is gone has nothing."""
        size = messages.OUT_HEADER_SIZE
        try:
            os.write(self.channel.fd, messages.OUT_HEADER.pack(size, messages.NOTIFY_RESEND, 0))
        except OSError as error:
            return error.errno in GONE
        return True

    def serve(self) -> None:
        """Serve until the mount is gone; returns then. OSError when the descriptor fails.

        The descriptor does not block. When nothing is queued the loop first does what was put
        off, then asks a few more times before it sleeps: a client's next request usually comes
        within microseconds, and waking a sleeping thread costs more than serving it. It sleeps at
        once while workers are busy, for they need the interpreter.
        """
        fd, buffer, order = self.channel.fd, self._buffer, self.channel.order
        dispatch, write, readv, views = self.dispatch, os.write, os.readv, (buffer,)
        operations, workers = self._operations, self.workers
        released = operations.released
        os.set_blocking(fd, False)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        eager = _EAGER if len(os.sched_getaffinity(0)) > 1 else 0
        idle = 0
        while True:
            try:
                length = readv(fd, views)
            except BlockingIOError:
                if released:
                    operations.release_deferred()
                    continue
                idle += 1
                if idle > eager or workers.unfinished:
                    poll.poll()
                    idle = 0
                continue
            except OSError as error:
                if error.errno in GONE:
                    operations.release_deferred()
                    return
                if error.errno in _AGAIN:
                    continue
                raise
            if not length:
                return
            idle = 0
            with order:
                reply = dispatch(length)
                if reply is not None:
                    try:
                        write(fd, reply)
                    except OSError:
                        self.channel.send(reply)
            if len(released) >= _DEFERRED:
                operations.release_deferred()

    def dispatch(self, length: int) -> bytes | None:
        """The reply to the request in the buffer; None when there is none now or at all.

        Never raises: what is no refusal of the file system is a bug, logged and answered EIO.
        """
        if length < messages.IN_HEADER_SIZE:
            return None
        header: Header = messages.IN_HEADER.unpack_from(self._buffer)
        opcode, unique = header[1], header[2]
        try:
            operation = self._operations.table[opcode]
        except IndexError:
            return messages.error_reply(unique, errno.ENOSYS)
        try:
            return operation(header, length)
        except OSError as error:
            code = error.errno or errno.EIO
            if unique & messages.RESENT:
                return self._again(header, length, code)
        except Exception:
            log.exception("request %d (opcode %d) failed unexpectedly", unique, opcode)
            code = errno.EIO
        return None if opcode in _WITHOUT_REPLY else messages.error_reply(unique, code)

    def _again(self, header: Header, length: int, code: int) -> bytes | None:
        """The refusal of a request sent again, which may have been carried out the first time."""
        try:
            return self._operations.repeated(header, length, code)
        except OSError:
            return messages.error_reply(header[2], code)

    def _timeouts(self) -> Timeouts:
        """The file system's timeouts as seconds and nanoseconds, kept while they do not change."""
        known = self._fs.timeouts()
        if known is not self._known:
            self._split = (*_seconds(known.entry), *_seconds(known.attr), *_seconds(known.negative))
            self._known = known
        return self._split


_WITHOUT_REPLY = frozenset({Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT})


def _seconds(duration: float) -> tuple[int, int]:
    whole = int(duration)
    return whole, int((duration - whole) * 1_000_000_000)
