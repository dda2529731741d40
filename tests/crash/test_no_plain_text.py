"""Every byte the service writes is searched for what it was told."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from tests.support.commands import Command
from tests.support.serving import Served

MARKER = "Zauberwort-é-7f3a9c51d2"
"""In every text. What JSON, UTF-16 and base64 make of it is searched for, too."""
SECRET_PATH = "geheimpfad-5b81e0aa"
"""In every path; gone once the memory was moved and its versions are redacted."""


def forms(text: str) -> set[bytes]:
    """A text as it may be written somewhere."""
    raw = text.encode()
    found = {raw, text.encode("utf-16-le"), text.encode("utf-16-be"), quote(text).encode()}
    found.add(json.dumps(text)[1:-1].encode())
    found.add(raw.hex().encode())
    for shift in range(3):  # where in a longer text it stands changes what base64 makes of it
        whole = base64.b64encode(b"\0" * shift + raw + b"\0" * 2)
        found.add(whole[4 if shift else 0 : -4])
    return found


def holding(folders: list[Path], text: str) -> list[str]:
    """Files that hold a text in some form."""
    wanted = forms(text)
    found = []
    for folder in folders:
        for file in folder.rglob("*"):
            if file.is_file() and any(form in file.read_bytes() for form in wanted):
                found.append(file.name)
    return found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A service that logs everything and has a temporary folder of its own."""
    (tmp_path / "tmp").mkdir()
    served = Served(
        tmp_path / "data",
        "--log-level",
        "debug",
        TMPDIR=str(tmp_path / "tmp"),
        SQLITE_TMPDIR=str(tmp_path / "tmp"),
    )
    yield served
    served.stop()


def used(api: httpx2.Client, store: str) -> list[str]:
    """Do everything with the marker in it; ids of versions to be redacted."""
    base = f"/v1/memory_stores/{store}"

    def call(method: str, where: str, status: int, **body: object) -> dict[str, object]:
        answer = api.request(method, f"{base}{where}", json=body or None)
        assert answer.status_code == status, answer.text
        return dict(answer.json())

    def text(number: int) -> str:
        return f"{MARKER} {number} " * (1 if number % 2 else 3000)

    made = [
        call("POST", "/memories", 200, path=f"/{SECRET_PATH}/{n}", content=text(n))
        for n in range(4)
    ]
    memory = f"/memories/{made[0]['id']}"
    call("POST", memory, 200, content=text(5))
    call("POST", memory, 200, path=f"/{SECRET_PATH}/renamed")
    call("POST", "/memories", 409, path=f"/{SECRET_PATH}/1", content=text(6))
    call("POST", "/memories", 409, path=f"/{SECRET_PATH}/1/{MARKER}", content=text(6))
    call("POST", "/memories", 400, path=f"{SECRET_PATH}//{MARKER}", content=text(6))
    call("POST", "/memories", 400, path="/toolong", content=MARKER * 9000)
    call("POST", "/memories", 400, path="/nul", content=MARKER + "\0")
    stale = {"type": "content_sha256", "content_sha256": "0" * 64}
    call("POST", memory, 409, content=text(7), precondition=stale)
    assert api.post(f"{base}/memories", content=b'{"path": "' + MARKER.encode()).status_code == 400
    for number in range(3):
        write = call("POST", "/rejected_writes", 200, path=f"/{SECRET_PATH}", content=text(number))
        if number:
            verb = ("apply", "dismiss")[number - 1]
            status = 409 if verb == "apply" else 200
            call("POST", f"/rejected_writes/{write['id']}/{verb}", status)
    for view in ("basic", "full"):
        assert MARKER in api.get(f"{base}/memories?view=full").text
        api.get(f"{base}/memories?view={view}&path_prefix=/{SECRET_PATH}/")
        api.get(f"{base}/memory_versions?view={view}")
        api.get(f"{base}/events?after=0&view={view}")
    assert api.get(f"{base}/memories?path_prefix={MARKER}").status_code == 400
    assert api.delete(f"{base}/memories/{made[1]['id']}").status_code == 200
    return [str(one["memory_version_id"]) for one in made[:2]]


def test_nothing_is_written_in_plain(tmp_path: Path, served: Served) -> None:
    """No text in any form in the data, the keys, the logs or temporary files, live ones neither."""
    everything = [tmp_path]
    headers = {"x-api-key": served.admin_secret}
    with httpx2.Client(base_url=served.url, headers=headers) as api:
        store = str(api.post("/v1/memory_stores", json={"name": "n"}).json()["id"])
        for version in used(api, store):
            url = f"/v1/memory_stores/{store}/memory_versions/{version}"
            answer = api.post(f"{url}/redact")
            assert answer.status_code == 200 and MARKER not in answer.text
            assert api.get(f"{url}/receipt").json()["version_id"] == version
        assert holding(everything, MARKER) == []
        env = Command(
            MEMSTORE_DATA_DIR=str(served.data_dir),
            MEMSTORE_BASE_URL=served.url,
            MEMSTORE_API_KEY=served.admin_secret,
        )
        # Everything is moved away or deleted, and what said the path is redacted.
        for number, memory in enumerate(
            api.get(f"/v1/memory_stores/{store}/memories").json()["data"]
        ):
            api.post(
                f"/v1/memory_stores/{store}/memories/{memory['id']}",
                json={"path": f"/moved/{number}", "content": "clean"},
            )
        listed = f"/v1/memory_stores/{store}/rejected_writes?state=open"
        for write in api.get(listed).json()["data"]:
            api.post(f"/v1/memory_stores/{store}/rejected_writes/{write['id']}/dismiss")
        assert env.run("redact", store, f"/{SECRET_PATH}/", "--prefix", "--yes").status == 0
        assert SECRET_PATH not in api.get(f"/v1/memory_stores/{store}/memory_versions").text
        assert holding(everything, SECRET_PATH) == []
    assert served.stop() == 0
    assert holding(everything, MARKER) == holding(everything, SECRET_PATH) == []


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    """Each form is found in a file that holds it."""
    for number, form in enumerate(sorted(forms(MARKER))):
        (tmp_path / str(number)).write_bytes(os.urandom(50) + form + os.urandom(50))
    assert len(holding([tmp_path], MARKER)) == len(forms(MARKER))


def test_no_core_is_left(served: Served) -> None:
    """A service that crashes writes no core dump, which would hold everything in plain."""
    limits = Path(f"/proc/{served.process.pid}/limits").read_text().splitlines()
    core = next(line for line in limits if line.startswith("Max core file size"))
    assert core.split()[4:6] == ["0", "0"]
