"""Databases of older versions are migrated forward with all they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstore.model.errors import Invalid
from memstore.service import Service
from memstore.service.database import check
from memstore.storage import migrations
from memstore.storage.migrations import REVISIONS


@pytest.mark.parametrize("old", REVISIONS[:-1])
def test_an_older_database_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str
) -> None:
    """Opening it migrates it: what it held is there, what is new works, and all is true."""
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "REVISIONS", REVISIONS[: REVISIONS.index(old) + 1])
        service = Service(url)
        backend = service.backend_for(service.operator())
        store = backend.create_store(name="old")
        memory = backend.create_memory(store.id, path="/a", content="one")
        memory = backend.update_memory(store.id, memory.id, content="two")
        history = backend.list_versions(store.id, view="full")
        service.close()
    with pytest.raises(Invalid, match="migrate"):
        check(url)

    service = Service(url)
    backend = service.backend_for(service.operator())
    assert backend.list_memories(store.id).data == (memory,)
    assert backend.list_versions(store.id, view="full") == history
    write = backend.record_rejected_write(store.id, path="/a", content="lost")
    assert backend.list_rejected_writes(store.id, view="full").data == (write,)
    assert service.check() == []
    backend.delete_store(store.id)
    assert service.check() == []
    service.close()
