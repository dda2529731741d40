"""rename(2): what it means for the store, by what is renamed and to which kind of name.

- A memory, to a memory's name: an update of its path. Onto another memory: that one's lineage goes
  on with this text, and this one ends.
- A memory, to a temporary name: held back, and cancelled by the way back. A file saved meanwhile
  under the old name goes on with the memory's lineage, as editors that make backups expect.
- A memory, to a litter name: deleted in the store, local from now on.
- A file the store does not know, to a memory's name: this is its save, `created`, or `modified`
  of the memory there. To a temporary or litter name: local.
- A directory: every memory below is renamed, in one transaction where the server can.

A rename that fails leaves both names as they were.
"""

from __future__ import annotations

import errno
import time

from fuse_mount.vfs.buffer import Buffer
from fuse_mount.vfs.commit import Saver
from fuse_mount.vfs.inodes import Dir, Entry, File
from fuse_mount.vfs.interface import Later
from fuse_mount.vfs.moving import Moving
from fuse_mount.vfs.names import check_path, new_name, normal, refusal
from fuse_mount.vfs.removing import Removing
from fuse_mount.vfs.state import State, later
from fuse_mount.vfs.tree import Away

RENAME_NOREPLACE = 1


class Renaming:
    """Judges a rename and sends it on its way."""

    def __init__(self, state: State, saver: Saver, removing: Removing, moving: Moving) -> None:
        self._state, self._saver, self._removing = state, saver, removing
        self._moving = moving

    def rename(
        self, parent: int, name: str, new_parent: int, name_wanted: str, flags: int
    ) -> Later[None] | None:
        """See `Filesystem.rename`."""
        state = self._state
        with state.lock:
            if flags & ~RENAME_NOREPLACE:
                raise refusal(errno.EINVAL)
            source = state.tree.directory(parent).children.get(normal(name))
            if source is None:
                raise refusal(errno.ENOENT)
            if state.options.read_only:
                raise refusal(errno.EROFS)
            where, to = state.tree.directory(new_parent), new_name(name_wanted)
            if not state.tree.is_attached(where):
                raise refusal(errno.ENOENT)
            target = where.children.get(to)
            if target is source:
                return None
            if target is not None and flags & RENAME_NOREPLACE:
                raise refusal(errno.EEXIST)
            path = check_path(f"{state.tree.path_of(where)}/{to}")
            moved = state.tree.files_below(source) if isinstance(source, Dir) else [source]
            if state.is_busy(*moved):
                return later(lambda: self._after(moved, parent, name, new_parent, to, flags))
            if isinstance(source, Dir):
                return self._directory_locked(source, where, to, path, target)
            if isinstance(target, Dir):
                raise refusal(errno.EISDIR)
            return self._file_locked(
                source, where, to, path, target, replace=not flags & RENAME_NOREPLACE
            )

    def _after(
        self, files: list[File], parent: int, name: str, new_parent: int, to: str, flags: int
    ) -> None:
        """Rename once the saves under way have landed, so that each lands under its old name."""
        with self._state.busy(*files):
            pass
        rest = self.rename(parent, name, new_parent, to, flags)
        if rest is not None:
            rest.run()

    # Directories

    def _directory_locked(
        self, source: Dir, where: Dir, to: str, path: str, target: Entry | None
    ) -> Later[None] | None:
        state = self._state
        if isinstance(target, File):
            raise refusal(errno.ENOTDIR)
        if target is not None and target.children:
            raise refusal(errno.ENOTEMPTY)
        at: Dir | None = where
        while at is not None:
            if at is source:
                raise refusal(errno.EINVAL)
            at = at.parent
        files = state.tree.files_below(source)
        old = state.tree.path_of(source)
        for file in files:
            check_path(path + state.tree.path_of(file)[len(old) :])
        if not any(file.memory_id for file in files):
            self.placed_locked(source, where, to, target)
            return None
        if state.archived:
            raise refusal(errno.EROFS)
        return later(
            lambda: self._moving.directory(
                source, files, path, lambda: self.placed_locked(source, where, to, target)
            )
        )

    # Files

    def _file_locked(
        self,
        source: File,
        where: Dir,
        to: str,
        path: str,
        target: File | None,
        *,
        replace: bool,
    ) -> Later[None] | None:
        state = self._state
        kind = state.scratch.kind(to)
        stored = bool(target is not None and target.memory_id)
        if state.archived and (source.memory_id or stored or kind != "litter"):
            raise refusal(errno.EROFS)
        if kind == "litter":
            return self._to_litter_locked(source, where, to, target)
        if kind == "temporary" and not stored and self._hold_locked(source):
            self.placed_locked(source, where, to, target)
            return None

        def landing(ended: File | None) -> None:
            self.placed_locked(source, where, to, ended, lineage=True)

        if not source.memory_id:
            return later(
                lambda: self._moving.save_as(source, path, replace=replace, landing=landing)
            )
        if source.away == path and not stored:
            return self._back_home_locked(source, where, to, target)
        return later(lambda: self._moving.memory(source, path, replace=replace, landing=landing))

    def _hold_locked(self, source: File) -> bool:
        """Hold a rename to a temporary name back; not when the text would have to be fetched."""
        state = self._state
        if source.memory_id and not source.away:
            if source.text is None:
                return False
            source.away = state.tree.path_of(source)
            state.tree.away[source.away] = Away(source, source.text, source.sha)
            source.born = state.changes
        self._no_longer_litter_locked(source)
        state.held[source.ino] = (source, state.monotonic())
        if source.buffer is not None and not source.writers:
            state.keep_text_locked(source)
        return True

    def _no_longer_litter_locked(self, source: File) -> None:
        if source.local:
            source.local = False
            self._state.scratch_used -= source.size
            assert source.buffer is not None
            source.buffer.written = True

    def _back_home_locked(
        self, source: File, where: Dir, to: str, target: File | None
    ) -> Later[None] | None:
        """A memory gets the name back under which the store still has it."""
        state = self._state
        state.tree.away.pop(source.away, None)
        source.away = ""
        state.held.pop(source.ino, None)
        self.placed_locked(source, where, to, target)
        if source.buffer is not None and source.buffer.written:
            return later(lambda: self._saver.save(source))
        return None

    def _to_litter_locked(
        self, source: File, where: Dir, to: str, target: File | None
    ) -> Later[None] | None:
        if source.local and (target is None or target.local):
            self.placed_locked(source, where, to, target)
            return None

        def leave() -> None:
            state = self._state
            files = [source] if target is None else [source, target]
            with state.busy(*files), self._removing.deleting(*files):
                if source.visible is None:
                    self._saver.catch_up(source, state.deadline())
                for file in reversed(files):
                    if not file.local:
                        self._removing.delete_busy(file)
                with state.lock:
                    self._become_litter_locked(source)
                    self.placed_locked(source, where, to, target)

        return later(leave)

    def _become_litter_locked(self, source: File) -> None:
        state = self._state
        if source.local:
            return
        source.buffer = source.buffer or Buffer(source.text or b"", b"", "")
        source.local = True
        state.scratch_used += source.size
        state.held.pop(source.ino, None)
        state.keep_text_locked(source)
        if source.memory_id:
            state.ended.add(source.memory_id)
            state.unbind_locked(source)
            state.cache.drop(source)

    # Names

    def placed_locked(
        self, source: Entry, where: Dir, to: str, target: Entry | None, *, lineage: bool = False
    ) -> None:
        """Change the names here. With `lineage` the target's memory goes on and only its node ends."""
        state, left = self._state, source.parent
        if isinstance(target, File) and target.parent is not None:
            if lineage and target.memory_id:
                if target.opens and target.buffer is None and target.text is not None:
                    target.buffer = Buffer(target.text, b"", "")
                    state.keep_text_locked(target)
                state.held.pop(target.ino, None)
                state.tree.detach(target)
                target.nlink = 0
            else:
                self._removing.unlinked_locked(target)
        elif isinstance(target, Dir):
            state.tree.detach(target)
            state.tree.free(target)
        if left is not None:
            state.note_foreign(left, source.name)
        state.tree.detach(source)
        state.tree.attach(where, to, source)
        state.note_foreign(where, to)
        if left is not None:
            self._removing.left_locked(left)
        now = time.time_ns()
        where.touch(now)
        source.ctime_ns = max(now, source.ctime_ns + 1000)
