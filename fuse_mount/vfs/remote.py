"""What the store tells, put into the tree: events of the feed, and answers to our own calls.

Text, size and times of a file change together, under the lock; the kernel is told afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from fuse_mount.vfs.inodes import RECALLED, Dir, Entry, File
from fuse_mount.vfs.names import representable
from fuse_mount.vfs.state import Former, State
from memstore.model.clock import to_us
from memstore.model.events import Event
from memstore.model.memories import Memory

_SURELY_SHOWN = 60
"""A path of so many characters has no segment over 255 bytes."""


@dataclass(frozen=True, slots=True)
class Known:
    """A memory's state as some message told it; `text` is None when it was not sent along."""

    memory_id: str
    version_id: str
    path: str
    text: bytes | None
    size: int
    sha: str
    updated_us: int


def of_memory(memory: Memory) -> Known:
    """The state in an answer."""
    text = None if memory.content is None else memory.content.encode()
    return Known(
        memory.id,
        memory.version_id,
        memory.path,
        text,
        memory.content_size_bytes,
        memory.content_sha256,
        to_us(memory.updated_at),
    )


def of_event(event: Event) -> Known | None:
    """The state after a `memory.created` or `memory.modified`; None once that was redacted."""
    if event.memory_id is None or event.path is None or event.content_sha256 is None:
        return None
    return Known(
        event.memory_id,
        event.version_id or "",
        event.path,
        None if event.content is None else event.content.encode(),
        event.content_size_bytes or 0,
        event.content_sha256,
        to_us(event.created_at),
    )


class Remote:
    """Applies what the store tells. Every method takes the lock itself."""

    def __init__(self, state: State) -> None:
        self._state = state

    # From the feed

    def event(self, event: Event) -> None:
        """Apply one event, in the feed's order."""
        state = self._state
        with state.feed_gate.feed(), state.lock:
            if event.kind in ("memory.created", "memory.modified"):
                known = of_event(event)
                if known is not None and not self._outdated_locked(known):
                    self._apply_locked(known)
            elif event.kind == "memory.deleted" and event.memory_id:
                state.awaited.pop(event.memory_id, None)
                state.ended.add(event.memory_id)
                if event.memory_id not in state.deleting:
                    self._delete_locked(event.memory_id)
            elif event.kind == "store.archived":
                state.archived = True
            elif event.kind == "store.deleted":
                for memory_id in list(state.tree.memories):
                    self._delete_locked(memory_id)
        for observer in state.observers:
            observer(event)

    def _outdated_locked(self, known: Known) -> bool:
        """Whether what is shown is already newer; notes that the feed has come to this version."""
        state = self._state
        state.seen.add(known.version_id)
        if known.memory_id in state.ended:
            return True
        awaited = state.awaited.get(known.memory_id)
        if awaited is None:
            return False
        if known.version_id == awaited[0]:
            del state.awaited[known.memory_id]
            return True
        if known.updated_us <= awaited[1]:
            return True
        del state.awaited[known.memory_id]
        return False

    # From a whole listing

    def listing(self, memories: list[Known]) -> None:
        """Make the tree equal to a listing, but for what answers told since it was made."""
        state = self._state
        with state.feed_gate.feed(), state.lock:
            present = {known.memory_id for known in memories}
            for memory_id in list(state.tree.memories):
                if memory_id not in present and memory_id not in state.awaited:
                    self._delete_locked(memory_id)
            for known in memories:
                if not self._outdated_locked(known):
                    self._apply_locked(known)
        for observer in state.observers:
            observer(None)

    def load(self, memories: Iterable[Memory]) -> None:
        """Take in the first listing, before anybody looks at the tree."""
        state, tree = self._state, self._state.tree
        parents: dict[str, Dir] = {"": tree.root}
        recalled = state.recalled
        with state.lock:
            for memory in memories:
                path = memory.path
                if len(path) > _SURELY_SHOWN and not representable(path):
                    state.skipped += 1
                    continue
                above, _, name = path.rpartition("/")
                parent = parents.get(above)
                if parent is None:
                    parent = parents[above] = self._implied(above)
                updated_us = to_us(memory.updated_at)
                note = None if recalled is None else recalled.by_memory.get(memory.id)
                file = tree.new_file(updated_us * 1000, 0 if note is None else note.ino)
                tree.attach(parent, name, file)
                file.size = file.stored = memory.content_size_bytes
                file.memory_id, file.version_id = memory.id, memory.version_id
                file.sha, file.updated_us = memory.content_sha256, updated_us
                tree.memories[memory.id] = file
                state.stored_bytes += file.stored
                if memory.content is not None:
                    state.cache.put(file, memory.content.encode())

    def _implied(self, path: str) -> Dir:
        tree = self._state.tree
        at, recalled, above = tree.root, self._state.recalled, ""
        for segment in path[1:].split("/"):
            child = at.children.get(segment)
            above = f"{above}/{segment}"
            if child is None:
                note = None if recalled is None else recalled.by_path.get(above)
                child = tree.new_dir(time.time_ns(), 0 if note is None else note.ino)
                tree.attach(at, segment, child)
            assert isinstance(child, Dir), "a path is a file or a directory, never both"
            at = child
        return at

    # From an answer to our own call

    def answer_locked(self, known: Known, *, own: bool = False) -> File | None:
        """Apply an answer, unless the feed has already come as far or further.

        `own`: the change was made here, so it is not one that an edit must be merged with.
        """
        state = self._state
        file = state.tree.memories.get(known.memory_id)
        if known.memory_id in state.ended:
            return None
        if known.version_id in state.seen and file is not None:
            if own:
                self._mine_locked(known.version_id)
            if file.version_id == known.version_id and known.text is not None:
                state.cache.put(file, known.text)
            return file
        if file is None or file.version_id != known.version_id:
            if known.version_id not in state.seen:
                state.awaited[known.memory_id] = (known.version_id, known.updated_us)
            return self._apply_locked(known, own)
        if known.text is not None and file.text is None:
            state.cache.put(file, known.text)
        return file

    def _mine_locked(self, version_id: str) -> None:
        """A change the feed told of before its answer came was made here after all."""
        former = self._state.former
        for entry in [entry for entry in former if entry.version_id == version_id]:
            former.remove(entry)

    def deleted_locked(self, memory_id: str) -> None:
        """A memory is gone, as an answer told."""
        self._state.ended.add(memory_id)
        self._state.awaited.pop(memory_id, None)
        self._delete_locked(memory_id)

    # The changes themselves

    def _apply_locked(self, known: Known, own: bool = False) -> File | None:
        state = self._state
        if not representable(known.path):
            state.skipped += 1
            self._delete_locked(known.memory_id)
            return None
        file = state.tree.memories.get(known.memory_id)
        if file is None:
            return self._appear_locked(known)
        if not file.away and state.tree.path_of(file) != known.path:
            self._move_locked(file, known.path)
        elif file.away and file.away != known.path:
            self._moved_while_away_locked(file, known.path)
        if file.version_id != known.version_id:
            self._update_locked(file, known, own)
        return file

    def _update_locked(self, file: File, known: Known, own: bool = False) -> None:
        state = self._state
        changed = file.sha != known.sha
        before, before_sha = file.text, file.sha
        state.know_locked(
            file,
            version_id=known.version_id,
            sha=known.sha,
            size=known.size,
            updated_us=known.updated_us,
        )
        if not changed:
            return
        if before is not None and not own:
            state.changes += 1
            state.former.append(Former(state.changes, file, before, before_sha, known.version_id))
        if known.text is None:
            state.cache.drop(file)
        else:
            state.cache.put(file, known.text)
        if file.buffer is None:
            if file.previous is None:
                file.previous = before
            file.size = known.size
            file.touch(known.updated_us * 1000)
            state.note_inode(file)

    def _appear_locked(self, known: Known) -> File | None:
        """A memory unknown so far: a new file, or the one that was just created here."""
        state = self._state
        tree = state.tree
        at = tree.find(known.path)
        if isinstance(at, File) and not at.memory_id and not at.local:
            state.bind_locked(at, known.memory_id)
            self._update_locked(at, known)
            return at
        if at is not None:
            self._displace_locked(at)
        file = tree.new_file(known.updated_us * 1000)
        if not self._place_locked(file, known.path):
            tree.free(file)
            return None
        state.bind_locked(file, known.memory_id)
        state.know_locked(
            file,
            version_id=known.version_id,
            sha=known.sha,
            size=known.size,
            updated_us=known.updated_us,
        )
        file.size = known.size
        if known.text is not None:
            state.cache.put(file, known.text)
        return file

    def _place_locked(self, file: File, path: str) -> bool:
        """Give a file its path, making the directories it implies; False when a file is in the way."""
        state, parent = self._state, self._state.tree.root
        *segments, name = path[1:].split("/")
        for segment in segments:
            child = parent.children.get(segment)
            if child is None:
                child = state.tree.new_dir(time.time_ns())
                state.tree.attach(parent, segment, child)
                state.note_entry(parent, segment)
            elif isinstance(child, File):
                if child.memory_id:
                    return False
                self._displace_locked(child)
                child = state.tree.new_dir(time.time_ns())
                state.tree.attach(parent, segment, child)
            child.kept = False
            parent = child
        state.tree.attach(parent, name, file)
        state.note_entry(parent, name)
        return True

    def _displace_locked(self, node: Entry) -> None:
        """Something local gives its name to a memory.

        An empty directory goes. What local files hold stays reachable through open handles only.
        """
        state, parent, name = self._state, node.parent, node.name
        if parent is None:
            return
        if isinstance(node, Dir):
            for file in state.tree.files_below(node):
                state.tree.detach(file)
        elif node.memory_id:
            # The feed speaks of a path before it tells that the memory there moved or ended.
            state.unbind_locked(node)
        state.tree.detach(node)
        state.note_entry(parent, name)
        state.tree.free(node)

    def _move_locked(self, file: File, path: str) -> None:
        state, parent, name = self._state, file.parent, file.name
        at = state.tree.find(path)
        if at is not None and at is not file:
            self._displace_locked(at)
        state.tree.detach(file)
        if parent is not None:
            state.note_entry(parent, name)
        self._place_locked(file, path)
        if parent is not None:
            self._prune_locked(parent)

    def _moved_while_away_locked(self, file: File, path: str) -> None:
        """Someone else renamed a memory whose rename here is held back: theirs came first."""
        self._state.tree.away.pop(file.away, None)
        file.away = ""
        self._state.held.pop(file.ino, None)
        self._move_locked(file, path)

    def _delete_locked(self, memory_id: str) -> None:
        state = self._state
        file = state.tree.memories.get(memory_id)
        if file is None:
            return
        state.unbind_locked(file)
        buffer, parent, name = file.buffer, file.parent, file.name
        if buffer is not None:
            # The save to come re-creates the path.
            buffer.base, buffer.base_sha = b"", ""
            return
        if parent is None:
            return
        if file.opens or file.nlookup >= RECALLED:
            state.keep_text_locked(file)
            file.lost_path = state.tree.path_of(file)
        state.tree.detach(file)
        state.note_deleted(parent, file, name)
        if not file.opens and file.nlookup < RECALLED:
            state.cache.drop(file)
        state.held.pop(file.ino, None)
        self._prune_locked(parent)
        state.tree.free(file)

    def _prune_locked(self, where: Dir) -> None:
        """Directories that nothing implies any more go, unless this mount keeps them."""
        state = self._state
        while not where.children and not where.kept and where.parent is not None:
            parent, name = where.parent, where.name
            state.tree.detach(where)
            state.note_deleted(parent, where, name)
            state.tree.free(where)
            where = parent
