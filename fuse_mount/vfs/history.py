"""The calls on `.versions`: what every memory ever said, as read-only files.

What versions there are is asked once, when `.versions` is first entered; the feed keeps it
current. A text is fetched when it is read. Only the kernel keeps it, until the version is
redacted; without a feed to tell of that, the server is asked at every open.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from functools import partial

from fuse_mount.vfs.interface import ROOT_INO, Later, Node, OpenFile
from fuse_mount.vfs.names import normal, refusal, too_long
from fuse_mount.vfs.past import FIRST_PAST_INO, Past, PastDir, PastFile, of_event, of_version
from fuse_mount.vfs.state import State, later
from memstore.model.clock import rfc3339_us
from memstore.model.events import Event
from memstore.model.limits import PAGE_MAX
from memstore.model.pages import Page
from memstore.model.versions import Version

NAME = ".versions"


class _Reader:
    """An open file of the past; `text` is None until it is read."""

    __slots__ = ("file", "text")

    def __init__(self, file: PastFile, text: bytes | None) -> None:
        self.file, self.text = file, text


class History:
    """What was, and the calls on it. Never blocks but in a `Later`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = threading.RLock()
        self._loading = threading.Lock()
        self._listening = self._loaded = self._missed = False
        self._past = Past(
            uid=state.options.uid,
            gid=state.options.gid,
            changed=lambda ino: state.notes.put(("inode", None, ino, 0, "")),
            renamed=lambda ino, name: state.notes.put(("entry", None, ino, 0, name)),
        )
        self._readers: dict[int, _Reader] = {}
        self._listings: dict[int, PastDir] = {}
        self._last_handle = FIRST_PAST_INO
        state.observers.append(self._observe)

    # What there is

    def _observe(self, event: Event | None) -> None:
        """Keep up with the feed; None: some of it was missed, so everything is asked again."""
        if not self._listening:
            return
        with self._lock:
            if event is None:
                self._missed, self._loaded = True, False
                self._state.notes.put(("entry", None, ROOT_INO, 0, NAME))
            elif event.kind == "version.redacted":
                self._redacted_locked(event.version_id or "")
            elif event.kind == "store.deleted":
                self._past.clear()
                self._readers.clear()
            else:
                moment = of_event(event)
                if moment is not None:
                    self._past.add(moment)

    def _redacted_locked(self, version_id: str) -> None:
        self._past.redact(version_id)
        for reader in self._readers.values():
            if reader.file.moment.id == version_id:
                reader.text = None

    def root(self) -> Node | Later[Node]:
        """The directory `.versions`, once it is known what is in it."""
        return self._past.root if self._loaded else later(self._load)

    def _load(self) -> Node:
        with self._loading:
            if not self._loaded:
                self._missed = False
                # From now on the feed is heard, so that nothing is missed that comes meanwhile.
                self._listening = True
                found = [of_version(version) for version in self._everything()]
                with self._lock:
                    for moment in reversed(found):
                        self._past.add(moment)
                    self._loaded = not self._missed
        return self._past.root

    def _everything(self) -> Iterator[Version]:
        """Every version there is, newest first."""
        state = self._state

        def read(cursor: str | None) -> Page[Version]:
            return state.backend.list_versions(state.store_id, limit=PAGE_MAX, page=cursor)

        page = state.call(partial(read, None), state.deadline())
        yield from page.data
        while page.next_page is not None:
            page = state.call(partial(read, page.next_page), state.deadline())
            yield from page.data

    # Names

    def lookup(self, parent: int, name: str) -> Node:
        """A version, or a directory on the way to one; ENOENT."""
        if too_long(name):
            raise refusal(errno.ENAMETOOLONG)
        with self._lock:
            where = self._directory(parent)
            if name == ".":
                return where
            self._past.fill(where)
            node = where.entries.get(normal(name))
            if node is None:
                raise refusal(errno.ENOENT)
            return node

    def _directory(self, ino: int) -> PastDir:
        node = self._past.nodes.get(ino)
        if isinstance(node, PastDir):
            return node
        raise refusal(errno.ESTALE if node is None else errno.ENOTDIR)

    def getattr(self, ino: int) -> Node:
        """The node; ESTALE when there is none."""
        node = self._past.nodes.get(ino)
        if node is None:
            raise refusal(errno.ESTALE)
        return node

    def opendir(self, ino: int) -> int:
        """A handle on a listing."""
        with self._lock:
            where = self._directory(ino)
            self._past.fill(where)
            self._last_handle += 1
            self._listings[self._last_handle] = where
            return self._last_handle

    def readdir(self, handle: int, offset: int, root: Node) -> Iterator[tuple[str, Node, int]]:
        """Entries after a cookie; `root` is the mount's, above `.versions`."""
        with self._lock:
            where = self._listings.get(handle)
            if where is None:
                raise refusal(errno.EBADF)
            entries: list[tuple[str, Node, int]] = []
            if offset < 1:
                entries.append((".", where, 1))
            if offset < 2:
                entries.append(("..", where.parent or root, 2))
            entries += where.after(offset)
            return iter(entries)

    def releasedir(self, handle: int) -> None:
        """Close a listing."""
        self._listings.pop(handle, None)

    # Texts

    def open(self, ino: int, flags: int) -> OpenFile | Later[OpenFile]:
        """Open for reading: EACCES once redacted, EROFS for writing."""
        with self._lock:
            file = self._past.nodes.get(ino)
            if not isinstance(file, PastFile):
                raise refusal(errno.ESTALE if file is None else errno.EISDIR)
            if flags & os.O_ACCMODE != os.O_RDONLY or flags & os.O_TRUNC:
                raise refusal(errno.EROFS)
            if file.moment.redacted:
                raise refusal(errno.EACCES)
            if file.moment.operation == "deleted":
                return self._opened(file, b"")
            if self._state.connected:
                return self._opened(file, None)
        found = file
        return later(lambda: self._opened(found, self._fetch(found), keep_cache=False))

    def _opened(self, file: PastFile, text: bytes | None, *, keep_cache: bool = True) -> OpenFile:
        with self._lock:
            self._last_handle += 1
            self._readers[self._last_handle] = _Reader(file, text)
            return OpenFile(self._last_handle, keep_cache, noflush=True)

    def _fetch(self, file: PastFile) -> bytes:
        """The text of a version as the server has it now; EACCES when it was redacted."""
        state, moment = self._state, file.moment
        version = state.call(
            lambda: state.backend.get_version(state.store_id, moment.id), state.deadline()
        )
        if version.redacted_at is not None:
            with self._lock:
                self._redacted_locked(moment.id)
            raise refusal(errno.EACCES)
        return (version.content or "").encode()

    def read(self, handle: int, offset: int, size: int) -> bytes | Later[bytes]:
        """Bytes of the text; EACCES once it is redacted, through a handle of before, too."""
        reader = self._readers.get(handle)
        if reader is None:
            raise refusal(errno.EBADF)
        if reader.file.moment.redacted:
            raise refusal(errno.EACCES)
        if reader.text is not None:
            return reader.text[offset : offset + size]
        found = reader

        def fetched() -> bytes:
            text = found.text = self._fetch(found.file)
            return text[offset : offset + size]

        return later(fetched)

    def release(self, handle: int) -> None:
        """Close a file."""
        self._readers.pop(handle, None)

    # Attributes

    def xattrs(self, ino: int) -> dict[str, str]:
        """What can be read of a version with getfattr; nothing of a directory or once redacted."""
        node = self._past.nodes.get(ino)
        if not isinstance(node, PastFile):
            return {}
        moment, author = node.moment, node.moment.author
        return {
            "user.memstore.id": moment.memory_id,
            "user.memstore.version_id": moment.id,
            "user.memstore.operation": moment.operation,
            "user.memstore.sha256": "" if moment.redacted else moment.sha256,
            "user.memstore.updated_at": rfc3339_us(moment.created_us),
            "user.memstore.created_by": "" if author is None else f"{author.kind}:{author.id}",
        }
