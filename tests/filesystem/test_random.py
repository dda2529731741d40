"""Random moves on a mount, on a dict of bytes, and in the end on the store and a second mount."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from tests.support.files import Files, append, read, refused, save
from tests.support.mounted import Place, shows

SEEDS = [int(seed) for seed in os.environ.get("MEMSTORE_TEST_SEEDS", "1 2 3 4 5 6").split()]
NAMES = ["a", "b", "c.md", "d/a", "d/b", "d/e/f", "x.tmp", "d/y~", ".z.swp"]
MOVES = 150


class Model:
    """What a directory of plain files would hold: bytes by path, and the directories made."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def put(self, path: str, text: bytes) -> None:
        """Write a file."""
        self.files[path] = text


Move = Callable[[random.Random, Files, Model], str]


def _save(rng: random.Random, files: Files, model: Model) -> str:
    path, text = rng.choice(NAMES), _text(rng)
    save(files, path, text)
    model.put(path, text)
    return f"save {path}"


def _append(rng: random.Random, files: Files, model: Model) -> str:
    path, text = rng.choice(NAMES), _text(rng)
    append(files, path, text)
    model.put(path, model.files.get(path, b"") + text)
    return f"append {path}"


def _overwrite(rng: random.Random, files: Files, model: Model) -> str:
    path, text = rng.choice(NAMES), _text(rng)
    if path not in model.files:
        assert refused(files.open, path, os.O_RDWR) == "ENOENT"
        return f"miss {path}"
    old = model.files[path]
    offset = rng.randint(0, len(old))
    fd = files.open(path, os.O_RDWR)
    files.pwrite(fd, text, offset)
    if rng.random() < 0.3:
        files.fsync(fd)
    new = old[:offset] + text + old[offset + len(text) :]
    if rng.random() < 0.3:
        new = new[: rng.randint(0, len(new))]
        files.ftruncate(fd, len(new))
    assert files.pread(fd, 1 << 20, 0) == new
    files.close(fd)
    model.put(path, new)
    return f"overwrite {path}"


def _truncate(rng: random.Random, files: Files, model: Model) -> str:
    path = rng.choice(NAMES)
    if path not in model.files:
        assert refused(files.truncate, path, 0) == "ENOENT"
        return f"miss {path}"
    size = rng.randint(0, len(model.files[path]))
    files.truncate(path, size)
    model.put(path, model.files[path][:size])
    return f"truncate {path}"


def _rename(rng: random.Random, files: Files, model: Model) -> str:
    old, new = rng.choice(NAMES), rng.choice(NAMES)
    if old not in model.files:
        assert refused(files.rename, old, new) == "ENOENT"
        return f"miss {old}"
    files.rename(old, new)
    model.put(new, model.files.pop(old))
    return f"rename {old} {new}"


def _unlink(rng: random.Random, files: Files, model: Model) -> str:
    path = rng.choice(NAMES)
    if path not in model.files:
        assert refused(files.unlink, path) == "ENOENT"
        return f"miss {path}"
    files.unlink(path)
    del model.files[path]
    return f"unlink {path}"


def _shuffle(rng: random.Random, files: Files, model: Model) -> str:
    """Rename the directory away and back, with everything in it."""
    files.rename("d", "g")
    assert refused(files.stat, "d") == "ENOENT"
    files.rename("g", "d")
    return "shuffle d"


def _text(rng: random.Random) -> bytes:
    return "".join(rng.choice("ab\nc d") for _ in range(rng.randint(0, 40))).encode()


WEIGHTED: list[Move] = [
    *[_save] * 4,
    *[_append] * 3,
    *[_overwrite] * 3,
    _truncate,
    *[_rename] * 4,
    *[_unlink] * 2,
    _shuffle,
]


def _compare(files: Files, model: Model, done: list[str]) -> None:
    for path in NAMES:
        if path in model.files:
            assert read(files, path) == model.files[path], (path, done[-5:])
            assert files.stat(path).st_size == len(model.files[path]), (path, done[-5:])
        else:
            assert refused(files.stat, path) == "ENOENT", (path, done[-5:])


@pytest.mark.parametrize("seed", SEEDS)
def test_random_moves_agree_with_plain_files(place: Place, seed: int) -> None:
    """Whatever is done, the mount shows what a plain directory would; in the end the store too."""
    rng = random.Random(seed)
    print(f"seed {seed}")
    files, model, done = place.mount(), Model(), []
    for directory in ("d", "d/e"):
        files.mkdir(directory)
    for _ in range(MOVES):
        done.append(rng.choice(WEIGHTED)(rng, files, model))
        _compare(files, model, done)

    assert place.unmount(files) == []

    kept = {f"/{path}": text.decode() for path, text in model.files.items() if path != ".z.swp"}
    assert place.texts() == kept, done


@pytest.mark.parametrize("seed", SEEDS)
def test_random_moves_arrive_in_another_mount(place: Place, seed: int) -> None:
    """Two mounts of one store take turns; after each turn both agree on every memory."""
    rng = random.Random(seed)
    print(f"seed {seed}")
    names = ["a", "b", "c.md", "e/a", "e/b"]
    mounts = [place.mount(), place.mount()]
    texts: dict[str, str] = {}
    for turn in range(60):
        files, other = mounts if turn % 2 else mounts[::-1]
        path, move = rng.choice(names), rng.choice(["save", "temp", "rename", "unlink"])
        if move == "unlink" and path in texts:
            files.unlink(path)
            del texts[path]
        elif move == "rename" and path in texts and path != "c.md":
            files.rename(path, "c.md")
            texts["c.md"] = texts.pop(path)
        elif move in ("save", "temp"):
            text = f"{turn} {move}"
            if path.startswith("e/") and "e" not in files.listdir():
                files.mkdir("e")
            save(files, f"{path}.tmp" if move == "temp" else path, text)
            if move == "temp":
                files.rename(f"{path}.tmp", path)
            texts[path] = text
        place.put("/turn", f"{turn}")
        for one in (files, other):
            shows(one, "turn", f"{turn}")
            for name in names:
                if name in texts:
                    assert read(one, name) == texts[name].encode(), (turn, name)
                else:
                    assert refused(one.stat, name) == "ENOENT", (turn, name)

    assert place.texts() == {f"/{path}": text for path, text in texts.items()} | {"/turn": "59"}
