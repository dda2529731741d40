"""Files and directories of one store, over any backend: what a tool that thinks in paths needs.

A store holds no directories: one exists while a memory is below it. Edits carry the hash of the
text they were made from and are made again from the newest text when it has changed meanwhile,
so that of two edits of one file neither is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memstore.backend import Backend, NotSupported
from memstore.model import limits, paths
from memstore.model.errors import Conflict, InvalidPath, NotFound, PreconditionFailed
from memstore.model.memories import Change, DeleteMemory, Memory, UpdateMemory, View
from memstore.model.preconditions import ContentIs

_ATTEMPTS = 100
"""An edit is beaten only by one that was made, so this many defeats mean no ordinary contention."""


@dataclass(frozen=True, slots=True)
class MemoryFiles:
    """One store as files at paths that begin with `/`; `/` itself is its root."""

    backend: Backend
    store_id: str

    def find(self, path: str, *, view: View = "full") -> Memory | None:
        """The memory at a path, or None; also on a server that cannot be asked by path."""
        try:
            paths.validate(path)
        except InvalidPath:
            return None
        try:
            return self.backend.get_memory_at(self.store_id, path, view=view)
        except NotSupported:
            return self._find_in_listing(path, view)
        except NotFound:
            self.backend.get_store(self.store_id)
            return None

    def _find_in_listing(self, path: str, view: View) -> Memory | None:
        prefix = path[: path.rindex("/") + 1]
        for memory in self._listed(prefix, depth=1):
            if memory.path == path:
                try:
                    return self.backend.get_memory(self.store_id, memory.id, view=view)
                except NotFound:
                    return None
        return None

    def below(self, directory: str) -> Iterator[Memory]:
        """Every memory below a directory, in path order, without texts; none when it is missing."""
        prefix = "/" if directory == "/" else f"{directory}/"
        try:
            paths.validate_prefix(prefix)
        except InvalidPath:
            return iter(())
        return self._listed(prefix, depth=0)

    def _listed(self, prefix: str, *, depth: int) -> Iterator[Memory]:
        page = None
        while True:
            found = self.backend.list_memories(
                self.store_id, path_prefix=prefix, depth=depth, limit=limits.PAGE_MAX, page=page
            )
            for item in found.data:
                if isinstance(item, Memory):
                    yield item
            page = found.next_page
            if page is None:
                return

    def is_directory(self, path: str) -> bool:
        """Whether a memory is below the path; the root always is one."""
        return path == "/" or next(self.below(path), None) is not None

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory."""
        return self.is_directory(path) or self.find(path, view="basic") is not None

    def create(self, path: str, content: str) -> Memory:
        """A new file; PathConflict when the path is taken or overlaps one."""
        return self.backend.create_memory(self.store_id, path=path, content=content)

    def edit(self, path: str, change: Callable[[str], str]) -> str | None:
        """Give the file the text that `change` makes of its text; None when there is no file.

        `change` is asked again when the text changed meanwhile; it may raise to refuse.
        """
        for _ in range(_ATTEMPTS):
            memory = self.find(path)
            if memory is None or memory.content is None:
                return None
            content = change(memory.content)
            try:
                self.backend.update_memory(
                    self.store_id,
                    memory.id,
                    content=content,
                    precondition=ContentIs(memory.content_sha256),
                )
                return content
            except (PreconditionFailed, NotFound):
                continue
        raise Conflict(f"{path} is changed by others without a pause. Try again later.")

    def delete(self, path: str) -> bool:
        """Delete a file, or all below a directory; False when there was neither."""
        return self._apply(path, lambda memory: DeleteMemory(memory.id))

    def rename(self, path: str, destination: str) -> bool:
        """Move a file, or each file below a directory; False when there was neither.

        PathConflict when the destination is taken meanwhile.
        """
        cut = len(path)
        return self._apply(
            path,
            lambda memory: UpdateMemory(memory.id, path=destination + memory.path[cut:]),
        )

    def _apply(self, path: str, change: Callable[[Memory], Change]) -> bool:
        """One change for the file, or for each file below the directory, all or none if it can be.

        What another one deletes meanwhile is left out, by looking again.
        """
        for _ in range(_ATTEMPTS):
            memory = self.find(path, view="basic") if path != "/" else None
            found = [memory] if memory else list(self.below(path))
            try:
                self._change_all([change(each) for each in found])
            except NotFound:
                self.backend.get_store(self.store_id)
                continue
            return bool(found)
        raise Conflict(f"{path} is changed by others without a pause. Try again later.")

    def _change_all(self, changes: list[Change]) -> None:
        if len(changes) > 1:
            try:
                for start in range(0, len(changes), limits.BATCH_CHANGES):
                    part = changes[start : start + limits.BATCH_CHANGES]
                    self.backend.apply_changes(self.store_id, part)
                return
            except NotSupported:
                pass
        for change in changes:
            self._change(change)

    def _change(self, change: Change) -> None:
        if isinstance(change, DeleteMemory):
            self.backend.delete_memory(self.store_id, change.memory_id)
        elif isinstance(change, UpdateMemory):
            self.backend.update_memory(self.store_id, change.memory_id, path=change.path)
