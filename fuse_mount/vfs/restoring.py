"""A new driver process takes over the mount of one that died.

The tree is loaded from the store as ever, under the node ids that the journal remembers. What
the store does not know is put back from the journal: names held back or local to the mount, and
the writable handles. A handle whose bytes died with the process says EIO until it is closed.
"""

from __future__ import annotations

import errno
import time

from fuse_mount.vfs.buffer import Buffer
from fuse_mount.vfs.commit import Saver
from fuse_mount.vfs.handles import Handle
from fuse_mount.vfs.inodes import RECALLED, Dir, File
from fuse_mount.vfs.journal import HandleNote, NodeNote, Recalled
from fuse_mount.vfs.state import State, log
from fuse_mount.vfs.tree import Away
from memstore.model.errors import MemstoreError


class Restoring:
    """Puts back what only the journal knows. Runs before anything is served."""

    def __init__(self, state: State, saver: Saver, recalled: Recalled) -> None:
        self._state, self._saver, self._recalled = state, saver, recalled
        self._parents = {note.parent for note in recalled.nodes.values()}

    def run(self) -> None:
        """Put everything back."""
        recalled, state = self._recalled, self._state
        with state.lock:
            for note in recalled.nodes.values():
                node = state.tree.nodes.get(note.ino)
                if node is not None:
                    node.st_ino, node.mode, node.cookie = note.st_ino, note.mode, note.cookie
            self._put_away_locked()
            for note in sorted(recalled.nodes.values(), key=lambda each: each.cookie):
                if note.parent and note.ino not in state.tree.nodes:
                    self._named_locked(note)
            self._nameless_locked()
            for number, handle in recalled.handles.items():
                self._handle_locked(number, handle)
            for note in recalled.nodes.values():
                node = state.tree.nodes.get(note.ino)
                if node is not None:
                    node.nlookup = RECALLED
            self._sort_locked()
        self._fetch()

    # Names

    def _put_away_locked(self) -> None:
        """Memories whose rename to a temporary name is held back are there again."""
        state, tree = self._state, self._state.tree
        for note in self._recalled.nodes.values():
            file = tree.nodes.get(note.ino)
            if not isinstance(file, File) or not note.parent or not file.memory_id:
                continue
            path = tree.path_of(file)
            parent = self._parent_locked(note)
            if (
                state.scratch.kind(note.name) != "temporary"
                or self._recalled.path_of(note) == path
                or parent is None
                or note.name in parent.children
                or file.text is None
            ):
                continue
            tree.detach(file)
            tree.attach(parent, note.name, file)
            file.cookie = note.cookie
            file.away = path
            tree.away[path] = Away(file, file.text, file.sha)
            text = self._recalled.texts.get(note.ino)
            if text is not None:
                file.buffer = Buffer(text, file.text, file.sha)
                file.buffer.written = text != file.text
                file.size = len(text)
            state.held[file.ino] = (file, state.monotonic())

    def _parent_locked(self, note: NodeNote) -> Dir | None:
        """The directory a node was in, made again when it is only local; None when it is gone."""
        tree = self._state.tree
        parent = tree.nodes.get(note.parent)
        if parent is None:
            above = self._recalled.nodes.get(note.parent)
            parent = None if above is None else self._directory_locked(above)
        return parent if isinstance(parent, Dir) and tree.is_attached(parent) else None

    def _directory_locked(self, note: NodeNote) -> Dir | None:
        tree = self._state.tree
        if not note.parent or not note.directory:
            return None
        parent = self._parent_locked(note)
        if parent is None or note.name in parent.children:
            return None
        made = tree.new_dir(time.time_ns(), note.ino)
        made.kept, made.mode = True, note.mode
        tree.attach(parent, note.name, made)
        made.cookie = note.cookie
        return made

    def _named_locked(self, note: NodeNote) -> None:
        """A name that the store does not know."""
        if note.directory:
            if note.ino not in self._parents:
                self._directory_locked(note)
            return
        text = self._recalled.texts.get(note.ino)
        if text is None and not self._begun(note):
            return
        parent = self._parent_locked(note)
        if parent is None or note.name in parent.children:
            return
        file = self._file_locked(note, text or b"")
        self._state.tree.attach(parent, note.name, file)
        file.cookie = note.cookie
        if self._state.scratch.kind(note.name) == "temporary" and not file.local:
            self._state.held[file.ino] = (file, self._state.monotonic())

    def _begun(self, note: NodeNote) -> bool:
        """Whether a file was created, and nothing was written to it yet by whoever has it open."""
        if note.memory_id:
            return False
        opened = [each for each in self._recalled.handles.values() if each.ino == note.ino]
        return bool(opened) and not any(each.dirty or each.refused for each in opened)

    def _file_locked(self, note: NodeNote, text: bytes) -> File:
        state = self._state
        file = state.tree.new_file(time.time_ns(), note.ino)
        file.st_ino, file.mode, file.local = note.st_ino, note.mode, note.local
        file.buffer = Buffer(text, b"", "")
        file.buffer.written = bool(text) and not file.local
        file.size = len(text)
        file.born = state.changes
        if file.local:
            state.scratch_used += file.size
        return file

    def _nameless_locked(self) -> None:
        """Files that were deleted while they were open keep their text."""
        for ino, text in self._recalled.texts.items():
            note = self._recalled.nodes.get(ino)
            if note is not None and not note.parent and ino not in self._state.tree.nodes:
                self._file_locked(note, text).nlink = 0

    def _sort_locked(self) -> None:
        """Listings go on where they were: the names from before first, under their cookies."""
        known, tree = self._recalled.nodes, self._state.tree
        highest = max((note.cookie for note in known.values()), default=0)
        for node in tree.nodes.values():
            if not isinstance(node, Dir):
                continue
            node.next_cookie = max(node.next_cookie, highest + 1)
            children = sorted(
                node.children.items(), key=lambda item: (item[1].ino not in known, item[1].cookie)
            )
            for _, child in children:
                if child.ino not in known:
                    child.cookie = node.next_cookie
                    node.next_cookie += 1
            node.children = dict(children)
            node.listing = None

    # Handles

    def _handle_locked(self, number: int, note: HandleNote) -> None:
        state = self._state
        file = state.tree.nodes.get(note.ino)
        lost = note.dirty
        if not isinstance(file, File):
            file = state.tree.new_file(time.time_ns(), note.ino)
            file.nlink, lost = 0, True
        handle = Handle(file, note.flags, number)
        handle.refused = errno.EIO if lost else note.refused
        if handle.readable and note.seen_sha != file.sha and not handle.refused:
            handle.refused = errno.ESTALE
        state.handles[number] = handle
        file.opens += 1
        file.writers += handle.writable
        if lost:
            log.warning(
                "%s: what was written and not yet acknowledged is lost",
                state.tree.path_of(file) or "a deleted file",
            )

    def _fetch(self) -> None:
        """The text of a file that may be written is in memory, as after its open."""
        state = self._state
        for handle in list(state.handles.values()):
            file = handle.file
            if file.visible is not None or handle.refused:
                continue
            try:
                self._saver.catch_up(file, state.deadline())
            except MemstoreError:
                handle.refused = errno.EIO
            handle.seen, handle.seen_sha = file.text, file.sha
            if file.visible is None:
                handle.refused = errno.EIO
