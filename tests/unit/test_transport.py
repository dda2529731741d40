"""The client against peers that misbehave: real sockets, scripted answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memstore.client.backend import RemoteBackend
from memstore.client.transport import Address
from memstore.model.errors import (
    Invalid,
    MemstoreError,
    NotFound,
    PathConflict,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from memstore.model.memories import CreateMemory, DeleteMemory
from tests.support.scripted import Script, Scripted, answer, read_request
from tests.support.waiting import DEADLINE_SECONDS, until

STORE = "memstore_01" + "1" * 22
MEMORY = {
    "type": "memory",
    "id": "mem_01" + "1" * 22,
    "memory_store_id": STORE,
    "memory_version_id": "memver_01" + "1" * 22,
    "path": "/a",
    "content": "text",
    "content_size_bytes": 4,
    "content_sha256": "0" * 64,
    "created_at": "2026-11-30T20:57:03.123456Z",
    "updated_at": "2026-11-30T20:57:03.123456Z",
}
TAKEN = {
    "error": {
        "type": "memory_path_conflict_error",
        "message": "taken",
        "conflicting_path": "/a",
        "conflicting_memory_id": MEMORY["id"],
    }
}
GONE = {"error": {"type": "not_found_error", "message": "gone"}}

Peer = Callable[..., tuple[Scripted, RemoteBackend]]


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A scripted service and a client of it."""
    made: list[Any] = []

    def make(*scripts: Script, **options: Any) -> tuple[Scripted, RemoteBackend]:
        service = Scripted(*scripts)
        backend = RemoteBackend(service.url, key="k", **{"timeout": 10.0, **options})
        made.extend((backend, service))
        return service, backend

    yield make
    for one in made:
        one.close()


def replies(*answers: bytes) -> Script:
    """Answer the requests of one connection in order, then wait for the client to leave."""

    def script(connection: socket.socket) -> None:
        for data in answers:
            read_request(connection)
            connection.sendall(data)
        connection.recv(1)
        connection.close()

    return script


def hangs_up(connection: socket.socket) -> None:
    """Take one request and close without a word: the answer is lost."""
    read_request(connection)
    connection.close()


def answers_then_closes(data: bytes) -> Script:
    """Answer one request, promise to stay, and leave."""

    def script(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(data)
        connection.close()

    return script


def stays_silent(connection: socket.socket) -> None:
    """Take the request and never answer."""
    read_request(connection)
    connection.recv(1)
    connection.close()


def test_connections_are_kept(peer: Peer) -> None:
    """Many requests of one thread use one connection."""
    service, backend = peer(replies(*[answer(200, MEMORY)] * 5))
    for _ in range(5):
        assert backend.get_memory(STORE, "mem_1").path == "/a"
    assert service.connections == 1


def test_a_connection_closed_while_idle_is_replaced(peer: Peer) -> None:
    """A server may close a kept connection at any time; nobody notices."""
    service, backend = peer(answers_then_closes(answer(200, MEMORY)), replies(answer(200, MEMORY)))
    backend.get_memory(STORE, "mem_1")
    assert backend.get_memory(STORE, "mem_1").content == "text"
    assert service.connections == 2


def test_a_lost_create_is_settled_by_reading(peer: Peer) -> None:
    """The repeated create finds its own text at the path: it has been carried out."""
    _, backend = peer(
        hangs_up,
        replies(answer(409, TAKEN), answer(200, MEMORY), answer(200, {**MEMORY, "content": None})),
    )
    made = backend.create_memory(STORE, path="/a", content="text")
    assert (made.id, made.content) == (MEMORY["id"], None)


def test_a_lost_create_that_met_another_text_is_a_conflict(peer: Peer) -> None:
    """When another text holds the path, the create is refused, not taken for done."""
    _, backend = peer(hangs_up, replies(answer(409, TAKEN), answer(200, MEMORY)))
    with pytest.raises(PathConflict) as refused:
        backend.create_memory(STORE, path="/a", content="mine")
    assert refused.value.conflicting_memory_id == MEMORY["id"]


def test_a_create_that_was_heard_is_not_settled(peer: Peer) -> None:
    """A first answer of conflict is a conflict, also when the text is the same."""
    _, backend = peer(replies(answer(409, TAKEN), answer(200, MEMORY)))
    with pytest.raises(PathConflict):
        backend.create_memory(STORE, path="/a", content="text")


def test_a_lost_delete_that_finds_nothing_is_done(peer: Peer) -> None:
    """404 to a repeated delete means that the first one worked; to a first one it is a refusal."""
    _, backend = peer(hangs_up, replies(answer(404, GONE)))
    backend.delete_memory(STORE, "mem_1")
    with pytest.raises(NotFound):
        peer(replies(answer(404, GONE)))[1].delete_memory(STORE, "mem_1")


def test_a_lost_batch_is_settled_by_reading(peer: Peer) -> None:
    """A repeated batch that is refused has been carried out when all it asks for is so."""
    _, backend = peer(hangs_up, replies(answer(409, TAKEN), answer(200, MEMORY), answer(404, GONE)))
    done = backend.apply_changes(STORE, [CreateMemory("/a", "text"), DeleteMemory("mem_2")])
    assert [one and one.id for one in done] == [MEMORY["id"], None]


def test_what_cannot_be_settled_is_sent_once(peer: Peer) -> None:
    """A store whose creation got no answer is not created again: there could be two."""
    service, backend = peer(hangs_up)
    with pytest.raises(Unavailable):
        backend.create_store(name="n")
    assert service.connections == 1


def test_a_service_that_always_hangs_up_is_given_up(peer: Peer) -> None:
    """Repeating is bounded."""
    service, backend = peer(hangs_up)
    with pytest.raises(Unavailable):
        backend.get_store(STORE)
    assert service.connections == 3


def test_a_half_open_service_times_out(peer: Peer) -> None:
    """A peer that takes the request and never answers is given up after the timeout, once."""
    service, backend = peer(stays_silent, timeout=0.2)
    with pytest.raises(Unavailable, match="did not answer"):
        backend.get_store(STORE)
    assert service.connections == 1


def test_nobody_listening_is_unavailable() -> None:
    """A refused connection is Unavailable, with the address in the sentence."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    backend = RemoteBackend(url)
    with pytest.raises(Unavailable, match="cannot be reached"):
        backend.list_stores()


def test_a_busy_service_is_asked_again_when_it_says_so(peer: Peer) -> None:
    """503 with a retry-after is waited out; its request is sent again on the same connection."""
    busy = answer(503, {"error": {"type": "api_error", "message": "busy"}}, retry_after="0.01")
    service, backend = peer(replies(busy, busy, answer(200, MEMORY)))
    assert backend.get_memory(STORE, "mem_1").path == "/a"
    assert service.connections == 1


def test_a_long_wait_is_not_waited(peer: Peer) -> None:
    """429 with a retry-after beyond the patience is raised, and carries the seconds."""
    busy = answer(429, {"error": {"type": "rate_limit_error", "message": "m"}}, retry_after="60")
    _, backend = peer(replies(busy))
    with pytest.raises(RateLimited) as refused:
        backend.get_store(STORE)
    assert refused.value.retry_after == 60


@pytest.mark.parametrize(
    "body", [b"<html>", b"", b"[]", b"null", b'"x"', b'{"id": 1}', b'{"id": "a", "created_at": 3}']
)
def test_an_answer_of_another_kind_is_unavailable(peer: Peer, body: bytes) -> None:
    """What is not the API's object, or no JSON, is no answer; it never becomes a broken value."""
    _, backend = peer(replies(answer(200, body)))
    with pytest.raises(Unavailable):
        backend.get_memory(STORE, "mem_1")


@pytest.mark.parametrize(
    "head", [b"\0\0\0", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"]
)
def test_an_answer_that_is_no_http_is_unavailable(peer: Peer, head: bytes) -> None:
    """Garbage and a body cut short are lost answers."""
    _, backend = peer(answers_then_closes(head))
    with pytest.raises(Unavailable):
        backend.get_memory(STORE, "mem_1")


def test_a_proxys_page_is_read_by_its_status(peer: Peer) -> None:
    """An HTML page with status 502 is Unavailable, with 401 Unauthenticated."""
    _, backend = peer(replies(answer(502, b"<html>"), answer(401, b"<html>")))
    with pytest.raises(Unavailable):
        backend.get_store(STORE)
    with pytest.raises(Unauthenticated):
        backend.get_store(STORE)


@pytest.mark.parametrize("id", ["", ".", "..", "a/b", "a?b", "a%2Fb", "a b", "é", "a\nb"])
def test_an_id_cannot_reach_another_route(peer: Peer, id: str) -> None:
    """What is no id never gets into a URL: it is not found, and nothing is sent."""
    service, backend = peer(hangs_up)
    with pytest.raises(NotFound):
        backend.archive_store(id)
    with pytest.raises(NotFound):
        backend.delete_memory(STORE, id)
    assert service.connections == 0


def test_a_server_without_extensions_is_found_out_once(peer: Peer) -> None:
    """404 to an extension and to whoami: NotSupported; afterwards nobody asks whoami again."""
    from memstore.backend import NotSupported

    plain = answer(404, GONE)
    service, backend = peer(replies(plain, plain, answer(200, MEMORY)))
    for call in (backend.store_usage, backend.snapshot):
        with pytest.raises(NotSupported):
            call(STORE)
    assert backend.get_memory(STORE, "mem_1").path == "/a"
    assert service.connections == 2, "the snapshot asked on a connection of its own"


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n"
EVENT = (
    b"id: 7\nevent: memory.created\n"
    b'data: {"memory_store_id":"s","seq":7,"kind":"memory.created","path":"/a",'
    b'"created_at":"2026-11-30T20:57:03.123456Z"}\n\n'
)


def streams(*pieces: bytes, then: Script | None = None) -> Script:
    """Answer one request with a stream in pieces, then do something else or hang up."""

    def script(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(STREAM)
        for piece in pieces:
            connection.sendall(piece)
        if then is not None:
            then(connection)
        connection.close()

    return script


def waits(connection: socket.socket) -> None:
    """Say nothing more until the client leaves."""
    connection.recv(1)


def test_a_feed_yields_events_and_heartbeats(peer: Peer) -> None:
    """Comments are heartbeats; an event cut into pieces is one; unknown kinds are passed over."""
    pieces = [bytes([byte]) for byte in EVENT.replace(b"\n", b"\r\n")]
    _, backend = peer(streams(b": hi\n\n", b"event: new.kind\ndata: 1\n\n", *pieces))
    feed = iter(backend.watch(STORE))
    assert next(feed) is None
    event = next(feed)
    assert event is not None and (event.seq, event.path) == (7, "/a")
    with pytest.raises(Unavailable):
        next(feed)


def test_closing_a_feed_ends_a_blocked_read(peer: Peer) -> None:
    """`close` from another thread ends the iteration at once, without an error."""
    _, backend = peer(streams(b": hi\n\n", then=waits))
    feed = backend.watch(STORE)
    seen: list[object] = []

    def follow() -> None:
        seen.extend(feed)

    thread = threading.Thread(target=follow)
    thread.start()
    until(lambda: seen == [None], "the first heartbeat")
    feed.close()
    feed.close()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive() and seen == [None]


def test_a_feed_that_was_never_read_can_be_closed(peer: Peer) -> None:
    """Closing releases the connection; iterating afterwards ends at once."""
    _, backend = peer(streams(then=waits))
    feed = backend.watch(STORE)
    feed.close()
    assert list(feed) == []


def test_a_silent_peer_is_noticed(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without heartbeats for longer than agreed the feed is lost, though the socket is open."""
    monkeypatch.setattr("memstore.client.backend.SILENCE_S", 0.2)
    _, backend = peer(streams(b": hi\n\n", then=waits))
    feed = iter(backend.watch(STORE))
    assert next(feed) is None
    with pytest.raises(Unavailable):
        next(feed)


def test_a_refused_feed_is_a_refusal(peer: Peer) -> None:
    """The refusal comes from `watch` itself."""
    error = {"type": "authentication_error", "message": "m"}
    _, backend = peer(replies(answer(401, {"error": error})))
    with pytest.raises(Unauthenticated):
        backend.watch(STORE)


def snapshot_of(*lines: bytes) -> Script:
    """Answer with lines of JSON and hang up."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n"
    return answers_then_closes(head + b"".join(line + b"\n" for line in lines))


def test_a_snapshot_cut_short_is_noticed(peer: Peer) -> None:
    """Without its trailer, or with a wrong count, a snapshot is not taken for whole."""
    import json

    memory = json.dumps(MEMORY).encode()
    whole = [b'{"cursor":5}', memory, b'{"end":true,"count":1}']
    _, backend = peer(snapshot_of(*whole))
    snapshot = backend.snapshot(STORE)
    assert snapshot.cursor == 5 and [one.path for one in snapshot.memories] == ["/a"]
    for lines in (whole[:2], [whole[0], whole[2]], [*whole[:2], b'{"end":true,"count":2}']):
        _, backend = peer(snapshot_of(*lines))
        with pytest.raises(Unavailable):
            list(backend.snapshot(STORE).memories)
    _, backend = peer(snapshot_of())
    with pytest.raises(Unavailable):
        backend.snapshot(STORE)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x",
        "http://",
        "http://h:99999",
        "http+unix://host/x",
        "http+unix:rel",
        "http://u@h",
        "http://h?q",
    ],
)
def test_what_is_no_base_url_is_invalid(url: str) -> None:
    """A base URL is http, https or http+unix with an absolute path, and nothing more."""
    with pytest.raises(Invalid):
        Address.parse(url)


def test_base_urls() -> None:
    """Ports have their defaults, prefixes stay, a socket's path may be escaped, IPv6 is bracketed."""
    assert Address.parse("http://h/p/").prefix == "/p"
    assert (Address.parse("https://h").port, Address.parse("http://h").port) == (443, 80)
    assert Address.parse("http+unix://%2Frun%2Fa%20b").path == "/run/a b"
    assert Address.parse("http+unix:///run/x").path == "/run/x"
    assert Address.parse("http://[::1]:8").host_header == "[::1]:8"


@pytest.mark.parametrize("key", ["a\r\nX: y", "é", "a\0"])
def test_a_key_cannot_smuggle_headers(key: str) -> None:
    """A key with a line break or other than printable ASCII is refused before it is sent."""
    with pytest.raises(MemstoreError):
        RemoteBackend("http://127.0.0.1:1", key=key)


def test_a_closed_backend_is_unavailable(peer: Peer) -> None:
    """After `close`, twice, a verb is refused in words."""
    _, backend = peer(replies(answer(200, MEMORY)))
    backend.get_memory(STORE, "mem_1")
    backend.close()
    backend.close()
    with pytest.raises(Unavailable):
        backend.get_memory(STORE, "mem_1")
