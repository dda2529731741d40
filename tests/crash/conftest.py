"""Seeds that can be repeated, and children that are never left behind."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.support.writing import Child


@pytest.fixture
def seed() -> int:
    """Another seed each time, shown when the test fails; set MEMSTORE_TEST_SEED to repeat it."""
    seed = int(os.environ.get("MEMSTORE_TEST_SEED") or random.SystemRandom().randrange(10**6))
    print(f"MEMSTORE_TEST_SEED={seed}")
    return seed


@pytest.fixture
def children() -> Iterator[list[Child]]:
    """Whatever happens, no child is left behind."""
    children: list[Child] = []
    yield children
    for child in children:
        if child.process.poll() is None:
            child.kill()
