"""The memory tool (`memory_20250818`) over a store: what a model saves is a memory, versioned.

`/memories/x` is the memory `/x`. The answers are those of the SDK's own file-based tool, to the
byte, but for the sizes of directories. What is stricter here: a path begins with `/memories` as a
whole segment; an encoded `..` is refused; a name is one in Unicode's normal form C; and a store's
rules hold (no NUL, at most 102,400 bytes), told to the model in a sentence.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
from anyio.to_thread import run_sync

from memstore.agents import wording as say
from memstore.agents.memory_files import MemoryFiles
from memstore.model import paths
from memstore.model.errors import MemstoreError, PathConflict

if TYPE_CHECKING:
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

    from memstore.backend import Backend

ROOT = "/memories"
_INSIDE_ITSELF = "Cannot move {old} to {new}: one lies inside the other"


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `client.beta.messages.tool_runner`, on one store of a backend.

    `store` is the store's id. A refusal is raised as the SDK's `ToolError`, which becomes a tool
    result with `is_error`. The backend stays the caller's to close.
    """

    def __init__(
        self,
        backend: Backend,
        store: str,
        *,
        wording: say.Wording = say.SDK,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(backend, store)
        self._say = wording

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A file with line numbers, or what is two levels below a directory."""
        path = store_path(command.path)
        with _told():
            memory = self._files.find(path) if path != "/" else None
            if memory is not None and memory.content is not None:
                shown = say.view_of_file(command.path, memory.content, command.view_range)
                if shown is None:
                    _refuse(say.TOO_MANY_LINES, path=command.path)
                return shown
            start = 1 if path == "/" else len(path) + 1
            files = [
                (tuple(memory.path[start:].split("/")), memory.content_size_bytes)
                for memory in self._files.below(path)
            ]
            if not files and path != "/":
                _refuse(say.MISSING, path=command.path)
            return say.view_of_directory(command.path, files, self._say)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """A new file; the directories above it need not exist."""
        path = store_path(command.path)
        if path == "/":
            _refuse(self._say.exists, path=command.path)
        with _told():
            try:
                self._files.create(path, command.file_text)
            except PathConflict:
                if self._files.exists(path):
                    _refuse(self._say.exists, path=command.path)
                raise
        return say.CREATED.format(path=command.path)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a string that occurs once."""
        old, new = command.old_str, getattr(command, "new_str", None) or ""
        changed = 0

        def replace(content: str) -> str:
            nonlocal changed
            count = content.count(old)
            if count == 0:
                _refuse(say.NO_MATCH, old=old, path=command.path)
            if count > 1:
                lines = ", ".join(map(str, say.occurrences(content, old)))
                _refuse(say.SEVERAL_MATCHES, old=old, lines=lines)
            changed = content.count("\n", 0, content.find(old))
            return content.replace(old, new)

        content = self._edit(
            command.path, replace, self._say.edit_missing, self._say.edit_directory
        )
        return f"{say.REPLACED}\n{say.snippet(content, changed)}"

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert text after a line; the file ends in one newline afterwards."""
        line = command.insert_line

        def insert(content: str) -> str:
            lines = content.removesuffix("\n").split("\n") if content else []
            if not 0 <= line <= len(lines):
                _refuse(self._say.insert_range, line=line, last=len(lines))
            lines.insert(line, command.insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n"

        self._edit(command.path, insert, self._say.insert_missing, self._say.insert_directory)
        return say.INSERTED.format(path=command.path)

    def _edit(self, named: str, change: Callable[[str], str], missing: str, directory: str) -> str:
        path = store_path(named)
        with _told():
            content = self._files.edit(path, change) if path != "/" else None
            if content is None:
                _refuse(directory if self._files.is_directory(path) else missing, path=named)
            return content

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a directory with all below it."""
        path = store_path(command.path)
        if path == "/":
            _refuse(self._say.root_delete)
        with _told():
            if not self._files.delete(path):
                _refuse(self._say.absent, path=command.path)
        return say.DELETED.format(path=command.path)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a directory with all below it, to a path that is free."""
        old, new = store_path(command.old_path), store_path(command.new_path)
        if old == "/":
            _refuse(self._say.root_rename)
        with _told():
            if self._files.exists(new):
                _refuse(self._say.destination_exists, path=command.new_path)
            if paths.overlaps(old, new) and self._files.exists(old):
                _refuse(_INSIDE_ITSELF, old=command.old_path, new=command.new_path)
            if not self._files.rename(old, paths.validate(new)):
                _refuse(self._say.absent, path=command.old_path)
        return say.RENAMED.format(old=command.old_path, new=command.new_path)

    def clear_all_memory(self) -> str:
        """Delete every memory of the store; their history stays. Not a command of the model."""
        with _told():
            self._files.delete("/")
        return say.CLEARED


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same tool for the async client; each command runs in a thread."""

    def __init__(
        self,
        backend: Backend,
        store: str,
        *,
        wording: say.Wording = say.SDK,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(backend, store, wording=wording)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """As `MemoryTool.view`."""
        return await run_sync(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """As `MemoryTool.create`."""
        return await run_sync(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """As `MemoryTool.str_replace`."""
        return await run_sync(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """As `MemoryTool.insert`."""
        return await run_sync(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """As `MemoryTool.delete`."""
        return await run_sync(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """As `MemoryTool.rename`."""
        return await run_sync(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """As `MemoryTool.clear_all_memory`."""
        return await run_sync(self._tool.clear_all_memory)


def store_path(path: str) -> str:
    """The store's path of a tool's path; `/` for the root. ToolError when it is none.

    Three steps: no part may be `..` in an encoded form; the path is `/memories` or below it; and
    it stays there once `.` and `..` are resolved.
    """
    if hides_parent(path):
        _refuse(say.ESCAPES, path=path)
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        _refuse(say.NOT_UNDER_ROOT, path=path)
    kept: list[str] = []
    for segment in path[len(ROOT) :].split("/"):
        if segment == "..":
            if not kept:
                _refuse(say.ESCAPES, path=path)
            kept.pop()
        elif segment not in ("", "."):
            kept.append(segment)
    return unicodedata.normalize("NFC", "/" + "/".join(kept))


def hides_parent(path: str) -> bool:
    """Whether decoding percent signs, however often they were encoded, brings a new `..` to light."""
    decoded = path
    while decoded != (further := unquote(decoded)):
        decoded = further
        segments = decoded.replace("\\", "/").split("/")
        if segments.count("..") > path.split("/").count(".."):
            return True
    return False


def _refuse(sentence: str, **fields: object) -> NoReturn:
    """Raise the sentence as the tool's error."""
    raise ToolError(sentence.format(**fields))


@contextmanager
def _told() -> Iterator[None]:
    """Refusals of the store, told to the model."""
    try:
        yield
    except MemstoreError as error:
        raise ToolError(error.message) from error
