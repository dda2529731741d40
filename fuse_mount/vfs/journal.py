"""What has to outlive the driver's process, so that another can go on with the same mount.

The kernel knows files by node ids and open files by handle numbers. A journal notes which node
id is which name and memory, which writable handles are open and whether they hold bytes that no
close or fsync has acknowledged, and the texts that were acknowledged but are held in this mount
only (temporary and litter names, files deleted while open). Handles that only read need no note:
their number says which node they are of.

It lives in two memory files that belong to another process. Records are appended to one; when it
has grown enough, everything is written to the other, whose heading is written last. A process
killed at any moment leaves at least one whole journal behind.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuse_mount.vfs.handles import Handle
    from fuse_mount.vfs.inodes import Entry

log = logging.getLogger("memstore.mount")

GROWTH_BYTES = 16 * 1024 * 1024
"""A journal is written anew when more than this, and more than its beginning, was appended."""

_HEADING = Struct("=8sQQ")  # magic, generation, bytes of the beginning
_MAGIC = b"memstor1"
_RECORD = Struct("=BI")  # kind, bytes that follow
_NODE, _DETACHED, _MEMORY, _OPENED, _CLOSED, _HANDLE, _TEXT, _NO_TEXT, _META, _LAST = range(1, 11)
_NODE_HEAD = Struct("=QQQQIBH")  # ino, parent, cookie, st_ino, mode, flags, bytes of the name
_ONE = Struct("=Q")
_META_BODY = Struct("=QQI")  # ino, st_ino, mode
_OPENED_HEAD = Struct("=QQI")  # number, ino, flags
_HANDLE_HEAD = Struct("=QBI")  # number, dirty, errno
_TEXT_HEAD = Struct("=QB")  # ino, local
_DIR, _KEPT, _LOCAL = 1, 2, 4


@dataclass(slots=True)
class NodeNote:
    """One node. `parent` 0: it has no name (any more)."""

    ino: int
    parent: int
    cookie: int
    st_ino: int
    mode: int
    directory: bool
    kept: bool
    local: bool
    name: str
    memory_id: str


@dataclass(slots=True)
class HandleNote:
    """One writable handle. `dirty`: bytes written through it were not acknowledged."""

    ino: int
    flags: int
    dirty: bool = False
    refused: int = 0
    seen_sha: str = ""


@dataclass(slots=True)
class Recalled:
    """What a journal says: nodes and texts by node id, handles by number."""

    nodes: dict[int, NodeNote] = field(default_factory=dict)
    handles: dict[int, HandleNote] = field(default_factory=dict)
    texts: dict[int, bytes] = field(default_factory=dict)
    last_ino: int = 1
    by_memory: dict[str, NodeNote] = field(default_factory=dict)
    by_path: dict[str, NodeNote] = field(default_factory=dict)

    def index(self) -> None:
        """Make memories and directories findable."""
        for note in self.nodes.values():
            if note.memory_id:
                self.by_memory[note.memory_id] = note
            if note.directory:
                path = self.path_of(note)
                if path is not None:
                    self.by_path[path] = note

    def path_of(self, note: NodeNote) -> str | None:
        """The path a node had; None when it was nowhere."""
        parts: list[str] = []
        at = note
        while at.parent != 1:
            parts.append(at.name)
            above = self.nodes.get(at.parent)
            if above is None or len(parts) > len(self.nodes):
                return None
            at = above
        parts += [at.name, ""]
        return "/".join(reversed(parts))


class Journal:
    """Two memory files. Every method needs the vfs lock."""

    def __init__(self, files: tuple[int, int]) -> None:
        self._files = files
        self._generation, self._at = 0, 0
        self._began, self._size = 0, 0
        self._texts: dict[int, int] = {}
        self._buffered: list[bytes] | None = None

    # Reading

    def recall(self) -> Recalled | None:
        """What the journal says; None when there is nothing."""
        best: bytes | None = None
        for number, fd in enumerate(self._files):
            data = _whole(fd)
            if len(data) < _HEADING.size:
                continue
            magic, generation, began = _HEADING.unpack_from(data)
            if magic == _MAGIC and generation > self._generation and len(data) >= began:
                self._generation, self._at, best = generation, number, data
        return None if best is None else _replayed(memoryview(best)[_HEADING.size :])

    # Writing

    @property
    def outgrown(self) -> bool:
        """Whether `begin` should be called."""
        return self._size - self._began > max(GROWTH_BYTES, self._began)

    def begin(
        self,
        nodes: Iterable[Entry],
        handles: Iterable[Handle],
        texts: Iterable[tuple[Entry, bool, bytes]],
        last_ino: int,
    ) -> None:
        """Write everything to the other file, and go on there."""
        self._buffered = [bytes(_HEADING.size), _record(_LAST, _ONE.pack(last_ino))]
        self._texts.clear()
        for node in nodes:
            self.node(node)
        for handle in handles:
            self.opened(handle)
            if handle.noted or handle.refused:
                self.handle(handle)
        for node, local, text in texts:
            self.text(node.ino, local, text, 0)
        data, self._buffered = b"".join(self._buffered), None
        other = 1 - self._at
        fd = self._files[other]
        os.ftruncate(fd, 0)
        _write_all(fd, data, 0)
        os.lseek(fd, len(data), os.SEEK_SET)
        self._generation += 1
        _write_all(fd, _HEADING.pack(_MAGIC, self._generation, len(data)), 0)
        os.ftruncate(self._files[self._at], 0)
        self._at, self._began, self._size = other, len(data), len(data)

    def _put(self, kind: int, body: bytes) -> None:
        record = _RECORD.pack(kind, len(body)) + body
        if self._buffered is not None:
            self._buffered.append(record)
            return
        self._size += len(record)
        os.write(self._files[self._at], record)

    def node(self, node: Entry) -> None:
        """A node has a name, or is the view of a memory."""
        memory_id = getattr(node, "memory_id", None)
        flags = _DIR if memory_id is None else _LOCAL if getattr(node, "local", False) else 0
        if memory_id is None and getattr(node, "kept", False):
            flags |= _KEPT
        name = node.name.encode("utf-8", "surrogateescape")
        parent = node.parent.ino if node.parent is not None else 0
        head = _NODE_HEAD.pack(
            node.ino, parent, node.cookie, node.st_ino, node.mode, flags, len(name)
        )
        self._put(_NODE, head + name + (memory_id or "").encode())

    def detached(self, ino: int) -> None:
        """A node lost its name."""
        self._put(_DETACHED, _ONE.pack(ino))

    def memory(self, ino: int, memory_id: str) -> None:
        """A node is the view of that memory from now on, or of none."""
        self._put(_MEMORY, _ONE.pack(ino) + memory_id.encode())

    def meta(self, node: Entry) -> None:
        """A node's mode or number for users changed."""
        self._put(_META, _META_BODY.pack(node.ino, node.st_ino, node.mode))

    def opened(self, handle: Handle) -> None:
        """A writable handle."""
        head = _OPENED_HEAD.pack(handle.number, handle.file.ino, handle.flags)
        self._put(_OPENED, head + handle.seen_sha.encode())

    def closed(self, number: int) -> None:
        """A writable handle is closed."""
        self._put(_CLOSED, _ONE.pack(number))

    def handle(self, handle: Handle) -> None:
        """A handle became dirty, clean, or was refused."""
        head = _HANDLE_HEAD.pack(handle.number, handle.noted, handle.refused)
        self._put(_HANDLE, head + handle.seen_sha.encode())

    def text(self, ino: int, local: bool, text: bytes | bytearray, stamp: int) -> None:
        """A text that is acknowledged and only here; the same `stamp` again is no news."""
        if self._texts.get(ino) == stamp + 1:
            return
        self._texts[ino] = stamp + 1
        self._put(_TEXT, _TEXT_HEAD.pack(ino, local) + text)

    def no_text(self, ino: int) -> None:
        """The store has a text, or it was given up."""
        if self._texts.pop(ino, None) is not None:
            self._put(_NO_TEXT, _ONE.pack(ino))


def _record(kind: int, body: bytes) -> bytes:
    return _RECORD.pack(kind, len(body)) + body


def _write_all(fd: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, offset)
        view, offset = view[done:], offset + done


def _whole(fd: int) -> bytes:
    size, parts, at = os.fstat(fd).st_size, [], 0
    while at < size:
        part = os.pread(fd, size - at, at)
        if not part:
            break
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _replayed(data: memoryview) -> Recalled:
    """The records in order; one that was cut off by the end of its writer is left out."""
    found, at, end = Recalled(), 0, len(data)
    while at + _RECORD.size <= end:
        kind, length = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        if at + length > end:
            break
        _apply(found, kind, data[at : at + length])
        at += length
    found.index()
    return found


def _apply(found: Recalled, kind: int, body: memoryview) -> None:
    if kind == _NODE:
        _apply_node(found, body)
        return
    number = _ONE.unpack_from(body)[0]
    note, handle = found.nodes.get(number), found.handles.get(number)
    if kind == _DETACHED:
        if note is not None:
            note.parent = 0
    elif kind == _MEMORY:
        if note is not None:
            note.memory_id = bytes(body[_ONE.size :]).decode()
    elif kind == _META:
        if note is not None:
            _, note.st_ino, note.mode = _META_BODY.unpack(body)
    elif kind == _OPENED:
        _, ino, flags = _OPENED_HEAD.unpack_from(body)
        sha = bytes(body[_OPENED_HEAD.size :]).decode()
        found.handles[number] = HandleNote(ino, flags, seen_sha=sha)
    elif kind == _CLOSED:
        found.handles.pop(number, None)
    elif kind == _HANDLE:
        if handle is not None:
            _, dirty, handle.refused = _HANDLE_HEAD.unpack_from(body)
            handle.dirty = bool(dirty)
            handle.seen_sha = bytes(body[_HANDLE_HEAD.size :]).decode()
    elif kind == _TEXT:
        found.texts[number] = bytes(body[_TEXT_HEAD.size :])
        if note is not None:
            note.local = bool(body[_ONE.size])
    elif kind == _NO_TEXT:
        found.texts.pop(number, None)
    elif kind == _LAST:
        found.last_ino = max(found.last_ino, number)


def _apply_node(found: Recalled, body: memoryview) -> None:
    ino, parent, cookie, st_ino, mode, flags, length = _NODE_HEAD.unpack_from(body)
    rest = bytes(body[_NODE_HEAD.size :])
    found.nodes[ino] = NodeNote(
        ino,
        parent,
        cookie,
        st_ino,
        mode,
        directory=bool(flags & _DIR),
        kept=bool(flags & _KEPT),
        local=bool(flags & _LOCAL),
        name=rest[:length].decode("utf-8", "surrogateescape"),
        memory_id=rest[length:].decode(),
    )
    found.last_ino = max(found.last_ino, ino)
