"""What must start fast imports little."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"sqlalchemy", "fastapi", "starlette", "pydantic", "anthropic", "httpx", "alembic", "rich"}
PROGRAM = "import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"


def modules_after(module: str) -> set[str]:
    """Names of all modules a fresh interpreter holds after importing one."""
    program = PROGRAM.format(module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("module", ["memstore", "memstore.client.backend", "memstore.urls"])
def test_the_client_stays_light(module: str) -> None:
    """The mount driver and every command pay for the client: no framework comes with it."""
    assert not modules_after(module) & (HEAVY | {"typer"})


def test_the_command_stays_light() -> None:
    """Parsing a command loads neither the service nor the HTTP framework."""
    loaded = modules_after("memstore.cli.main")
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith(("memstore.service", "api", "fuse_m"))}


def test_importing_the_package_is_almost_free() -> None:
    """`import memstore` loads nothing else of the project before `connect` is used."""
    assert {name for name in modules_after("memstore") if name.startswith("memstore.")} == set()
