"""Texts that lost a conflict."""

# ruff: noqa: E501

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rejected_writes",
        sa.Column("id", sa.Text(), nullable=False, comment="rejw_ id."),
        sa.Column("store_id", sa.Text(), nullable=False, comment="The store."),
        sa.Column(
            "seq",
            sa.BigInteger(),
            nullable=False,
            comment="Taken from the store's sequence when it was recorded; its event has the same.",
        ),
        sa.Column("state", sa.Text(), nullable=False, comment="open, applied or dismissed."),
        sa.Column(
            "reason",
            sa.Text(),
            nullable=False,
            comment="One of `model.rejected_writes.REASONS`.",
        ),
        sa.Column(
            "memory_id",
            sa.Text(),
            nullable=True,
            comment="The memory it lost to, if any; once applied, the one that has the text. It may be gone, so it refers to no row.",
        ),
        sa.Column(
            "path",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            nullable=True,
            comment="Where it was to be saved; null unless open.",
        ),
        sa.Column(
            "base_sha256",
            sa.Text(),
            nullable=True,
            comment="SHA-256 (hex) of the text its edit was made from; null when unknown or not open.",
        ),
        sa.Column(
            "size",
            sa.BigInteger(),
            nullable=True,
            comment="Bytes of the content; null unless open.",
        ),
        sa.Column(
            "sha256",
            sa.Text(),
            nullable=True,
            comment="SHA-256 (hex) of the content; null unless open.",
        ),
        sa.Column(
            "version_id",
            sa.Text(),
            nullable=True,
            comment="The version that has the text, once applied: path, size, hash and text are read there, so that a redaction has nothing to undo here.",
        ),
        sa.Column(
            "created_at_us",
            sa.BigInteger(),
            nullable=False,
            comment="When it was recorded, in us.",
        ),
        sa.Column("actor_kind", sa.Text(), nullable=True, comment="The author: kind."),
        sa.Column("actor_id", sa.Text(), nullable=True, comment="The author: id."),
        sa.Column(
            "resolved_at_us",
            sa.BigInteger(),
            nullable=True,
            comment="When it was applied or dismissed, in us.",
        ),
        sa.Column(
            "resolved_by_kind",
            sa.Text(),
            nullable=True,
            comment="Who applied or dismissed it: kind.",
        ),
        sa.Column(
            "resolved_by_id",
            sa.Text(),
            nullable=True,
            comment="Who applied or dismissed it: id.",
        ),
        sa.Column(
            "content",
            sa.LargeBinary(),
            nullable=True,
            comment="The text in UTF-8; null unless open.",
        ),
        sa.ForeignKeyConstraint(
            ["store_id"], ["stores.id"], name=op.f("fk_rejected_writes_store_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rejected_writes")),
        sa.UniqueConstraint("store_id", "seq", name=op.f("uq_rejected_writes_store_id_seq")),
        comment="Texts that lost a conflict, until somebody applies or dismisses them.",
    )
    op.create_index(
        "ix_rejected_writes_store_id_state_seq",
        "rejected_writes",
        ["store_id", "state", "seq"],
        unique=False,
    )
