"""The key store's tables: a database of its own, which no backup of the data may hold.

With SQLite it is a file beside the database (`keys.db`); with PostgreSQL the schema
`memstore_keys`, to be left out of data backups (`pg_dump --exclude-schema=memstore_keys`).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

facts = Table(
    "key_facts",
    metadata,
    Column("name", Text, nullable=False, comment="Which fact."),
    Column("value", LargeBinary, nullable=False, comment="Its value; keys are wrapped."),
    PrimaryKeyConstraint("name"),
    comment="The key store's own: its format, the master key's mark, the signing key.",
)

epochs = Table(
    "epochs",
    metadata,
    Column("id", Text, nullable=False, comment="epoch_ id, or the id of a rejected write."),
    Column("store_id", Text, nullable=False, comment="The store whose records it is for."),
    Column(
        "first_seq",
        BigInteger,
        nullable=False,
        comment="Lowest seq a version under it can have; a successor has the same.",
    ),
    Column("wrapped", LargeBinary, nullable=False, comment="The key, under the master key."),
    PrimaryKeyConstraint("id"),
    Index("ix_epochs_store_id", "store_id"),
    comment="Epoch keys. To destroy a row is to destroy what was wrapped under it.",
)

survivors = Table(
    "survivors",
    metadata,
    Column("version_id", Text, nullable=False, comment="The version, not redacted."),
    Column("store_id", Text, nullable=False, comment="Its store."),
    Column("epoch_id", Text, nullable=False, comment="The epoch its key is wrapped under now."),
    Column("wrapped", LargeBinary, nullable=False, comment="Its key, under that epoch's."),
    PrimaryKeyConstraint("version_id"),
    Index("ix_survivors_epoch_id", "epoch_id"),
    Index("ix_survivors_store_id", "store_id"),
    comment="Keys of versions that shared an epoch with a redacted one: a backup taken before "
    "that has them under a key that is destroyed, and is read with these.",
)

intents = Table(
    "intents",
    metadata,
    Column("id", Text, nullable=False, comment="What settles it; the new epoch's id, if any."),
    Column("kind", Text, nullable=False, comment="version, store or rejected."),
    Column("store_id", Text, nullable=False, comment="The store."),
    Column("target_id", Text, nullable=False, comment="What is to be destroyed."),
    Column("old_epoch", Text, nullable=False, comment="The epoch key to destroy; '' for a store."),
    PrimaryKeyConstraint("id"),
    Index("ix_intents_target_id", "target_id"),
    comment="Destructions begun and not finished; see `memstore.storage.destruction`.",
)

receipts = Table(
    "receipts",
    metadata,
    Column("number", Integer, nullable=False, autoincrement=True, comment="Their order."),
    Column("version_id", Text, nullable=False, comment="The redacted version."),
    Column("store_id", Text, nullable=False, comment="Its store."),
    Column("receipt", Text, nullable=False, comment="The signed receipt, JSON."),
    PrimaryKeyConstraint("number"),
    UniqueConstraint("version_id"),
    comment="A receipt for each redacted version; they tell nothing of what it said.",
)
