"""Memories through the official client: checks 16 to 37 of the compatibility list."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Any

import anthropic
import pytest

TEXTS = [
    "",
    "Always use tabs, not spaces.",
    "🦊 ünïcode",
    "a\r\nb\r\n",
    "e\u0301",
    "\ufeffx",
    " \n",
]
VALID = ["/a", "/a/b", "/.x", "/...", "/" + "/".join("s" * 20), "/" + "x" * 1023, "/ä b\\c:d🦊"]
INVALID = [
    "a", "/", "/a/", "//a", "/a//b", "/./a", "/a/..", "/" + "/".join("s" * 21), "/" + "x" * 1024,
    "/a\tb", "/a\x7f", "/a\u200b", "/\ufeff", "/a\u2028", "/a\u2029", "", "/a\x00b", "/a\u00ad",
    unicodedata.normalize("NFD", "/é"),
]  # fmt: skip


def sha256(text: str) -> str:
    """The hash of a text's bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def believing(text: str) -> dict[str, str]:
    """The precondition that the content is a text."""
    return {"type": "content_sha256", "content_sha256": sha256(text)}


def conflict(call: Any, *args: Any, **kwargs: Any) -> anthropic.ConflictError:
    """The 409 a call ends in."""
    with pytest.raises(anthropic.ConflictError) as caught:
        call(*args, **kwargs)
    return caught.value


class Desk:
    """One store's memories, with the store filled in."""

    def __init__(self, sdk: Any, store_id: str) -> None:
        self.stores, self.id = sdk.beta.memory_stores, store_id

    def create(self, path: str, content: str = "x", **more: Any) -> Any:
        """A new memory."""
        return self.stores.memories.create(self.id, path=path, content=content, **more)

    def get(self, memory_id: str, **more: Any) -> Any:
        """One memory."""
        return self.stores.memories.retrieve(memory_id, memory_store_id=self.id, **more)

    def update(self, memory_id: str, **more: Any) -> Any:
        """A changed memory."""
        return self.stores.memories.update(memory_id, memory_store_id=self.id, **more)

    def delete(self, memory_id: str, **more: Any) -> Any:
        """A memory's tombstone."""
        return self.stores.memories.delete(memory_id, memory_store_id=self.id, **more)

    def list(self, **more: Any) -> Any:
        """A page of memories."""
        return self.stores.memories.list(self.id, **more)

    def versions(self) -> int:
        """How many versions the store has."""
        return len(list(self.stores.memory_versions.list(self.id, limit=100)))


@pytest.fixture
def desk(sdk: Any, store: Any) -> Desk:
    """An empty store's memories."""
    return Desk(sdk, store.id)


@pytest.mark.parametrize("text", TEXTS)
def test_16_texts_are_kept_to_the_byte(desk: Desk, text: str) -> None:
    """Size and hash are of the exact bytes; content comes with the full view only."""
    memory = desk.create("/a", text)
    assert memory.type == "memory" and memory.content is None
    assert memory.content_size_bytes == len(text.encode())
    assert memory.content_sha256 == sha256(text)
    assert desk.get(memory.id).content == text
    assert desk.create("/b", text, view="full").content == text


def test_17_a_memory_holds_102400_bytes(desk: Desk) -> None:
    """The limit counts bytes: 34,133 characters of three bytes and one of one pass, not more."""
    text = "€" * 34_133 + "x"
    memory = desk.create("/a", text)
    assert memory.content_size_bytes == 102_400
    for call in (
        lambda: desk.create("/b", text + "x"),
        lambda: desk.update(memory.id, content="x" * 102_401),
    ):
        with pytest.raises(anthropic.BadRequestError):
            call()
    assert desk.get(memory.id).content == text


def test_18_path_rules_hold(desk: Desk) -> None:
    """Every valid path is taken as it is, every invalid one refused with 400."""
    for number, path in enumerate(VALID):
        memory = desk.create(path)
        assert memory.path == path
        desk.delete(memory.id)
        assert number < len(VALID)
    for path in INVALID:
        with pytest.raises(anthropic.BadRequestError) as caught:
            desk.create(path)
        assert caught.value.type == "invalid_request_error"
    assert list(desk.list()) == []


def test_19_case_matters(desk: Desk) -> None:
    """`/A` and `/a` are two memories."""
    assert desk.create("/A").id != desk.create("/a").id


def test_20_a_taken_path_is_refused(desk: Desk) -> None:
    """Creating at a taken path says which memory holds it and changes nothing."""
    memory = desk.create("/a", "old")
    error = conflict(desk.create, "/a", "new")
    assert error.type == "memory_path_conflict_error"
    body: Any = error.body
    assert body["error"]["conflicting_path"] == "/a"
    assert body["error"]["conflicting_memory_id"] == memory.id
    assert desk.get(memory.id).content == "old"
    assert conflict(desk.create, "/a", "old").type == "memory_path_conflict_error"


def test_21_a_path_is_a_file_or_a_directory(desk: Desk) -> None:
    """Ancestors and descendants of a memory's path are refused; its namesakes are not."""
    desk.create("/a/b")
    for path in ("/a", "/a/b/c"):
        error = conflict(desk.create, path)
        assert error.type == "memory_path_conflict_error"
        body: Any = error.body
        assert body["error"]["conflicting_path"] == "/a/b"
    assert desk.create("/a/bc").path == "/a/bc"


def test_22_an_update_makes_a_version(desk: Desk) -> None:
    """The id and created_at stay; version and updated_at move on."""
    before = desk.create("/a", "one")
    after = desk.update(before.id, content="two", view="full")
    assert (after.id, after.created_at, after.content) == (before.id, before.created_at, "two")
    assert after.memory_version_id != before.memory_version_id
    assert after.updated_at > before.updated_at


def test_23_a_rename_keeps_the_memory(desk: Desk, sdk: Any) -> None:
    """Id, text and hash stay, the old path is free at once, the version is `modified`."""
    memory = desk.create("/a", "text")
    moved = desk.update(memory.id, path="/b/c")
    assert (moved.id, moved.path, moved.content_sha256) == (memory.id, "/b/c", sha256("text"))
    assert desk.create("/a").id != memory.id
    version = sdk.beta.memory_stores.memory_versions.retrieve(
        moved.memory_version_id, memory_store_id=desk.id
    )
    assert (version.operation, version.path, version.content) == ("modified", "/b/c", "text")


def test_24_a_rename_needs_a_free_path(desk: Desk) -> None:
    """Onto another memory, or below it: refused, both as before."""
    one, other = desk.create("/a", "1"), desk.create("/b", "2")
    for path in ("/b", "/b/c"):
        assert conflict(desk.update, one.id, path=path).type == "memory_path_conflict_error"
    assert (desk.get(one.id).path, desk.get(other.id).content) == ("/a", "2")
    assert desk.update(one.id, path="/a/below").path == "/a/below"


def test_25_an_update_of_nothing_new_makes_no_version(desk: Desk) -> None:
    """The same text or the same path again: 200 and the memory as it is."""
    memory = desk.create("/a", "same")
    for change in ({"content": "same"}, {"path": "/a"}, {"content": "same", "path": "/a"}):
        assert desk.update(memory.id, **change) == memory
    assert desk.versions() == 1


def test_26_preconditions_are_kept(desk: Desk) -> None:
    """The right hash passes; a wrong one is refused and changes nothing."""
    memory = desk.create("/a", "one")
    desk.update(memory.id, content="two", precondition=believing("one"))
    error = conflict(desk.update, memory.id, content="three", precondition=believing("one"))
    assert error.type == "memory_precondition_failed_error"
    assert desk.get(memory.id).content == "two"


def test_27_a_lost_answer_can_be_asked_again(desk: Desk) -> None:
    """A stale precondition whose wish is already fulfilled is answered 200, without a version."""
    memory = desk.create("/a", "one")
    wish = {"content": "two", "path": "/b", "precondition": believing("one")}
    first = desk.update(memory.id, **wish)
    assert desk.update(memory.id, **wish) == first
    assert desk.update(memory.id, path="/b", precondition=believing("zero")) == first
    assert desk.versions() == 2


def test_28_a_rename_checks_the_content_too(desk: Desk) -> None:
    """A precondition on a change of path alone is about the content."""
    memory = desk.create("/a", "one")
    error = conflict(desk.update, memory.id, path="/b", precondition=believing("zero"))
    assert error.type == "memory_precondition_failed_error"
    assert desk.update(memory.id, path="/b", precondition=believing("one")).path == "/b"


def test_29_an_update_needs_something(desk: Desk) -> None:
    """Neither content nor path, or nulls for both, is refused."""
    memory = desk.create("/a")
    for change in ({}, {"content": None, "path": None}, {"precondition": believing("x")}):
        with pytest.raises(anthropic.BadRequestError):
            desk.update(memory.id, **change)


def test_30_other_stores_do_not_reach_a_memory(desk: Desk, sdk: Any) -> None:
    """Through another store's id a memory is not there."""
    memory = desk.create("/a")
    other = Desk(sdk, sdk.beta.memory_stores.create(name="Other").id)
    for call in (
        lambda: other.get(memory.id),
        lambda: other.update(memory.id, content="y"),
        lambda: other.delete(memory.id),
    ):
        with pytest.raises(anthropic.NotFoundError):
            call()
    assert desk.get(memory.id).content == "x"


def test_31_deletes_can_be_conditional(desk: Desk) -> None:
    """A wrong hash keeps the memory, the right one deletes it, then it is gone."""
    memory = desk.create("/a", "text")
    error = conflict(desk.delete, memory.id, expected_content_sha256=sha256("other"))
    assert error.type == "memory_precondition_failed_error"
    gone = desk.delete(memory.id, expected_content_sha256=sha256("text"))
    assert (gone.id, gone.type) == (memory.id, "memory_deleted")
    with pytest.raises(anthropic.NotFoundError):
        desk.delete(memory.id)


def test_32_a_deleted_path_is_free(desk: Desk) -> None:
    """A new memory at a deleted one's path has an id of its own."""
    old = desk.create("/a")
    desk.delete(old.id)
    assert desk.create("/a").id != old.id


def test_33_retrieve_shows_the_text_unless_asked_not_to(desk: Desk) -> None:
    """The default is the full view; the basic one has size and hash."""
    memory = desk.create("/a", "text")
    assert desk.get(memory.id).content == "text"
    basic = desk.get(memory.id, view="basic")
    assert (basic.content, basic.content_size_bytes, basic.content_sha256) == (
        None,
        4,
        sha256("text"),
    )


def test_34_full_pages_hold_20(desk: Desk) -> None:
    """The list is basic by default; with texts, pages are clamped to 20 and all are visited."""
    for number in range(45):
        desk.create(f"/{number:02}", str(number))
    assert {m.content for m in desk.list(limit=100)} == {None}
    page = desk.list(view="full", limit=100)
    assert len(page.data) == 20
    assert [m.content for m in page] == [str(number) for number in range(45)]


def test_35_a_prefix_is_whole_segments(desk: Desk) -> None:
    """`/notes/` leaves out `/notes-archive/x`; without its slash it is refused."""
    for path in ("/notes/a", "/notes/b/c", "/notes-archive/x"):
        desk.create(path)
    assert [m.path for m in desk.list(path_prefix="/notes/")] == ["/notes/a", "/notes/b/c"]
    assert len(list(desk.list(path_prefix="/"))) == 3
    assert list(desk.list(path_prefix="/nothing/")) == []
    with pytest.raises(anthropic.BadRequestError):
        assert desk.list(path_prefix="/notes").data is None


def test_36_depth_1_folds_directories(desk: Desk) -> None:
    """Direct memories and one prefix a directory, each once over small pages."""
    for path in ("/a", "/d/1", "/d/2", "/d/e/3", "/f/4", "/z"):
        desk.create(path)
    items = list(desk.list(depth=1, limit=2))
    assert [i.path for i in items] == ["/a", "/d/", "/f/", "/z"]
    assert [i.type for i in items] == ["memory", "memory_prefix", "memory_prefix", "memory"]
    inner = [i.path for i in desk.list(depth=1, path_prefix="/d/", limit=2)]
    assert inner == ["/d/1", "/d/2", "/d/e/"]
    for depth in (2, -1):
        with pytest.raises(anthropic.BadRequestError):
            assert desk.list(depth=depth).data is None


def test_37_250_memories_are_three_pages(desk: Desk, http: Any) -> None:
    """A list of 250 with pages of 100 takes exactly three, and is complete."""
    changes = [{"type": "create", "path": f"/{n:03}", "content": ""} for n in range(250)]
    made = http.post(f"/v1/memory_stores/{desk.id}/batch", json={"changes": changes})
    assert made.status_code == 200
    sizes, page, cursor = [], None, ""
    seen: list[str] = []
    while cursor is not None:
        page = desk.list(limit=100, **({"page": cursor} if cursor else {}))
        sizes.append(len(page.data))
        seen += [m.path for m in page.data]
        cursor = page.next_page
    assert sizes == [100, 100, 50]
    assert seen == [f"/{n:03}" for n in range(250)]
