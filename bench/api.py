"""The API: reads and creates a second, beside an empty route and SQLite's own commits."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

from bench.baselines import tree
from bench.harness import BenchError, Stage, free_port, run, wait_until
from bench.measure import OURS, Trial
from bench.setting import Setting

GROUP = "api"
CLIENTS = (1, 16)
EMPTY = "empty route"
SQLITE = "sqlite3"
_numbers = count(0, 10_000)
"""First numbers of the loads, far enough apart that no two create the same path."""


def load(job: dict[str, Any]) -> dict[str, float]:
    """Run the load of `bench/load.py` in a process of its own."""
    script = str(Path(__file__).with_name("load.py"))
    done = subprocess.run(
        [sys.executable, "-I", script],
        input=json.dumps({"host": "127.0.0.1", "first": next(_numbers), **job}) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        raise BenchError(f"the load failed: {done.stderr[-300:]}")
    answer: dict[str, float] = json.loads(done.stdout)
    if "error" in answer:
        raise BenchError(str(answer["error"]))
    return answer


def empty_server(stage: Stage) -> int:
    """The port of a server with an empty route, started as the service starts its own."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "bench.empty_app:app", "--port", str(port)]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log"]
    root = str(Path(__file__).parent.parent)
    stage.spawn(command, log=stage.root / "empty.log", environ={"PYTHONPATH": root})

    def answers() -> bool:
        probe = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            probe.request("GET", "/empty")
            return probe.getresponse().status == 200
        except OSError:
            return False
        finally:
            probe.close()

    wait_until(answers, what="the start of the empty server", deadline_s=20)
    return port


def run_group(setting: Setting) -> None:
    empty = empty_server(setting.stage)
    for clients in CLIENTS:
        _row(setting, empty, "GET", clients)
        _row(setting, empty, "POST", clients)


def _row(setting: Setting, empty: int, method: str, clients: int) -> None:
    body = json.dumps({"path": "/bench/{n}.md", "content": "x" * 2048}) if method == "POST" else ""
    requests = setting.many(1600, 400) // clients
    job = {"clients": clients, "requests": requests, "method": method, "body": body}
    late: dict[str, float] = {}

    def asking(name: str, port: int, path: str, headers: dict[str, str]) -> Trial:
        def take(_: int) -> float:
            answer = load({**job, "port": port, "path": path, "headers": headers})
            late[name] = answer["p99_ms"]
            return answer["per_second"]

        return Trial(take)

    trials = {EMPTY: asking(EMPTY, empty, "/empty", {})}
    if setting.service is not None:
        service = setting.service
        store = service.store(f"api-{method.lower()}-{clients}", tree(1, 2048, 0))
        path = f"/v1/memory_stores/{store}/memories"
        if method == "GET":
            path += "/" + service.api.memories(store)[0]["id"]
        trials[OURS] = asking(OURS, service.port, path, {"x-api-key": service.key})
    if method == "POST":
        trials[SQLITE] = _commits(setting, clients)
    verb = "GET a memory" if method == "GET" else "POST create 2 KB"
    what = f"{verb}, {clients} client{'s' if clients > 1 else ''}"
    setting.row(GROUP, what, "/s", trials)
    if OURS in late:
        row = setting.printer.rows[-1]
        row.note = f"p99 {late[OURS]:.1f} ms, {EMPTY} {late.get(EMPTY, 0):.1f} ms"
        print(f"      {row.note}")


def _commits(setting: Setting, rows: int) -> Trial:
    """SQLite alone, as many rows a commit as there are clients."""
    path = str(setting.stage.directory("sqlite") / "commits.db")
    script = str(Path(__file__).with_name("commits.py"))
    commits = str(setting.many(500, 100))

    def take(_: int) -> float:
        return float(run([sys.executable, "-I", script, path, commits, str(rows)]))

    return Trial(take)
