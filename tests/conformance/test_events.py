"""The change feed: pages of it and live views, in commit order, without gaps or repeats."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from memstore.backend import Backend
from memstore.model.errors import Invalid, NotFound
from memstore.model.events import Event
from memstore.model.stores import Store
from tests.support.waiting import together, until
from tests.support.worlds import World


class Listener:
    """Reads a feed in a thread and keeps what it heard."""

    def __init__(
        self, backend: Backend, store_id: str, after: int = 0, view: str = "basic"
    ) -> None:
        self.heard: list[Event | None] = []
        self.ended: BaseException | str = ""
        self.feed = backend.watch(store_id, after=after, view=view)  # type: ignore[arg-type]
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            for event in self.feed:
                self.heard.append(event)
            self.ended = "closed"
        except Exception as error:
            self.ended = error

    @property
    def events(self) -> list[Event]:
        """What was heard, without heartbeats."""
        return [event for event in self.heard if event is not None]

    def stop(self) -> None:
        """Close the feed and wait for its end."""
        self.feed.close()
        self._thread.join(20)
        assert not self._thread.is_alive(), "the feed did not end"


def some_changes(backend: Backend, store: Store) -> None:
    """One change of each kind but the last."""
    memory = backend.create_memory(store.id, path="/a", content="one")
    backend.update_memory(store.id, memory.id, content="two")
    backend.redact_version(store.id, memory.version_id)
    backend.update_memory(store.id, memory.id, path="/b")
    backend.delete_memory(store.id, memory.id)
    backend.update_store(store.id, name="other")
    backend.archive_store(store.id)


KINDS = [
    "memory.created",
    "memory.modified",
    "version.redacted",
    "memory.modified",
    "memory.deleted",
    "store.updated",
    "store.archived",
]


def test_every_change_is_an_event_in_order(backend: Backend, store: Store) -> None:
    """Kinds, rising seqs and times, authors, and the version each speaks of."""
    some_changes(backend, store)
    page = backend.list_events(store.id)
    assert [event.kind for event in page.events] == KINDS
    seqs = [event.seq for event in page.events]
    assert seqs == sorted(set(seqs)) and page.cursor == seqs[-1] and not page.more
    times = [event.created_at for event in page.events]
    assert times == sorted(set(times))
    assert {event.created_by for event in page.events} == {backend.whoami().actor}
    created, modified, redacted, renamed, deleted, updated, _ = page.events
    assert (created.path, created.content_sha256) == (None, None), "redacted since"
    assert redacted.version_id == created.version_id and redacted.path is None
    assert (modified.path, modified.content_size_bytes, modified.content) == ("/a", 3, None)
    assert renamed.path == deleted.path == "/b" and deleted.content_sha256 is None
    assert updated.memory_id is None and updated.version_id is None
    version = backend.get_version(store.id, modified.version_id or "")
    assert version.created_at == modified.created_at
    assert version.seq in (modified.seq, 0), "0 where the API is between: it does not tell it"


def test_a_full_event_carries_its_versions_text(backend: Backend, store: Store) -> None:
    """With the full view the feed alone is enough to follow a store; a redacted text stays gone."""
    some_changes(backend, store)
    texts = [event.content for event in backend.list_events(store.id, view="full").events]
    assert texts == [None, "two", None, "two", None, None, None]


def test_pages_continue_from_any_cursor(backend: Backend, store: Store) -> None:
    """Walking in pages of any size gives each event once; the end says so."""
    some_changes(backend, store)
    everything = list(backend.list_events(store.id).events)
    for limit in (1, 2, 7, 1000):
        walked, cursor, more = [], 0, True
        while more:
            page = backend.list_events(store.id, after=cursor, limit=limit)
            walked.extend(page.events)
            cursor, more = page.cursor, page.more
        assert walked == everything
        assert backend.list_events(store.id, after=cursor).cursor == cursor


def test_from_now_on_has_no_past(backend: Backend, store: Store) -> None:
    """`after=-1` gives no events and the cursor of this moment, from which only news follows."""
    assert backend.list_events(store.id, after=-1).cursor == 0
    backend.create_memory(store.id, path="/a", content="x")
    page = backend.list_events(store.id, after=-1)
    assert page.events == () and not page.more
    backend.create_memory(store.id, path="/b", content="x")
    assert [event.path for event in backend.list_events(store.id, after=page.cursor).events] == [
        "/b"
    ]


@pytest.mark.parametrize("bad", [{"after": -2}, {"limit": 0}, {"limit": 1001}])
def test_bad_cursors_and_limits_are_refused(
    backend: Backend, store: Store, bad: dict[str, int]
) -> None:
    """A cursor is -1, 0 or a seq; a page has 1 to 1,000 events."""
    with pytest.raises(Invalid):
        backend.list_events(store.id, **bad)  # type: ignore[arg-type]


def test_a_live_feed_has_past_and_future_once(backend: Backend, store: Store) -> None:
    """What happened before and after it was opened comes in order, each once."""
    backend.create_memory(store.id, path="/before", content="x")
    listener = Listener(backend, store.id)
    until(lambda: len(listener.events) == 1, "the past")
    for n in range(20):
        backend.create_memory(store.id, path=f"/{n}", content="x")
    until(lambda: len(listener.events) == 21, "the future")
    listener.stop()
    assert listener.events == list(backend.list_events(store.id).events)
    assert listener.ended == "closed"


def test_a_live_feed_from_now_skips_the_past(backend: Backend, store: Store) -> None:
    """A feed after -1 begins when it is opened, not when it is first read."""
    backend.create_memory(store.id, path="/before", content="x")
    listener = Listener(backend, store.id, after=-1, view="full")
    backend.create_memory(store.id, path="/after", content="text")
    until(lambda: listener.events, "the event")
    listener.stop()
    assert [(event.path, event.content) for event in listener.events] == [("/after", "text")]


def test_a_live_feed_keeps_up_with_many_writers(backend: Backend, store: Store) -> None:
    """Eight writers at once: every event arrives once and in the order of its seq."""
    listener = Listener(backend, store.id)

    def write(number: int) -> None:
        for n in range(10):
            backend.create_memory(store.id, path=f"/{number}/{n}", content="x")

    assert together(write, 8) == [None] * 8
    until(lambda: len(listener.events) >= 80, "80 events")
    listener.stop()
    seqs = [event.seq for event in listener.events]
    assert seqs == sorted(set(seqs)) and len(seqs) == 80


def test_a_quiet_feed_beats(make_world: Callable[..., World]) -> None:
    """When nothing happens a heartbeat tells that the feed is alive."""
    world = make_world(heartbeat=0.05)
    backend = world.connect(world.admin_secret)
    store = backend.create_store(name="quiet")
    listener = Listener(backend, store.id)
    until(lambda: None in listener.heard, "a heartbeat")
    listener.stop()
    assert listener.events == []


def test_a_feed_of_a_deleted_store_says_so_and_ends(backend: Backend, store: Store) -> None:
    """The last event is `store.deleted`; then the feed is not found, as the store is."""
    listener = Listener(backend, store.id)
    backend.create_memory(store.id, path="/a", content="x")
    until(lambda: listener.events, "the first event")
    backend.delete_store(store.id)
    until(lambda: listener.ended, "the end")
    listener.stop()
    assert [event.kind for event in listener.events] == ["memory.created", "store.deleted"]
    assert listener.events[1].created_by == backend.whoami().actor
    assert isinstance(listener.ended, NotFound)
    with pytest.raises(NotFound):
        backend.list_events(store.id)


def test_a_feed_hears_its_own_store_only(backend: Backend, store: Store) -> None:
    """Changes of another store are not in it."""
    other = backend.create_store(name="other")
    listener = Listener(backend, store.id)
    backend.create_memory(other.id, path="/other", content="x")
    backend.create_memory(store.id, path="/own", content="x")
    until(lambda: listener.events, "the event")
    listener.stop()
    assert [event.path for event in listener.events] == ["/own"]


def test_closing_twice_does_no_harm(backend: Backend, store: Store) -> None:
    """A feed may be closed from any thread, before it is read and again."""
    feed = backend.watch(store.id)
    feed.close()
    feed.close()
    assert list(feed) == []
