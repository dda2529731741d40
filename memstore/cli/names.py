"""What a user types for a store or a memory becomes the one it names."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from memstore.cli.exits import INVALID, Stop
from memstore.model import ids, paths
from memstore.model.errors import NotFound
from memstore.model.limits import PAGE_MAX
from memstore.model.memories import Memory, MemoryPrefix, View
from memstore.model.pages import Page
from memstore.model.stores import Store

if TYPE_CHECKING:
    from memstore.backend import Backend

Item = TypeVar("Item")


def every(listing: Callable[[str | None], Page[Item]]) -> Iterator[Item]:
    """The items of all pages; `listing` gives the page of a cursor."""
    cursor: str | None = None
    while True:
        page = listing(cursor)
        yield from page.data
        cursor = page.next_page
        if cursor is None:
            return


def all_stores(backend: Backend, *, archived: bool = False) -> list[Store]:
    """Every store, newest first."""
    return list(
        every(
            lambda page: backend.list_stores(include_archived=archived, limit=PAGE_MAX, page=page)
        )
    )


def find_store(backend: Backend, text: str) -> Store:
    """The store of an id or a unique name. A live store comes before archived ones of its name."""
    if ids.is_id(text, ids.STORE):
        return backend.get_store(text)
    named = [store for store in all_stores(backend, archived=True) if store.name == text]
    found = [store for store in named if store.archived_at is None] or named
    if not found:
        raise NotFound(
            "memory store", text, message=f"No store is named {text!r}: see `memstore store list`."
        )
    if len(found) > 1:
        listed = ", ".join(store.id for store in found)
        raise Stop(INVALID, f"{len(found)} stores are named {text!r}, say which by id: {listed}.")
    return found[0]


def store_id(backend: Backend, text: str) -> str:
    """The id for an id or a unique name; an id is not looked up."""
    return text if ids.is_id(text, ids.STORE) else find_store(backend, text).id


def memory_path(text: str) -> str:
    """A memory's path from what was typed: the leading slash is optional, the form becomes NFC."""
    text = text if text.startswith("/") else f"/{text}"
    return paths.validate(unicodedata.normalize("NFC", text))


def directory(text: str) -> str:
    """A listing's prefix from what was typed: `/` or a path with a final slash."""
    inner = text.strip("/")
    return f"{memory_path(inner)}/" if inner else "/"


def memory_at(backend: Backend, store: str, path: str, *, view: View = "full") -> Memory:
    """The live memory at a path, also on a server that cannot be asked by path."""
    from memstore.backend import NotSupported

    try:
        return backend.get_memory_at(store, path, view=view)
    except NotSupported:
        pass
    except NotFound:
        raise _no_memory(backend, store, path) from None
    for item in listed(backend, store, path[: path.rindex("/") + 1], depth=1):
        if isinstance(item, Memory) and item.path == path:
            return backend.get_memory(store, item.id, view=view)
    raise NotFound("memory", path, message=f"There is no memory at {path!r}.")


def _no_memory(backend: Backend, store: str, path: str) -> NotFound:
    """A sentence that says which of the two is missing: the store or the memory."""
    backend.get_store(store)
    return NotFound("memory", path, message=f"There is no memory at {path!r}.")


def listed(
    backend: Backend, store: str, prefix: str = "/", *, depth: int = 0, view: View = "basic"
) -> Iterator[Memory | MemoryPrefix]:
    """Every item of a listing."""
    return every(
        lambda page: backend.list_memories(
            store,
            path_prefix=None if prefix == "/" else prefix,
            depth=depth,
            view=view,
            limit=PAGE_MAX,
            page=page,
        )
    )


def memories_below(backend: Backend, store: str, path: str) -> list[Memory]:
    """Every memory below a directory."""
    items = listed(backend, store, f"{path}/" if path != "/" else "/")
    return [item for item in items if isinstance(item, Memory)]
