"""The cases the oracle is asked: every operation on every kind of path, and sequences."""

from __future__ import annotations

import os

from memstore.model.limits import CONTENT_BYTES
from tests.support.oracle import KEEPS, PREPARED, Step

Case = tuple[str, list[Step]]

OPEN_FLAGS = {
    "rd": os.O_RDONLY,
    "wr": os.O_WRONLY,
    "rdwr": os.O_RDWR,
    "rd|trunc": os.O_RDONLY | os.O_TRUNC,
    "wr|trunc": os.O_WRONLY | os.O_TRUNC,
    "wr|append": os.O_WRONLY | os.O_APPEND,
    "wr|creat": os.O_WRONLY | os.O_CREAT,
    "rd|creat": os.O_RDONLY | os.O_CREAT,
    "wr|creat|trunc": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "wr|creat|excl": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "rd|directory": os.O_RDONLY | os.O_DIRECTORY,
    "rd|nofollow": os.O_RDONLY | os.O_NOFOLLOW,
    "path": os.O_PATH,
}

ON_A_PATH: dict[str, Step] = {
    **{f"open {name}": ["openclose", "", flags] for name, flags in OPEN_FLAGS.items()},
    "stat": ["stat", ""],
    "nlink": ["nlink", ""],
    "access r": ["access", "", os.R_OK],
    "access w": ["access", "", os.W_OK],
    "access x": ["access", "", os.X_OK],
    "list": ["list", ""],
    "text": ["text", ""],
    "readlink": ["readlink", ""],
    "mkdir": ["mkdir", "", 0o755],
    "rmdir": ["rmdir", ""],
    "unlink": ["unlink", ""],
    "truncate 0": ["truncate", "", 0],
    "truncate 3": ["truncate", "", 3],
    "truncate same": ["truncate", "", 6],
    "truncate -1": ["truncate", "", -1],
    "chmod 600": ["chmod", "", 0o600],
    "chmod 444": ["chmod", "", 0o444],
    "chmod 700": ["chmod", "", 0o700],
    "utimens": ["utimens", "", KEEPS, KEEPS + 5],
    "touch": ["touch", ""],
    "mknod": ["mknod", ""],
    "mkfifo": ["mkfifo", ""],
    "symlink": ["symlink", "f", ""],
}


def _prepare(*paths: str) -> list[Step]:
    """The steps that make these paths, each once."""
    steps: list[Step] = []
    for path in paths:
        steps += [step for step in PREPARED[path] if step not in steps]
    modes = [step for step in steps if step[0] == "chmod"]
    return [step for step in steps if step[0] != "chmod"] + modes


def _short(path: str) -> str:
    return path if len(path) < 40 else f"{path[:8]}..{len(path)}"


def on_a_path() -> list[Case]:
    """Each operation on each kind of path."""
    cases: list[Case] = []
    for title, operation in ON_A_PATH.items():
        at = operation.index("")
        for path in PREPARED:
            step = [*operation[:at], path, *operation[at + 1 :]]
            cases.append((f"{title} [{_short(path)}]", [*_prepare(path), step]))
    return cases


def on_two_paths() -> list[Case]:
    """rename of each kind of path onto each; link of each to a free and a taken name."""
    cases: list[Case] = []
    for old in PREPARED:
        for new in PREPARED:
            steps = [*_prepare(old, new), ["rename", old, new]]
            cases.append((f"rename [{_short(old)}] [{_short(new)}]", steps))
        for new in ("m", "f", "e"):
            steps = [*_prepare(old, new), ["link", old, new]]
            cases.append((f"link [{_short(old)}] [{new}]", steps))
    inner = [["mkdir", "d", 0o755], ["mkdir", "d/e", 0o755], ["put", "d/e/x", "x\n"]]
    for old, new in (("d", "d/e/d"), ("d/e", "d"), ("d", "d"), ("d/e/x", "d/e"), ("d/e", "d/y")):
        cases.append((f"rename inside [{old}] [{new}]", [*inner, ["rename", old, new]]))
    for old, new in (("f", "m"), ("f", "g"), ("m", "f"), ("d", "e"), ("d", "m")):
        steps = [*_prepare(old, new), ["rename2", old, new, 1]]
        cases.append((f"rename noreplace [{old}] [{new}]", steps))
    return cases


RW, CREATE = os.O_RDWR, os.O_RDWR | os.O_CREAT

SEQUENCES: list[Case] = [
    (
        "an unlinked open file goes on",
        [
            ["put", "f", "first\n"],
            ["open", "a", "f", RW],
            ["unlink", "f"],
            ["read", "a", 100, 0],
            ["pwrite", "a", "FIRST", 0],
            ["read", "a", 100, 0],
            ["stat", "f"],
            ["put", "f", "another\n"],
            ["read", "a", 100, 0],
            ["close", "a"],
            ["text", "f"],
        ],
    ),
    (
        "an unlinked open file has no links",
        [["put", "f", "x"], ["open", "a", "f", RW], ["unlink", "f"], ["fnlink", "a"]],
    ),
    (
        "an unlinked open file keeps its size and mode",
        [
            ["put", "f", "first\n"],
            ["open", "a", "f", RW],
            ["unlink", "f"],
            ["fsize", "a"],
            ["ftruncate", "a", 2],
            ["fsize", "a"],
            ["fchmod", "a", 0o600],
        ],
    ),
    (
        "a replaced open file keeps its text",
        [
            ["put", "f", "first\n"],
            ["put", "g", "second\n"],
            ["open", "a", "f", os.O_RDONLY],
            ["rename", "g", "f"],
            ["read", "a", 100, 0],
            ["text", "f"],
            ["stat", "g"],
        ],
    ),
    (
        "a renamed open file is written under its new name",
        [
            ["put", "f", "first\n"],
            ["open", "a", "f", RW],
            ["rename", "f", "n"],
            ["pwrite", "a", "FIRST", 0],
            ["close", "a"],
            ["text", "n"],
            ["stat", "f"],
        ],
    ),
    (
        "appending goes to the end whatever the offset",
        [
            ["put", "f", "one\n"],
            ["open", "a", "f", RW | os.O_APPEND],
            ["open", "b", "f", RW | os.O_APPEND],
            ["write", "a", "two\n"],
            ["write", "b", "three\n"],
            ["seek", "a", 0, 0],
            ["write", "a", "four\n"],
            ["seek", "a", 0, 1],
            ["close", "a"],
            ["close", "b"],
            ["text", "f"],
        ],
    ),
    (
        "two descriptors see each other's writes",
        [
            ["open", "a", "f", CREATE],
            ["open", "b", "f", os.O_RDONLY],
            ["write", "a", "hello"],
            ["read", "b", 100, 0],
            ["fsize", "b"],
            ["ftruncate", "a", 2],
            ["fsize", "b"],
            ["read", "b", 100, 0],
            ["seek", "b", 0, 2],
        ],
    ),
    (
        "a hole is filled before the close",
        [
            ["open", "a", "f", CREATE],
            ["pwrite", "a", "world\n", 6],
            ["fsize", "a"],
            ["read", "a", 6, 0],
            ["pwrite", "a", "hello ", 0],
            ["close", "a"],
            ["text", "f"],
        ],
    ),
    (
        "a mapping writes where it is, also of a file that is opened to append",
        [
            ["put", "f", "first\nsecond\n"],
            ["open", "a", "f", RW | os.O_APPEND],
            ["map", "a", "FIRST", 0],
            ["read", "a", 6, 0],
            ["close", "a"],
            ["text", "f"],
        ],
    ),
    (
        "a private mapping reads",
        [["put", "f", "first\n"], ["open", "a", "f", os.O_RDONLY], ["peek", "a"]],
    ),
    (
        "a hole that stays",
        [
            ["put", "f", "kept"],
            ["open", "a", "f", RW],
            ["pwrite", "a", "end", 9],
            ["close", "a"],
            ["truncate", "f", 4],
            ["text", "f"],
        ],
    ),
    (
        "a text over the limit",
        [
            ["put", "f", "kept\n"],
            ["open", "a", "f", RW],
            ["pwrite", "a", "x" * (CONTENT_BYTES + 1), 0],
        ],
    ),
    (
        "reading past the end is nothing",
        [["put", "f", "abc"], ["open", "a", "f", 0], ["read", "a", 9, 3], ["read", "a", 9, 99]],
    ),
    (
        "a descriptor's access is kept",
        [
            ["put", "f", "abc"],
            ["open", "r", "f", os.O_RDONLY],
            ["pwrite", "r", "x", 0],
            ["ftruncate", "r", 0],
            ["open", "w", "f", os.O_WRONLY],
            ["read", "w", 9, 0],
        ],
    ),
    (
        "a read-only mode binds later opens, not earlier ones",
        [
            ["open", "a", "f", CREATE],
            ["fchmod", "a", 0o444],
            ["write", "a", "still\n"],
            ["close", "a"],
            ["text", "f"],
            ["openclose", "f", os.O_WRONLY],
        ],
    ),
    (
        "a file created read-only is written by its creator",
        [
            ["open", "a", "f", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444],
            ["write", "a", "once\n"],
            ["close", "a"],
            ["text", "f"],
            ["openclose", "f", os.O_WRONLY],
        ],
    ),
    (
        "a duplicate closes alone",
        [
            ["put", "f", "old\n"],
            ["open", "a", "f", os.O_WRONLY | os.O_TRUNC],
            ["dup", "a", "b"],
            ["close", "a"],
            ["write", "b", "new\n"],
            ["close", "b"],
            ["text", "f"],
        ],
    ),
    (
        "the last file leaves its directory behind",
        [
            ["mkdir", "d", 0o755],
            ["put", "d/x", "x"],
            ["unlink", "d/x"],
            ["list", "d"],
            ["rmdir", "d"],
            ["stat", "d"],
        ],
    ),
    (
        "a directory moves with all below it",
        [
            ["mkdir", "d", 0o755],
            ["mkdir", "d/e", 0o755],
            ["put", "d/e/x", "x\n"],
            ["put", "d/y", "y\n"],
            ["mkdir", "d/empty", 0o755],
            ["open", "a", "d/e/x", RW],
            ["rename", "d", "n"],
            ["list", "n"],
            ["text", "n/e/x"],
            ["pwrite", "a", "X", 0],
            ["close", "a"],
            ["text", "n/e/x"],
            ["stat", "d"],
        ],
    ),
    (
        "a working directory that is gone makes nothing",
        [
            ["mkdir", "d", 0o755],
            ["open", "d", "d", os.O_RDONLY | os.O_DIRECTORY],
            ["rmdir", "d"],
            ["put", "d/x", "x"],
        ],
    ),
    (
        "times are set and kept",
        [
            ["put", "f", "x"],
            ["utimens", "f", KEEPS, KEEPS + 1_000_000_123],
            ["utimens", "f", -1_000_000_000, 0],
            ["touch", "f"],
        ],
    ),
    (
        "a file is itself under its new name",
        [["put", "f", "x"], ["same", "f", "f"], ["put", "g", "x"], ["same", "f", "g"]],
    ),
    (
        "texts are copied between descriptors",
        [
            ["put", "f", "copied\n"],
            ["open", "a", "f", os.O_RDONLY],
            ["open", "b", "g", CREATE],
            ["copy", "a", "b", 7],
            ["close", "b"],
            ["text", "g"],
            ["open", "c", "h", CREATE],
            ["sendfile", "a", "c", 7],
            ["close", "c"],
            ["text", "h"],
        ],
    ),
    (
        "a name in another case is another name",
        [["put", "f", "x"], ["put", "F", "y"], ["list", ""], ["text", "f"], ["text", "F"]],
    ),
    (
        "synchronising keeps what was written",
        [
            ["open", "a", "f", CREATE],
            ["write", "a", "one\n"],
            ["fsync", "a"],
            ["write", "a", "two\n"],
            ["fdatasync", "a"],
            ["text", "f"],
        ],
    ),
    (
        "a file made and removed at once leaves nothing",
        [["open", "a", "f", CREATE], ["write", "a", "x"], ["unlink", "f"], ["close", "a"]],
    ),
]


def every_case() -> list[Case]:
    """All of them."""
    return [*on_a_path(), *on_two_paths(), *SEQUENCES]
