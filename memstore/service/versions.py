"""Versions: read and list."""

from __future__ import annotations

from typing import Any

from memstore.model import ids, pages
from memstore.model.access import Caller
from memstore.model.errors import Invalid, NotFound
from memstore.model.versions import OPERATIONS, Version, VersionFilter
from memstore.service.core import (
    EVER,
    Core,
    check_view,
    judged,
    number_key,
    reread,
    see_store,
    time_bounds,
)
from memstore.storage import versions
from memstore.storage.statement import Tx


@reread
def get(core: Core, caller: Caller, store_id: str, version_id: str, view: str) -> Version:
    """One version, redacted or not."""
    with judged(core, caller, store_id, "read"):
        check_view(view)
    with core.engine.read() as tx:
        see_store(tx, caller, store_id)
        return find(tx, store_id, version_id, view)


def find(tx: Tx, store_id: str, version_id: str, view: str) -> Version:
    """The version of an id; else NotFound."""
    version = None
    if ids.is_id(version_id, ids.VERSION):
        version = versions.get(tx, store_id, version_id, view)
    if version is None:
        raise NotFound("memory version", version_id)
    return version


@reread
def list_(
    core: Core,
    caller: Caller,
    store_id: str,
    *,
    where: VersionFilter,
    view: str,
    limit: int,
    page: str | None,
) -> pages.Page[Version]:
    """Versions of a store, newest first."""
    with judged(core, caller, store_id, "read"):
        check_view(view)
        limit = pages.page_limit(limit, view)
        check_filter(where)
        filters = filters_of(where)
        listing = f"versions {store_id} {where!r}"
        before = EVER
        if page is not None:
            before = number_key(pages.decode_cursor(listing, page))
    with core.engine.read() as tx:
        last_seq = see_store(tx, caller, store_id)[-1]
        if filters is None:
            return pages.Page((), None)
        after, end = between(tx, store_id, last_seq, where)
        found = versions.page(
            tx,
            store_id,
            filters,
            before=min(before, end),
            after=after,
            view=view,
            limit=limit + 1,
        )
    shown = tuple(found[:limit])
    if len(found) <= limit:
        return pages.Page(shown, None)
    return pages.Page(shown, pages.encode_cursor(listing, shown[-1].seq))


def check_filter(where: VersionFilter) -> None:
    """Invalid for an operation that is none."""
    if where.operation is not None and where.operation not in OPERATIONS:
        raise Invalid("operation is 'created', 'modified' or 'deleted'")


def filters_of(where: VersionFilter) -> dict[str, Any] | None:
    """The storage's filters; None when nothing can match, as for an id of another shape."""
    filters: dict[str, Any] = {}
    actors = {where.session_id, where.api_key_id, where.service_account_id} - {None}
    shapes = (
        (where.memory_id, ids.MEMORY),
        (where.session_id, ids.SESSION),
        (where.api_key_id, ids.KEY),
        (where.service_account_id, "svac"),
    )
    if len(actors) > 1 or any(
        text is not None and not ids.is_id(text, prefix) for text, prefix in shapes
    ):
        return None
    if where.memory_id is not None:
        filters["memory"] = where.memory_id
    if where.operation is not None:
        filters["operation"] = where.operation
    if actors:
        filters["actor"] = actors.pop()
    return filters


def between(tx: Tx, store_id: str, last_seq: int, where: VersionFilter) -> tuple[int, int]:
    """The time bounds as seqs: versions above the first and below the second are meant."""
    low, high = time_bounds(where.created_from, where.created_to)
    after, before = 0, EVER
    if where.created_from is not None:
        after = versions.last_at(tx, store_id, last_seq, low - 1)
    if where.created_to is not None:
        before = versions.last_at(tx, store_id, last_seq, high) + 1
    return after, before
