"""Texts, paths, sizes and hashes are sealed.

Epoch keys are on disk in the key store before the rows that need them; a migration that is killed
leaves the plain rows as they were, and keys that nothing uses.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SPAN = 1000
CHUNK = 200


def upgrade() -> None:
    columns: list[tuple[str, Any, str]] = [
        (
            "epoch_id",
            sa.Text(),
            "The epoch whose key, in the key store, wraps the next version's; null before.",
        ),
        ("epoch_seq", sa.BigInteger(), "The first seq of that epoch; null before."),
    ]
    for name, type, comment in columns:
        op.add_column("stores", sa.Column(name, type, nullable=True, comment=comment))
    columns = [
        ("epoch_id", sa.Text(), "The epoch that wraps its key; null once redacted."),
        (
            "wrapped_key",
            sa.LargeBinary(),
            "The version's own key, under the epoch's; null once redacted.",
        ),
        (
            "facts",
            sa.LargeBinary(),
            "Path, size and SHA-256, sealed under its key; null once redacted.",
        ),
        (
            "text",
            sa.LargeBinary(),
            "The text, sealed likewise; null once redacted and for `deleted`. The last column, so that reading the others never walks over a long text.",
        ),
    ]
    for name, type, comment in columns:
        op.add_column("versions", sa.Column(name, type, nullable=True, comment=comment))
    for name, comment in (
        (
            "wrapped_key",
            "Its own key, under the epoch key of its id, its alone; null unless open.",
        ),
        ("facts", "Path, size, SHA-256 and that of its base, sealed; null unless open."),
        ("text", "The text, sealed; null unless open."),
    ):
        op.add_column(
            "rejected_writes", sa.Column(name, sa.LargeBinary(), nullable=True, comment=comment)
        )
    connection = op.get_bind()
    keys = context.config.attributes["keys"]
    for (store_id,) in connection.execute(sa.text("SELECT id FROM stores")).fetchall():
        _seal_versions(connection, keys, store_id)
        _seal_rejected(connection, keys, store_id)
    for table, plain in (
        ("versions", ("path", "size", "sha256", "content")),
        ("rejected_writes", ("path", "base_sha256", "size", "sha256", "content")),
        ("memories", ("sha256", "size")),
    ):
        for old in plain:
            op.drop_column(table, old)


def _seal_versions(connection: Any, keys: Any, store_id: str) -> None:
    """Seal a store's versions, in the order of their seqs, a few at a time."""
    from memstore.storage.crypto import Facts, Sealed

    query = sa.text(
        "SELECT id, seq, path, size, sha256, content FROM versions WHERE store_id = :store "
        "AND seq > :after ORDER BY seq LIMIT :limit"
    )
    save = sa.text(
        "UPDATE versions SET epoch_id = :epoch_id, wrapped_key = :wrapped_key, facts = :facts, "
        "text = :text, content = NULL WHERE id = :id"
    )
    epoch, after = None, 0
    while True:
        given = {"store": store_id, "after": after, "limit": CHUNK}
        rows = connection.execute(query, given).fetchall()
        for id, seq, path, size, sha256, content in rows:
            after = seq
            if path is None:
                continue
            if epoch is None or seq - epoch.first_seq >= SPAN:
                epoch = keys.new_epoch(store_id, seq)
            text = None if content is None else bytes(content)
            sealed: Sealed = keys.seal(epoch, id, Facts(path, size, sha256), text)
            connection.execute(save, {**sealed._asdict(), "id": id})
        if len(rows) < CHUNK:
            break
    if epoch is not None:
        connection.execute(
            sa.text("UPDATE stores SET epoch_id = :epoch, epoch_seq = :seq WHERE id = :id"),
            {"epoch": epoch.id, "seq": epoch.first_seq, "id": store_id},
        )


def _seal_rejected(connection: Any, keys: Any, store_id: str) -> None:
    """Seal a store's open rejected writes, each under an epoch of its own."""
    from memstore.storage.crypto import Facts

    rows = connection.execute(
        sa.text(
            "SELECT id, seq, path, size, sha256, base_sha256, content FROM rejected_writes "
            "WHERE store_id = :store AND state = 'open'"
        ),
        {"store": store_id},
    ).fetchall()
    for id, seq, path, size, sha256, base, content in rows:
        keys.destroy_orphan(id)
        epoch = keys.new_epoch(store_id, seq, id=id)
        sealed = keys.seal(epoch, id, Facts(path, size, sha256, base), bytes(content))
        connection.execute(
            sa.text(
                "UPDATE rejected_writes SET wrapped_key = :wrapped_key, facts = :facts, "
                "text = :text, content = NULL WHERE id = :id"
            ),
            {
                "wrapped_key": sealed.wrapped_key,
                "facts": sealed.facts,
                "text": sealed.text,
                "id": id,
            },
        )
