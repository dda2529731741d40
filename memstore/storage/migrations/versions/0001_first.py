"""The first schema."""

# ruff: noqa: E501

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "deleted_stores",
        sa.Column("id", sa.Text(), nullable=False, comment="memstore_ id of a store that is gone."),
        sa.Column("workspace_id", sa.Text(), nullable=False, comment="The workspace it was in."),
        sa.Column(
            "seq",
            sa.BigInteger(),
            nullable=False,
            comment="seq of its `store.deleted` event: its last.",
        ),
        sa.Column(
            "deleted_at_us", sa.BigInteger(), nullable=False, comment="When it was deleted, in us."
        ),
        sa.Column("actor_kind", sa.Text(), nullable=True, comment="Who deleted it: kind."),
        sa.Column("actor_id", sa.Text(), nullable=True, comment="Who deleted it: id."),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deleted_stores")),
        comment="Tombstones, so that live feeds everywhere still hear `store.deleted`. They hold nothing of what the store held.",
    )
    op.create_table(
        "workspaces",
        sa.Column("id", sa.Text(), nullable=False, comment="wrkspc_ id."),
        sa.Column(
            "name",
            sa.Text(),
            nullable=False,
            comment="Unique; `default` is made at the first start.",
        ),
        sa.Column(
            "created_at_us", sa.BigInteger(), nullable=False, comment="When it was made, in us."
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspaces")),
        sa.UniqueConstraint("name", name=op.f("uq_workspaces_name")),
        comment="Tenants. Nothing in one workspace is visible from another.",
    )
    op.create_table(
        "keys",
        sa.Column(
            "id",
            sa.Text(),
            nullable=False,
            comment="apikey_ id; what versions name as their author.",
        ),
        sa.Column(
            "workspace_id", sa.Text(), nullable=False, comment="The workspace the key acts in."
        ),
        sa.Column(
            "name", sa.Text(), nullable=False, comment="A label for people; may be empty or repeat."
        ),
        sa.Column(
            "scopes",
            sa.Text(),
            nullable=False,
            comment="Scopes in canonical order, comma-separated.",
        ),
        sa.Column(
            "secret_sha256",
            sa.Text(),
            nullable=False,
            comment="SHA-256 (hex) of the secret, which has 256 random bits and is kept nowhere.",
        ),
        sa.Column(
            "created_at_us", sa.BigInteger(), nullable=False, comment="When it was made, in us."
        ),
        sa.Column(
            "revoked_at_us",
            sa.BigInteger(),
            nullable=True,
            comment="When it was revoked, in us; null: it works.",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_keys_workspace_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
        sa.UniqueConstraint("secret_sha256", name=op.f("uq_keys_secret_sha256")),
        comment="API keys, revoked ones included.",
    )
    op.create_index(
        "ix_keys_workspace_id_created_at_us_id",
        "keys",
        ["workspace_id", "created_at_us", "id"],
        unique=False,
    )
    op.create_table(
        "sessions",
        sa.Column(
            "id", sa.Text(), nullable=False, comment="sesn_ id; what its versions name as author."
        ),
        sa.Column("workspace_id", sa.Text(), nullable=False, comment="The workspace it runs in."),
        sa.Column("agent", sa.Text(), nullable=False, comment="JSON, kept as the caller gave it."),
        sa.Column(
            "environment_id", sa.Text(), nullable=False, comment="Kept as the caller gave it."
        ),
        sa.Column(
            "title",
            sa.Text(),
            nullable=True,
            comment="A label for people; null when none was given.",
        ),
        sa.Column(
            "metadata", sa.Text(), nullable=False, comment="JSON object of strings to strings."
        ),
        sa.Column(
            "vault_ids",
            sa.Text(),
            nullable=False,
            comment="JSON array, kept as the caller gave it.",
        ),
        sa.Column(
            "created_at_us", sa.BigInteger(), nullable=False, comment="When it was opened, in us."
        ),
        sa.Column(
            "updated_at_us",
            sa.BigInteger(),
            nullable=False,
            comment="Last change of this row, in us.",
        ),
        sa.Column(
            "archived_at_us",
            sa.BigInteger(),
            nullable=True,
            comment="When it ended, in us; its tokens end with it.",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_sessions_workspace_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        comment="Agents' sessions.",
    )
    op.create_index(
        "ix_sessions_workspace_id_created_at_us_id",
        "sessions",
        ["workspace_id", "created_at_us", "id"],
        unique=False,
    )
    op.create_table(
        "stores",
        sa.Column("id", sa.Text(), nullable=False, comment="memstore_ id."),
        sa.Column("workspace_id", sa.Text(), nullable=False, comment="The owner; never changes."),
        sa.Column(
            "name", sa.Text(), nullable=False, comment="1 to 255 characters; need not be unique."
        ),
        sa.Column(
            "description",
            sa.Text(),
            nullable=False,
            comment="At most 1,024 characters; '' when unset.",
        ),
        sa.Column(
            "metadata", sa.Text(), nullable=False, comment="JSON object of strings to strings."
        ),
        sa.Column(
            "created_at_us", sa.BigInteger(), nullable=False, comment="When it was made, in us."
        ),
        sa.Column(
            "updated_at_us",
            sa.BigInteger(),
            nullable=False,
            comment="Last change of its own fields or its archiving, in us; memories do not move it.",
        ),
        sa.Column(
            "archived_at_us",
            sa.BigInteger(),
            nullable=True,
            comment="When it was archived, in us; never undone.",
        ),
        sa.Column(
            "last_seq",
            sa.BigInteger(),
            nullable=False,
            comment="Highest seq given in this store; 0 before the first. Updated by every writing transaction, so its row lock makes the order of seqs the order of commits.",
        ),
        sa.Column(
            "last_at_us",
            sa.BigInteger(),
            nullable=False,
            comment="Latest moment given in this store, in us; the next is later, whatever the clock.",
        ),
        sa.Column(
            "memory_count",
            sa.BigInteger(),
            nullable=False,
            comment="Rows of `memories` of this store; kept here because every create compares it.",
        ),
        sa.Column(
            "total_bytes",
            sa.BigInteger(),
            nullable=False,
            comment="Sum of `memories.size` of this store, in bytes; kept here for the same reason.",
        ),
        sa.Column(
            "max_memories",
            sa.BigInteger(),
            nullable=True,
            comment="Cap of live memories; null: the setting's.",
        ),
        sa.Column(
            "max_bytes",
            sa.BigInteger(),
            nullable=True,
            comment="Cap of live content, in bytes; null: the setting's.",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_stores_workspace_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stores")),
        comment="Memory stores, archived ones included; a deleted one leaves only `deleted_stores`.",
    )
    op.create_index(
        "ix_stores_workspace_id_created_at_us_id",
        "stores",
        ["workspace_id", "created_at_us", "id"],
        unique=False,
    )
    op.create_table(
        "events",
        sa.Column("store_id", sa.Text(), nullable=False, comment="The store."),
        sa.Column(
            "seq",
            sa.BigInteger(),
            nullable=False,
            comment="The feed's cursor. For a memory's event the seq of its version; a redaction or a change of the store takes one of its own.",
        ),
        sa.Column(
            "kind", sa.Text(), nullable=False, comment="One of `memstore.model.events.EVENT_KINDS`."
        ),
        sa.Column(
            "version_id",
            sa.Text(),
            nullable=True,
            comment="The version it speaks of; path, size, hash and text are read there, so that a redaction has nothing to undo here. Null for a store's events.",
        ),
        sa.Column(
            "memory_id",
            sa.Text(),
            nullable=True,
            comment="That version's memory; null for a store's events.",
        ),
        sa.Column("created_at_us", sa.BigInteger(), nullable=False, comment="When, in us."),
        sa.Column("actor_kind", sa.Text(), nullable=True, comment="Who did it: kind."),
        sa.Column("actor_id", sa.Text(), nullable=True, comment="Who did it: id."),
        sa.ForeignKeyConstraint(["store_id"], ["stores.id"], name=op.f("fk_events_store_id")),
        sa.PrimaryKeyConstraint("store_id", "seq", name=op.f("pk_events")),
        comment="The change feed, one row a change, written in the change's own transaction.",
    )
    op.create_table(
        "memories",
        sa.Column("id", sa.Text(), nullable=False, comment="mem_ id; survives renames."),
        sa.Column("store_id", sa.Text(), nullable=False, comment="The store."),
        sa.Column(
            "path",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            nullable=False,
            comment="Unique in the store; neither above nor below another live path.",
        ),
        sa.Column(
            "version_id",
            sa.Text(),
            nullable=False,
            comment="The head: the version with this memory's highest seq. No foreign key, which would cost a search of this table for each version deleted with a store.",
        ),
        sa.Column(
            "seq",
            sa.BigInteger(),
            nullable=False,
            comment="The head's seq, for readers of changes.",
        ),
        sa.Column(
            "sha256",
            sa.Text(),
            nullable=False,
            comment="The head's sha256; here so that preconditions and listings read one table.",
        ),
        sa.Column(
            "size", sa.BigInteger(), nullable=False, comment="The head's size in bytes; likewise."
        ),
        sa.Column(
            "created_at_us",
            sa.BigInteger(),
            nullable=False,
            comment="Of its `created` version, in us.",
        ),
        sa.Column(
            "updated_at_us", sa.BigInteger(), nullable=False, comment="Of its head version, in us."
        ),
        sa.ForeignKeyConstraint(["store_id"], ["stores.id"], name=op.f("fk_memories_store_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memories")),
        sa.UniqueConstraint("store_id", "path", name=op.f("uq_memories_store_id_path")),
        comment="Live memories only: a delete removes the row and adds a version.",
    )
    op.create_table(
        "session_stores",
        sa.Column("session_id", sa.Text(), nullable=False, comment="The session."),
        sa.Column(
            "position", sa.BigInteger(), nullable=False, comment="Order of the attachments, from 0."
        ),
        sa.Column(
            "store_id",
            sa.Text(),
            nullable=False,
            comment="The store; refers to no row, for the record stays when a store is deleted.",
        ),
        sa.Column("access", sa.Text(), nullable=False, comment="read_write or read_only."),
        sa.Column(
            "instructions",
            sa.Text(),
            nullable=True,
            comment="What the agent is told of it; null when nothing.",
        ),
        sa.Column(
            "name", sa.Text(), nullable=False, comment="The store's name when it was attached."
        ),
        sa.Column(
            "description", sa.Text(), nullable=False, comment="Its description at that time."
        ),
        sa.Column(
            "mount_path",
            sa.Text(),
            nullable=False,
            comment="Where it is mounted; unique in a session.",
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_session_stores_session_id")
        ),
        sa.PrimaryKeyConstraint("session_id", "position", name=op.f("pk_session_stores")),
        sa.UniqueConstraint(
            "session_id", "store_id", name=op.f("uq_session_stores_session_id_store_id")
        ),
        comment="Stores attached to sessions, as they were named at attach.",
    )
    op.create_index(
        "ix_session_stores_store_id_session_id",
        "session_stores",
        ["store_id", "session_id"],
        unique=False,
    )
    op.create_table(
        "session_tokens",
        sa.Column(
            "secret_sha256",
            sa.Text(),
            nullable=False,
            comment="SHA-256 (hex) of the secret, which has 256 random bits and is kept nowhere.",
        ),
        sa.Column("session_id", sa.Text(), nullable=False, comment="Whom it acts as."),
        sa.Column("workspace_id", sa.Text(), nullable=False, comment="The session's workspace."),
        sa.Column(
            "created_at_us", sa.BigInteger(), nullable=False, comment="When it was made, in us."
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_session_tokens_session_id")
        ),
        sa.PrimaryKeyConstraint("secret_sha256", name=op.f("pk_session_tokens")),
        comment="Tokens that act as a session while it is not archived.",
    )
    op.create_index("ix_session_tokens_session_id", "session_tokens", ["session_id"], unique=False)
    op.create_table(
        "versions",
        sa.Column("id", sa.Text(), nullable=False, comment="memver_ id."),
        sa.Column("store_id", sa.Text(), nullable=False, comment="The store."),
        sa.Column(
            "memory_id",
            sa.Text(),
            nullable=False,
            comment="mem_ id; outlives the memory, so it refers to no row.",
        ),
        sa.Column(
            "seq",
            sa.BigInteger(),
            nullable=False,
            comment="Order within the store, from 1, in commit order; gaps, never reused.",
        ),
        sa.Column("operation", sa.Text(), nullable=False, comment="created, modified or deleted."),
        sa.Column(
            "path",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            nullable=True,
            comment="The path after the change; null once redacted.",
        ),
        sa.Column(
            "size",
            sa.BigInteger(),
            nullable=True,
            comment="Bytes of the content; null once redacted and for `deleted`.",
        ),
        sa.Column(
            "sha256",
            sa.Text(),
            nullable=True,
            comment="SHA-256 (hex) of the content; null once redacted and for `deleted`.",
        ),
        sa.Column(
            "created_at_us",
            sa.BigInteger(),
            nullable=False,
            comment="When, in us; strictly rising with seq within a store.",
        ),
        sa.Column("actor_kind", sa.Text(), nullable=True, comment="The author: kind."),
        sa.Column("actor_id", sa.Text(), nullable=True, comment="The author: id."),
        sa.Column(
            "redacted_at_us",
            sa.BigInteger(),
            nullable=True,
            comment="When it was redacted, in us; null: it was not.",
        ),
        sa.Column("redacted_by_kind", sa.Text(), nullable=True, comment="Who redacted it: kind."),
        sa.Column("redacted_by_id", sa.Text(), nullable=True, comment="Who redacted it: id."),
        sa.Column(
            "content",
            sa.LargeBinary(),
            nullable=True,
            comment="The text in UTF-8; null once redacted and for `deleted`. The last column, so that reading the others never walks over a long text.",
        ),
        sa.ForeignKeyConstraint(["store_id"], ["stores.id"], name=op.f("fk_versions_store_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_versions")),
        sa.UniqueConstraint("store_id", "seq", name=op.f("uq_versions_store_id_seq")),
        comment="What each change made: immutable but for redaction. The text of a live memory is that of its head version.",
    )
    op.create_index("ix_versions_memory_id_seq", "versions", ["memory_id", "seq"], unique=False)
    op.create_index(
        "ix_versions_store_id_actor_id_seq",
        "versions",
        ["store_id", "actor_id", "seq"],
        unique=False,
    )
