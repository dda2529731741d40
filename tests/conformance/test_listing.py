"""Listing memories: byte order, whole segments, folding, cursors that stay true."""

from __future__ import annotations

import pytest

from memstore.backend import Backend
from memstore.model.errors import Invalid, InvalidPath
from memstore.model.memories import CreateMemory, Memory, MemoryPrefix
from memstore.model.stores import Store
from tests.support.walking import every

PATHS = [
    "/notes/todo.md",
    "/notes/deep/a",
    "/notes/deep/b",
    "/notes/deep/er/c",
    "/notes-archive/x",
    "/notes.md",
    "/notes0",
    "/Z",
    "/a b",
    "/é/x",
    "/😀",
    "/￿",
    "/top",
]


def fill(backend: Backend, store: Store, paths: list[str]) -> None:
    """Create a memory at each path."""
    backend.apply_changes(store.id, [CreateMemory(path, path) for path in paths])


def paths_of(items: list[Memory | MemoryPrefix]) -> list[str]:
    """The paths of a listing."""
    return [item.path for item in items]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 13, 100])
def test_memories_come_in_byte_order(backend: Backend, store: Store, limit: int) -> None:
    """Every memory comes once, ordered by the bytes of its path, whatever the page size."""
    fill(backend, store, PATHS)
    listed = paths_of(every(backend.list_memories, store.id, limit=limit))
    assert listed == sorted(PATHS, key=str.encode)


def test_the_basic_view_has_no_text_and_the_full_one_has(backend: Backend, store: Store) -> None:
    """Listings are basic unless asked otherwise; both views have size and hash."""
    fill(backend, store, ["/a"])
    (basic,) = backend.list_memories(store.id).data
    (full,) = backend.list_memories(store.id, view="full").data
    assert isinstance(basic, Memory) and basic.content is None and basic.content_size_bytes == 2
    assert isinstance(full, Memory) and full.content == "/a"


def test_the_full_view_holds_twenty_a_page(backend: Backend, store: Store) -> None:
    """A larger limit is clamped in the full view, and paging still yields all."""
    fill(backend, store, [f"/{n:03d}" for n in range(45)])
    assert len(backend.list_memories(store.id, view="full", limit=100).data) == 20
    assert len(every(backend.list_memories, store.id, view="full", limit=100)) == 45
    assert len(backend.list_memories(store.id).data) == 20


def test_pages_of_a_hundred(backend: Backend, store: Store) -> None:
    """250 memories are three pages of at most 100, complete."""
    fill(backend, store, [f"/{n:03d}" for n in range(250)])
    sizes, page = [], None
    while True:
        found = backend.list_memories(store.id, limit=100, page=page)
        sizes.append(len(found.data))
        page = found.next_page
        if page is None:
            break
    assert sizes == [100, 100, 50]


def test_a_full_last_page_has_no_cursor(backend: Backend, store: Store) -> None:
    """When a page ends exactly at the end there is no next one."""
    fill(backend, store, ["/a", "/b", "/dir/x", "/dir/y"])
    assert backend.list_memories(store.id, limit=4).next_page is None
    assert backend.list_memories(store.id, limit=3, depth=1).next_page is None


def test_a_prefix_matches_whole_segments(backend: Backend, store: Store) -> None:
    """`/notes/` has what lies below it, not `/notes-archive/x` nor `/notes.md`."""
    fill(backend, store, PATHS)
    listed = every(backend.list_memories, store.id, path_prefix="/notes/", limit=2)
    assert paths_of(listed) == [path for path in sorted(PATHS) if path.startswith("/notes/")]
    assert backend.list_memories(store.id, path_prefix="/none/").data == ()
    assert len(every(backend.list_memories, store.id, path_prefix="/")) == len(PATHS)


@pytest.mark.parametrize("prefix", ["/notes", "notes/", "", "//", "/a//", "/../", "/\t/"])
def test_a_bad_prefix_is_refused(backend: Backend, store: Store, prefix: str) -> None:
    """A prefix is a directory's path with its final slash."""
    with pytest.raises(InvalidPath):
        backend.list_memories(store.id, path_prefix=prefix)


@pytest.mark.parametrize("depth", [2, -1, 10])
def test_a_depth_other_than_0_and_1_is_refused(backend: Backend, store: Store, depth: int) -> None:
    """A listing is either of everything or of one level."""
    with pytest.raises(Invalid):
        backend.list_memories(store.id, depth=depth)


def folded(paths: list[str], prefix: str) -> list[str]:
    """What one level of a directory should show."""
    below = [path for path in paths if path.startswith(prefix)]
    names = set()
    for path in below:
        head, slash, _ = path[len(prefix) :].partition("/")
        names.add(prefix + head + slash)
    return sorted(names, key=str.encode)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("prefix", [None, "/", "/notes/", "/notes/deep/", "/none/"])
def test_one_level_folds_each_directory_once(
    backend: Backend, store: Store, prefix: str | None, limit: int
) -> None:
    """Direct memories and one prefix a directory, in order, none repeated on any page."""
    fill(backend, store, PATHS)
    items = every(backend.list_memories, store.id, path_prefix=prefix, depth=1, limit=limit)
    assert paths_of(items) == folded(PATHS, prefix or "/")
    for item in items:
        assert isinstance(item, MemoryPrefix) == item.path.endswith("/")
        if isinstance(item, MemoryPrefix):
            assert backend.list_memories(store.id, path_prefix=item.path).data


def test_folding_passes_over_large_directories(backend: Backend, store: Store) -> None:
    """Many directories of many memories fold into one item each, among direct memories."""
    paths = [f"/d{d:02d}/{n:02d}" for d in range(12) for n in range(30)]
    paths += [f"/d{d:02d}.md" for d in range(12)] + [f"/e{n}" for n in range(30)]
    fill(backend, store, paths)
    for limit in (1, 7, 100):
        items = every(backend.list_memories, store.id, depth=1, limit=limit)
        assert paths_of(items) == folded(paths, "/")


def test_a_listing_keeps_its_place_while_others_come_and_go(backend: Backend, store: Store) -> None:
    """Memories untouched between two pages are neither skipped nor repeated."""
    fill(backend, store, [f"/{n:02d}" for n in range(0, 20, 2)])
    first = backend.list_memories(store.id, limit=4)
    last = first.data[-1]
    assert isinstance(last, Memory)
    backend.delete_memory(store.id, last.id)
    fill(backend, store, ["/00a", "/03", "/07", "/dir/x"])
    rest, page = [], first.next_page
    while page is not None:
        found = backend.list_memories(store.id, limit=4, page=page)
        rest.extend(found.data)
        page = found.next_page
    seen = paths_of([*first.data, *rest])
    early, late = range(0, 8, 2), range(8, 20, 2)
    assert seen == [*(f"/{n:02d}" for n in early), "/07", *(f"/{n:02d}" for n in late), "/dir/x"]


def test_a_folded_directory_is_not_repeated_after_it_grew(backend: Backend, store: Store) -> None:
    """A directory shown on one page is not shown again, whatever is written into it."""
    fill(backend, store, ["/a/1", "/b/1", "/c/1"])
    first = backend.list_memories(store.id, depth=1, limit=1)
    fill(backend, store, ["/a/0", "/a/zzz"])
    second = backend.list_memories(store.id, depth=1, limit=5, page=first.next_page)
    assert paths_of([*first.data, *second.data]) == ["/a/", "/b/", "/c/"]


def test_a_cursor_belongs_to_its_listing(backend: Backend, store: Store) -> None:
    """A cursor of another store, prefix or depth is refused."""
    other = backend.create_store(name="other")
    for one in (store, other):
        fill(backend, one, ["/a", "/b", "/d/x", "/d/y"])
    cursor = backend.list_memories(store.id, limit=1).next_page
    for call in (
        lambda: backend.list_memories(other.id, page=cursor),
        lambda: backend.list_memories(store.id, depth=1, page=cursor),
        lambda: backend.list_memories(store.id, path_prefix="/d/", page=cursor),
        lambda: backend.list_versions(store.id, page=cursor),
        lambda: backend.list_memories(store.id, page="page_x"),
    ):
        with pytest.raises(Invalid):
            call()


def test_a_snapshot_is_one_moment(backend: Backend, store: Store) -> None:
    """A snapshot has every text as of its cursor, whatever is written while it is read."""
    fill(backend, store, [f"/{n:03d}" for n in range(150)])
    snapshot = backend.snapshot(store.id)
    first = next(snapshot.memories)
    backend.update_memory(store.id, first.id, content="changed", path="/moved")
    backend.create_memory(store.id, path="/zzz", content="new")
    texts = {memory.path: memory.content for memory in [first, *snapshot.memories]}
    assert texts == {f"/{n:03d}": f"/{n:03d}" for n in range(150)}
    kinds = [event.kind for event in backend.list_events(store.id, after=snapshot.cursor).events]
    assert kinds == ["memory.modified", "memory.created"]
