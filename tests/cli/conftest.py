"""The command as a new user meets it: real processes against a real service."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from memstore.service.database import check
from tests.support.commands import Command
from tests.support.serving import Served

_numbers = itertools.count()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for the commands; its database is true to itself afterwards."""
    served = Served(tmp_path_factory.mktemp("cli") / "data")
    yield served
    assert served.stop() == 0
    assert check(served.database_url) == []


@pytest.fixture(scope="session")
def memstore(service: Served) -> Command:
    """The command, set up for the service by the environment."""
    return Command(
        MEMSTORE_DATA_DIR=str(service.data_dir),
        MEMSTORE_BASE_URL=service.url,
        MEMSTORE_API_KEY=service.admin_secret,
    )


@pytest.fixture
def store(memstore: Command) -> str:
    """The name of an empty store."""
    name = f"Store {next(_numbers)}"
    memstore.good("store", "create", name)
    return name
