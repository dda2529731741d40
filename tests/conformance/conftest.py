"""One suite, every backend: `world` is parametrised over `tests.support.worlds.WORLDS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memstore.backend import Backend
from memstore.model.stores import Store
from tests.support.worlds import WORLDS, World

OPTIONS = {"max_memories": 10_000, "max_bytes": 104_857_600, "heartbeat": 15.0}


@pytest.fixture(params=sorted(WORLDS))
def make_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Make a service with other caps or heartbeat than the usual."""
    made: list[World] = []

    def make(**options: Any) -> World:
        path = tmp_path / f"world{len(made)}"
        path.mkdir()
        world = WORLDS[request.param](path, **{**OPTIONS, **options})
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """A fresh service."""
    return make_world()


@pytest.fixture
def backend(world: World) -> Iterator[Backend]:
    """The port for the admin key."""
    backend = world.connect(world.admin_secret)
    yield backend
    backend.close()


@pytest.fixture
def store(backend: Backend) -> Store:
    """An empty store."""
    return backend.create_store(name="Notes")
