"""History: the versions of whatever was at a path, renames followed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from memstore.model import ids, pages, paths
from memstore.model.access import Caller
from memstore.model.errors import Invalid
from memstore.model.versions import Version, VersionFilter
from memstore.service.core import EVER, Core, check_view, judged, number_key, reread, see_store
from memstore.service.versions import between, check_filter, filters_of
from memstore.storage import memories, versions
from memstore.storage.statement import Tx

FEW = 8
"""So many memories are read each by itself, and ride in the cursor."""


@reread
def list_(
    core: Core,
    caller: Caller,
    store_id: str,
    path: str,
    *,
    where: VersionFilter,
    view: str,
    limit: int,
    page: str | None,
) -> pages.Page[Version]:
    """Versions of every memory that ever was at a path or below it, newest first."""
    with judged(core, caller, store_id, "read"):
        check_view(view)
        limit = pages.page_limit(limit, view)
        check_filter(where)
        path = paths.validate(path)
        filters = filters_of(where)
        listing = f"history {store_id} {path} {where!r}"
        before, known = _position(listing, page)
    with core.engine.read() as tx:
        last_seq = see_store(tx, caller, store_id)[-1]
        if filters is None:
            return pages.Page((), None)
        lineage = known or _ever_at(tx, store_id, path)
        if where.memory_id is not None:
            lineage &= {where.memory_id}
        after, end = between(tx, store_id, last_seq, where)
        span = (min(before, end), after)
        found = _found(tx, store_id, lineage, filters, span, view, limit + 1)
    shown = tuple(found[:limit])
    if len(found) <= limit:
        return pages.Page(shown, None)
    key = [shown[-1].seq, sorted(lineage) if len(lineage) <= FEW else []]
    return pages.Page(shown, pages.encode_cursor(listing, key))


def _position(listing: str, page: str | None) -> tuple[int, set[str]]:
    """Where the page before ended, and the memories it had found, unless they were many."""
    if page is None:
        return EVER, set()
    key = pages.decode_cursor(listing, page)
    if not (isinstance(key, list) and len(key) == 2 and isinstance(key[1], list)):
        raise Invalid("page is not a cursor of this listing")
    known = key[1]
    if len(known) > FEW or not all(isinstance(i, str) and ids.is_id(i, ids.MEMORY) for i in known):
        raise Invalid("page is not a cursor of this listing")
    return number_key(key[0]), set(known)


def _ever_at(tx: Tx, store_id: str, path: str) -> set[str]:
    """Memories that are or were at the path or below it."""
    below = f"{path}/"

    def within(place: str) -> bool:
        return place == path or place.startswith(below)

    live = {id for place, id in memories.places(tx, store_id).items() if within(place)}
    return versions.ever_at(tx, store_id, within, live)


def _found(
    tx: Tx,
    store_id: str,
    lineage: set[str],
    filters: dict[str, Any],
    span: tuple[int, int],
    view: str,
    count: int,
) -> list[Version]:
    """The newest versions of some memories between two seqs, under the filters."""
    before, after = span

    def read(limit: int, **more: Any) -> list[Version]:
        bounds = {"before": before, "after": after, **{k: more.pop(k) for k in _bounds(more)}}
        return versions.page(tx, store_id, {**filters, **more}, view=view, limit=limit, **bounds)

    if len(lineage) <= FEW:
        each = [read(count, memory=memory_id) for memory_id in lineage]
        return list(heapq.merge(*each, key=lambda version: -version.seq))[:count]
    return list(_skimmed(tx, store_id, lineage, span, read, count))


def _bounds(more: dict[str, Any]) -> list[str]:
    return [name for name in ("before", "after") if name in more]


def _skimmed(
    tx: Tx,
    store_id: str,
    lineage: set[str],
    span: tuple[int, int],
    read: Callable[..., list[Version]],
    count: int,
) -> Iterator[Version]:
    """Of many memories: pass over the versions of all, and read those that are theirs."""
    for seq, memory_id in versions.skim(tx, store_id, before=span[0], after=span[1]):
        if memory_id not in lineage:
            continue
        for version in read(1, before=seq + 1, after=seq - 1):
            yield version
            count -= 1
        if count <= 0:
            return
