"""What the portable binding cannot do is written where users read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuse_mount.portable import LIMITS

CONTRACT = Path(__file__).parents[2] / "docs" / "filesystem.md"


@pytest.mark.parametrize("limit", sorted(LIMITS))
def test_every_limit_is_documented(limit: str) -> None:
    """The contract's table says each limit in the words of the code."""
    assert f"| {limit} | {LIMITS[limit]} |" in CONTRACT.read_text().splitlines()
