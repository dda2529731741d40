"""Identifiers: shaped alike, unique, later ones greater."""

from __future__ import annotations

import pytest

from memstore.model import clock, ids
from tests.support.waiting import together

PREFIXES = [ids.STORE, ids.MEMORY, ids.VERSION, ids.SESSION, ids.KEY, ids.WORKSPACE, ids.REQUEST]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_id_has_its_shape(prefix: str) -> None:
    """Prefix, `_01`, and 22 characters of base58; it is of its kind and of no other."""
    id = ids.new(prefix)
    assert id.startswith(f"{prefix}_01") and len(id) == len(prefix) + 1 + 24
    assert [kind for kind in PREFIXES if ids.is_id(id, kind)] == [prefix]


def test_ids_rise_in_byte_order() -> None:
    """Each id made in a process is greater than every one before it."""
    made = [ids.new(ids.MEMORY) for _ in range(5000)]
    assert made == sorted(set(made))


def test_ids_rise_even_when_the_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Order within a process does not rest on the clock."""
    before = ids.new(ids.MEMORY)
    monkeypatch.setattr(clock, "now_us", lambda: 1)
    after = [ids.new(ids.MEMORY) for _ in range(10)]
    assert [before, *after] == sorted({before, *after})


def test_threads_get_different_ids() -> None:
    """Eight threads making ids at once make no id twice."""
    made = together(lambda n: [ids.new(ids.MEMORY) for _ in range(500)], 8)
    assert len({id for batch in made for id in batch}) == 4000  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "mem",
        "mem_",
        "mem_01",
        "mem_02" + "1" * 22,
        "mem_01" + "1" * 21,
        "mem_01" + "1" * 23,
        "mem_01" + "0" * 22,
        "mem_01" + "l" * 22,
        "mem_01" + "1" * 22 + "\n",
        "memver_01" + "1" * 22,
        "\ud800",
    ],
)
def test_what_is_no_id(bad: str) -> None:
    """Another length, another alphabet or another kind is no memory's id."""
    assert not ids.is_id(bad, ids.MEMORY)
