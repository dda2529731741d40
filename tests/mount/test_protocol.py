"""The kernel's messages without a kernel: a socket stands in for `/dev/fuse`."""

from __future__ import annotations

import errno
import os
import random
import socket
import threading
from collections.abc import Iterator

import pytest

from fuse_mount.kernel import messages
from fuse_mount.kernel.messages import Opcode
from fuse_mount.kernel.notify import KernelNotifier
from fuse_mount.kernel.session import (
    STATELESS,
    Negotiated,
    ProtocolError,
    Session,
    handshake,
    negotiate,
)
from fuse_mount.vfs.interface import Later
from tests.support.memory_fs import MemoryFilesystem
from tests.support.waiting import until

ALL_FLAGS = 0xFFFF_FFFF
WAIT_SECONDS = 20


class Wire:
    """A session on one end, the test as the kernel on the other."""

    def __init__(self, *, deadline_s: float = 60.0, threads: int = 8) -> None:
        self.kernel, driver = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.kernel.settimeout(WAIT_SECONDS)
        self.fs = MemoryFilesystem()
        self.notifier = KernelNotifier()
        self.session = Session(
            driver.detach(),
            self.fs,
            Negotiated(38, 0, stateless=False),
            self.notifier,
            threads=threads,
            deadline_s=deadline_s,
        )
        self._thread = threading.Thread(target=self.session.serve, daemon=True)
        self._thread.start()

    def send(self, opcode: int, node: int = 1, body: bytes = b"", unique: int = 2) -> None:
        """One request."""
        size = messages.IN_HEADER_SIZE + len(body)
        head = messages.IN_HEADER.pack(size, opcode, unique, node, 0, 0, 1, 0, 0)
        self.kernel.send(head + body)

    def receive(self) -> tuple[int, int, bytes]:
        """One reply: its request, its errno, its payload. Notifications are passed over."""
        unique = 0
        while not unique:
            data = self.kernel.recv(1 << 20)
            length, error, unique = messages.OUT_HEADER.unpack_from(data)
        assert length == len(data)
        return unique, -error, data[messages.OUT_HEADER_SIZE :]

    def ask(self, opcode: int, node: int = 1, body: bytes = b"") -> tuple[int, bytes]:
        """The errno and payload of a request."""
        self.send(opcode, node, body)
        unique, code, payload = self.receive()
        assert unique == 2
        return code, payload

    def close(self) -> None:
        """Hang up."""
        self.kernel.close()
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()
        self.notifier.stop()
        self.session.workers.stop()
        self.session.channel.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A session and its kernel."""
    made = Wire()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("IN_HEADER", 40),
        ("SETATTR_IN", 88),
        ("WRITE_IN", 40),
        ("ENTRY_REPLY", 16 + 128),
        ("ATTR_REPLY", 16 + 104),
        ("CREATE_REPLY", 16 + 128 + 16),
        ("STATFS_REPLY", 16 + 80),
        ("INIT_OUT", 64),
        ("DIRENT", 24),
        ("DIRENTPLUS", 152),
        ("INVAL_INODE", 40),
        ("INVAL_ENTRY", 32),
        ("DELETE", 40),
    ],
)
def test_layouts_have_the_kernels_sizes(name: str, size: int) -> None:
    """Each structure is as long as `linux/fuse.h` makes it."""
    assert getattr(messages, name).size == size


def test_a_writable_mount_never_takes_what_corrupts() -> None:
    """However much a kernel offers: no write-back cache, no opens without asking, O_TRUNC in open."""
    answer, _ = negotiate(1, (7, 45, 131072, ALL_FLAGS), read_only=False)
    assert not answer.flags & messages.WRITEBACK_CACHE
    assert not answer.flags & messages.NO_OPEN_SUPPORT
    assert answer.flags & messages.ATOMIC_O_TRUNC
    assert answer.flags & messages.AUTO_INVAL_DATA
    assert not answer.stateless


def test_a_read_only_mount_opens_without_asking_where_it_can() -> None:
    """With both flags offered nothing is opened; with one missing everything is."""
    assert negotiate(1, (7, 45, 0, ALL_FLAGS), read_only=True)[0].stateless
    older = ALL_FLAGS & ~messages.NO_OPENDIR_SUPPORT
    answer, _ = negotiate(1, (7, 23, 0, older), read_only=True)
    assert not answer.stateless and not answer.flags & STATELESS


@pytest.mark.parametrize("minor", [19, 22, 23, 31, 38, 45])
def test_older_kernels_get_the_reply_they_know(minor: int) -> None:
    """The INIT reply has the length of the kernel's own protocol, and never more flags than offered."""
    answer, message = negotiate(1, (7, minor, 4096, messages.BIG_WRITES), read_only=False)
    assert len(message) - messages.OUT_HEADER_SIZE == (24 if minor < 23 else 64)
    assert answer.flags == messages.BIG_WRITES
    assert answer.minor == min(minor, messages.MINOR)


def _kernel_init(major: int, minor: int) -> tuple[socket.socket, int]:
    kernel, driver = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    body = messages.INIT_IN.pack(major, minor, 131072, ALL_FLAGS)
    size = messages.IN_HEADER_SIZE + len(body)
    kernel.send(messages.IN_HEADER.pack(size, Opcode.INIT, 1, 0, 0, 0, 0, 0, 0) + body)
    return kernel, driver.detach()


def test_a_kernel_too_old_is_told() -> None:
    """A protocol that lacks what a mount needs is refused with a sentence."""
    kernel, fd = _kernel_init(7, 8)
    with pytest.raises(ProtocolError, match=r"7\.8"):
        handshake(fd, read_only=False)
    kernel.close()
    os.close(fd)


def test_a_newer_major_is_asked_to_come_down() -> None:
    """The kernel learns which major version this side speaks, and asks again."""
    kernel, fd = _kernel_init(8, 1)
    body = messages.INIT_IN.pack(7, 38, 131072, ALL_FLAGS)
    size = messages.IN_HEADER_SIZE + len(body)
    kernel.send(messages.IN_HEADER.pack(size, Opcode.INIT, 2, 0, 0, 0, 0, 0, 0) + body)
    assert handshake(fd, read_only=False).minor == 38
    for _ in range(2):
        reply = kernel.recv(4096)
        assert int.from_bytes(reply[16:20], "little") == messages.MAJOR
    kernel.close()
    os.close(fd)


def test_a_missing_name_is_remembered(wire: Wire) -> None:
    """LOOKUP of nothing answers node 0 with a timeout, not an error."""
    code, payload = wire.ask(Opcode.LOOKUP, body=b"nothing\0")
    assert code == 0
    node, _, valid = messages.Struct("=QQQ").unpack_from(payload)
    assert (node, valid) == (0, 3600)


def test_lookup_counts_are_exact(wire: Wire) -> None:
    """What LOOKUP and READDIRPLUS hand out, FORGET and BATCH_FORGET give back."""
    inos = [wire.fs.put(f"f{number}", b"x").ino for number in range(3)]
    wire.ask(Opcode.LOOKUP, body=b"f0\0")
    _, payload = wire.ask(Opcode.OPENDIR)
    (handle,) = messages.HANDLE_IN.unpack_from(payload)
    code, payload = wire.ask(
        Opcode.READDIRPLUS, body=messages.READ_IN.pack(handle, 0, 65536) + bytes(20)
    )
    assert code == 0 and payload.count(b"f") == 3
    assert [wire.fs.lookups[ino] for ino in inos] == [2, 1, 1]
    wire.send(Opcode.FORGET, inos[0], messages.FORGET_IN.pack(2))
    items = b"".join(messages.FORGET_ONE.pack(ino, 1) for ino in inos[1:])
    wire.send(Opcode.BATCH_FORGET, 0, messages.BATCH_FORGET_IN.pack(2, 0) + items)
    until(lambda: not any(wire.fs.lookups.values()), "the counts to be given back")


def test_a_listing_ends_where_the_room_does(wire: Wire) -> None:
    """Entries that do not fit are neither sent nor counted, and come with the next request."""
    for number in range(50):
        wire.fs.put(f"file-{number:02}", b"x")
    _, payload = wire.ask(Opcode.OPENDIR)
    (handle,) = messages.HANDLE_IN.unpack_from(payload)
    names: list[bytes] = []
    offset = 0
    while True:
        body = messages.READ_IN.pack(handle, offset, 1000) + bytes(20)
        _, payload = wire.ask(Opcode.READDIRPLUS, body=body)
        assert len(payload) <= 1000
        if not payload:
            break
        while payload:
            _, offset, length, _ = messages.DIRENT.unpack_from(payload, 128)
            names.append(payload[152 : 152 + length])
            payload = payload[(152 + length + 7) // 8 * 8 :]
    assert names[:2] == [b".", b".."] and len(set(names)) == 52
    assert sum(wire.fs.lookups.values()) == 50


def test_a_slow_request_holds_up_no_other(wire: Wire) -> None:
    """While one read waits, others are answered."""
    wire.fs.put("slow", b"late")
    gate = wire.fs.gate["slow"] = threading.Event()
    handle = wire.fs.open(wire.fs.root.children["slow"].ino, os.O_RDONLY, None).handle  # type: ignore[arg-type]
    wire.send(Opcode.READ, 2, messages.READ_IN.pack(handle, 0, 10) + bytes(20), unique=100)
    for _ in range(20):
        assert wire.ask(Opcode.GETATTR, 1, bytes(16))[0] == 0
    gate.set()
    assert wire.receive() == (100, 0, b"late")


def test_an_overdue_request_fails_and_its_work_goes_on() -> None:
    """At its deadline a request gets EIO; its later answer is dropped."""
    wire = Wire(deadline_s=0.05)
    wire.fs.put("slow", b"late")
    gate = wire.fs.gate["slow"] = threading.Event()
    handle = wire.fs.open(wire.fs.root.children["slow"].ino, os.O_RDONLY, None).handle  # type: ignore[arg-type]
    wire.send(Opcode.READ, 2, messages.READ_IN.pack(handle, 0, 10) + bytes(20), unique=100)
    assert wire.receive()[:2] == (100, errno.EIO)
    gate.set()
    assert wire.session.workers.wait_idle(WAIT_SECONDS)
    assert wire.ask(Opcode.GETATTR, 1, bytes(16))[0] == 0
    wire.close()


def test_an_interrupt_ends_only_what_has_not_begun() -> None:
    """A read that waits for a thread ends with EINTR; one that runs is answered in the end."""
    wire = Wire(threads=1)
    wire.fs.put("slow", b"late")
    gate = wire.fs.gate["slow"] = threading.Event()
    handle = wire.fs.open(wire.fs.root.children["slow"].ino, os.O_RDONLY, None).handle  # type: ignore[arg-type]
    for unique in (100, 102):
        body = messages.READ_IN.pack(handle, 0, 10) + bytes(20)
        wire.send(Opcode.READ, 2, body, unique=unique)
    jobs = wire.session.workers._pending
    until(lambda: len(jobs) == 2 and jobs[100].running, "the first to run")
    for unique in (100, 102):
        wire.send(Opcode.INTERRUPT, 0, messages.INTERRUPT_IN.pack(unique), unique=unique + 1)
    assert wire.receive()[:2] == (102, errno.EINTR)
    gate.set()
    assert wire.receive() == (100, 0, b"late")
    wire.close()


def test_what_changed_meanwhile_is_not_remembered(wire: Wire) -> None:
    """Attributes computed before an invalidation and sent after it have no timeout."""
    node = wire.fs.put("a", b"x")
    gate = threading.Event()
    begun = threading.Event()

    def slow(ino: int) -> Later[object]:
        def run() -> object:
            begun.set()
            gate.wait()
            return node

        return Later(run)

    wire.fs.getattr = slow  # type: ignore[assignment, method-assign]
    wire.send(Opcode.GETATTR, node.ino, bytes(16))
    assert begun.wait(WAIT_SECONDS)
    wire.notifier.inval_inode(node.ino)
    notice = wire.kernel.recv(4096)
    assert messages.OUT_HEADER.unpack_from(notice)[1:] == (messages.NOTIFY_INVAL_INODE, 0)
    gate.set()
    _, code, payload = wire.receive()
    assert code == 0 and int.from_bytes(payload[:12], "little") == 0


def test_names_keep_bytes_that_are_not_utf8(wire: Wire) -> None:
    """Such a name comes to the file system as surrogates and goes back as it came."""
    wire.ask(Opcode.MKDIR, body=messages.MKDIR_IN.pack(0o755, 0) + b"caf\xe9\0")
    assert list(wire.fs.root.children) == ["caf\udce9"]
    _, payload = wire.ask(Opcode.OPENDIR)
    (handle,) = messages.HANDLE_IN.unpack_from(payload)
    _, payload = wire.ask(Opcode.READDIR, body=messages.READ_IN.pack(handle, 0, 4096) + bytes(20))
    assert b"caf\xe9" in payload


def test_special_files_are_refused(wire: Wire) -> None:
    """EPERM for symbolic links, hard links, fifos; mknod of a regular file creates it."""
    node = wire.fs.put("a", b"x")
    assert wire.ask(Opcode.SYMLINK, body=b"link\0target\0")[0] == errno.EPERM
    assert wire.ask(Opcode.LINK, body=node.ino.to_bytes(8, "little") + b"b\0")[0] == errno.EPERM
    fifo = messages.MKNOD_IN.pack(0o010644, 0, 0, 0) + b"fifo\0"
    assert wire.ask(Opcode.MKNOD, body=fifo)[0] == errno.EPERM
    regular = messages.MKNOD_IN.pack(0o100644, 0, 0, 0) + b"file\0"
    assert wire.ask(Opcode.MKNOD, body=regular)[0] == 0
    assert "file" in wire.fs.root.children


def test_extended_attributes_have_sizes(wire: Wire) -> None:
    """The length when no room is offered, ERANGE when too little, ENOTSUP beyond `user.`."""
    node = wire.fs.put("a", b"x")

    def ask(name: bytes, room: int) -> tuple[int, bytes]:
        return wire.ask(
            Opcode.GETXATTR, node.ino, messages.GETXATTR_IN.pack(room, 0) + name + b"\0"
        )

    assert ask(b"user.memstore.id", 0)[1][:4] == (5).to_bytes(4, "little")
    assert ask(b"user.memstore.id", 100) == (0, b"mem_2")
    assert ask(b"user.memstore.id", 2)[0] == errno.ERANGE
    assert ask(b"user.other", 100)[0] == errno.ENODATA
    assert ask(b"system.posix_acl_access", 100)[0] == errno.ENOTSUP
    assert wire.ask(Opcode.LISTXATTR, node.ino, messages.GETXATTR_IN.pack(99, 0))[1] == (
        b"user.memstore.id\0"
    )


def test_malformed_messages_end_nothing(wire: Wire) -> None:
    """Random bodies and opcodes are answered with an error or not at all; the loop goes on."""
    chance = random.Random(7)
    silent = {Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT}
    for unique in range(10, 3_000):
        opcode = chance.choice([*Opcode, 0, 7, 63, 64, 4096, 2**31])
        body = chance.randbytes(chance.choice([0, 1, 7, 8, 16, 24, 40, 88, 200]))
        wire.send(opcode, chance.choice([0, 1, 2, 2**63]), body, unique=unique)
        if opcode in silent:
            continue
        answered, _, _ = wire.receive()
        assert answered == unique
    wire.kernel.send(b"short")
    assert wire.ask(Opcode.GETATTR, 1, bytes(16))[0] == 0


@pytest.mark.parametrize(
    ("opcode", "body", "refused"),
    [
        (Opcode.UNLINK, b"gone.md\0", errno.ENOENT),
        (Opcode.RMDIR, b"gone\0", errno.ENOENT),
        (Opcode.RENAME, messages.RENAME_IN.pack(1) + b"gone.md\0there.md\0", errno.ENOENT),
        (Opcode.RENAME2, messages.RENAME2_IN.pack(1, 0, 0) + b"gone\0there.md\0", errno.ENOENT),
        (Opcode.MKDIR, messages.MKDIR_IN.pack(0o755, 0) + b"dir\0", errno.EEXIST),
    ],
)
def test_a_request_sent_again_may_have_been_carried_out(
    wire: Wire, opcode: Opcode, body: bytes, refused: int
) -> None:
    """What a driver did before it was killed is success when the kernel asks the next one for it;
    the same request for the first time is refused."""
    wire.fs.put("there.md", b"text")
    wire.ask(Opcode.MKDIR, body=messages.MKDIR_IN.pack(0o755, 0) + b"dir\0")
    assert wire.ask(opcode, body=body)[0] == refused
    wire.send(opcode, body=body, unique=4 | messages.RESENT)
    unique, code, _ = wire.receive()
    assert (unique, code) == (4 | messages.RESENT, 0)


def test_a_rename_sent_again_that_never_happened_is_refused(wire: Wire) -> None:
    """Neither the old name nor the new one is there: it is no success."""
    body = messages.RENAME_IN.pack(1) + b"gone.md\0missing.md\0"
    wire.send(Opcode.RENAME, body=body, unique=4 | messages.RESENT)
    assert wire.receive()[1] == errno.ENOENT
