"""What every test gets: a clean end."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from memstore.service.database import check
from tests.support.worlds import DATABASES, PROCESSES

settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "night",
    max_examples=1_000,
    stateful_step_count=120,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("MEMSTORE_TEST_PROFILE", "ci"))


def _is_ours(path: Path) -> bool:
    """Whether a file is a database of this project."""
    with path.open("rb") as file:
        if file.read(15) != b"SQLite format 3":
            return False
    connection = sqlite3.connect(path)
    try:
        found = connection.execute("SELECT name FROM sqlite_master").fetchall()
    finally:
        connection.close()
    return ("alembic_version",) in found and ("versions",) in found


@pytest.fixture(scope="session", autouse=True)
def shared_services_end() -> Iterator[None]:
    """Services that tests share end with the run, whichever suites ran."""
    yield
    DATABASES.close()
    PROCESSES.close()


@pytest.fixture(autouse=True)
def databases_stay_true(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test did, every database it leaves in `tmp_path` keeps every invariant."""
    path = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if path is None or request.node.get_closest_marker("damaged_database"):
        return
    for file in sorted(path.rglob("*.db")):
        if file.is_file() and _is_ours(file):
            assert check(f"sqlite:///{file}") == [], f"{file} is not true to itself"
