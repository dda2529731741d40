"""The schema's history: forward only, in the database's own transaction."""

from __future__ import annotations

from pathlib import Path

from memstore.model.errors import Invalid, Unavailable
from memstore.storage.engine import Engine

REVISIONS = ("0001", "0002", "0003")
"""Every migration, oldest first; the last is what this version of memstore works with."""

SEALED_SINCE = "0003"
"""From this one on the key store is there, and nothing can be read without it."""


def migrate(engine: Engine) -> bool:
    """Bring the schema up to date; whether there was anything to do.

    Unavailable, and nothing changed, when a newer memstore has been here; Invalid when somebody
    else's tables are. Alembic is loaded only when there is work, for it is slow to import.
    """
    if engine.schema_revision() == REVISIONS[-1]:
        return False
    from alembic import command
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from sqlalchemy import inspect

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    with engine.migrating() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
        if found is None and inspect(connection).get_table_names():
            raise Invalid("The database holds something else than memstore's; name another one.")
        if found is not None and found not in REVISIONS:
            raise Unavailable(
                f"The database has schema {found}, which is newer than this memstore knows "
                f"({REVISIONS[-1]}). Install the newer memstore."
            )
        config.attributes["connection"] = connection
        config.attributes["keys"] = engine.keys
        command.upgrade(config, REVISIONS[-1])
    return True
