"""THE PORT: every verb a door may call, with its contract.

A backend is bound to one caller. Two things answer it: `memstore.service` in process, over a
database, and `memstore.client` over HTTP; `tests/conformance` holds both to this page.

Every verb is a plain blocking function, safe to call from several threads. Every refusal is a
class of `memstore.model.errors`; the ones any verb may raise are `Unauthenticated`, `Forbidden`,
`RateLimited` and `Unavailable`. An id that is malformed, of another kind, of another store or of
another workspace is `NotFound`, always. When several refusals apply, the order is: NotFound of
the store, Invalid of the arguments, StoreArchived, NotFound of the memory or version,
PreconditionFailed, PathConflict.

Verbs marked *extension* are not among the hosted API's endpoints. A backend that talks to a
server without them raises `NotSupported`; the driver then falls back to the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from memstore.model.access import Caller, Key, Scope
from memstore.model.errors import MemstoreError
from memstore.model.events import Event, EventPage
from memstore.model.limits import PAGE_DEFAULT
from memstore.model.memories import Change, Memory, MemoryPrefix, View
from memstore.model.pages import Page
from memstore.model.preconditions import ContentIs
from memstore.model.rejected_writes import Reason, RejectedWrite, State
from memstore.model.rollback import Rollback, RollbackTarget
from memstore.model.sessions import Attachment, Session
from memstore.model.stores import Store, StoreUsage
from memstore.model.versions import Receipt, Version, VersionFilter


class NotSupported(MemstoreError):
    """The server does not offer this extension."""

    code = "not_supported"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every live memory of a store at one moment, with the feed's cursor of that moment.

    `memories` yields full memories in path order, once; exhaust or close it.
    """

    cursor: int
    memories: Iterator[Memory]


class Feed(Protocol):
    """A live, blocking view of a store's events; iterate it in one thread, close it from any.

    Yields each event after the cursor once, in order, and None as a heartbeat when nothing
    happened for a while (at most 15 s), so that a dead peer is noticed. Ends when closed; raises
    NotFound once the store is deleted (after its `store.deleted` event) and Unavailable when the
    connection is lost: resume with a new feed after the last `seq` seen.
    """

    def __iter__(self) -> Iterator[Event | None]: ...

    def close(self) -> None:
        """End the iteration, also from another thread. Safe to call twice."""
        ...


class Backend(Protocol):
    """Every verb. Keyword arguments left out keep their documented default."""

    def close(self) -> None:
        """Release connections; the handle is not used afterwards. Safe to call twice."""
        ...

    def whoami(self) -> Caller:
        """Who this handle is bound to (*extension*)."""
        ...

    # Stores

    def create_store(
        self, *, name: str, description: str = "", metadata: Mapping[str, str] | None = None
    ) -> Store:
        """Make a store. Names need not be unique. Needs `write`; refused to sessions."""
        ...

    def get_store(self, store_id: str) -> Store:
        """One store, archived or not. Needs `read`."""
        ...

    def list_stores(
        self,
        *,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        include_archived: bool = False,
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[Store]:
        """Stores, newest first; both time bounds are inclusive. Needs `read`."""
        ...

    def update_store(
        self,
        store_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, str | None] | None = None,
    ) -> Store:
        """Change the fields given; `metadata` is a patch in which None removes a key.

        Nothing different: the store as it is, `updated_at` unmoved. StoreArchived on an archived
        store. Needs `write`; refused to sessions.
        """
        ...

    def archive_store(self, store_id: str) -> Store:
        """Archive for good; a second call changes nothing. Needs `write`; refused to sessions."""
        ...

    def delete_store(self, store_id: str) -> None:
        """Remove a store with its memories and versions, for ever. Needs `admin` or `write`."""
        ...

    def store_usage(self, store_id: str) -> StoreUsage:
        """How full a store is (*extension*). Needs `read`."""
        ...

    # Memories

    def create_memory(
        self, store_id: str, *, path: str, content: str, view: View = "basic"
    ) -> Memory:
        """Write a text at a free path: one `created` version.

        PathConflict when the path is taken (also by the same text) or overlaps; StoreFull at the
        store's cap; StoreArchived. Needs `write`.
        """
        ...

    def get_memory(self, store_id: str, memory_id: str, *, view: View = "full") -> Memory:
        """One live memory. Needs `read`."""
        ...

    def get_memory_at(self, store_id: str, path: str, *, view: View = "full") -> Memory:
        """The live memory at a path; NotFound when there is none (*extension*). Needs `read`."""
        ...

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
        """Live memories in byte order of their paths.

        `path_prefix` ends with `/` and matches whole segments. `depth` 0 lists all below it, 1
        its direct children with each deeper directory folded into one MemoryPrefix. Needs `read`.
        """
        ...

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
        """Change content, path, or both: one `modified` version.

        None leaves a field; both None is Invalid. Everything given already so: the memory as it
        is, no version, whatever the precondition says (a retried request whose answer was lost).
        PreconditionFailed when the content's hash is another; PathConflict on the destination.
        Needs `write`.
        """
        ...

    def delete_memory(
        self, store_id: str, memory_id: str, *, expected_content_sha256: str | None = None
    ) -> None:
        """Delete a memory: one `deleted` version; its history stays. Works on archived stores.

        PreconditionFailed when the expected hash is given and is another. Needs `write`.
        """
        ...

    def apply_changes(self, store_id: str, changes: Sequence[Change]) -> list[Memory | None]:
        """All the changes in order, in one transaction, or none (*extension*).

        Each is judged as its single verb would be after the ones before it; the first refusal
        undoes all and is raised. Answers one item a change, basic view, None for a delete.
        Needs `write`.
        """
        ...

    def snapshot(self, store_id: str) -> Snapshot:
        """Every live memory with its text at one moment (*extension*). Needs `read`."""
        ...

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
        """Versions of a store, newest first; deleted memories' too. Needs `read`."""
        ...

    def get_version(self, store_id: str, version_id: str, *, view: View = "full") -> Version:
        """One version, redacted or not. Needs `read`."""
        ...

    def redact_version(self, store_id: str, version_id: str) -> Version:
        """Destroy a version's text, path, size and hash; keep who and when.

        HeadNotRedactable for the head of a live memory. A second call changes nothing. Works on
        archived stores. Needs `redact`; refused to sessions.
        """
        ...

    def redaction_receipt(self, store_id: str, version_id: str) -> Receipt:
        """What a redaction destroyed where, when and by whom, signed (*extension*).

        NotFound when the version was not redacted, or before receipts were kept. Needs `read`.
        """
        ...

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
        """Versions of every memory that is or ever was at a path or below it (*extension*).

        Newest first; each memory with all its versions, also those from before it came to the
        path and after it left. Nothing ever there: an empty page. Needs `read`.
        """
        ...

    def rollback(self, store_id: str, target: RollbackTarget, *, dry_run: bool = False) -> Rollback:
        """Undo what the target says, as one act in one transaction (*extension*).

        It adds versions, by the caller, and removes none. What cannot be undone cleanly is listed
        as a conflict and left alone: a redacted version is needed, others have changed the same
        lines, another memory is in the way. A memory that was deleted comes back as a new one
        with its text and path. A dry run changes nothing and tells the same with diffs.
        StoreFull when the store's caps do not hold what comes back; StoreArchived, in a dry run
        too; NotFound of the version. Needs `write`; `read` is enough for a dry run.
        """
        ...

    # Rejected writes (extensions)

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
        """Keep a text that lost a conflict; the answer is in the full view.

        The same text of the same author for the same path and memory, still open, is not kept
        twice: the answer is the one there is. StoreFull when the store keeps as many open ones
        as it may (`limits.REJECTED_WRITES`); StoreArchived. Needs `write`.
        """
        ...

    def list_rejected_writes(
        self,
        store_id: str,
        *,
        state: State | None = None,
        view: View = "basic",
        limit: int = PAGE_DEFAULT,
        page: str | None = None,
    ) -> Page[RejectedWrite]:
        """Rejected writes of a store, newest first, in one state or in all. Needs `read`."""
        ...

    def get_rejected_write(
        self, store_id: str, rejected_write_id: str, *, view: View = "full"
    ) -> RejectedWrite:
        """One rejected write, open or not. Needs `read`."""
        ...

    def apply_rejected_write(
        self, store_id: str, rejected_write_id: str, *, precondition: ContentIs | None = None
    ) -> RejectedWrite:
        """Save its text after all: one version, by the caller.

        It goes to the memory it lost to, wherever that is now, else to the one at its path, else
        it is created there; a text that is there already makes no version. PreconditionFailed
        when the memory's hash is another, or there is no memory to have one. Applied before: the
        answer is as it was. Conflict when it was dismissed. StoreArchived, PathConflict and
        StoreFull as for any write. Needs `write`.
        """
        ...

    def dismiss_rejected_write(self, store_id: str, rejected_write_id: str) -> RejectedWrite:
        """Destroy its text, path, size and hashes, for ever; keep who and when.

        Again changes nothing. Conflict when it was applied: redact the version instead. Works on
        archived stores. Needs `redact`; `write` is enough for one's own.
        """
        ...

    # The change feed (extensions)

    def list_events(
        self, store_id: str, *, after: int = 0, limit: int = 100, view: View = "basic"
    ) -> EventPage:
        """Events with `seq` above `after`, oldest first, 1 to 1,000 of them. Needs `read`.

        `after=-1` means from now on: no events, and the cursor of this moment.
        """
        ...

    def watch(self, store_id: str, *, after: int = 0, view: View = "basic") -> Feed:
        """A live feed after a cursor. With the full view an event carries its version's text."""
        ...

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
        """Open a session with stores attached. StoreArchived for an archived one. Needs `write`."""
        ...

    def get_session(self, session_id: str) -> Session:
        """One session; a session's own token sees itself only. Needs `read`."""
        ...

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
        """Sessions, newest first; only those with a store attached when one is named."""
        ...

    def archive_session(self, session_id: str) -> Session:
        """End a session: its tokens stop working at once. A second call changes nothing."""
        ...

    def delete_session(self, session_id: str) -> None:
        """Remove a session and its tokens; versions keep its id as their author."""
        ...

    def create_session_token(self, session_id: str) -> str:
        """A secret that acts as this session (*extension*); shown once, kept as a hash."""
        ...

    # Keys (extensions; they need `admin`)

    def create_key(
        self, *, name: str = "", scopes: Sequence[Scope] = ("read", "write"), workspace: str = ""
    ) -> tuple[Key, str]:
        """A key and its secret, shown once. `workspace` is a name, made when new; "" is one's own."""
        ...

    def list_keys(self, *, limit: int = PAGE_DEFAULT, page: str | None = None) -> Page[Key]:
        """Keys of the caller's workspace, newest first, revoked ones included."""
        ...

    def revoke_key(self, key_id: str) -> Key:
        """Make a key useless within a second, in live mounts too. Again: nothing changes."""
        ...
