"""A store's fields, its metadata patch, and the slug of its mount."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.model import stores
from memstore.model.errors import Invalid

ID = "memstore_01" + "1" * 22


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Demo Memory", "demo-memory"),
        ("notes", "notes"),
        ("  --Édge--  ", "dge"),
        ("a__b..c", "a-b-c"),
        ("C++ & Rust!", "c-rust"),
        ("日本語", ID),
        ("---", ID),
        ("../../etc", "etc"),
        ("K", "k"),
    ],
)
def test_a_slug_is_plain(name: str, slug: str) -> None:
    """Lowercase, runs of other characters become one hyphen, edges trimmed, empty: the id."""
    assert stores.slug(name, ID) == slug


@given(st.lists(st.sampled_from(["a", "A", "a-2", "b", "é", "a-2-2"]), max_size=8))
def test_slugs_of_a_session_never_clash(names: list[str]) -> None:
    """However the names repeat, each store gets a directory of its own, safe as a name."""
    slugs = stores.unique_slugs([(name, f"{ID}{n}") for n, name in enumerate(names)])
    assert len(set(slugs)) == len(slugs) == len(names)
    assert all(slug and "/" not in slug and slug not in (".", "..") for slug in slugs)


def test_the_first_free_number_is_taken() -> None:
    """The second of a name is `-2`, unless another store is called so."""
    named = [(name, ID) for name in ("a", "a-2", "a", "a")]
    assert stores.unique_slugs(named) == ["a", "a-2", "a-3", "a-4"]


@pytest.mark.parametrize("name", ["n", "n" * 255, " ", "日本語 🙂", "a/b"])
def test_a_good_name(name: str) -> None:
    """1 to 255 characters, counted as code points."""
    assert stores.validate_name(name) == name


@pytest.mark.parametrize("name", ["", "n" * 256, "\0", "\n", "\x7f", "\x85", "\ud800"])
def test_a_bad_name(name: str) -> None:
    """Empty, too long, or with a control character or lone surrogate."""
    with pytest.raises(Invalid):
        stores.validate_name(name)


def test_a_patch_of_metadata() -> None:
    """A string sets, None removes, the rest stays; the argument is left alone."""
    before = {"a": "1", "b": "2"}
    assert stores.patch_metadata(before, {"a": None, "c": "3", "x": None}) == {"b": "2", "c": "3"}
    assert before == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "bad",
    [{str(n): "" for n in range(17)}, {"": "v"}, {"k" * 65: "v"}, {"k": "v" * 513}],
)
def test_bad_metadata(bad: dict[str, str]) -> None:
    """17 pairs, an empty or long key, a long value."""
    with pytest.raises(Invalid):
        stores.validate_metadata(bad)
    with pytest.raises(Invalid):
        stores.patch_metadata({}, bad)


def test_a_description_has_at_most_1024_characters() -> None:
    """Code points are counted, not bytes."""
    assert stores.validate_description("é" * 1024)
    with pytest.raises(Invalid):
        stores.validate_description("é" * 1025)
