"""The check finds what is broken by hand, each in its own words."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from memstore.service import Service
from memstore.service.database import check

pytestmark = pytest.mark.damaged_database

BROKEN = {
    "head is its own version": "UPDATE memories SET version_id = 'memver_none'",
    "head has the memory's": "UPDATE memories SET path = '/elsewhere' WHERE path = '/d'",
    "latest version": "UPDATE memories SET seq = 1",
    "above another": "UPDATE memories SET path = '/a/b/c' WHERE path = '/d'",
    "counters are right": "UPDATE stores SET memory_count = memory_count + 1",
    "no version is above": "UPDATE stores SET last_seq = 2",
    "no event is above": "UPDATE events SET seq = 99 WHERE seq = 5",
    "times rise with seq": "UPDATE versions SET created_at_us = 1 WHERE seq = 2",
    "begins with its one": "UPDATE versions SET operation = 'created'",
    "ends with its": "UPDATE versions SET operation = 'deleted' WHERE seq = 1",
    "is not live": "UPDATE versions SET operation = 'deleted' WHERE seq = 2",
    "without a `deleted` version is live": "DELETE FROM memories WHERE path = '/d'",
    "redacted version says nothing": "UPDATE versions SET facts = X'00' "
    "WHERE redacted_at_us IS NOT NULL",
    "has a path and no text": "UPDATE versions SET text = X'00' WHERE operation = 'deleted'",
    "has path, size, hash and text": "UPDATE versions SET text = NULL WHERE seq = 2",
    "one of three": "UPDATE versions SET operation = 'moved' WHERE seq = 2",
    "version has its event": "DELETE FROM events WHERE seq = 2",
    "event has its version": "UPDATE events SET version_id = 'memver_none' WHERE seq = 2",
    "redaction has its event": "DELETE FROM events WHERE kind = 'version.redacted'",
    "open rejected write has path": "UPDATE rejected_writes SET facts = NULL WHERE state = 'open'",
    "resolved rejected write keeps no text": "UPDATE rejected_writes SET text = X'00' "
    "WHERE state = 'dismissed'",
    "names a version": "UPDATE rejected_writes SET version_id = NULL WHERE state = 'applied'",
    "rejected write has its event": "DELETE FROM events WHERE kind = 'write.rejected'",
    "left nothing": "INSERT INTO deleted_stores SELECT id, workspace_id, 9, 9, 'k', 'i' FROM stores",
    "in a workspace": "UPDATE keys SET workspace_id = 'wrkspc_none'",
    "else is in a store": "UPDATE events SET store_id = 'memstore_none' WHERE seq = 1",
    "are of a session": "INSERT INTO session_tokens VALUES ('hash', 'sesn_none', 'w', 1)",
    "opened with its key": "UPDATE versions SET text = X'00' WHERE seq = 2",
    "can be opened": "UPDATE versions SET epoch_id = 'epoch_none' WHERE seq = 4",
    "bytes are right": "UPDATE stores SET total_bytes = total_bytes + 1",
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_row_changed_by_hand_is_found(tmp_path: Path, sentence: str) -> None:
    """Breaking one invariant makes the check say which."""
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    service = Service(url)
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n")
    memory = backend.create_memory(store.id, path="/a/b", content="one")
    backend.update_memory(store.id, memory.id, content="two")
    backend.redact_version(store.id, memory.version_id)
    backend.create_memory(store.id, path="/d", content="four")
    gone = backend.create_memory(store.id, path="/gone", content="five")
    backend.delete_memory(store.id, gone.id)
    for text in ("open", "applied", "dismissed"):
        backend.record_rejected_write(store.id, path="/d", content=text)
    dismissed, applied, _ = backend.list_rejected_writes(store.id).data
    backend.apply_rejected_write(store.id, applied.id)
    backend.dismiss_rejected_write(store.id, dismissed.id)
    assert service.check() == []
    service.close()
    with sqlite3.connect(tmp_path / "memstore.db") as connection:
        assert connection.execute(BROKEN[sentence]).rowcount > 0
    connection.close()
    found = check(url)
    assert any(sentence in line for line in found), found
