"""The command itself: usage, where it connects, upkeep, entry points."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import Command
from tests.support.serving import Served


def test_misuse_is_one_sentence_and_exit_2(memstore: Command) -> None:
    """An unknown command, option or argument names the help to read."""
    assert "`memstore --help`" in memstore.bad(2, "nope")
    assert "`memstore store list --help`" in memstore.bad(2, "store", "list", "--nope")
    assert "STORE" in memstore.bad(2, "put")
    assert memstore.run().status == 2


@pytest.mark.parametrize("arguments", [(), ("store",), ("put",), ("up",), ("serve",)])
def test_help(memstore: Command, arguments: tuple[str, ...]) -> None:
    """Every command explains itself on standard output."""
    assert "Usage: memstore" in memstore.good(*arguments, "--help").out


def test_help_lists_every_command(memstore: Command) -> None:
    """Those of the other layers are among them."""
    listed = memstore.good("--help").out
    for name in (
        *("up", "down", "status", "serve", "mount", "store", "ls", "cat", "put", "edit", "mv"),
        *("rm", "log", "show", "diff", "redact", "session", "key", "check", "migrate", "verify"),
    ):
        assert f"\n  {name} " in listed, name
    assert "could not be loaded" not in listed


def test_the_version_is_printed(memstore: Command) -> None:
    """`memstore --version`."""
    import memstore as library

    assert memstore.good("--version").out == f"memstore {library.__version__}\n"


def test_no_service_is_exit_6_and_says_what_to_do(tmp_path: Path) -> None:
    """Nobody at the local address: start it with `memstore up`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    nobody = Command(MEMSTORE_DATA_DIR=str(tmp_path), MEMSTORE_LISTEN=f"127.0.0.1:{port}")
    assert "`memstore up`" in nobody.bad(6, "store", "list")
    assert nobody.run("status").status == 6


def test_the_local_service_and_its_key_are_found(service: Served) -> None:
    """With the data directory and the address alone the admin key is used."""
    local = Command(
        MEMSTORE_DATA_DIR=str(service.data_dir),
        MEMSTORE_LISTEN=service.url.removeprefix("http://"),
    )
    local.good("store", "list")


def test_the_admin_key_is_sent_to_this_machine_only(service: Served) -> None:
    """For a service elsewhere the local key is not used: it would be given away."""
    from memstore.cli.service import api_key
    from memstore.settings import Settings

    environ = {"MEMSTORE_DATA_DIR": str(service.data_dir)}
    assert api_key(Settings({}, environ), "http://127.0.0.1:1") == service.admin_secret
    for url in ("http://example.org", "https://10.0.0.1:8787", "http://127.0.0.1.example.org"):
        assert api_key(Settings({}, environ), url) == ""


def test_a_wrong_key_is_refused(memstore: Command) -> None:
    """Exit 5 with the server's sentence."""
    memstore.but(MEMSTORE_API_KEY="msk_wrong").bad(5, "store", "list")


def test_a_bad_base_url_is_invalid(memstore: Command) -> None:
    """Exit 7."""
    memstore.but(MEMSTORE_BASE_URL="ftp://x").bad(7, "store", "list")
    memstore.but(MEMSTORE_BASE_URL="http://").bad(7, "store", "list")


def test_unreadable_settings_are_named(tmp_path: Path) -> None:
    """A config.toml that is none, or with an unknown setting: exit 7 and the file's name."""
    config = tmp_path / "config.toml"
    for text in ("not toml", "colour = 1"):
        config.write_text(text)
        assert str(config) in Command(MEMSTORE_DATA_DIR=str(tmp_path)).bad(7, "store", "list")


def test_check_and_migrate_open_the_database(memstore: Command, service: Served) -> None:
    """A healthy database is in order; one that is not there is not made."""
    directory = ("--data-dir", str(service.data_dir))
    assert "in order" in memstore.good("check", *directory).out
    assert memstore.good("check", *directory, "--json").json == {"data": []}
    assert memstore.good("migrate", *directory, "--json").json["revision"]
    missing = service.data_dir / "none.db"
    memstore.bad(3, "check", "--database", f"sqlite:///{missing}")
    assert not missing.exists()


def test_a_damaged_database_is_one_sentence(memstore: Command, tmp_path: Path) -> None:
    """`check` on a file that is no database ends in a sentence, not a traceback."""
    damaged = tmp_path / "memstore.damaged"
    damaged.write_bytes(b"SQLite format 3\0" + b"garbage" * 1000)
    memstore.bad(6, "check", "--database", f"sqlite:///{damaged}")


def test_a_broken_entry_point_harms_no_other_command() -> None:
    """A layer that does not import leaves its command saying so; the rest work."""
    program = (
        "import sys; sys.modules['api.command'] = None\n"
        "from memstore.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    broken = run("serve", "--listen", "x")
    assert broken.returncode == 1 and "'serve' could not be loaded" in broken.stderr
    assert "Traceback" not in broken.stderr
    assert run("--help").returncode == 0
