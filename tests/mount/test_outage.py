"""The service goes away and comes back under a real mount."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from memstore.urls import connect
from tests.mount.conftest import WAIT_SECONDS, Desk, driver_of, shows, supervisor_of
from tests.support.requirements import need
from tests.support.serving import Served
from tests.support.waiting import until


class Outage:
    """A desk with a service of its own, which can be stopped and started at the same address."""

    def __init__(self, path: Path) -> None:
        self._data = path / "service"
        self.service = Served(self._data)
        self._address = urlsplit(self.service.url).netloc
        backend = connect(self.service.url, key=self.service.admin_secret)
        store = backend.create_store(name="outage")
        backend.close()
        path = path / "desk"
        path.mkdir()
        self.desk = Desk(self.service, store.id, "outage", path)

    def stop(self) -> None:
        """The service goes away."""
        self.service.stop()

    def start(self) -> None:
        """It is back, at the same address."""
        self.service = Served(self._data, "--listen", self._address)

    def close(self) -> None:
        """Unmount, and end what still runs."""
        if self.service.process.poll() is not None:
            self.start()
        self.desk.close()
        self.service.stop()


@pytest.fixture
def outage(tmp_path: Path) -> Iterator[Outage]:
    """A service that may be stopped."""
    need(os.geteuid() == 0 and Path("/dev/fuse").exists(), "root and /dev/fuse")
    made = Outage(tmp_path)
    yield made
    made.close()


def test_a_restart_of_the_service_is_a_pause(outage: Outage) -> None:
    """Cached reads go on, and a save waits and is acknowledged once the service is back."""
    desk = outage.desk
    place = desk.mount()
    (place / "a.md").write_text("cached\n")
    outage.stop()
    assert (place / "a.md").read_text() == "cached\n" and os.listdir(place) == ["a.md"]
    failures: list[OSError] = []

    def save() -> None:
        try:
            (place / "b.md").write_text("waited\n")
        except OSError as error:
            failures.append(error)

    writer = threading.Thread(target=save, daemon=True)
    writer.start()
    until(lambda: (place / "b.md").exists(), "the save to begin")
    outage.start()
    writer.join(WAIT_SECONDS)
    assert not writer.is_alive() and failures == []
    assert desk.texts() == {"/a.md": "cached\n", "/b.md": "waited\n"}
    memory = desk.backend.get_memory_at(desk.store_id, "/a.md")
    desk.backend.update_memory(desk.store_id, memory.id, content="pushed again\n")
    shows(place / "a.md", "pushed again\n")


def test_a_long_outage_is_told(outage: Outage) -> None:
    """After `retry_s` a save is EIO, and it is not there when the service is back."""
    desk = outage.desk
    place = desk.mount("-o", "retry_s=0.5")
    (place / "a.md").write_text("saved\n")
    outage.stop()
    for _ in range(2):
        with pytest.raises(OSError) as refusal:
            (place / "a.md").write_text("never saved\n")
        assert refusal.value.errno == errno.EIO
    assert (place / "a.md").read_text() == "saved\n"
    outage.start()
    assert desk.texts() == {"/a.md": "saved\n"}
    (place / "a.md").write_text("saved again\n")
    assert desk.texts() == {"/a.md": "saved again\n"}


def test_a_service_that_hangs_holds_nobody_for_ever(outage: Outage) -> None:
    """Every request has a deadline: a save is EIO, reads go on, and `umount` comes to its end."""
    desk = outage.desk
    place = desk.mount("-o", "retry_s=0.5")
    (place / "a.md").write_text("saved\n")
    outage.service.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(OSError) as refusal:
            (place / "a.md").write_text("unanswered\n")
        assert refusal.value.errno == errno.EIO
        assert os.listdir(place) == ["a.md"]
    finally:
        outage.service.process.send_signal(signal.SIGCONT)
    desk.umount()


def test_a_driver_killed_while_the_service_is_away(outage: Outage) -> None:
    """The next driver waits for the service; who reads meanwhile waits too, and gets the text."""
    desk = outage.desk
    place = desk.mount()
    (place / "a.md").write_text("saved\n")
    supervisor, driver = supervisor_of(place), desk.driver()
    outage.stop()
    os.kill(driver, signal.SIGKILL)
    until(lambda: driver_of(supervisor) not in (0, driver), "another driver")
    answers: list[list[str]] = []
    reader = threading.Thread(target=lambda: answers.append(os.listdir(place)), daemon=True)
    reader.start()
    outage.start()
    reader.join(WAIT_SECONDS)
    assert answers == [["a.md"]]
    assert (place / "a.md").read_text() == "saved\n"
    (place / "a.md").write_text("saved again\n")
    assert desk.texts() == {"/a.md": "saved again\n"}
