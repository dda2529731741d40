"""A reading that a redaction overtakes tells what came of it, and is no refusal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memstore.backend import Backend
from memstore.model.versions import VersionFilter
from memstore.service import Service
from memstore.storage.keyring import Keyring


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A fresh service."""
    service = Service(f"sqlite:///{tmp_path / 'memstore.db'}")
    service.bootstrap()
    yield service
    service.close()


def _overtaken(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let `act` happen, whole, once a reading has begun and before it opens its first record."""
    opened = Keyring.open
    waiting = [act]

    def first_act(self: Keyring, *args: Any) -> Any:
        if waiting and threading.current_thread() is reader:
            thread = threading.Thread(target=waiting.pop())
            thread.start()
            thread.join()
            self.forget()
        return opened(self, *args)

    reader = threading.current_thread()
    monkeypatch.setattr(Keyring, "open", first_act)


def _redacted(backend: Backend, store_id: str) -> tuple[str, Callable[[], object]]:
    memory = backend.create_memory(store_id, path="/a", content="secret")
    backend.update_memory(store_id, memory.id, content="clean")
    return memory.version_id, lambda: backend.redact_version(store_id, memory.version_id)


def test_a_version_redacted_while_it_is_read_is_told_redacted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One version, the list of versions, and the feed."""
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="s")
    for read in (
        lambda version_id: backend.get_version(store.id, version_id),
        lambda version_id: next(
            version
            for version in backend.list_versions(store.id, where=VersionFilter(), limit=100).data
            if version.id == version_id
        ),
        lambda version_id: next(
            event
            for event in backend.list_events(store.id, view="full").events
            if event.version_id == version_id
        ),
    ):
        version_id, redact = _redacted(backend, store.id)
        with monkeypatch.context() as patch:
            _overtaken(patch, redact)
            seen = read(version_id)
        assert seen.path is None and seen.content is None
        memory = backend.get_memory_at(store.id, "/a")
        backend.delete_memory(store.id, memory.id)
