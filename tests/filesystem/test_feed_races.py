"""The feed may tell of a change made here before its own answer arrives."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuse_mount.vfs.interface import AttrChange, now
from memstore.backend import Backend
from memstore.model.memories import Memory
from tests.support.files import ME, VfsFiles, read
from tests.support.mounted import Place
from tests.support.waiting import until


class SlowAnswers:
    """A backend whose answer to a delete comes after the mount has heard of it by the feed."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.wait: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def delete_memory(self, *arguments: Any, **options: Any) -> None:
        """Delete, wait for the feed, then answer."""
        self._backend.delete_memory(*arguments, **options)
        self.wait()


def test_an_emptied_directory_stays_though_the_feed_is_faster(place: Place) -> None:
    """`rm d/a; ls d; rmdir d` works also when the feed tells of the delete before its answer."""
    place.put("/d/a.md", "text")
    slow = SlowAnswers(place.backend)
    files = place.mount(slow)

    def wait() -> None:
        place.put("/after.md", "the next event")
        until(lambda: "after.md" in files.listdir(), "the feed to come past the delete")

    slow.wait = wait

    files.unlink("d/a.md")

    assert files.listdir("d") == []
    files.rmdir("d")
    assert files.listdir() == ["after.md"]


class Interrupted:
    """A backend in whose first change of a memory something else happens."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.meanwhile: Callable[[], None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def update_memory(self, *arguments: Any, **options: Any) -> Memory:
        """Change it, after what happens meanwhile."""
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()
        return self._backend.update_memory(*arguments, **options)


def test_a_truncation_during_a_last_close_is_kept(tmp_path: Path) -> None:
    """A file is cut by path while the last close of another program still saves it."""
    place = Place(tmp_path, VfsFiles)
    place.put("/a.md", "0123456789")
    backend = Interrupted(place.backend)
    files = place.mount(backend)  # type: ignore[arg-type]
    assert isinstance(files, VfsFiles)
    truncations: list[Any] = []
    backend.meanwhile = lambda: truncations.append(
        files.vfs.setattr(files.stat("a.md").st_ino, AttrChange(size=2), ME)
    )
    fd = files.open("a.md", os.O_RDWR)
    files.ftruncate(fd, 5)

    files.close(fd)
    now(truncations[0])

    assert read(files, "a.md") == b"01"
    assert place.texts() == {"/a.md": "01"}
    place.close()
