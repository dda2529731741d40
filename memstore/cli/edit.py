"""`edit`: a memory in the user's editor, saved only over the text that was edited."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import typer

from memstore.cli import names, output
from memstore.cli.exits import CONFLICT, REFUSED, Stop
from memstore.cli.memories import save
from memstore.cli.options import AsJson, MemoryPath, StoreName
from memstore.cli.service import opened
from memstore.model import content, objects
from memstore.model.errors import MemstoreError, NotFound, PathConflict, PreconditionFailed
from memstore.model.memories import Memory
from memstore.model.preconditions import ContentIs


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(edit)


def edit(store: StoreName, path: MemoryPath, json: AsJson = False) -> None:
    """Edit a memory in $VISUAL or $EDITOR; a path that does not exist becomes a new memory."""
    with opened() as backend:
        id, where = names.store_id(backend, store), names.memory_path(path)
        held: Memory | None
        try:
            held = names.memory_at(backend, id, where)
        except NotFound:
            backend.get_store(id)
            held = None
        before = content.encode((held and held.content) or "")
        after, kept = _edited(before, Path(where).name)
        if after == before:
            _discard(kept)
            output.tell("Nothing was changed.")
            return
        try:
            text = content.decode(after)
            if held is None:
                memory = backend.create_memory(id, path=where, content=text)
            else:
                memory = save(backend, id, where, text, ContentIs(held.content_sha256))
        except (PreconditionFailed, PathConflict):
            raise Stop(
                CONFLICT,
                f"The memory at {where!r} was changed by someone else meanwhile; "
                f"your text is kept in {kept}.",
            ) from None
        except MemstoreError as error:
            output.tell(f"Your text is kept in {kept}.")
            raise error
        _discard(kept)
    output.as_json(objects.memory(memory)) if json else output.line(memory.version_id)


def _edited(before: bytes, name: str) -> tuple[bytes, Path]:
    """The bytes after the editor has ended, and the private file that holds them."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    folder = Path(tempfile.mkdtemp(prefix="memstore-edit-"))
    # The name keeps its extension, for the editor's highlighting, and nothing dangerous.
    suffix = Path(name).suffix if Path(name).suffix.isascii() else ""
    file = folder / f"memory{suffix}"
    file.touch(0o600)
    file.write_bytes(before)
    try:
        status = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
    except OSError as error:
        _discard(file)
        raise Stop(
            REFUSED, f"The editor {editor!r} does not start ({error.strerror}): set $EDITOR."
        ) from None
    if status != 0:
        kept = f"; its text is kept in {file}" if file.read_bytes() != before else ""
        if not kept:
            _discard(file)
        raise Stop(REFUSED, f"The editor ended with status {status}, so nothing was saved{kept}.")
    return file.read_bytes(), file


def _discard(file: Path) -> None:
    """Remove the private file and its folder, with whatever the editor left beside it."""
    shutil.rmtree(file.parent, ignore_errors=True)
