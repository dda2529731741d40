"""One suite, every way to mount: `place` is parametrised over `MOUNTS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mounted import LACKS, MOUNTS, Place


@pytest.fixture(params=sorted(MOUNTS))
def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Make a store with other caps than the usual, to be mounted."""
    lacks = LACKS.get(request.param, {})
    for marker in request.node.iter_markers("requires"):
        for what in set(marker.args) & set(lacks):
            request.applymarker(pytest.mark.xfail(reason=lacks[what], strict=True))
    made: list[Place] = []

    def make(**options: Any) -> Place:
        path = tmp_path / f"place{len(made)}"
        path.mkdir()
        place = Place(path, MOUNTS[request.param], **options)
        made.append(place)
        return place

    yield make
    for place in made:
        place.close()


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    """An empty store, to be mounted."""
    return make_place()
