"""Sessions: an agent's run, the stores attached to it, its tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memstore.model import clock, ids, pages
from memstore.model import stores as store_rules
from memstore.model.access import Caller
from memstore.model.errors import Invalid, NotFound, StoreArchived
from memstore.model.sessions import (
    MOUNT_ROOT,
    AttachedStore,
    Attachment,
    Session,
    validate_attachments,
)
from memstore.model.stores import Store
from memstore.service import access
from memstore.service.core import (
    Core,
    created_key,
    find_store,
    keys_only,
    plain_text,
    time_bounds,
)
from memstore.storage import sessions
from memstore.storage.statement import Tx


def create(
    core: Core,
    caller: Caller,
    *,
    agent: Any,
    environment_id: str,
    stores: Sequence[Attachment],
    title: str | None,
    metadata: Mapping[str, str] | None,
    vault_ids: Sequence[str],
) -> Session:
    """Open a session with stores attached."""
    keys_only(caller, "write")
    attachments = validate_attachments(tuple(stores))
    for attachment in attachments:
        plain_text(attachment.instructions or "", "instructions")
    try:
        agent = json.loads(json.dumps(agent, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise Invalid("agent is a text or an object of JSON.") from None
    now = clock.from_us(clock.now_us())
    bare = Session(
        id=ids.new(ids.SESSION),
        agent=agent,
        environment_id=plain_text(environment_id, "environment_id"),
        title=None if title is None else plain_text(title, "title"),
        metadata=store_rules.validate_metadata(metadata or {}),
        vault_ids=tuple(plain_text(vault, "vault_ids") for vault in vault_ids),
        stores=(),
        created_at=now,
        updated_at=now,
        archived_at=None,
    )

    def work(tx: Tx) -> Session:
        found = [find_store(tx, caller, attachment.store_id) for attachment in attachments]
        for store in found:
            if store.archived_at is not None:
                raise StoreArchived(store.id)
        session = replace(bare, stores=_attached(attachments, found))
        sessions.add(tx, caller.workspace_id, session)
        return session

    return core.engine.write(work)


def _attached(
    attachments: Sequence[Attachment], stores: Sequence[Store]
) -> tuple[AttachedStore, ...]:
    """The attachments with what the stores are called now and where they will be mounted."""
    slugs = store_rules.unique_slugs([(store.name, store.id) for store in stores])
    return tuple(
        AttachedStore(
            store_id=store.id,
            access=attachment.access,
            instructions=attachment.instructions,
            name=store.name,
            description=store.description,
            mount_path=f"{MOUNT_ROOT}/{slug}",
        )
        for attachment, store, slug in zip(attachments, stores, slugs, strict=True)
    )


def _find(tx: Tx, caller: Caller, session_id: str, *, lock: bool = False) -> Session:
    """The session, when it exists for the caller; else NotFound."""
    session = None
    seen = caller.session_id is None or caller.session_id == session_id
    if seen and ids.is_id(session_id, ids.SESSION):
        session = sessions.get(tx, caller.workspace_id, session_id, lock=lock)
    if session is None:
        raise NotFound("session", session_id)
    return session


def _seen(core: Core, caller: Caller, session_id: str) -> None:
    """NotFound when the caller sees no such session."""
    with core.engine.read() as tx:
        _find(tx, caller, session_id)


def get(core: Core, caller: Caller, session_id: str) -> Session:
    """One session."""
    with core.engine.read() as tx:
        session = _find(tx, caller, session_id)
    caller.require("read")
    return session


def list_(
    core: Core,
    caller: Caller,
    *,
    store_id: str | None,
    include_archived: bool,
    created_from: datetime | None,
    created_to: datetime | None,
    limit: int,
    page: str | None,
) -> pages.Page[Session]:
    """Sessions of the caller, newest first."""
    caller.require("read")
    limit = pages.page_limit(limit)
    low, high = time_bounds(created_from, created_to)
    listing = f"sessions {low} {high} {include_archived:d} {store_id}"
    before = created_key(listing, page)
    if store_id is not None and not ids.is_id(store_id, ids.STORE):
        return pages.Page((), None)
    with core.engine.read() as tx:
        found = sessions.page(
            tx,
            caller.workspace_id,
            store_id=store_id,
            only=caller.session_id,
            low=low,
            high=high,
            archived=include_archived,
            before=before,
            limit=limit + 1,
        )
    shown = tuple(found[:limit])
    if len(found) <= limit:
        return pages.Page(shown, None)
    key = [clock.to_us(shown[-1].created_at), shown[-1].id]
    return pages.Page(shown, pages.encode_cursor(listing, key))


def archive(core: Core, caller: Caller, session_id: str) -> Session:
    """End a session; again changes nothing."""
    _seen(core, caller, session_id)
    keys_only(caller, "write")

    def work(tx: Tx) -> Session:
        session = _find(tx, caller, session_id, lock=True)
        if session.archived_at is not None:
            return session
        at_us = max(clock.now_us(), clock.to_us(session.updated_at) + 1)
        sessions.archive(tx, session_id, at_us)
        return _find(tx, caller, session_id)

    return core.engine.write(work)


def delete(core: Core, caller: Caller, session_id: str) -> None:
    """Remove a session and its tokens."""
    _seen(core, caller, session_id)
    keys_only(caller, "write")

    def work(tx: Tx) -> None:
        _find(tx, caller, session_id, lock=True)
        sessions.remove(tx, session_id)

    core.engine.write(work)


def create_token(core: Core, caller: Caller, session_id: str) -> str:
    """A secret that acts as this session."""
    _seen(core, caller, session_id)
    keys_only(caller, "write")
    secret = access.new_secret(access.TOKEN_PREFIX)

    def work(tx: Tx) -> None:
        session = _find(tx, caller, session_id, lock=True)
        if session.archived_at is not None:
            raise Invalid(f"Session {session_id} has ended; it gets no token.")
        sessions.add_token(
            tx, caller.workspace_id, session_id, access.secret_hash(secret), clock.now_us()
        )

    core.engine.write(work)
    return secret
