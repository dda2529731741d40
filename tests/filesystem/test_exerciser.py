"""Random reads, writes, truncations, renames, removals and mappings, compared with bytes in memory.

`MEMSTORE_EXERCISER_SEEDS=7,8` and `MEMSTORE_EXERCISER_OPERATIONS=20000` run others or more; a
failure names its seed and its last operations.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.exerciser import exercise
from tests.support.mounted import Place
from tests.support.real_files import BINDINGS
from tests.support.waiting import until

SEEDS = [int(seed) for seed in os.environ.get("MEMSTORE_EXERCISER_SEEDS", "1,2,3,4").split(",")]
OPERATIONS = int(os.environ.get("MEMSTORE_EXERCISER_OPERATIONS", "700"))
FEATURES = {"linux": "mmap,nameless", "portable": "-"}
"""What the exerciser does there: the portable binding's limits keep it from the rest."""


@pytest.mark.parametrize("seed", SEEDS)
def test_the_exerciser_is_right_about_a_plain_directory(tmp_path: Path, seed: int) -> None:
    """The expectations hold where they must: on the machine's own file system."""
    exercise(tmp_path, seed, OPERATIONS, "mmap,nameless")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("binding", sorted(BINDINGS))
def test_a_mount_holds_what_was_written(tmp_path: Path, binding: str, seed: int) -> None:
    """Every read through the mount is right, and in the end the store has the same texts; litter
    never, temporary names once they are kept."""
    place = Place(tmp_path, BINDINGS[binding])
    try:
        files = place.mount()
        texts = exercise(files.root, seed, OPERATIONS, FEATURES[binding])  # type: ignore[attr-defined]
        kept = {f"/{name}": text for name, text in texts.items() if not name.endswith(".swp")}
        assert place.unmount(files) == []
        until(lambda: place.texts() == kept, "the store to hold what the mount held")
    finally:
        place.close()
