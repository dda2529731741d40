"""`memstore serve` as an operator meets it: first start, bad starts, ends, listeners, workers."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from api.app import create_app
from api.logs import JsonLines
from memstore.service import Service
from memstore.service.database import check
from tests.support.serving import COMMAND, Served
from tests.support.waiting import until


def refuse(*arguments: str, **environ: str) -> tuple[int, str]:
    """Exit status and standard error of a start that fails."""
    ended = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environ},
    )
    assert ended.stdout == ""
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    return ended.returncode, ended.stderr


def mode(path: Path) -> int:
    """The permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_start_makes_private_files(tmp_path: Path) -> None:
    """Data directory 0700, key and database 0600; a second start keeps the key and the data."""
    data_dir = tmp_path / "new" / "data"
    first = Served(data_dir)
    assert mode(data_dir) == 0o700
    assert (mode(data_dir / "admin.key"), mode(data_dir / "memstore.db")) == (0o600, 0o600)
    assert (data_dir / "admin.key").read_text().count("\n") == 1
    headers = {"x-api-key": first.admin_secret}
    made = httpx2.post(f"{first.url}/v1/memory_stores", json={"name": "n"}, headers=headers)
    assert first.stop() == 0
    second = Served(data_dir)
    assert second.admin_secret == first.admin_secret
    path = f"/v1/memory_stores/{made.json()['id']}"
    assert httpx2.get(f"{second.url}{path}", headers=headers).status_code == 200
    second.process.send_signal(signal.SIGINT)
    assert second.process.wait(30) == 0
    second.stop()


def test_it_listens_on_several_sockets(tmp_path: Path) -> None:
    """TCP and a private Unix socket at once; the socket's file goes at the end."""
    path = tmp_path / "run" / "memstore.sock"
    served = Served(tmp_path / "data", "--listen", f"unix:{path}")
    assert mode(path) == 0o600
    headers = {"x-api-key": served.admin_secret}
    with httpx2.Client(
        transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://local", headers=headers
    ) as client:
        assert client.get("/v1/whoami").json() == (
            httpx2.get(f"{served.url}/v1/whoami", headers=headers).json()
        )
    status, said = refuse("--data-dir", str(tmp_path / "other"), "--listen", f"unix:{path}")
    assert status == 6 and "in use" in said and path.exists()
    assert served.stop() == 0
    assert not path.exists()


def test_a_dead_socket_is_replaced(tmp_path: Path) -> None:
    """A socket left by a killed service is taken over; a plain file is not."""
    path = tmp_path / "memstore.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    served = Served(tmp_path / "data", "--listen", f"unix:{path}")
    assert served.stop() == 0
    path.write_text("precious")
    status, said = refuse("--data-dir", str(tmp_path / "data"), "--listen", f"unix:{path}")
    assert status == 6 and str(path) in said
    assert path.read_text() == "precious"


def test_bad_starts_say_what_to_do(tmp_path: Path) -> None:
    """Each is one sentence on standard error and the right status, and nothing is made."""
    data_dir = str(tmp_path / "data")
    file = tmp_path / "file"
    file.write_text("not a directory, not a database, just some text" * 100)
    free = ("--data-dir", data_dir, "--listen", "127.0.0.1:0")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        status, said = refuse("--data-dir", data_dir, "--listen", f"127.0.0.1:{port}")
        assert status == 6 and str(port) in said and "--listen" in said
    for arguments, expected in (
        (("--data-dir", data_dir, "--listen", "nowhere"), 2),
        (("--data-dir", data_dir, "--listen", "127.0.0.1:99999"), 2),
        (("--data-dir", data_dir, "--listen", "unix:"), 2),
        ((*free, "--workers", "0"), 2),
        ((*free, "--workers", "many"), 2),
        ((*free, "--log-level", "loud"), 2),
        ((*free, "--nonsense"), 2),
        ((*free, "--heartbeat", "60"), 2),
        ((*free, "--database", "mysql://somewhere"), 7),
        ((*free, "--database", "nonsense"), 7),
        (("--data-dir", str(file), "--listen", "127.0.0.1:0"), 6),
        (("--data-dir", str(file / "below"), "--listen", "127.0.0.1:0"), 6),
        ((*free, "--database", f"sqlite:///{file}"), 6),
        ((*free, "--database", f"sqlite:///{tmp_path}"), 6),
    ):
        assert refuse(*arguments)[0] == expected, arguments
    assert file.read_text().startswith("not a directory")
    assert refuse(*free, MEMSTORE_MAX_MEMORIES="lots")[0] == 7
    (Path(data_dir) / "config.toml").write_text("nonsense = 1")
    status, said = refuse(*free)
    assert status == 7 and "nonsense" in said


def test_it_warns_when_it_listens_to_the_world(tmp_path: Path) -> None:
    """Listening beyond loopback without TLS is said on standard error."""
    served = Served(tmp_path / "data", "--listen", "0.0.0.0:0")
    assert served.stop() == 0
    assert "without TLS" in served.log.read_text()


def test_open_streams_do_not_hold_up_the_end(tmp_path: Path) -> None:
    """With streams and idle connections open the service ends at once, and cleanly."""
    served = Served(tmp_path / "data")
    headers = {"x-api-key": served.admin_secret}
    with httpx2.Client(base_url=served.url, headers=headers, timeout=30) as client:
        store_id = client.post("/v1/memory_stores", json={"name": "n"}).json()["id"]
        path = f"/v1/memory_stores/{store_id}/events"
        started, ended = threading.Event(), threading.Event()

        def listen() -> None:
            with client.stream("GET", path, headers={"accept": "text/event-stream"}) as answer:
                for _ in answer.iter_lines():
                    started.set()
            ended.set()

        thread = threading.Thread(target=listen)
        thread.start()
        assert started.wait(20)
        assert client.get("/livez").status_code == 200
        assert served.stop() == 0
        assert ended.wait(20)
        thread.join(20)
    assert served.log.read_text() == ""
    assert check(served.database_url) == []


def test_the_log_has_a_line_a_request_and_no_secrets(tmp_path: Path) -> None:
    """At info each request is a JSON line with its id; texts, queries and keys are not in it."""
    served = Served(tmp_path / "data", "--log-level", "info")
    headers = {"x-api-key": served.admin_secret}
    with httpx2.Client(base_url=served.url, headers=headers) as client:
        store_id = client.post("/v1/memory_stores", json={"name": "my-name"}).json()["id"]
        body = {"path": "/my-path", "content": "my-secret"}
        memories = f"/v1/memory_stores/{store_id}/memories"
        answer = client.post(f"{memories}?note=my-query", json=body)
        client.get(memories, params={"path_prefix": "/my-path/"})
        client.get("/nope%0aINJECTED")
    assert served.stop() == 0
    text = served.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    requests = [line for line in lines if line["logger"] == "memstore.access"]
    assert len(requests) == 4
    assert requests[1]["request_id"] == answer.headers["request-id"]
    assert (requests[1]["method"], requests[1]["status"]) == ("POST", 200)
    for secret in ("my-", served.admin_secret, "\nINJECTED"):
        assert secret not in text


def test_without_extensions_it_is_the_hosted_api(tmp_path: Path) -> None:
    """`--no-extensions`: the 14 endpoints and sessions are there, everything else is 404."""
    served = Served(tmp_path / "data", "--no-extensions")
    headers = {"x-api-key": served.admin_secret}
    with httpx2.Client(base_url=served.url, headers=headers) as client:
        store_id = client.post("/v1/memory_stores", json={"name": "n"}).json()["id"]
        base = f"/v1/memory_stores/{store_id}"
        session = client.post("/v1/sessions", json={"agent": "a", "environment_id": "e"}).json()
        for path in ("events", "snapshot", "usage", "memory_by_path?path=/a"):
            answer = client.get(f"{base}/{path}")
            assert answer.status_code == 404
            assert answer.json()["error"]["type"] == "not_found_error"
        for path in (f"{base}/batch", f"/v1/sessions/{session['id']}/tokens", "/v1/api_keys"):
            assert client.post(path, json={}).status_code == 404
        for path in ("/v1/whoami", "/v1/api_keys"):
            assert client.get(path).status_code == 404
        for path in ("memories", "memory_versions"):
            assert client.get(f"{base}/{path}").json() == {"data": [], "next_page": None}
    assert served.stop() == 0


def test_workers_share_the_sockets(tmp_path: Path) -> None:
    """Two workers serve; one that is killed is replaced; a change by one reaches a feed of another."""
    served = Served(tmp_path / "data", "--workers", "2", "--listen", f"unix:{tmp_path / 's'}")
    headers = {"x-api-key": served.admin_secret}

    def children() -> set[int]:
        found = set()
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    command = (folder / "cmdline").read_bytes()
                except OSError:
                    continue
                if int(fields[1]) == served.process.pid and b"spawn_main" in command:
                    found.add(int(folder.name))
        return found

    def ask(path: str, **options: Any) -> httpx2.Response:
        return httpx2.get(f"{served.url}{path}", headers=headers, timeout=30, **options)

    workers = children()
    assert len(workers) == 2
    made = httpx2.post(f"{served.url}/v1/memory_stores", json={"name": "n"}, headers=headers)
    store_id = made.json()["id"]
    heard: list[str] = []
    with httpx2.Client(base_url=served.url, headers=headers, timeout=30) as client:
        accept = {"accept": "text/event-stream"}
        with client.stream("GET", f"/v1/memory_stores/{store_id}/events", headers=accept) as feed:
            lines = feed.iter_lines()
            next(lines)
            for number in range(8):
                body = {"path": f"/{number}", "content": ""}
                url = f"{served.url}/v1/memory_stores/{store_id}/memories"
                assert httpx2.post(url, json=body, headers=headers).status_code == 200
            while len(heard) < 8:
                line = next(lines)
                heard += [line] if line.startswith("data:") else []
    os.kill(min(workers), signal.SIGKILL)
    until(lambda: len(children() - workers) == 1, "a new worker")
    until(lambda: ask("/readyz").status_code == 200, "readiness")
    assert served.stop() == 0
    until(lambda: not children(), "the workers' end")
    assert check(served.database_url) == []


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """When the parent is killed its workers end by themselves and free the port."""
    served = Served(tmp_path / "data", "--workers", "2")
    served.process.kill()
    served.process.wait(20)

    def is_closed() -> bool:
        try:
            httpx2.get(f"{served.url}/livez", timeout=5)
        except httpx2.TransportError:
            return True
        return False

    until(is_closed, "the port to be free")
    served.stop()


def test_not_ready_without_a_database(tmp_path: Path) -> None:
    """A database that does not answer is 503 with retry-after on /readyz, while /livez answers."""
    service = Service(f"sqlite:///{tmp_path / 'memstore.db'}")
    secret = service.bootstrap() or ""
    with TestClient(create_app(service)) as client:
        assert client.get("/readyz").status_code == 200
        service.close()
        assert client.get("/livez").status_code == 200
        for path in ("/readyz", "/v1/memory_stores"):
            answer = client.get(path, headers={"x-api-key": secret})
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            assert answer.json()["error"]["details"]["error_code"] == "unavailable"
            assert answer.json()["request_id"] == answer.headers["request-id"]


def test_what_is_unexpected_is_told_to_the_log_only(tmp_path: Path, caplog: Any) -> None:
    """A fault of ours is 500 in the envelope, without its words; the log has the request's id."""
    service = Service(f"sqlite:///{tmp_path / 'memstore.db'}")
    secret = service.bootstrap() or ""
    app = create_app(service)

    @app.get("/v1/fault")
    def fault() -> None:
        raise RuntimeError("-".join(["my", "secret"]))

    with TestClient(app) as client:
        answer = client.get("/v1/fault", headers={"x-api-key": secret})
    service.close()
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "api_error"
    assert answer.json()["request_id"] == answer.headers["request-id"]
    assert "my-secret" not in answer.text
    (record,) = [r for r in caplog.records if r.name == "memstore.api"]
    assert record.request_id == answer.headers["request-id"]
    line = JsonLines().format(record)
    assert "RuntimeError" in line and "in fault" in line and "my-secret" not in line


@pytest.mark.parametrize("address", ["[::1]:0", "localhost:0"])
def test_other_loopbacks(tmp_path: Path, address: str) -> None:
    """IPv6 and names work as addresses."""
    served = Served(tmp_path / "data", "--listen", address)
    assert served.stop() == 0
    assert served.log.read_text() == ""
