"""Databases as older versions of memstore left them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

from memstore.model import ids
from memstore.storage import migrations

TEXTS = ("plain-text-marker one", "plain-text-marker two")


def old_database(url: str, revision: str) -> tuple[str, str]:
    """A store with a memory of two versions, and a rejected write where there were any; their ids.

    The database of the URL is new; a SQLite one is in the mode memstore sets.
    """
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    workspace, store, memory = ids.new(ids.WORKSPACE), ids.new(ids.STORE), ids.new(ids.MEMORY)
    by = {"kind": "api_actor", "by": ids.new(ids.KEY)}
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

        def add(statement: str, **values: object) -> None:
            connection.execute(text(statement), values)

        add("INSERT INTO workspaces VALUES (:id, 'default', 1)", id=workspace)
        add(
            "INSERT INTO stores VALUES (:id, :workspace, 'old', '', '{}', 1, 1, NULL, 4, 9, 1, "
            ":size, NULL, NULL)",
            id=store,
            workspace=workspace,
            size=len(TEXTS[1]),
        )
        for seq, said in enumerate(TEXTS, 1):
            version, raw = ids.new(ids.VERSION), said.encode()
            operation = "created" if seq == 1 else "modified"
            facts = {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
            add(
                "INSERT INTO versions (id, store_id, memory_id, seq, operation, path, size, sha256,"
                " created_at_us, actor_kind, actor_id, content) VALUES (:id, :store, :memory, :seq,"
                " :operation, '/a', :size, :sha256, :seq, :kind, :by, :raw)",
                id=version,
                store=store,
                memory=memory,
                seq=seq,
                raw=raw,
                operation=operation,
                **facts,
                **by,
            )
            add(
                "INSERT INTO events VALUES (:store, :seq, :event, :version, :memory, :seq, :kind,"
                " :by)",
                store=store,
                seq=seq,
                version=version,
                memory=memory,
                event=f"memory.{operation}",
                **by,
            )
        add(
            "INSERT INTO memories VALUES (:id, :store, '/a', :version, 2, :sha256, :size, 1, 2)",
            id=memory,
            store=store,
            version=version,
            **facts,
        )
        if revision != "0001":
            add(
                "INSERT INTO rejected_writes (id, store_id, seq, state, reason, path, size, sha256,"
                " created_at_us, actor_kind, actor_id, content) VALUES (:id, :store, 3, 'open',"
                " 'conflict', '/a', :size, :sha256, 3, :kind, :by, :raw)",
                id=ids.new(ids.REJECTED_WRITE),
                store=store,
                raw=raw,
                **facts,
                **by,
            )
            add(
                "INSERT INTO events VALUES (:store, 3, 'write.rejected', NULL, NULL, 3, :kind, :by)",
                store=store,
                **by,
            )
    engine.dispose()
    return store, memory
