"""What a store keeps of rejected writes is bounded, and what is dismissed leaves the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstore.model import limits
from memstore.model.errors import StoreFull
from memstore.service import Service


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database's URL."""
    return f"sqlite:///{tmp_path / 'memstore.db'}"


def test_open_ones_are_bounded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the bound a new one is refused and says what to do; those that wait are not dropped."""
    monkeypatch.setattr(limits, "REJECTED_WRITES", 3)
    service = Service(url)
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n")
    made = [backend.record_rejected_write(store.id, path="/a", content=str(n)).id for n in range(3)]
    with pytest.raises(StoreFull, match="Apply or dismiss"):
        backend.record_rejected_write(store.id, path="/a", content="one more")
    assert backend.record_rejected_write(store.id, path="/a", content="1").id == made[1]
    assert [write.id for write in backend.list_rejected_writes(store.id).data] == made[::-1]
    backend.dismiss_rejected_write(store.id, made[0])
    assert backend.record_rejected_write(store.id, path="/a", content="one more").state == "open"
    service.close()


def test_a_dismissed_text_leaves_the_files(url: str, tmp_path: Path) -> None:
    """Neither the database nor its log nor the key store holds the bytes, before nor after."""
    secret = "hunter2-" * 40
    service = Service(url)
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n")
    write = backend.record_rejected_write(store.id, path="/a", content=secret)

    def on_disk() -> bool:
        return any(secret[:64].encode() in file.read_bytes() for file in tmp_path.glob("*"))

    assert not on_disk()
    backend.dismiss_rejected_write(store.id, write.id)
    assert not on_disk()
    service.close()
