"""Every table and column, explained. The migrations build it; a test proves they build this.

Conventions that hold everywhere:

* Moments are integers: microseconds since 1970-01-01T00:00:00Z (`*_at_us`). Null: has not happened.
* Ids are `prefix_01...` texts of `memstore.model.ids`; they are never reused.
* An actor is a pair, kind and id (`memstore.model.actors`); both null: the author is not recorded.
  The id refers to nothing, for an author may be gone while the work stays.
* Every table carries the id of its store, or of its workspace: the key a larger service shards by.
* JSON is kept as ASCII text that only Python reads.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)

BYTE_ORDERED = Text().with_variant(Text(collation="C"), "postgresql")
"""Text compared byte by byte; SQLite compares so by default, PostgreSQL by the collation C."""

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Text, nullable=False, comment="wrkspc_ id."),
    Column("name", Text, nullable=False, comment="Unique; `default` is made at the first start."),
    Column("created_at_us", BigInteger, nullable=False, comment="When it was made, in us."),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("name"),
    comment="Tenants. Nothing in one workspace is visible from another.",
)

keys = Table(
    "keys",
    metadata,
    Column("id", Text, nullable=False, comment="apikey_ id; what versions name as their author."),
    Column(
        "workspace_id",
        Text,
        ForeignKey("workspaces.id"),
        nullable=False,
        comment="The workspace the key acts in.",
    ),
    Column("name", Text, nullable=False, comment="A label for people; may be empty or repeat."),
    Column("scopes", Text, nullable=False, comment="Scopes in canonical order, comma-separated."),
    Column(
        "secret_sha256",
        Text,
        nullable=False,
        comment="SHA-256 (hex) of the secret, which has 256 random bits and is kept nowhere.",
    ),
    Column("created_at_us", BigInteger, nullable=False, comment="When it was made, in us."),
    Column("revoked_at_us", BigInteger, comment="When it was revoked, in us; null: it works."),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("secret_sha256"),
    Index("ix_keys_workspace_id_created_at_us_id", "workspace_id", "created_at_us", "id"),
    comment="API keys, revoked ones included.",
)

stores = Table(
    "stores",
    metadata,
    Column("id", Text, nullable=False, comment="memstore_ id."),
    Column(
        "workspace_id",
        Text,
        ForeignKey("workspaces.id"),
        nullable=False,
        comment="The owner; never changes.",
    ),
    Column("name", Text, nullable=False, comment="1 to 255 characters; need not be unique."),
    Column("description", Text, nullable=False, comment="At most 1,024 characters; '' when unset."),
    Column("metadata", Text, nullable=False, comment="JSON object of strings to strings."),
    Column("created_at_us", BigInteger, nullable=False, comment="When it was made, in us."),
    Column(
        "updated_at_us",
        BigInteger,
        nullable=False,
        comment="Last change of its own fields or its archiving, in us; memories do not move it.",
    ),
    Column("archived_at_us", BigInteger, comment="When it was archived, in us; never undone."),
    Column(
        "last_seq",
        BigInteger,
        nullable=False,
        comment="Highest seq given in this store; 0 before the first. Updated by every writing "
        "transaction, so its row lock makes the order of seqs the order of commits.",
    ),
    Column(
        "last_at_us",
        BigInteger,
        nullable=False,
        comment="Latest moment given in this store, in us; the next is later, whatever the clock.",
    ),
    Column(
        "memory_count",
        BigInteger,
        nullable=False,
        comment="Rows of `memories` of this store; kept here because every create compares it.",
    ),
    Column(
        "total_bytes",
        BigInteger,
        nullable=False,
        comment="Sum of the sizes of its live memories, in bytes; kept here for the same reason.",
    ),
    Column("max_memories", BigInteger, comment="Cap of live memories; null: the setting's."),
    Column("max_bytes", BigInteger, comment="Cap of live content, in bytes; null: the setting's."),
    Column(
        "epoch_id",
        Text,
        comment="The epoch whose key, in the key store, wraps the next version's; null before.",
    ),
    Column("epoch_seq", BigInteger, comment="The first seq of that epoch; null before."),
    PrimaryKeyConstraint("id"),
    Index("ix_stores_workspace_id_created_at_us_id", "workspace_id", "created_at_us", "id"),
    comment="Memory stores, archived ones included; a deleted one leaves only `deleted_stores`.",
)

deleted_stores = Table(
    "deleted_stores",
    metadata,
    Column("id", Text, nullable=False, comment="memstore_ id of a store that is gone."),
    Column("workspace_id", Text, nullable=False, comment="The workspace it was in."),
    Column(
        "seq", BigInteger, nullable=False, comment="seq of its `store.deleted` event: its last."
    ),
    Column("deleted_at_us", BigInteger, nullable=False, comment="When it was deleted, in us."),
    Column("actor_kind", Text, comment="Who deleted it: kind."),
    Column("actor_id", Text, comment="Who deleted it: id."),
    PrimaryKeyConstraint("id"),
    comment="Tombstones, so that live feeds everywhere still hear `store.deleted`. They hold "
    "nothing of what the store held.",
)

versions = Table(
    "versions",
    metadata,
    Column("id", Text, nullable=False, comment="memver_ id."),
    Column("store_id", Text, ForeignKey("stores.id"), nullable=False, comment="The store."),
    Column(
        "memory_id",
        Text,
        nullable=False,
        comment="mem_ id; outlives the memory, so it refers to no row.",
    ),
    Column(
        "seq",
        BigInteger,
        nullable=False,
        comment="Order within the store, from 1, in commit order; gaps, never reused.",
    ),
    Column("operation", Text, nullable=False, comment="created, modified or deleted."),
    Column(
        "created_at_us",
        BigInteger,
        nullable=False,
        comment="When, in us; strictly rising with seq within a store.",
    ),
    Column("actor_kind", Text, comment="The author: kind."),
    Column("actor_id", Text, comment="The author: id."),
    Column("redacted_at_us", BigInteger, comment="When it was redacted, in us; null: it was not."),
    Column("redacted_by_kind", Text, comment="Who redacted it: kind."),
    Column("redacted_by_id", Text, comment="Who redacted it: id."),
    Column("epoch_id", Text, comment="The epoch that wraps its key; null once redacted."),
    Column(
        "wrapped_key",
        LargeBinary,
        comment="The version's own key, under the epoch's; null once redacted.",
    ),
    Column(
        "facts",
        LargeBinary,
        comment="Path, size and SHA-256, sealed under its key; null once redacted.",
    ),
    Column(
        "text",
        LargeBinary,
        comment="The text, sealed likewise; null once redacted and for `deleted`. The last "
        "column, so that reading the others never walks over a long text.",
    ),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("store_id", "seq"),
    Index("ix_versions_memory_id_seq", "memory_id", "seq"),
    Index("ix_versions_store_id_actor_id_seq", "store_id", "actor_id", "seq"),
    comment="What each change made: immutable but for redaction. The text of a live memory is "
    "that of its head version.",
)

rejected_writes = Table(
    "rejected_writes",
    metadata,
    Column("id", Text, nullable=False, comment="rejw_ id."),
    Column("store_id", Text, ForeignKey("stores.id"), nullable=False, comment="The store."),
    Column(
        "seq",
        BigInteger,
        nullable=False,
        comment="Taken from the store's sequence when it was recorded; its event has the same.",
    ),
    Column("state", Text, nullable=False, comment="open, applied or dismissed."),
    Column("reason", Text, nullable=False, comment="One of `model.rejected_writes.REASONS`."),
    Column(
        "memory_id",
        Text,
        comment="The memory it lost to, if any; once applied, the one that has the text. It may "
        "be gone, so it refers to no row.",
    ),
    Column(
        "version_id",
        Text,
        comment="The version that has the text, once applied: path, size, hash and text are read "
        "there, so that a redaction has nothing to undo here.",
    ),
    Column("created_at_us", BigInteger, nullable=False, comment="When it was recorded, in us."),
    Column("actor_kind", Text, comment="The author: kind."),
    Column("actor_id", Text, comment="The author: id."),
    Column("resolved_at_us", BigInteger, comment="When it was applied or dismissed, in us."),
    Column("resolved_by_kind", Text, comment="Who applied or dismissed it: kind."),
    Column("resolved_by_id", Text, comment="Who applied or dismissed it: id."),
    Column(
        "wrapped_key",
        LargeBinary,
        comment="Its own key, under the epoch key of its id, its alone; null unless open.",
    ),
    Column(
        "facts",
        LargeBinary,
        comment="Path, size, SHA-256 and that of its base, sealed; null unless open.",
    ),
    Column("text", LargeBinary, comment="The text, sealed; null unless open."),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("store_id", "seq"),
    Index("ix_rejected_writes_store_id_state_seq", "store_id", "state", "seq"),
    comment="Texts that lost a conflict, until somebody applies or dismisses them.",
)

memories = Table(
    "memories",
    metadata,
    Column("id", Text, nullable=False, comment="mem_ id; survives renames."),
    Column("store_id", Text, ForeignKey("stores.id"), nullable=False, comment="The store."),
    Column(
        "path",
        BYTE_ORDERED,
        nullable=False,
        comment="Unique in the store; neither above nor below another live path. In plain, for "
        "listings are ordered by it; size and hash are read in the head's sealed facts.",
    ),
    Column(
        "version_id",
        Text,
        nullable=False,
        comment="The head: the version with this memory's highest seq. No foreign key, which "
        "would cost a search of this table for each version deleted with a store.",
    ),
    Column("seq", BigInteger, nullable=False, comment="The head's seq, for readers of changes."),
    Column("created_at_us", BigInteger, nullable=False, comment="Of its `created` version, in us."),
    Column("updated_at_us", BigInteger, nullable=False, comment="Of its head version, in us."),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("store_id", "path"),
    comment="Live memories only: a delete removes the row and adds a version.",
)

events = Table(
    "events",
    metadata,
    Column("store_id", Text, ForeignKey("stores.id"), nullable=False, comment="The store."),
    Column(
        "seq",
        BigInteger,
        nullable=False,
        comment="The feed's cursor. For a memory's event the seq of its version; a redaction or "
        "a change of the store takes one of its own.",
    ),
    Column("kind", Text, nullable=False, comment="One of `memstore.model.events.EVENT_KINDS`."),
    Column(
        "version_id",
        Text,
        comment="The version it speaks of; path, size, hash and text are read there, so that a "
        "redaction has nothing to undo here. Null for a store's events.",
    ),
    Column("memory_id", Text, comment="That version's memory; null for a store's events."),
    Column("created_at_us", BigInteger, nullable=False, comment="When, in us."),
    Column("actor_kind", Text, comment="Who did it: kind."),
    Column("actor_id", Text, comment="Who did it: id."),
    PrimaryKeyConstraint("store_id", "seq"),
    comment="The change feed, one row a change, written in the change's own transaction.",
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, nullable=False, comment="sesn_ id; what its versions name as author."),
    Column(
        "workspace_id",
        Text,
        ForeignKey("workspaces.id"),
        nullable=False,
        comment="The workspace it runs in.",
    ),
    Column("agent", Text, nullable=False, comment="JSON, kept as the caller gave it."),
    Column("environment_id", Text, nullable=False, comment="Kept as the caller gave it."),
    Column("title", Text, comment="A label for people; null when none was given."),
    Column("metadata", Text, nullable=False, comment="JSON object of strings to strings."),
    Column("vault_ids", Text, nullable=False, comment="JSON array, kept as the caller gave it."),
    Column("created_at_us", BigInteger, nullable=False, comment="When it was opened, in us."),
    Column("updated_at_us", BigInteger, nullable=False, comment="Last change of this row, in us."),
    Column("archived_at_us", BigInteger, comment="When it ended, in us; its tokens end with it."),
    PrimaryKeyConstraint("id"),
    Index("ix_sessions_workspace_id_created_at_us_id", "workspace_id", "created_at_us", "id"),
    comment="Agents' sessions.",
)

session_stores = Table(
    "session_stores",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.id"), nullable=False, comment="The session."),
    Column("position", BigInteger, nullable=False, comment="Order of the attachments, from 0."),
    Column(
        "store_id",
        Text,
        nullable=False,
        comment="The store; refers to no row, for the record stays when a store is deleted.",
    ),
    Column("access", Text, nullable=False, comment="read_write or read_only."),
    Column("instructions", Text, comment="What the agent is told of it; null when nothing."),
    Column("name", Text, nullable=False, comment="The store's name when it was attached."),
    Column("description", Text, nullable=False, comment="Its description at that time."),
    Column("mount_path", Text, nullable=False, comment="Where it is mounted; unique in a session."),
    PrimaryKeyConstraint("session_id", "position"),
    UniqueConstraint("session_id", "store_id"),
    Index("ix_session_stores_store_id_session_id", "store_id", "session_id"),
    comment="Stores attached to sessions, as they were named at attach.",
)

session_tokens = Table(
    "session_tokens",
    metadata,
    Column(
        "secret_sha256",
        Text,
        nullable=False,
        comment="SHA-256 (hex) of the secret, which has 256 random bits and is kept nowhere.",
    ),
    Column(
        "session_id", Text, ForeignKey("sessions.id"), nullable=False, comment="Whom it acts as."
    ),
    Column("workspace_id", Text, nullable=False, comment="The session's workspace."),
    Column("created_at_us", BigInteger, nullable=False, comment="When it was made, in us."),
    PrimaryKeyConstraint("secret_sha256"),
    Index("ix_session_tokens_session_id", "session_id"),
    comment="Tokens that act as a session while it is not archived.",
)
