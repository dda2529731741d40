"""redact by path and directory, dry first; receipts, and verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.commands import Command


def versions(memstore: Command, store: str) -> list[dict[str, Any]]:
    """What `log --json` tells of a store."""
    found: list[dict[str, Any]] = memstore.good("log", store, "--json").json["data"]
    return found


def filled(memstore: Command, store: str) -> None:
    """Three memories below /a, one of two versions and one deleted; one elsewhere."""
    for path, text in (("/a/x", "1"), ("/a/x", "2"), ("/a/y", "3"), ("/a/z", "4"), ("/b", "5")):
        memstore.good("put", store, path, stdin=text)
    memstore.good("rm", store, "/a/z")


def test_a_dry_run_changes_nothing(memstore: Command, store: str) -> None:
    """It lists what a directory's redaction would destroy, without asking, and nothing is."""
    filled(memstore, store)
    ran = memstore.run("redact", store, "/a/", "--prefix", "--dry-run", "--json")
    assert ran.status == 0
    listed = ran.json["data"]
    assert sorted((one["path"], one["operation"]) for one in listed) == [
        ("/a/x", "created"),
        ("/a/z", "created"),
        ("/a/z", "deleted"),
    ]
    assert all(one["redacted_at"] is None for one in versions(memstore, store))
    shown = memstore.run("redact", store, "/a/x", "--all-versions", "--dry-run")
    assert shown.status == 0 and "nothing was changed" in shown.err and "/a/x" in shown.out


def test_a_directory_is_redacted(memstore: Command, store: str) -> None:
    """Everything that was ever below it, but what is live; what is elsewhere stays."""
    filled(memstore, store)
    ran = memstore.run("redact", store, "/a/", "--prefix", "--yes", "--json")
    assert ran.status == 0 and ran.err.count("is live and stays") == 2
    assert len(ran.json["data"]) == 3
    left = [one["path"] for one in versions(memstore, store) if one["redacted_at"] is None]
    assert sorted(left) == ["/a/x", "/a/y", "/b"]
    memstore.bad(3, "redact", store, "/never/", "--prefix", "--yes")
    memstore.bad(7, "redact", store, "/a", "--prefix", "--yes")
    memstore.bad(2, "redact", store, "--prefix", "--yes")


def test_a_receipt_is_given_and_verified(memstore: Command, store: str, tmp_path: Path) -> None:
    """The answer carries it; verify believes it, and neither a forged one nor rubbish."""
    filled(memstore, store)
    ran = memstore.run("redact", store, "/a/z", "--yes", "--json")
    receipt = ran.json["data"][0]["receipt"]
    assert receipt["version_id"] == ran.json["data"][0]["id"]
    file = tmp_path / "receipts.json"
    file.write_text(ran.out)
    assert "true" in memstore.good("verify", "--receipt", str(file)).out
    file.write_text(json.dumps(receipt))
    assert memstore.good("verify", "--receipt", str(file), "--json").json == {"data": []}
    file.write_text(json.dumps({**receipt, "memory_id": "mem_other"}))
    forged = memstore.run("verify", "--receipt", str(file))
    assert forged.status == 1 and "not signed" in forged.out
    for rubbish in ("[", "[]", "{}", '{"data": []}', '{"type": "redaction_receipt"}'):
        file.write_text(rubbish)
        memstore.bad(7, "verify", "--receipt", str(file))
    memstore.bad(3, "verify", "--receipt", str(tmp_path / "none"))


def test_people_see_the_receipt(memstore: Command, store: str) -> None:
    """Without --json a line tells the version, the moment, who did it, and the key that is gone."""
    filled(memstore, store)
    oldest = versions(memstore, store)[-1]["id"]
    line = memstore.good("redact", store, "--version", oldest, "--yes").out
    assert line.startswith(oldest) and "apikey_" in line and "epoch_" in line


def test_a_version_may_be_named_with_its_path(memstore: Command, store: str) -> None:
    """`log STORE PATH` shows the version, `redact STORE PATH --version` takes it; never another's."""
    filled(memstore, store)
    oldest = memstore.good("log", store, "/a/x", "--json").json["data"][-1]["id"]
    memstore.bad(3, "redact", store, "/a/y", "--version", oldest, "--yes")
    memstore.bad(2, "redact", store, "/a/x", "--version", oldest, "--all-versions", "--yes")

    memstore.good("redact", store, "a/x", "--version", oldest, "--yes")

    left = memstore.good("log", store, "/a/x", "--json").json["data"]
    assert [one["redacted_at"] is None for one in left] == [True, False]
