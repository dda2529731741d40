"""Run by Alembic: the connection comes from `memstore.storage.migrations.migrate`."""

from __future__ import annotations

from alembic import context

from memstore.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
