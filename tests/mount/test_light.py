"""The driver starts fast and stays small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.mount.conftest import Desk, supervisor_of
from tests.support.waiting import until

HEAVY = {"sqlalchemy", "fastapi", "starlette", "pydantic", "anthropic", "httpx", "rich", "typer"}
SUPERVISOR_KIB = 20 * 1024


def test_the_driver_loads_no_framework() -> None:
    """Neither the service nor a framework is imported by a driver that talks HTTP."""
    program = (
        "import sys, json, fuse_mount.driver, memstore.client.backend;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith(("memstore.service", "api."))}


def test_the_driver_gives_up_what_it_was_started_from(desk: Desk) -> None:
    """A daemon holds no terminal, no pipe and no working directory of its starter."""
    place = desk.mount()
    pid = os.getxattr(place, "user.memstore.driver").split()[0].decode()
    process = Path(f"/proc/{pid}")
    assert (process / "cwd").readlink() == Path("/")
    for number in ("0", "1", "2"):
        where = process / "fd" / number
        until(lambda where=where: where.readlink() == Path("/dev/null"), "the pipes to be let go")
    command = (process / "cmdline").read_bytes()
    assert desk.service.admin_secret.encode() not in (process / "cmdline").read_bytes()
    assert b"fuse_mount.supervisor" in command
    desk.umount()


def test_the_supervisor_is_small(desk: Desk) -> None:
    """The process that only waits beside a driver takes little memory, and loads nothing of ours."""
    place = desk.mount()
    status = Path(f"/proc/{supervisor_of(place)}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    assert int(resident.split()[1]) < SUPERVISOR_KIB
    program = "import sys, json, fuse_mount.supervisor; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {*HEAVY, "subprocess", "logging", "ctypes", "ssl"}
    assert not {name for name in loaded if name.startswith(("memstore", "fuse_mount."))} - {
        "fuse_mount.supervisor"
    }
