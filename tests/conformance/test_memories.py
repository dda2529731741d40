"""Memories: create, read, update, rename, delete, and what each refuses."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable

import pytest

from memstore.backend import Backend
from memstore.model.errors import (
    Invalid,
    InvalidContent,
    InvalidPath,
    NotFound,
    PathConflict,
    PreconditionFailed,
    StoreFull,
    TooLarge,
)
from memstore.model.preconditions import ContentIs
from memstore.model.stores import Store
from tests.support.worlds import World


def digest(text: str) -> str:
    """The hash the API promises for a text."""
    return hashlib.sha256(text.encode()).hexdigest()


WRONG = ContentIs("0" * 64)
TEXTS = ["", "plain", "emoji 🙂", "crlf\r\n\r\n", "no newline", "e\u0301 not NFC", "\ufeff\x1b[1m"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_kept_to_the_byte(backend: Backend, store: Store, text: str) -> None:
    """What is written is read back unchanged, with its size and hash in every view."""
    basic = backend.create_memory(store.id, path="/a", content=text)
    assert basic.content is None
    assert (basic.content_size_bytes, basic.content_sha256) == (len(text.encode()), digest(text))
    assert backend.get_memory(store.id, basic.id).content == text
    assert backend.get_memory(store.id, basic.id, view="basic") == basic
    assert backend.get_memory_at(store.id, "/a").content == text
    again = backend.create_memory(store.id, path="/b", content=text, view="full")
    assert again.content == text


def test_the_hash_is_the_documented_one(backend: Backend, store: Store) -> None:
    """The published check value holds."""
    memory = backend.create_memory(store.id, path="/a", content="Always use tabs, not spaces.")
    assert memory.content_size_bytes == 28
    assert memory.content_sha256 == (
        "ba7936d94c84d948a2232088f78228f175df6a8353b2d5bc9228eee5794a0024"
    )


def test_the_size_limit_counts_bytes(backend: Backend, store: Store) -> None:
    """102,400 bytes are kept and one more is refused, also in characters of three bytes."""
    backend.create_memory(store.id, path="/full", content="x" * 102_400)
    backend.create_memory(store.id, path="/wide", content="語" * 34_133)
    for text in ("x" * 102_401, "語" * 34_134):
        with pytest.raises(TooLarge):
            backend.create_memory(store.id, path="/over", content=text)
    memory = backend.get_memory_at(store.id, "/full")
    with pytest.raises(TooLarge):
        backend.update_memory(store.id, memory.id, content="x" * 102_401)
    assert len(backend.list_memories(store.id).data) == 2


@pytest.mark.parametrize("text", ["nul \0 inside", "lone \ud800 surrogate"])
def test_what_is_no_text_is_refused(backend: Backend, store: Store, text: str) -> None:
    """NUL and lone surrogates are not content, on create and on update."""
    with pytest.raises(InvalidContent):
        backend.create_memory(store.id, path="/a", content=text)
    memory = backend.create_memory(store.id, path="/a", content="good")
    with pytest.raises(InvalidContent):
        backend.update_memory(store.id, memory.id, content=text)
    assert backend.get_memory(store.id, memory.id).content == "good"


GOOD_PATHS = [
    "/a",
    "/a/b",
    "/.x",
    "/...",
    "/" + "/".join("a" * 20),
    "/" + "b" * 1023,
    "/a b:c\\d",
    "/日本/🙂",
]
BAD_PATHS = [
    "",
    "a",
    "/",
    "/a/",
    "//a",
    "/a//b",
    "/./a",
    "/a/..",
    "/" + "/".join("a" * 21),
    "/" + "b" * 1024,
    "/" + "é" * 512,
    "/tab\t",
    "/del\x7f",
    "/zero\u200bwidth",
    "/bom\ufeff",
    "/line\u2028",
    "/para\u2029",
    "/nul\0",
    "/lone\ud800",
    "/" + unicodedata.normalize("NFD", "é"),
]


@pytest.mark.parametrize("path", GOOD_PATHS)
def test_a_good_path_is_taken(backend: Backend, store: Store, path: str) -> None:
    """Every path within the rules can be created and found."""
    memory = backend.create_memory(store.id, path=path, content="x")
    assert memory.path == path
    assert backend.get_memory_at(store.id, path).id == memory.id


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_bad_path_is_refused(backend: Backend, store: Store, path: str) -> None:
    """A path outside the rules is refused on create and on rename, and nothing is written."""
    memory = backend.create_memory(store.id, path="/good", content="x")
    with pytest.raises(InvalidPath):
        backend.create_memory(store.id, path=path, content="x")
    with pytest.raises(InvalidPath):
        backend.update_memory(store.id, memory.id, path=path)
    assert backend.list_memories(store.id).data == (memory,)


def test_case_matters(backend: Backend, store: Store) -> None:
    """`/A` and `/a` are two memories."""
    backend.create_memory(store.id, path="/A", content="upper")
    backend.create_memory(store.id, path="/a", content="lower")
    assert backend.get_memory_at(store.id, "/A").content == "upper"


def test_a_taken_path_is_refused_and_named(backend: Backend, store: Store) -> None:
    """Creating at a live path conflicts, even with the same text, and the old text stays."""
    old = backend.create_memory(store.id, path="/a", content="old")
    for text in ("new", "old"):
        with pytest.raises(PathConflict) as caught:
            backend.create_memory(store.id, path="/a", content=text)
        assert caught.value.conflicting_path == "/a"
        assert caught.value.conflicting_memory_id == old.id
    assert backend.get_memory(store.id, old.id).content == "old"
    assert len(backend.list_versions(store.id).data) == 1


def test_a_path_is_a_file_or_a_directory(backend: Backend, store: Store) -> None:
    """Nothing can be created above or below a live memory; a sibling of like name can."""
    held = backend.create_memory(store.id, path="/a/b", content="x")
    for path in ("/a", "/a/b/c", "/a/b/c/d"):
        with pytest.raises(PathConflict) as caught:
            backend.create_memory(store.id, path=path, content="x")
        assert caught.value.conflicting_path == "/a/b"
        assert caught.value.conflicting_memory_id == held.id
    for path in ("/a/bc", "/a/b.c", "/a/b-c", "/a0", "/a/b0"):
        backend.create_memory(store.id, path=path, content="x")


def test_an_update_of_the_text_keeps_who_it_is(backend: Backend, store: Store) -> None:
    """New content gives a new version and a later time under the same id and creation time."""
    old = backend.create_memory(store.id, path="/a", content="one")
    new = backend.update_memory(store.id, old.id, content="two", view="full")
    assert (new.id, new.path, new.content) == (old.id, "/a", "two")
    assert new.version_id != old.version_id
    assert new.created_at == old.created_at
    assert new.updated_at > old.updated_at
    assert backend.get_memory(store.id, old.id) == new


def test_a_rename_moves_the_memory_and_frees_its_path(backend: Backend, store: Store) -> None:
    """A rename keeps id, text and hash; the old path can be used at once by another."""
    old = backend.create_memory(store.id, path="/a", content="x")
    new = backend.update_memory(store.id, old.id, path="/dir/b")
    assert (new.id, new.path, new.content_sha256) == (old.id, "/dir/b", old.content_sha256)
    assert backend.get_memory(store.id, old.id).content == "x"
    assert backend.create_memory(store.id, path="/a", content="y").id != old.id
    assert backend.list_versions(store.id).data[1].operation == "modified"


def test_text_and_path_together_are_one_version(backend: Backend, store: Store) -> None:
    """One call is one version, whatever it changes."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.update_memory(store.id, memory.id, content="y", path="/b")
    assert [version.path for version in backend.list_versions(store.id).data] == ["/b", "/a"]


def test_a_rename_onto_another_is_refused(backend: Backend, store: Store) -> None:
    """Renaming onto, above or below another memory conflicts and leaves both unchanged."""
    one = backend.create_memory(store.id, path="/one", content="1")
    other = backend.create_memory(store.id, path="/dir/other", content="2")
    for path in ("/dir/other", "/dir/other/below", "/dir"):
        with pytest.raises(PathConflict) as caught:
            backend.update_memory(store.id, one.id, path=path, content="new")
        assert caught.value.conflicting_memory_id == other.id
    assert set(backend.list_memories(store.id).data) == {one, other}


def test_a_memory_may_move_below_or_above_itself(backend: Backend, store: Store) -> None:
    """`/a` to `/a/b` and back overlaps nothing but the memory itself."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    assert backend.update_memory(store.id, memory.id, path="/a/b").path == "/a/b"
    assert backend.update_memory(store.id, memory.id, path="/a").path == "/a"
    backend.update_memory(store.id, memory.id, path="/a/b")
    other = backend.create_memory(store.id, path="/a/c", content="y")
    with pytest.raises(PathConflict) as caught:
        backend.update_memory(store.id, memory.id, path="/a")
    assert caught.value.conflicting_memory_id == other.id


NO_OPS: list[dict[str, object]] = [
    {"content": "x"},
    {"path": "/a"},
    {"content": "x", "path": "/a"},
    {"content": "x", "precondition": WRONG},
    {"path": "/a", "precondition": WRONG},
    {"content": "x", "path": "/a", "precondition": WRONG},
    {"content": "x", "precondition": ContentIs(digest("x"))},
]


@pytest.mark.parametrize("fields", NO_OPS)
def test_an_update_already_so_changes_nothing(
    backend: Backend, store: Store, fields: dict[str, object]
) -> None:
    """When everything given is already so the memory is answered as it is, stale hash or not."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    assert backend.update_memory(store.id, memory.id, **fields) == memory  # type: ignore[arg-type]
    full = backend.update_memory(store.id, memory.id, view="full", **fields)  # type: ignore[arg-type]
    assert full == backend.get_memory(store.id, memory.id)
    assert len(backend.list_versions(store.id).data) == 1
    assert len(backend.list_events(store.id).events) == 1


def test_an_update_of_nothing_is_refused(backend: Backend, store: Store) -> None:
    """An update gives content or path; a precondition alone is not a change."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    with pytest.raises(Invalid):
        backend.update_memory(store.id, memory.id)
    with pytest.raises(Invalid):
        backend.update_memory(store.id, memory.id, precondition=ContentIs(digest("x")))


def test_a_precondition_guards_text_and_path(backend: Backend, store: Store) -> None:
    """The right hash lets a change through; a stale one refuses it and nothing is written."""
    memory = backend.create_memory(store.id, path="/a", content="one")
    right = ContentIs(digest("one"))
    memory = backend.update_memory(store.id, memory.id, content="two", precondition=right)
    for fields in ({"content": "three"}, {"path": "/b"}, {"content": "two", "path": "/b"}):
        with pytest.raises(PreconditionFailed):
            backend.update_memory(store.id, memory.id, precondition=right, **fields)
    assert backend.get_memory(store.id, memory.id, view="basic") == memory
    fresh = ContentIs(digest("two"))
    assert backend.update_memory(store.id, memory.id, path="/b", precondition=fresh).path == "/b"


def test_a_stale_precondition_wins_over_a_path_conflict(backend: Backend, store: Store) -> None:
    """Whoever must read again anyway is told so first."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.create_memory(store.id, path="/b", content="y")
    with pytest.raises(PreconditionFailed):
        backend.update_memory(store.id, memory.id, path="/b", precondition=WRONG)
    with pytest.raises(PathConflict):
        backend.update_memory(store.id, memory.id, path="/b", precondition=ContentIs(digest("x")))


@pytest.mark.parametrize("hash", ["", "0" * 63, "0" * 65, "A" * 64, "g" * 64])
def test_a_malformed_hash_is_refused(backend: Backend, store: Store, hash: str) -> None:
    """A hash is 64 lowercase hex digits, in a precondition and in a delete's expectation."""
    with pytest.raises(Invalid):
        ContentIs(hash)
    memory = backend.create_memory(store.id, path="/a", content="x")
    with pytest.raises(Invalid):
        backend.delete_memory(store.id, memory.id, expected_content_sha256=hash)
    assert backend.get_memory(store.id, memory.id, view="basic") == memory


def test_a_delete_with_a_stale_hash_is_refused(backend: Backend, store: Store) -> None:
    """A delete that expects another text deletes nothing; with the right hash it does, once."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    with pytest.raises(PreconditionFailed):
        backend.delete_memory(store.id, memory.id, expected_content_sha256="0" * 64)
    assert backend.get_memory(store.id, memory.id, view="basic") == memory
    backend.delete_memory(store.id, memory.id, expected_content_sha256=digest("x"))
    with pytest.raises(NotFound):
        backend.delete_memory(store.id, memory.id)


def test_a_deleted_memory_is_absent_and_its_path_free(backend: Backend, store: Store) -> None:
    """After a delete the id is not found, and its path begins another memory."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.delete_memory(store.id, memory.id)
    for call in (
        lambda: backend.get_memory(store.id, memory.id),
        lambda: backend.get_memory_at(store.id, "/a"),
        lambda: backend.update_memory(store.id, memory.id, content="y"),
        lambda: backend.delete_memory(store.id, memory.id),
    ):
        with pytest.raises(NotFound):
            call()
    again = backend.create_memory(store.id, path="/a", content="x")
    assert again.id != memory.id


@pytest.mark.parametrize("bad", ["", "x", "mem_01", "mem_01" + "1" * 22, "memver_01" + "1" * 22])
def test_what_is_no_memorys_id_is_not_found(backend: Backend, store: Store, bad: str) -> None:
    """A malformed id, or one of another kind, names no memory."""
    for call in (
        lambda: backend.get_memory(store.id, bad),
        lambda: backend.update_memory(store.id, bad, content="x"),
        lambda: backend.delete_memory(store.id, bad),
    ):
        with pytest.raises(NotFound):
            call()


def test_a_memory_is_found_in_its_own_store_only(backend: Backend, store: Store) -> None:
    """Another store's id, in the same workspace, does not reach it."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    other = backend.create_store(name="other")
    for call in (
        lambda: backend.get_memory(other.id, memory.id),
        lambda: backend.update_memory(other.id, memory.id, content="y"),
        lambda: backend.delete_memory(other.id, memory.id),
        lambda: backend.get_version(other.id, memory.version_id),
        lambda: backend.redact_version(other.id, memory.version_id),
    ):
        with pytest.raises(NotFound):
            call()
    assert backend.get_memory(store.id, memory.id).content == "x"


def test_a_store_at_its_cap_of_memories(make_world: Callable[..., World]) -> None:
    """Creating past the cap is refused; editing goes on, and a delete makes room."""
    world = make_world(max_memories=2)
    backend = world.connect(world.admin_secret)
    store = backend.create_store(name="small")
    first = backend.create_memory(store.id, path="/1", content="x")
    backend.create_memory(store.id, path="/2", content="x")
    with pytest.raises(StoreFull):
        backend.create_memory(store.id, path="/3", content="x")
    with pytest.raises(PathConflict):
        backend.create_memory(store.id, path="/1", content="x")
    backend.update_memory(store.id, first.id, content="longer", path="/1b")
    usage = backend.store_usage(store.id)
    assert (usage.memories, usage.bytes, usage.max_memories) == (2, 7, 2)
    backend.delete_memory(store.id, first.id)
    backend.create_memory(store.id, path="/3", content="x")


def test_a_store_at_its_cap_of_bytes(make_world: Callable[..., World]) -> None:
    """Growing past the cap is refused, by create and by update; shrinking is not."""
    world = make_world(max_bytes=10)
    backend = world.connect(world.admin_secret)
    store = backend.create_store(name="small")
    memory = backend.create_memory(store.id, path="/1", content="x" * 8)
    with pytest.raises(StoreFull):
        backend.create_memory(store.id, path="/2", content="xxx")
    with pytest.raises(StoreFull):
        backend.update_memory(store.id, memory.id, content="x" * 11)
    backend.create_memory(store.id, path="/2", content="xx")
    backend.create_memory(store.id, path="/empty", content="")
    assert backend.update_memory(store.id, memory.id, content="y" * 8).content_size_bytes == 8
    assert backend.update_memory(store.id, memory.id, content="y").content_size_bytes == 1
    assert backend.store_usage(store.id).bytes == 3
