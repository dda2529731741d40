"""The port in process: each verb hands over to its capability, for one caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from memstore.backend import Snapshot
from memstore.model.access import Caller, Key, Scope
from memstore.model.events import Event, EventPage
from memstore.model.limits import PAGE_DEFAULT
from memstore.model.memories import (
    Change,
    DeleteMemory,
    Memory,
    MemoryPrefix,
    UpdateMemory,
    View,
)
from memstore.model.pages import Page
from memstore.model.preconditions import ContentIs
from memstore.model.rejected_writes import Reason, RejectedWrite, State
from memstore.model.rollback import Rollback, RollbackTarget
from memstore.model.sessions import Attachment, Session
from memstore.model.stores import Store, StoreUsage
from memstore.model.versions import Receipt, Version, VersionFilter
from memstore.service import (
    access,
    changes,
    events,
    history,
    memories,
    redaction,
    rejected_writes,
    rollback,
    sessions,
    stores,
    versions,
)
from memstore.service.core import Core


class LocalBackend:
    """`memstore.backend.Backend` over an open database; the contracts are written there.

    `revoked` is called after something stopped working; `on_close` when the handle is closed.
    """

    def __init__(
        self,
        core: Core,
        caller: Caller,
        *,
        revoked: Callable[[], None] = lambda: None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._core = core
        self._caller = caller
        self._revoked = revoked
        self._on_close = on_close

    def close(self) -> None:  # noqa: D102
        self._on_close()

    def whoami(self) -> Caller:  # noqa: D102
        return self._caller

    # Stores

    def create_store(  # noqa: D102
        self, *, name: str, description: str = "", metadata: Mapping[str, str] | None = None
    ) -> Store:
        return stores.create(
            self._core, self._caller, name=name, description=description, metadata=metadata
        )

    def get_store(self, store_id: str) -> Store:  # noqa: D102
        return stores.get(self._core, self._caller, store_id)

    def list_stores(  # noqa: D102
        self,
        *,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        include_archived: bool = False,
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Store]:
        return stores.list_(
            self._core,
            self._caller,
            created_from=created_from,
            created_to=created_to,
            include_archived=include_archived,
            limit=limit,
            page=page,
        )

    def update_store(  # noqa: D102
        self,
        store_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, str | None] | None = None,
    ) -> Store:
        return stores.update(
            self._core,
            self._caller,
            store_id,
            name=name,
            description=description,
            metadata=metadata,
        )

    def archive_store(self, store_id: str) -> Store:  # noqa: D102
        return stores.archive(self._core, self._caller, store_id)

    def delete_store(self, store_id: str) -> None:  # noqa: D102
        stores.delete(self._core, self._caller, store_id)

    def store_usage(self, store_id: str) -> StoreUsage:  # noqa: D102
        return stores.usage(self._core, self._caller, store_id)

    # Memories

    def create_memory(  # noqa: D102
        self, store_id: str, *, path: str, content: str, view: View = "basic"
    ) -> Memory:
        return changes.create(self._core, self._caller, store_id, path, content, view)

    def get_memory(  # noqa: D102
        self, store_id: str, memory_id: str, *, view: View = "full"
    ) -> Memory:
        return memories.get(self._core, self._caller, store_id, memory_id, view)

    def get_memory_at(  # noqa: D102
        self, store_id: str, path: str, *, view: View = "full"
    ) -> Memory:
        return memories.get_at(self._core, self._caller, store_id, path, view)

    def list_memories(  # noqa: D102
        self,
        store_id: str,
        *,
        path_prefix: str | None = None,
        depth: int = 0,
        view: View = "basic",
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Memory | MemoryPrefix]:
        return memories.list_(
            self._core,
            self._caller,
            store_id,
            path_prefix=path_prefix,
            depth=depth,
            view=view,
            limit=limit,
            page=page,
        )

    def update_memory(  # noqa: D102
        self,
        store_id: str,
        memory_id: str,
        *,
        content: str | None = None,
        path: str | None = None,
        precondition: ContentIs | None = None,
        view: View = "basic",
    ) -> Memory:
        change = UpdateMemory(memory_id, content, path, precondition)
        return changes.update(self._core, self._caller, store_id, change, view)

    def delete_memory(  # noqa: D102
        self, store_id: str, memory_id: str, *, expected_content_sha256: str | None = None
    ) -> None:
        change = DeleteMemory(memory_id, expected_content_sha256)
        changes.delete(self._core, self._caller, store_id, change)

    def apply_changes(  # noqa: D102
        self, store_id: str, changes_: Sequence[Change]
    ) -> list[Memory | None]:
        return changes.apply(self._core, self._caller, store_id, changes_)

    def snapshot(self, store_id: str) -> Snapshot:  # noqa: D102
        return memories.snapshot(self._core, self._caller, store_id)

    # Versions

    def list_versions(  # noqa: D102
        self,
        store_id: str,
        *,
        where: VersionFilter = VersionFilter(),
        view: View = "basic",
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Version]:
        return versions.list_(
            self._core, self._caller, store_id, where=where, view=view, limit=limit, page=page
        )

    def get_version(  # noqa: D102
        self, store_id: str, version_id: str, *, view: View = "full"
    ) -> Version:
        return versions.get(self._core, self._caller, store_id, version_id, view)

    def redact_version(self, store_id: str, version_id: str) -> Version:  # noqa: D102
        return redaction.redact(self._core, self._caller, store_id, version_id)

    def redaction_receipt(self, store_id: str, version_id: str) -> Receipt:  # noqa: D102
        return redaction.receipt(self._core, self._caller, store_id, version_id)

    def list_history(  # noqa: D102
        self,
        store_id: str,
        path: str,
        *,
        where: VersionFilter = VersionFilter(),
        view: View = "basic",
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Version]:
        return history.list_(
            self._core, self._caller, store_id, path, where=where, view=view, limit=limit, page=page
        )

    def rollback(  # noqa: D102
        self, store_id: str, target: RollbackTarget, *, dry_run: bool = False
    ) -> Rollback:
        return rollback.rollback(self._core, self._caller, store_id, target, dry_run=dry_run)

    # Rejected writes

    def record_rejected_write(  # noqa: D102
        self,
        store_id: str,
        *,
        path: str,
        content: str,
        memory_id: str | None = None,
        base_content_sha256: str | None = None,
        reason: Reason = "conflict",
    ) -> RejectedWrite:
        return rejected_writes.record(
            self._core,
            self._caller,
            store_id,
            path=path,
            content=content,
            memory_id=memory_id,
            base_content_sha256=base_content_sha256,
            reason=reason,
        )

    def list_rejected_writes(  # noqa: D102
        self,
        store_id: str,
        *,
        state: State | None = None,
        view: View = "basic",
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[RejectedWrite]:
        return rejected_writes.list_(
            self._core, self._caller, store_id, state=state, view=view, limit=limit, page=page
        )

    def get_rejected_write(  # noqa: D102
        self, store_id: str, rejected_write_id: str, *, view: View = "full"
    ) -> RejectedWrite:
        return rejected_writes.get(self._core, self._caller, store_id, rejected_write_id, view)

    def apply_rejected_write(  # noqa: D102
        self, store_id: str, rejected_write_id: str, *, precondition: ContentIs | None = None
    ) -> RejectedWrite:
        return rejected_writes.apply(
            self._core, self._caller, store_id, rejected_write_id, precondition
        )

    def dismiss_rejected_write(self, store_id: str, rejected_write_id: str) -> RejectedWrite:  # noqa: D102
        return rejected_writes.dismiss(self._core, self._caller, store_id, rejected_write_id)

    # The change feed

    def list_events(  # noqa: D102
        self, store_id: str, *, after: int = 0, limit: int = 100, view: View = "basic"
    ) -> EventPage:
        return events.list_(self._core, self._caller, store_id, after=after, limit=limit, view=view)

    def watch(  # noqa: D102
        self, store_id: str, *, after: int = 0, view: View = "basic"
    ) -> events.LocalFeed:
        return events.LocalFeed(self._core, self._caller, store_id, after, view)

    def farewell(self, store_id: str) -> Event | None:
        """The `store.deleted` event of a store that is gone, for feeds that meet NotFound."""
        return stores.farewell(self._core, self._caller, store_id)

    # Sessions

    def create_session(  # noqa: D102
        self,
        *,
        agent: Any,
        environment_id: str,
        stores: Sequence[Attachment] = (),
        title: str | None = None,
        metadata: Mapping[str, str] | None = None,
        vault_ids: Sequence[str] = (),
    ) -> Session:
        return sessions.create(
            self._core,
            self._caller,
            agent=agent,
            environment_id=environment_id,
            stores=stores,
            title=title,
            metadata=metadata,
            vault_ids=vault_ids,
        )

    def get_session(self, session_id: str) -> Session:  # noqa: D102
        return sessions.get(self._core, self._caller, session_id)

    def list_sessions(  # noqa: D102
        self,
        *,
        store_id: str | None = None,
        include_archived: bool = False,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Session]:
        return sessions.list_(
            self._core,
            self._caller,
            store_id=store_id,
            include_archived=include_archived,
            created_from=created_from,
            created_to=created_to,
            limit=limit,
            page=page,
        )

    def archive_session(self, session_id: str) -> Session:  # noqa: D102
        session = sessions.archive(self._core, self._caller, session_id)
        self._revoked()
        return session

    def delete_session(self, session_id: str) -> None:  # noqa: D102
        sessions.delete(self._core, self._caller, session_id)
        self._revoked()

    def create_session_token(self, session_id: str) -> str:  # noqa: D102
        return sessions.create_token(self._core, self._caller, session_id)

    # Keys

    def create_key(  # noqa: D102
        self, *, name: str = "", scopes: Sequence[Scope] = ("read", "write"), workspace: str = ""
    ) -> tuple[Key, str]:
        return access.create_key(
            self._core, self._caller, name=name, scopes=scopes, workspace=workspace
        )

    def list_keys(  # noqa: D102
        self, *, limit: int = PAGE_DEFAULT, page: str | None = None
    ) -> Page[Key]:
        return access.list_keys(self._core, self._caller, limit=limit, page=page)

    def revoke_key(self, key_id: str) -> Key:  # noqa: D102
        key = access.revoke_key(self._core, self._caller, key_id)
        self._revoked()
        return key
