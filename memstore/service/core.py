"""What every capability works with, and the checks that come first in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from memstore.model import clock, ids, pages
from memstore.model.access import Caller, Scope
from memstore.model.errors import Forbidden, Invalid, NotFound, Unavailable
from memstore.model.memories import VIEWS
from memstore.model.stores import Store
from memstore.service.hub import Hub
from memstore.storage import stores
from memstore.storage.engine import Engine
from memstore.storage.statement import Tx

_P = ParamSpec("_P")
_T = TypeVar("_T")

EVER = 1 << 62
"""Above every moment in microseconds and every seq."""


@dataclass(frozen=True, slots=True)
class Core:
    """An open database, its hub of live feeds, and the settings of the service."""

    engine: Engine
    hub: Hub
    max_memories: int
    max_bytes: int
    heartbeat: float


def reread(read: Callable[_P, _T]) -> Callable[_P, _T]:
    """Read once more when what was read was destroyed meanwhile.

    A reading sees one moment. A redaction or a deletion that is committed after it destroys keys
    that the rows of that moment still name; a new reading sees what came of it.
    """

    @wraps(read)
    def again(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return read(*args, **kwargs)
        except Unavailable as error:
            if not error.stale:
                raise
        return read(*args, **kwargs)

    return again


def check_view(view: str) -> None:
    """Invalid unless it is one of the two."""
    if view not in VIEWS:
        raise Invalid("view is 'basic' or 'full'")


def _store_shaped(caller: Caller, store_id: str) -> None:
    """NotFound for what cannot be the id of a store the caller sees."""
    if not ids.is_id(store_id, ids.STORE) or not caller.sees(store_id):
        raise NotFound("memory store", store_id)


def find_store(tx: Tx, caller: Caller, store_id: str) -> Store:
    """The store, when it exists for the caller; else NotFound."""
    _store_shaped(caller, store_id)
    store = stores.get(tx, caller.workspace_id, store_id)
    if store is None:
        raise NotFound("memory store", store_id)
    return store


def see_store(
    tx: Tx, caller: Caller, store_id: str
) -> tuple[int, int, int | None, int | None, int]:
    """The counters of a store that exists for the caller; else NotFound. Cheaper than all of it."""
    _store_shaped(caller, store_id)
    row = stores.counters(tx, caller.workspace_id, store_id)
    if row is None:
        raise NotFound("memory store", store_id)
    return row


def lock_store(tx: Tx, caller: Caller, store_id: str) -> stores.LockedStore:
    """The store, held for this writing transaction; NotFound when the caller sees none."""
    _store_shaped(caller, store_id)
    store = stores.lock(tx, caller.workspace_id, store_id)
    if store is None:
        raise NotFound("memory store", store_id)
    return store


@contextmanager
def judged(core: Core, caller: Caller, store_id: str, scope: Scope) -> Iterator[None]:
    """Require a scope and judge arguments inside, without hiding that the store is not there.

    Arguments are judged before the transaction, to keep it short; NotFound of the store comes
    before any refusal of theirs, so it is looked for when there is one.
    """
    try:
        caller.require(scope, store_id)
        yield
    except (Invalid, Forbidden):
        with core.engine.read() as tx:
            see_store(tx, caller, store_id)
        raise


def keys_only(caller: Caller, scope: Scope) -> None:
    """Forbidden for sessions, and for keys without the scope."""
    if caller.grants is not None:
        raise Forbidden("A session's token may not do this; use a key.")
    caller.require(scope)


def time_bounds(created_from: datetime | None, created_to: datetime | None) -> tuple[int, int]:
    """Both inclusive bounds in microseconds, the open ones beyond every moment."""
    return (
        -EVER if created_from is None else clock.to_us(created_from),
        EVER if created_to is None else clock.to_us(created_to),
    )


def text_key(key: Any) -> str:
    """A cursor's key that must be a text a database can compare; else Invalid."""
    if not isinstance(key, str) or "\0" in key or not _encodable(key):
        raise Invalid("page is not a cursor of this listing")
    return key


def number_key(key: Any) -> int:
    """A cursor's key that must be a number; else Invalid."""
    if type(key) is not int or not 0 <= key <= EVER:
        raise Invalid("page is not a cursor of this listing")
    return key


def created_key(listing: str, page: str | None) -> tuple[int, str]:
    """The (created, id) key a newest-first listing continues below."""
    if page is None:
        return EVER, ""
    key = pages.decode_cursor(listing, page)
    if not isinstance(key, list) or len(key) != 2:
        raise Invalid("page is not a cursor of this listing")
    return number_key(key[0]), text_key(key[1])


def plain_text(text: str, what: str) -> str:
    """Text that every database and encoding can hold: no NUL, no lone surrogate; else Invalid."""
    if "\0" in text or not _encodable(text):
        raise Invalid(f"{what} may not hold NUL or lone surrogates.")
    return text


def _encodable(text: str) -> bool:
    """Whether the text can be written in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
