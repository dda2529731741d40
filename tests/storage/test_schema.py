"""The schema: explained, built by its migrations, never older than the code that reads it."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.schema import CreateTable

from memstore.model.errors import Invalid, MemstoreError, Unavailable
from memstore.service.database import check, open_database
from memstore.storage import (
    access,
    events,
    memories,
    migrations,
    rejected_writes,
    sessions,
    stores,
    versions,
)
from memstore.storage import check as check_module
from memstore.storage.migrations import REVISIONS
from memstore.storage.schema import metadata
from memstore.storage.statement import Statement

ELSEWHERE = {"workspaces", "keys", "sessions", "stores"}


def url(path: Path) -> str:
    """The database's URL in a folder."""
    return f"sqlite:///{path / 'memstore.db'}"


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_every_table_and_column_is_explained(table) -> None:
    """A table and each of its columns carry a comment that says what they mean."""
    assert table.comment and table.comment.endswith(".")
    for column in table.columns:
        assert column.comment and column.comment.endswith("."), f"{table}.{column.name}"


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_every_table_carries_its_store_or_workspace(table) -> None:
    """A larger service is sharded by store or workspace, so every row names its own."""
    names = set(table.columns.keys())
    assert table.name in ELSEWHERE or names & {"store_id", "workspace_id"}


def test_the_migrations_build_the_schema(tmp_path: Path) -> None:
    """A database made by the migrations differs in nothing from the described schema."""
    open_database(url(tmp_path)).close()
    engine = create_engine(url(tmp_path))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        built = {
            row[0]: re.sub(r"\s+", " ", row[1])
            for row in connection.exec_driver_sql(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
            )
        }
        for table in metadata.sorted_tables:
            described = str(CreateTable(table).compile(engine))
            assert sorted(re.findall(r"\w+", described)) == sorted(
                re.findall(r"\w+", built[table.name])
            )
    engine.dispose()


def test_the_list_of_revisions_is_the_folders() -> None:
    """What the code calls the newest schema is the newest migration."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    script = ScriptDirectory.from_config(config)
    assert tuple(r.revision for r in reversed(list(script.walk_revisions()))) == REVISIONS


def test_paths_are_ordered_by_bytes_on_postgresql() -> None:
    """PostgreSQL orders paths by the collation C, whatever its locale."""
    text = str(CreateTable(metadata.tables["memories"]).compile(dialect=postgresql.dialect()))
    assert 'path TEXT COLLATE "C"' in text


def test_a_new_database_is_private(tmp_path: Path) -> None:
    """The folder is made 0700 and the files 0600, whatever the umask."""
    folder = tmp_path / "data"
    before = os.umask(0)
    try:
        engine = open_database(url(folder))
        assert folder.stat().st_mode & 0o777 == 0o700
        for file in folder.iterdir():
            assert file.stat().st_mode & 0o777 == 0o600, file.name
        engine.close()
    finally:
        os.umask(before)


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    """A database at the present schema is opened as it is."""
    open_database(url(tmp_path)).close()
    before = (tmp_path / "memstore.db").read_bytes()
    open_database(url(tmp_path)).close()
    assert (tmp_path / "memstore.db").read_bytes() == before


@pytest.mark.damaged_database
def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """A database of a newer memstore is not touched; the sentence says what to install."""
    open_database(url(tmp_path)).close()
    with sqlite3.connect(tmp_path / "memstore.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(Unavailable, match="newer"):
        open_database(url(tmp_path))
    with pytest.raises(Invalid, match="migrate"):
        check(url(tmp_path))


@pytest.mark.parametrize("bad", ["mysql://h/d", "nonsense", "sqlite://", "sqlite:///:memory:"])
def test_another_database_is_refused(bad: str) -> None:
    """Only SQLite files and PostgreSQL are databases, and the sentence names them."""
    with pytest.raises(MemstoreError, match="sqlite"):
        open_database(bad)


def test_somebody_elses_database_is_refused_untouched(tmp_path: Path) -> None:
    """A SQLite file with other tables is not migrated into ours."""
    with sqlite3.connect(tmp_path / "memstore.db") as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    with pytest.raises(Invalid, match="something else"):
        open_database(url(tmp_path))
    with sqlite3.connect(tmp_path / "memstore.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    connection.close()


def test_checking_makes_no_database(tmp_path: Path) -> None:
    """A check of a file that is not there says so and leaves nothing behind."""
    with pytest.raises(Unavailable, match="No such file"):
        check(url(tmp_path / "data"))
    assert list(tmp_path.iterdir()) == []


def test_many_first_starts_at_once(tmp_path: Path) -> None:
    """Processes that open a new database together all find it migrated."""
    code = "import sys; from memstore.service import Service; s = Service(sys.argv[1]); s.close()"
    command = [sys.executable, "-c", code, url(tmp_path / "data")]
    starts = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(5)]
    for start in starts:
        _, errors = start.communicate(timeout=60)
        assert start.returncode == 0, errors
    assert check(url(tmp_path / "data")) == []


def statements() -> list[tuple[str, Statement]]:
    """Every statement of the storage, by where it is."""
    found = []
    for module in (
        access,
        check_module,
        events,
        memories,
        rejected_writes,
        sessions,
        stores,
        versions,
    ):
        for name, value in vars(module).items():
            if isinstance(value, dict):
                values = [v for v in value.values() if isinstance(v, Statement)]
            else:
                values = list(value) if isinstance(value, tuple) else [value]
            found += [
                (f"{module.__name__}.{name}.{n}", v)
                for n, v in enumerate(values)
                if isinstance(v, Statement)
            ]
    return found


@pytest.mark.parametrize(("name", "statement"), statements(), ids=lambda v: str(v)[-40:])
def test_every_statement_can_be_said_to_postgresql(name: str, statement: Statement) -> None:
    """No statement needs what only SQLite has, and none lacks a parameter's value."""
    text, _ = statement.compiled(psycopg.dialect())
    assert "POSTCOMPILE" not in text
