"""One method a request: unpack, call the file system, pack the answer.

Each takes the `fuse_in_header` as a tuple and the message's length, reads the rest from the
shared buffer, and returns the reply, or None when there is none or a worker gives it. Refusals
leave as OSError; the session packs them. A message too short for its layout ends as
`struct.error`, which the session answers with EIO.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import time
import unicodedata
from collections.abc import Callable
from typing import Any

from fuse_mount.kernel import messages, packing
from fuse_mount.kernel.channel import Channel
from fuse_mount.kernel.messages import Opcode
from fuse_mount.kernel.notify import KernelNotifier
from fuse_mount.kernel.workers import NO_TIMEOUTS, Encode, Job, Refuse, Timeouts, Workers, refuse
from fuse_mount.vfs.interface import AttrChange, Filesystem, Later, Requester, now
from memstore.model import clock

log = logging.getLogger(__name__)

Header = tuple[int, int, int, int, int, int, int, int, int]
Operation = Callable[[Header, int], bytes | None]

_BODY = messages.IN_HEADER_SIZE
_READ = messages.READ_IN
_WRITE = messages.WRITE_IN
_WRITE_DATA = _BODY + _WRITE.size
_HANDLE = messages.HANDLE_IN
_RELEASE = messages.RELEASE_IN
_FOREIGN_XATTRS = (b"system.", b"security.", b"trusted.")
_REPEATED_S = 1.0
"""How soon the kernel's own repetition of a rename follows."""
_REPEATED_MAX = 64
_KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE."""
DRIVER_XATTR = b"user.memstore.driver"
"""On the root: `<pid> <start time>` of the driver, so that `umount` can wait for its end."""


class Operations:
    """The requests of one mount. Called from the session's loop only."""

    def __init__(
        self,
        fs: Filesystem,
        channel: Channel,
        workers: Workers,
        buffer: bytearray,
        timeouts: Callable[[], Timeouts],
        notifier: KernelNotifier,
        *,
        stateless: bool,
        identity: bytes = b"",
    ) -> None:
        """`stateless`: files and directories are opened without asking (read-only mounts)."""
        self._fs = fs
        self._channel = channel
        self._workers = workers
        self._buffer = buffer
        self._timeouts = timeouts
        self._notifier = notifier
        self._aliases = False
        self._lost_renames: dict[tuple[int, int, str, int, str], float] = {}
        self._stateless = stateless
        self._identity = identity
        self.released: list[tuple[int, int]] = []
        """RELEASEs put off: request and handle."""
        self._who = Requester(0, 0, 0)
        self.table: list[Operation] = [self._unknown] * messages.OPCODES
        for opcode, operation in self._routes().items():
            self.table[opcode] = operation

    def _routes(self) -> dict[Opcode, Operation]:
        return {
            Opcode.LOOKUP: self.lookup,
            Opcode.FORGET: self.forget,
            Opcode.BATCH_FORGET: self.batch_forget,
            Opcode.GETATTR: self.getattr,
            Opcode.SETATTR: self.setattr,
            Opcode.READLINK: self._invalid,
            Opcode.SYMLINK: self.symlink,
            Opcode.MKNOD: self.mknod,
            Opcode.MKDIR: self.mkdir,
            Opcode.UNLINK: self.unlink,
            Opcode.RMDIR: self.rmdir,
            Opcode.RENAME: self.rename,
            Opcode.RENAME2: self.rename2,
            Opcode.LINK: self.link,
            Opcode.OPEN: self.open,
            Opcode.CREATE: self.create,
            Opcode.READ: self.read,
            Opcode.WRITE: self.write,
            Opcode.STATFS: self.statfs,
            Opcode.FLUSH: self.flush,
            Opcode.FSYNC: self.fsync,
            Opcode.FALLOCATE: self.fallocate,
            Opcode.RELEASE: self.release,
            Opcode.OPENDIR: self.opendir,
            Opcode.READDIR: self.readdir,
            Opcode.READDIRPLUS: self.readdirplus,
            Opcode.RELEASEDIR: self.releasedir,
            Opcode.GETXATTR: self.getxattr,
            Opcode.LISTXATTR: self.listxattr,
            Opcode.IOCTL: self._no_terminal,
            Opcode.SYNCFS: self._nothing,
            Opcode.DESTROY: self._nothing,
            Opcode.INTERRUPT: self.interrupt,
        }

    # Helpers

    def _name(self, start: int, length: int) -> str:
        """The NUL-ended name that is the rest of the message."""
        return self._buffer[start : length - 1].decode("utf-8", "surrogateescape")

    def _two_names(self, start: int, length: int) -> tuple[str, str]:
        first, separator, second = self._buffer[start : length - 1].partition(b"\0")
        if not separator:
            raise OSError(errno.EINVAL, "two names expected")
        return first.decode("utf-8", "surrogateescape"), second.decode("utf-8", "surrogateescape")

    def _reply(
        self,
        unique: int,
        answer: Any,
        encode: Encode,
        refusal: Refuse = refuse,
        *,
        droppable: bool = False,
    ) -> bytes | None:
        """The packed answer, or None after handing the blocking rest to a worker."""
        if type(answer) is Later:
            changes = self._channel.changes
            self._workers.submit(
                Job(unique, answer.run, encode, refusal, droppable=droppable, changes=changes)
            )
            return None
        return encode(unique, answer, self._timeouts())

    def _requester(self, header: Header) -> Requester:
        """Who asks; the last one is kept, since requests come in runs."""
        who = self._who
        if who.pid != header[6] or who.uid != header[4] or who.gid != header[5]:
            who = self._who = Requester(header[4], header[5], header[6])
        return who

    def _unknown(self, header: Header, length: int) -> bytes | None:
        """ENOSYS: the kernel does without (lseek, copy_file_range, poll), or refuses
        with ENOTSUP (setxattr, removexattr, tmpfile), and asks no more."""
        return messages.error_reply(header[2], errno.ENOSYS)

    def _invalid(self, header: Header, length: int) -> bytes | None:
        return messages.error_reply(header[2], errno.EINVAL)

    def _no_terminal(self, header: Header, length: int) -> bytes | None:
        return messages.error_reply(header[2], errno.ENOTTY)

    def _nothing(self, header: Header, length: int) -> bytes | None:
        return messages.error_reply(header[2], 0)

    # Names and nodes

    def lookup(self, header: Header, length: int) -> bytes | None:
        """FUSE_LOOKUP."""
        unique, name = header[2], self._name(_BODY, length)
        valid = self._timeouts() if name.isascii() else self._valid(header[3], name)
        try:
            answer = self._fs.lookup(header[3], name)
        except OSError as error:
            return packing.missing(unique, error.errno or errno.EIO, valid)
        if isinstance(answer, Later):
            return self._reply(unique, answer, packing.entry, packing.missing, droppable=True)
        return packing.entry(unique, answer, valid)

    def _valid(self, parent: int, name: str) -> Timeouts:
        """How long a name may be remembered. Not at all when it is not in NFC: it is another name
        of the file, and the kernel would not connect the two. From the first such name on, no
        name beyond ASCII is remembered."""
        if name.isascii():
            return self._timeouts()
        normal = unicodedata.normalize("NFC", name)
        if normal != name:
            self._aliases = True
            self._notifier.queue_entry(parent, normal)
        return NO_TIMEOUTS if self._aliases else self._timeouts()

    def forget(self, header: Header, length: int) -> bytes | None:
        """FUSE_FORGET: no reply."""
        self._fs.forget(header[3], messages.FORGET_IN.unpack_from(self._buffer, _BODY)[0])
        return None

    def batch_forget(self, header: Header, length: int) -> bytes | None:
        """FUSE_BATCH_FORGET: no reply."""
        start = _BODY + messages.BATCH_FORGET_IN.size
        count, _ = messages.BATCH_FORGET_IN.unpack_from(self._buffer, _BODY)
        end = min(start + count * messages.FORGET_ONE.size, length)
        items = memoryview(self._buffer)[start:end]
        for ino, nlookup in messages.FORGET_ONE.iter_unpack(items):
            self._fs.forget(ino, nlookup)
        return None

    def getattr(self, header: Header, length: int) -> bytes | None:
        """FUSE_GETATTR."""
        return self._reply(header[2], self._fs.getattr(header[3]), packing.attr, droppable=True)

    def setattr(self, header: Header, length: int) -> bytes | None:
        """FUSE_SETATTR. FATTR_CTIME and the kill-suid bits have nothing to change here."""
        (
            valid, _, handle, size, _, atime, mtime, _,
            atime_ns, mtime_ns, _, mode, _, uid, gid, _,
        ) = messages.SETATTR_IN.unpack_from(self._buffer, _BODY)  # fmt: skip
        change = AttrChange(
            mode=mode if valid & messages.FATTR_MODE else None,
            uid=uid if valid & messages.FATTR_UID else None,
            gid=gid if valid & messages.FATTR_GID else None,
            size=size if valid & messages.FATTR_SIZE else None,
            atime_ns=_time(valid, messages.FATTR_ATIME, atime, atime_ns),
            mtime_ns=_time(valid, messages.FATTR_MTIME, mtime, mtime_ns),
            handle=handle if valid & messages.FATTR_FH else None,
        )
        answer = self._fs.setattr(header[3], change, self._requester(header))
        return self._reply(header[2], answer, packing.attr)

    def fallocate(self, header: Header, length: int) -> bytes | None:
        """FUSE_FALLOCATE: room for a text of that length, by a longer file where that is asked.

        Without an answer of ours libc would write NUL bytes, which are refused.
        """
        handle, offset, more, mode, _ = messages.FALLOCATE_IN.unpack_from(self._buffer, _BODY)
        if mode & ~_KEEP_SIZE:
            return messages.error_reply(header[2], errno.EOPNOTSUPP)
        fs, who = self._fs, self._requester(header)

        def extend() -> None:
            if not mode and now(fs.getattr(header[3])).size < offset + more:
                now(fs.setattr(header[3], AttrChange(size=offset + more, handle=handle), who))

        return self._reply(header[2], Later(extend), packing.done)

    def symlink(self, header: Header, length: int) -> bytes | None:
        """FUSE_SYMLINK: refused."""
        name, _ = self._two_names(_BODY, length)
        return messages.error_reply(header[2], self._fs.refuse_special(header[3], name))

    def link(self, header: Header, length: int) -> bytes | None:
        """FUSE_LINK: refused."""
        name = self._name(_BODY + 8, length)
        return messages.error_reply(header[2], self._fs.refuse_special(header[3], name))

    def mknod(self, header: Header, length: int) -> bytes | None:
        """FUSE_MKNOD: a regular file is created and closed; the rest is refused."""
        mode, _, _, _ = messages.MKNOD_IN.unpack_from(self._buffer, _BODY)
        name = self._name(_BODY + messages.MKNOD_IN.size, length)
        parent = header[3]
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            return messages.error_reply(header[2], self._fs.refuse_special(parent, name))
        who = self._requester(header)

        def make() -> object:
            node, opened = now(self._fs.create(parent, name, mode, os.O_WRONLY | os.O_EXCL, who))
            now(self._fs.release(opened.handle))
            return node

        return self._reply(header[2], Later(make), packing.entry)

    def mkdir(self, header: Header, length: int) -> bytes | None:
        """FUSE_MKDIR."""
        mode, _ = messages.MKDIR_IN.unpack_from(self._buffer, _BODY)
        name = self._name(_BODY + messages.MKDIR_IN.size, length)
        node = self._fs.mkdir(header[3], name, mode, self._requester(header))
        return packing.entry(header[2], node, self._valid(header[3], name))

    def unlink(self, header: Header, length: int) -> bytes | None:
        """FUSE_UNLINK."""
        answer = self._fs.unlink(header[3], self._name(_BODY, length))
        return self._reply(header[2], answer, packing.done)

    def rmdir(self, header: Header, length: int) -> bytes | None:
        """FUSE_RMDIR."""
        self._fs.rmdir(header[3], self._name(_BODY, length))
        return messages.error_reply(header[2], 0)

    def rename(self, header: Header, length: int) -> bytes | None:
        """FUSE_RENAME."""
        (directory,) = messages.RENAME_IN.unpack_from(self._buffer, _BODY)
        return self._rename(header, directory, 0, _BODY + messages.RENAME_IN.size, length)

    def rename2(self, header: Header, length: int) -> bytes | None:
        """FUSE_RENAME2: with flags."""
        directory, flags, _ = messages.RENAME2_IN.unpack_from(self._buffer, _BODY)
        return self._rename(header, directory, flags, _BODY + messages.RENAME2_IN.size, length)

    def _rename(
        self, header: Header, directory: int, flags: int, start: int, length: int
    ) -> bytes | None:
        """ESTALE tells a writer that it lost. The kernel takes it for a name that must be looked
        up again, and repeats the whole rename once (`retry_estale` in its fs/namei.c): the
        repetition gets the same answer and does nothing."""
        name, new_name = self._two_names(start, length)
        key = (header[6], header[3], name, directory, new_name)
        if time.monotonic() - self._lost_renames.pop(key, 0.0) < _REPEATED_S:
            return messages.error_reply(header[2], errno.ESTALE)

        def refusal(unique: int, code: int, _valid: Timeouts) -> bytes:
            if code == errno.ESTALE:
                self._lost_renames[key] = time.monotonic()
            return messages.error_reply(unique, code)

        if len(self._lost_renames) > _REPEATED_MAX:
            self._lost_renames.clear()
        try:
            answer = self._fs.rename(header[3], name, directory, new_name, flags)
        except OSError as error:
            if header[2] & messages.RESENT and error.errno == errno.ENOENT:
                raise  # perhaps it was carried out: see `repeated`
            return refusal(header[2], error.errno or errno.EIO, NO_TIMEOUTS)
        return self._reply(header[2], answer, packing.done, refusal)

    def repeated(self, header: Header, length: int, code: int) -> bytes | None:
        """A refusal of a request that the kernel sends again, for the driver died before it
        answered: success when the refusal only says that it was carried out already."""
        opcode, unique, parent = header[1], header[2], header[3]
        if code == errno.ENOENT and opcode in (Opcode.UNLINK, Opcode.RMDIR):
            return messages.error_reply(unique, 0)
        if code == errno.ENOENT and opcode in (Opcode.RENAME, Opcode.RENAME2):
            layout = messages.RENAME_IN if opcode == Opcode.RENAME else messages.RENAME2_IN
            directory = layout.unpack_from(self._buffer, _BODY)[0]
            _, name = self._two_names(_BODY + layout.size, length)
            self._fs.forget(now(self._fs.lookup(directory, name)).ino, 1)
            return messages.error_reply(unique, 0)
        if code == errno.EEXIST and opcode == Opcode.MKDIR:
            name = self._name(_BODY + messages.MKDIR_IN.size, length)
            return packing.entry(unique, now(self._fs.lookup(parent, name)), NO_TIMEOUTS)
        if code == errno.EEXIST and opcode == Opcode.CREATE:
            flags, mode, _, _ = messages.CREATE_IN.unpack_from(self._buffer, _BODY)
            name = self._name(_BODY + messages.CREATE_IN.size, length)
            who = self._requester(header)
            answer = self._fs.create(parent, name, mode, flags & ~os.O_EXCL, who)
            return self._reply(unique, answer, packing.created_once)
        return messages.error_reply(unique, code)

    # Files

    def open(self, header: Header, length: int) -> bytes | None:
        """FUSE_OPEN. ENOSYS on a stateless mount: the kernel asks no more, and keeps its pages
        until they are invalidated (FUSE_NO_OPEN_SUPPORT)."""
        if self._stateless:
            return messages.error_reply(header[2], errno.ENOSYS)
        flags, _ = messages.OPEN_IN.unpack_from(self._buffer, _BODY)
        answer = self._fs.open(header[3], flags, self._requester(header))
        if isinstance(answer, Later):
            return self._reply(header[2], answer, packing.opened)
        return packing.opened(header[2], answer, NO_TIMEOUTS)

    def create(self, header: Header, length: int) -> bytes | None:
        """FUSE_CREATE; the kernel has applied the umask."""
        flags, mode, _, _ = messages.CREATE_IN.unpack_from(self._buffer, _BODY)
        name = self._name(_BODY + messages.CREATE_IN.size, length)
        answer = self._fs.create(header[3], name, mode, flags, self._requester(header))
        once = self._valid(header[3], name) is NO_TIMEOUTS
        return self._reply(header[2], answer, packing.created_once if once else packing.created)

    def read(self, header: Header, length: int) -> bytes | None:
        """FUSE_READ."""
        handle, offset, size = _READ.unpack_from(self._buffer, _BODY)
        if self._stateless:
            return self._read_unopened(header, offset, size)
        answer = self._fs.read(handle, offset, size)
        if isinstance(answer, Later):
            return self._reply(header[2], answer, packing.data, droppable=True)
        return packing.data(header[2], answer, NO_TIMEOUTS)

    def _read_unopened(self, header: Header, offset: int, size: int) -> bytes | None:
        fs = self._fs
        opened = fs.open(header[3], os.O_RDONLY, self._requester(header))
        if isinstance(opened, Later):
            open_later = opened
            rest = Later(lambda: _read_and_release(fs, open_later.run().handle, offset, size))
            return self._reply(header[2], rest, packing.data)
        answer = fs.read(opened.handle, offset, size)
        if isinstance(answer, Later):
            handle, read_later = opened.handle, answer
            return self._reply(
                header[2], Later(lambda: _then_release(fs, handle, read_later)), packing.data
            )
        fs.release(opened.handle)
        return packing.data(header[2], answer, NO_TIMEOUTS)

    def write(self, header: Header, length: int) -> bytes | None:
        """FUSE_WRITE. The data is copied: the buffer is read into again at once."""
        handle, offset, size, how, _, _, _ = _WRITE.unpack_from(self._buffer, _BODY)
        if _WRITE_DATA + size > length:
            return messages.error_reply(header[2], errno.EIO)
        data = bytes(memoryview(self._buffer)[_WRITE_DATA : _WRITE_DATA + size])
        if how & messages.WRITE_CACHE:
            answer = self._fs.write(handle, offset, data, placed=True)
        else:
            answer = self._fs.write(handle, offset, data)
        return self._reply(header[2], answer, packing.written)

    def statfs(self, header: Header, length: int) -> bytes | None:
        """FUSE_STATFS."""
        return self._reply(header[2], self._fs.statfs(), packing.usage, droppable=True)

    def flush(self, header: Header, length: int) -> bytes | None:
        """FUSE_FLUSH: close(2) waits for it. ENOSYS on a stateless mount: it is not asked again."""
        if self._stateless:
            return messages.error_reply(header[2], errno.ENOSYS)
        (handle,) = _HANDLE.unpack_from(self._buffer, _BODY)
        return self._reply(header[2], self._fs.flush(handle), packing.done)

    def fsync(self, header: Header, length: int) -> bytes | None:
        """FUSE_FSYNC; fdatasync and msync too."""
        (handle,) = _HANDLE.unpack_from(self._buffer, _BODY)
        return self._reply(header[2], self._fs.fsync(handle), packing.done)

    def release(self, header: Header, length: int) -> bytes | None:
        """FUSE_RELEASE. Nobody waits for it: one of a handle that only read is put off while
        requests are queued that somebody waits for. One that wrote is not: what its closing
        changes must show to whoever asks next."""
        handle, flags = _RELEASE.unpack_from(self._buffer, _BODY)
        if flags & os.O_ACCMODE == os.O_RDONLY and not flags & os.O_TRUNC:
            self.released.append((header[2], handle))
            return None
        self._release(handle)
        return messages.error_reply(header[2], 0)

    def release_deferred(self) -> None:
        """Carry out the releases that were put off."""
        for unique, handle in self.released:
            self._release(handle)
            self._channel.send(messages.error_reply(unique, 0))
        self.released.clear()

    def _release(self, handle: int) -> None:
        """The kernel takes no refusal, and its close(2) has returned: it is answered before any
        work that is left."""
        try:
            answer = self._fs.release(handle)
            if answer is not None:
                self._workers.submit(Job(0, answer.run, packing.done))
        except OSError as error:
            log.debug("releasing handle %d: %s", handle, error)
        except Exception:
            log.exception("handle %d could not be released", handle)

    # Directories

    def opendir(self, header: Header, length: int) -> bytes | None:
        """FUSE_OPENDIR. The kernel may keep the listing until it is invalidated or it sees a
        change of its own. ENOSYS on a stateless mount says so once for all
        (FUSE_NO_OPENDIR_SUPPORT)."""
        if self._stateless:
            return messages.error_reply(header[2], errno.ENOSYS)
        handle = self._fs.opendir(header[3])
        keep = messages.FOPEN_KEEP_CACHE | messages.FOPEN_CACHE_DIR
        layout = messages.OPEN_REPLY
        flags = keep if self._timeouts()[2] > 1 else 0
        return layout.pack(layout.size, 0, header[2], handle, flags, 0)

    def readdir(self, header: Header, length: int) -> bytes | None:
        """FUSE_READDIR: kernels before protocol 7.21."""
        handle, offset, size = _READ.unpack_from(self._buffer, _BODY)
        if not self._stateless:
            return packing.listing(header[2], self._fs.readdir(handle, offset), size)
        handle = self._fs.opendir(header[3])
        try:
            return packing.listing(header[2], self._fs.readdir(handle, offset), size)
        finally:
            self._fs.releasedir(handle)

    def readdirplus(self, header: Header, length: int) -> bytes | None:
        """FUSE_READDIRPLUS: a listing whose entries need no LOOKUP after it."""
        handle, offset, size = _READ.unpack_from(self._buffer, _BODY)
        fs, valid = self._fs, self._timeouts()
        if not self._stateless:
            entries = fs.readdir(handle, offset)
            return packing.listing_plus(header[2], entries, size, fs, valid, self._aliases)
        handle = fs.opendir(header[3])
        try:
            entries = fs.readdir(handle, offset)
            return packing.listing_plus(header[2], entries, size, fs, valid, self._aliases)
        finally:
            fs.releasedir(handle)

    def releasedir(self, header: Header, length: int) -> bytes | None:
        """FUSE_RELEASEDIR."""
        (handle,) = _HANDLE.unpack_from(self._buffer, _BODY)
        self._fs.releasedir(handle)
        return messages.error_reply(header[2], 0)

    # Extended attributes

    def getxattr(self, header: Header, length: int) -> bytes | None:
        """FUSE_GETXATTR. ENOTSUP outside `user.`: `ls` then asks once a run, not once a file."""
        unique, ino = header[2], header[3]
        room, _ = messages.GETXATTR_IN.unpack_from(self._buffer, _BODY)
        raw = bytes(self._buffer[_BODY + messages.GETXATTR_IN.size : length - 1])
        if raw.startswith(_FOREIGN_XATTRS):
            return messages.error_reply(unique, errno.ENOTSUP)
        if raw == DRIVER_XATTR and ino == messages.ROOT_ID and self._identity:
            return packing.xattr(unique, self._identity, room)
        answer = self._fs.getxattr(ino, raw.decode("utf-8", "surrogateescape"))

        def encode(unique: int, value: bytes, _valid: Timeouts) -> bytes:
            return packing.xattr(unique, value, room)

        return self._reply(unique, answer, encode, droppable=True)

    def listxattr(self, header: Header, length: int) -> bytes | None:
        """FUSE_LISTXATTR."""
        room, _ = messages.GETXATTR_IN.unpack_from(self._buffer, _BODY)
        names = b"".join(name.encode() + b"\0" for name in self._fs.listxattr(header[3]))
        return packing.xattr(header[2], names, room)

    def interrupt(self, header: Header, length: int) -> bytes | None:
        """FUSE_INTERRUPT: no reply of its own."""
        self._workers.interrupt(messages.INTERRUPT_IN.unpack_from(self._buffer, _BODY)[0])
        return None


def _time(valid: int, bit: int, seconds: int, nanoseconds: int) -> int | None:
    """A time of SETATTR in nanoseconds: absent, the present, or given (negative before 1970)."""
    if not valid & bit:
        return None
    if valid & (
        messages.FATTR_ATIME_NOW if bit == messages.FATTR_ATIME else messages.FATTR_MTIME_NOW
    ):
        return clock.now_us() * 1000
    if seconds >= 1 << 63:
        seconds -= 1 << 64
    return seconds * 1_000_000_000 + nanoseconds


def _read_and_release(fs: Filesystem, handle: int, offset: int, size: int) -> bytes | memoryview:
    answer = fs.read(handle, offset, size)
    if isinstance(answer, Later):
        return _then_release(fs, handle, answer)
    fs.release(handle)
    return answer


def _then_release(fs: Filesystem, handle: int, answer: Later[bytes]) -> bytes:
    try:
        return answer.run()
    finally:
        fs.release(handle)
