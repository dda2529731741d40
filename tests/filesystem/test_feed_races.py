"""The feed may tell of a change made here before its own answer arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memstore.backend import Backend
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
