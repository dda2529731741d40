"""The port over HTTP: each verb is one request, and its answer a value of the model."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from memstore.backend import Feed, NotSupported, Snapshot
from memstore.client import wire
from memstore.client.feed import SILENCE_S, RemoteFeed, lines_of_json
from memstore.client.transport import Answer, Stream, Transport
from memstore.model.access import Caller, Key, Scope
from memstore.model.errors import (
    Invalid,
    MemstoreError,
    NotFound,
    PathConflict,
    PreconditionFailed,
    Unavailable,
)
from memstore.model.events import EventPage
from memstore.model.limits import PAGE_DEFAULT
from memstore.model.memories import (
    Change,
    CreateMemory,
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

Value = TypeVar("Value")

_ID = re.compile(r"[A-Za-z0-9_-]+")
"""What may stand in a URL as an id; anything else could reach another route."""

_STORES = "/v1/memory_stores"
_SESSIONS = "/v1/sessions"
_KEYS = "/v1/api_keys"


def _id(kind: str, id: str) -> str:
    """The id itself; NotFound when it cannot be one."""
    if not _ID.fullmatch(id):
        raise NotFound(kind, id)
    return id


def _store(store_id: str) -> str:
    return f"{_STORES}/{_id('memory store', store_id)}"


def _memory(store_id: str, memory_id: str) -> str:
    return f"{_store(store_id)}/memories/{_id('memory', memory_id)}"


def _version(store_id: str, version_id: str) -> str:
    return f"{_store(store_id)}/memory_versions/{_id('memory version', version_id)}"


def _rejected(store_id: str, rejected_write_id: str) -> str:
    return f"{_store(store_id)}/rejected_writes/{_id('rejected write', rejected_write_id)}"


def _session(session_id: str) -> str:
    return f"{_SESSIONS}/{_id('session', session_id)}"


class RemoteBackend:
    """Every verb of `memstore.backend.Backend`, over one service's API, with one credential.

    `key` is an API key or a session's token; `timeout` in seconds bounds every wait for the
    service. Safe to use from many threads.
    """

    def __init__(
        self, url: str, *, key: str = "", timeout: float = 30.0, patience: float = 5.0
    ) -> None:
        self._transport = Transport(url, key=key, timeout=timeout, patience=patience)
        self._extended: bool | None = None

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def whoami(self) -> Caller:
        """Who this handle is bound to (*extension*)."""
        answer = self._transport.send("GET", "/v1/whoami")
        if answer.status in (404, 405):
            raise NotSupported()
        return self._value(answer, wire.caller)

    # Stores

    def create_store(
        self, *, name: str, description: str = "", metadata: Mapping[str, str] | None = None
    ) -> Store:
        """Make a store; see the port."""
        body = {"name": name, "description": description, "metadata": dict(metadata or {})}
        return self._post(_STORES, body, wire.store, once=True)

    def get_store(self, store_id: str) -> Store:
        """One store; see the port."""
        return self._get(_store(store_id), None, wire.store)

    def list_stores(
        self,
        *,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        include_archived: bool = False,
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Store]:
        """Stores, newest first; see the port."""
        query = {
            "created_at[gte]": wire.query_time(created_from),
            "created_at[lte]": wire.query_time(created_to),
            "include_archived": include_archived,
            "limit": limit,
            "page": page,
        }
        return self._page(_STORES, query, wire.store)

    def update_store(
        self,
        store_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, str | None] | None = None,
    ) -> Store:
        """Change the fields given; see the port."""
        patch = None if metadata is None else dict(metadata)
        body = wire.given(name=name, description=description, metadata=patch)
        return self._post(_store(store_id), body, wire.store)

    def archive_store(self, store_id: str) -> Store:
        """Archive for good; see the port."""
        return self._post(f"{_store(store_id)}/archive", None, wire.store)

    def delete_store(self, store_id: str) -> None:
        """Remove a store for ever; see the port."""
        self._delete(_store(store_id))

    def store_usage(self, store_id: str) -> StoreUsage:
        """How full a store is (*extension*)."""
        return self._get(f"{_store(store_id)}/usage", None, wire.usage, extension=True)

    # Memories

    def create_memory(
        self, store_id: str, *, path: str, content: str, view: View = "basic"
    ) -> Memory:
        """Write a text at a free path; see the port.

        The API's create is not idempotent. When an answer was lost and the repeated request finds
        the path taken by the very same text, that text is taken for the one sent before.
        """
        answer = self._transport.send(
            "POST",
            f"{_store(store_id)}/memories",
            query={"view": view},
            body={"path": path, "content": content},
        )
        if answer.ok:
            return self._value(answer, wire.memory)
        error = wire.plainer(answer.refusal(), path, content)
        if isinstance(error, PathConflict):
            error.path = error.path or path
            if answer.resent:
                made = self._made_before(store_id, error, content, view)
                if made is not None:
                    return made
        raise error

    def _made_before(
        self, store_id: str, conflict: PathConflict, content: str, view: View
    ) -> Memory | None:
        """The memory that a request with a lost answer made, if it did."""
        if conflict.conflicting_path != conflict.path or not conflict.conflicting_memory_id:
            return None
        try:
            memory = self.get_memory(store_id, conflict.conflicting_memory_id)
        except NotFound:
            return None
        if memory.path != conflict.path or memory.content != content:
            return None
        return memory if view == "full" else self.get_memory(store_id, memory.id, view=view)

    def get_memory(self, store_id: str, memory_id: str, *, view: View = "full") -> Memory:
        """One live memory; see the port."""
        return self._get(_memory(store_id, memory_id), {"view": view}, wire.memory)

    def get_memory_at(self, store_id: str, path: str, *, view: View = "full") -> Memory:
        """The live memory at a path (*extension*)."""
        query = {"path": path, "view": view}
        return self._get(f"{_store(store_id)}/memory_by_path", query, wire.memory, extension=True)

    def list_memories(
        self,
        store_id: str,
        *,
        path_prefix: str | None = None,
        depth: int = 0,
        view: View = "basic",
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Memory | MemoryPrefix]:
        """Live memories in byte order of their paths; see the port."""
        query = {
            "path_prefix": path_prefix,
            "depth": depth or None,
            "view": view,
            "limit": limit,
            "page": page,
        }
        return self._page(f"{_store(store_id)}/memories", query, wire.memory_or_prefix)

    def update_memory(
        self,
        store_id: str,
        memory_id: str,
        *,
        content: str | None = None,
        path: str | None = None,
        precondition: ContentIs | None = None,
        view: View = "basic",
    ) -> Memory:
        """Change content, path, or both; see the port. The server settles a repeated request."""
        body = wire.given(
            content=content, path=path, precondition=wire.precondition_body(precondition)
        )
        try:
            return self._post(_memory(store_id, memory_id), body, wire.memory, query={"view": view})
        except PathConflict as error:
            error.path = error.path or path or ""
            raise
        except PreconditionFailed as error:
            error.memory_id = memory_id
            raise
        except Invalid as error:
            raise wire.plainer(error, path, content) from None

    def delete_memory(
        self, store_id: str, memory_id: str, *, expected_content_sha256: str | None = None
    ) -> None:
        """Delete a memory; see the port."""
        try:
            self._delete(
                _memory(store_id, memory_id), {"expected_content_sha256": expected_content_sha256}
            )
        except PreconditionFailed as error:
            error.memory_id = memory_id
            raise

    def apply_changes(self, store_id: str, changes: Sequence[Change]) -> list[Memory | None]:
        """All the changes in order, in one transaction, or none (*extension*).

        When an answer was lost and the repeated batch is refused, but everything it asks for is
        so, it has been carried out before.
        """
        answer = self._transport.send(
            "POST", f"{_store(store_id)}/batch", body=wire.changes_body(changes)
        )
        if not answer.ok:
            error = self._refusal(answer, extension=True)
            for change in changes:
                if not isinstance(change, DeleteMemory):
                    error = wire.plainer(error, change.path, change.content)
            if answer.resent and not isinstance(error, (NotSupported, Unavailable)):
                done = self._done_before(store_id, changes)
                if done is not None:
                    return done
            raise error
        return self._value(
            answer,
            lambda data: [None if item is None else wire.memory(item) for item in data["data"]],
        )

    def _done_before(self, store_id: str, changes: Sequence[Change]) -> list[Memory | None] | None:
        """The batch's answer when all it asks for is so already; None otherwise."""
        done: list[Memory | None] = []
        for change in changes:
            try:
                if isinstance(change, CreateMemory):
                    memory = self.get_memory_at(store_id, change.path)
                else:
                    memory = self.get_memory(store_id, change.memory_id)
            except NotFound:
                if not isinstance(change, DeleteMemory):
                    return None
                done.append(None)
                continue
            if isinstance(change, DeleteMemory) or not _so_already(memory, change):
                return None
            done.append(dataclasses.replace(memory, content=None))
        return done

    def snapshot(self, store_id: str) -> Snapshot:
        """Every live memory with its text at one moment (*extension*)."""
        stream = self._open(f"{_store(store_id)}/snapshot")
        values = lines_of_json(stream)
        try:
            first = next(values, None)
            cursor = wire.read(lambda data: int(data["cursor"]), first)
        except BaseException:
            stream.close()
            raise
        return Snapshot(cursor, _memories(stream, values))

    # Versions

    def list_versions(
        self,
        store_id: str,
        *,
        where: VersionFilter = VersionFilter(),
        view: View = "basic",
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Version]:
        """Versions of a store, newest first; see the port."""
        query = {**wire.version_query(where), "view": view, "limit": limit, "page": page}
        return self._page(f"{_store(store_id)}/memory_versions", query, wire.version)

    def get_version(self, store_id: str, version_id: str, *, view: View = "full") -> Version:
        """One version, redacted or not; see the port."""
        return self._get(_version(store_id, version_id), {"view": view}, wire.version)

    def redact_version(self, store_id: str, version_id: str) -> Version:
        """Destroy a version's text, path, size and hash; see the port."""
        return self._post(f"{_version(store_id, version_id)}/redact", None, wire.version)

    def redaction_receipt(self, store_id: str, version_id: str) -> Receipt:
        """The signed receipt of a redaction (*extension*)."""
        path = f"{_version(store_id, version_id)}/receipt"
        return self._get(path, None, dict, extension=True)

    def list_history(
        self,
        store_id: str,
        path: str,
        *,
        where: VersionFilter = VersionFilter(),
        view: View = "basic",
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Version]:
        """Versions of what is or was at a path or below it, newest first (*extension*)."""
        query = {
            "path": path,
            **wire.version_query(where),
            "view": view,
            "limit": limit,
            "page": page,
        }
        return self._page(f"{_store(store_id)}/history", query, wire.version, extension=True)

    def rollback(self, store_id: str, target: RollbackTarget, *, dry_run: bool = False) -> Rollback:
        """Undo what the target says (*extension*).

        Not sent again when its answer was lost: the second would not tell what the first did.
        """
        body = wire.rollback_body(target, dry_run)
        path = f"{_store(store_id)}/rollback"
        return self._post(path, body, wire.rollback, once=not dry_run, extension=True)

    # Rejected writes

    def record_rejected_write(
        self,
        store_id: str,
        *,
        path: str,
        content: str,
        memory_id: str | None = None,
        base_content_sha256: str | None = None,
        reason: Reason = "conflict",
    ) -> RejectedWrite:
        """Keep a text that lost a conflict (*extension*). The server knows a repeated request."""
        body = {
            "path": path,
            "content": content,
            "reason": reason,
            **wire.given(memory_id=memory_id, base_content_sha256=base_content_sha256),
        }
        path = f"{_store(store_id)}/rejected_writes"
        return self._post(path, body, wire.rejected_write, extension=True)

    def list_rejected_writes(
        self,
        store_id: str,
        *,
        state: State | None = None,
        view: View = "basic",
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[RejectedWrite]:
        """Rejected writes of a store, newest first (*extension*)."""
        query = {"state": state, "view": view, "limit": limit, "page": page}
        path = f"{_store(store_id)}/rejected_writes"
        return self._page(path, query, wire.rejected_write, extension=True)

    def get_rejected_write(
        self, store_id: str, rejected_write_id: str, *, view: View = "full"
    ) -> RejectedWrite:
        """One rejected write (*extension*)."""
        path = _rejected(store_id, rejected_write_id)
        return self._get(path, {"view": view}, wire.rejected_write, extension=True)

    def apply_rejected_write(
        self, store_id: str, rejected_write_id: str, *, precondition: ContentIs | None = None
    ) -> RejectedWrite:
        """Save its text after all (*extension*). The server settles a repeated request."""
        path = f"{_rejected(store_id, rejected_write_id)}/apply"
        body = wire.given(precondition=wire.precondition_body(precondition))
        return self._post(path, body, wire.rejected_write, extension=True)

    def dismiss_rejected_write(self, store_id: str, rejected_write_id: str) -> RejectedWrite:
        """Destroy its text (*extension*)."""
        path = f"{_rejected(store_id, rejected_write_id)}/dismiss"
        return self._post(path, None, wire.rejected_write, extension=True)

    # The change feed

    def list_events(
        self, store_id: str, *, after: int = 0, limit: int = 100, view: View = "basic"
    ) -> EventPage:
        """Events after a cursor (*extension*)."""
        query = {"after": after, "limit": limit, "view": view}
        return self._get(f"{_store(store_id)}/events", query, wire.event_page, extension=True)

    def watch(self, store_id: str, *, after: int = 0, view: View = "basic") -> Feed:
        """A live feed after a cursor (*extension*); connected when this returns."""
        stream = self._open(
            f"{_store(store_id)}/events",
            query={"after": after, "view": view},
            accept="text/event-stream",
            timeout=SILENCE_S,
        )
        if stream.content_type != "text/event-stream":
            stream.close()
            raise NotSupported()
        return RemoteFeed(stream)

    # Sessions

    def create_session(
        self,
        *,
        agent: Any,
        environment_id: str,
        stores: Sequence[Attachment] = (),
        title: str | None = None,
        metadata: Mapping[str, str] | None = None,
        vault_ids: Sequence[str] = (),
    ) -> Session:
        """Open a session with stores attached; see the port."""
        for attachment in stores:
            _id("memory store", attachment.store_id)
        body = wire.session_body(agent, environment_id, stores, title, metadata, vault_ids)
        return self._post(_SESSIONS, body, wire.session, once=True)

    def get_session(self, session_id: str) -> Session:
        """One session; see the port."""
        return self._get(_session(session_id), None, wire.session)

    def list_sessions(
        self,
        *,
        store_id: str | None = None,
        include_archived: bool = False,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Session]:
        """Sessions, newest first; see the port."""
        query = {
            "memory_store_id": store_id,
            "include_archived": include_archived,
            "created_at[gte]": wire.query_time(created_from),
            "created_at[lte]": wire.query_time(created_to),
            "limit": limit,
            "page": page,
        }
        return self._page(_SESSIONS, query, wire.session)

    def archive_session(self, session_id: str) -> Session:
        """End a session; see the port."""
        return self._post(f"{_session(session_id)}/archive", None, wire.session)

    def delete_session(self, session_id: str) -> None:
        """Remove a session and its tokens; see the port."""
        self._delete(_session(session_id))

    def create_session_token(self, session_id: str) -> str:
        """A secret that acts as this session (*extension*)."""
        path = f"{_session(session_id)}/tokens"
        return self._post(path, None, lambda data: str(data["token"]), once=True, extension=True)

    # Keys

    def create_key(
        self, *, name: str = "", scopes: Sequence[Scope] = ("read", "write"), workspace: str = ""
    ) -> tuple[Key, str]:
        """A key and its secret, shown once (*extension*)."""
        body = {"name": name, "scopes": list(scopes), "workspace": workspace}
        return self._post(
            _KEYS, body, lambda data: (wire.key(data), str(data["key"])), once=True, extension=True
        )

    def list_keys(self, *, limit: int = PAGE_DEFAULT, page: str | None = None) -> Page[Key]:
        """Keys of the caller's workspace, newest first (*extension*)."""
        return self._page(_KEYS, {"limit": limit, "page": page}, wire.key, extension=True)

    def revoke_key(self, key_id: str) -> Key:
        """Make a key useless (*extension*)."""
        path = f"{_KEYS}/{_id('key', key_id)}/revoke"
        return self._post(path, None, wire.key, extension=True)

    # One request

    def _get(
        self,
        path: str,
        query: Mapping[str, Any] | None,
        reader: Callable[[wire.Json], Value],
        *,
        extension: bool = False,
    ) -> Value:
        return self._value(self._transport.send("GET", path, query=query), reader, extension)

    def _page(
        self,
        path: str,
        query: Mapping[str, Any],
        item: Callable[[wire.Json], Value],
        *,
        extension: bool = False,
    ) -> Page[Value]:
        return self._get(path, query, lambda data: wire.page(item, data), extension=extension)

    def _post(
        self,
        path: str,
        body: Any,
        reader: Callable[[wire.Json], Value],
        *,
        query: Mapping[str, Any] | None = None,
        once: bool = False,
        extension: bool = False,
    ) -> Value:
        answer = self._transport.send("POST", path, query=query, body=body, once=once)
        return self._value(answer, reader, extension)

    def _delete(self, path: str, query: Mapping[str, Any] | None = None) -> None:
        answer = self._transport.send("DELETE", path, query=query)
        if answer.resent and answer.status == 404:
            # Gone: by the first sending, whose answer was lost, or by another's hand.
            return
        if not answer.ok:
            raise answer.refusal()

    def _open(self, path: str, **options: Any) -> Stream:
        opened = self._transport.stream(path, **options)
        if isinstance(opened, Answer):
            raise self._refusal(opened, extension=True)
        return opened

    def _value(
        self, answer: Answer, reader: Callable[[wire.Json], Value], extension: bool = False
    ) -> Value:
        if not answer.ok:
            raise self._refusal(answer, extension)
        return wire.read(reader, wire.loads(answer.body))

    def _refusal(self, answer: Answer, extension: bool) -> MemstoreError:
        if extension and answer.status in (404, 405) and not self._has_extensions():
            return NotSupported()
        return answer.refusal()

    def _has_extensions(self) -> bool:
        """Whether a 404 to an extension speaks of the object; asked once, by /v1/whoami."""
        if self._extended is None:
            status = self._transport.send("GET", "/v1/whoami").status
            if status not in (200, 404, 405):
                return True
            self._extended = status == 200
        return self._extended


def _so_already(memory: Memory, change: CreateMemory | UpdateMemory) -> bool:
    return (change.content is None or memory.content == change.content) and (
        change.path is None or memory.path == change.path
    )


def _memories(stream: Stream, values: Iterator[Any]) -> Iterator[Memory]:
    """The memories of a snapshot; Unavailable when it ends before its trailer."""
    count = 0
    try:
        for value in values:
            if isinstance(value, dict) and value.get("end"):
                if value.get("count") == count:
                    return
                break
            yield wire.read(wire.memory, value)
            count += 1
    finally:
        stream.close()
    raise Unavailable("The snapshot was cut short.")
