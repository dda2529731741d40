"""Random file operations checked against bytes in memory, one by one.

`python -m tests.support.exerciser DIR SEED OPERATIONS FEATURES` exercises a directory and prints
the texts that must be there at the end as JSON. A difference ends it with the last operations and
the seed. It runs in a process of its own: a page fault on a mount holds the interpreter up, and
whoever serves the mount must not be in it. FEATURES is `mmap`, `nameless`, both, or `-`.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import string
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

NAMES = ("a", "b.md", "c", "d/x", "d/y.tmp", "d/.z.swp")
"""Memories, a temporary name and a litter name."""
LARGEST = 60_000
FEW = 6
LETTERS = string.ascii_letters + "\n"


@dataclass(eq=False, slots=True)
class Model:
    """What a file must hold; `names` counts its names."""

    data: bytearray = field(default_factory=bytearray)
    named: bool = True


@dataclass(eq=False, slots=True)
class Handle:
    """An open file."""

    fd: int
    file: Model
    flags: int

    @property
    def writable(self) -> bool:
        """Whether it may write."""
        return self.flags & os.O_ACCMODE != os.O_RDONLY


class Difference(Exception):
    """The directory answered otherwise than it must."""


class Exerciser:
    """One run."""

    def __init__(self, root: Path, seed: int, *, can_map: bool, nameless: bool) -> None:
        self._root = root
        self._random = random.Random(seed)
        self._can_map, self._nameless = can_map, nameless
        self._files: dict[str, Model] = {}
        self._handles: list[Handle] = []
        self._recent: deque[str] = deque(maxlen=25)
        (root / "d").mkdir()

    def run(self, operations: int) -> dict[str, str]:
        """Exercise, close everything; the texts of every name."""
        weighted: list[tuple[int, Callable[[], None]]] = [
            (12, self._open),
            (8, self._close),
            (14, self._write),
            (10, self._append),
            (12, self._read),
            (5, self._truncate_open),
            (3, self._truncate_path),
            (6, self._rename),
            (4, self._unlink),
            (5, self._sync),
            (6, self._whole),
            (4, self._sizes),
            (3, self._listing),
            (5 if self._can_map else 0, self._mapped_read),
            (5 if self._can_map else 0, self._mapped_write),
        ]
        weights, calls = [weight for weight, _ in weighted], [call for _, call in weighted]
        try:
            for _ in range(operations):
                self._random.choices(calls, weights)[0]()
            while self._handles:
                self._close()
            for name in self._files:
                self._same(self._path(name).read_bytes(), self._files[name].data, f"end {name}")
            self._listing()
        except (OSError, ValueError) as error:
            raise Difference(f"{error!r}\n" + "\n".join(self._recent)) from error
        return {name: file.data.decode() for name, file in self._files.items()}

    # Helpers

    def _path(self, name: str) -> Path:
        return self._root / name

    def _note(self, what: str) -> None:
        self._recent.append(what)

    def _same(self, found: object, expected: object, what: str) -> None:
        if found != expected:
            told = f"{what}: {str(found)[:200]} instead of {str(expected)[:200]}"
            raise Difference("\n".join([told, *self._recent]))

    def _text(self, most: int) -> bytes:
        size = self._random.randint(1, max(1, most))
        return "".join(self._random.choices(LETTERS, k=size)).encode()

    def _handle(self, *, write: bool = False) -> Handle | None:
        usable = [each for each in self._handles if not write or each.writable]
        return self._random.choice(usable) if usable else None

    # Opening and closing

    def _open(self) -> None:
        if len(self._handles) >= FEW:
            self._close()
        name = self._random.choice(NAMES)
        flags = self._random.choice((os.O_RDONLY, os.O_RDWR, os.O_RDWR, os.O_RDWR | os.O_APPEND))
        if flags != os.O_RDONLY and self._random.random() < 0.3:
            flags |= os.O_TRUNC
        if name not in self._files:
            flags = (flags if flags != os.O_RDONLY else os.O_RDWR) | os.O_CREAT | os.O_EXCL
            self._files[name] = Model()
        self._note(f"open {name} {flags:#o}")
        file = self._files[name]
        if flags & os.O_TRUNC:
            del file.data[:]
        self._handles.append(Handle(os.open(self._path(name), flags, 0o644), file, flags))

    def _close(self) -> None:
        if self._handles:
            handle = self._handles.pop(self._random.randrange(len(self._handles)))
            self._note(f"close {handle.fd}")
            os.close(handle.fd)

    def _sync(self) -> None:
        if handle := self._handle():
            self._note(f"fsync {handle.fd}")
            (os.fsync if self._random.random() < 0.5 else os.fdatasync)(handle.fd)

    # Writing

    def _put(self, handle: Handle, text: bytes, at: int) -> None:
        self._note(f"pwrite {handle.fd} {len(text)} at {at}")
        if handle.flags & os.O_APPEND:
            at = len(handle.file.data)
        os.pwrite(handle.fd, text, at)
        handle.file.data[at : at + len(text)] = text

    def _write(self) -> None:
        handle = self._handle(write=True)
        if handle is None:
            return
        end = len(handle.file.data)
        if handle.flags & os.O_APPEND:
            if end < LARGEST:
                self._put(handle, self._text(3_000), end)
            return
        at = self._random.randint(0, end)
        self._put(handle, self._text(min(9_000, LARGEST - at)), at)

    def _append(self) -> None:
        handle = self._handle(write=True)
        if handle is not None and len(handle.file.data) < LARGEST:
            self._put(handle, self._text(2_000), len(handle.file.data))

    def _truncate_open(self) -> None:
        handle = self._handle(write=True)
        if handle is None:
            return
        end = len(handle.file.data)
        size = self._random.randint(0, min(end + 2_000, LARGEST))
        self._note(f"ftruncate {handle.fd} from {end} to {size}")
        os.ftruncate(handle.fd, size)
        if size <= end:
            del handle.file.data[size:]
        elif handle.flags & os.O_APPEND:
            os.ftruncate(handle.fd, end)
        else:  # what was extended by zeros becomes text before anybody closes
            handle.file.data.extend(bytes(size - end))
            self._same(os.pread(handle.fd, size, end), bytes(size - end), "zeros")
            self._put(handle, (self._text(size - end) * (size - end))[: size - end], end)

    def _truncate_path(self) -> None:
        if self._files:
            name = self._random.choice(list(self._files))
            file = self._files[name]
            size = self._random.randint(0, len(file.data))
            self._note(f"truncate {name} to {size}")
            os.truncate(self._path(name), size)
            del file.data[size:]

    # Names

    def _rename(self) -> None:
        if not self._files:
            return
        old, new = self._random.choice(list(self._files)), self._random.choice(NAMES)
        self._note(f"rename {old} {new}")
        os.rename(self._path(old), self._path(new))
        if old != new:
            if new in self._files:
                self._files[new].named = False
            self._files[new] = self._files.pop(old)

    def _unlink(self) -> None:
        if self._files:
            name = self._random.choice(list(self._files))
            self._note(f"unlink {name}")
            os.unlink(self._path(name))
            self._files.pop(name).named = False

    # Reading

    def _read(self) -> None:
        if handle := self._handle():
            at = self._random.randint(0, len(handle.file.data) + 10)
            size = self._random.randint(1, 8_000)
            self._note(f"pread {handle.fd} {size} at {at}")
            found = os.pread(handle.fd, size, at)
            self._same(found, bytes(handle.file.data[at : at + size]), "read")

    def _whole(self) -> None:
        if self._files:
            name = self._random.choice(list(self._files))
            self._note(f"cat {name}")
            self._same(self._path(name).read_bytes(), self._files[name].data, f"cat {name}")

    def _sizes(self) -> None:
        for name, file in self._files.items():
            self._same(os.stat(self._path(name)).st_size, len(file.data), f"size of {name}")
        for handle in self._handles:
            if handle.file.named or self._nameless:
                found = os.fstat(handle.fd).st_size
                self._same(found, len(handle.file.data), f"size of {handle.fd}")

    def _listing(self) -> None:
        found = {str(path.relative_to(self._root)) for path in self._root.rglob("*")} - {"d"}
        self._same(found, set(self._files), "names")

    # Mapping

    def _mapped_read(self) -> None:
        handle = self._handle()
        if handle is not None and handle.file.data:
            self._note(f"mmap {handle.fd} to read")
            with mmap.mmap(handle.fd, len(handle.file.data), access=mmap.ACCESS_READ) as shown:
                self._same(shown[:], bytes(handle.file.data), "mapped")

    def _mapped_write(self) -> None:
        handle = self._handle(write=True)
        if handle is None or not handle.file.data:
            return
        end = len(handle.file.data)
        at = self._random.randint(0, end - 1)
        text = self._text(end - at)[: end - at]
        self._note(f"mmap {handle.fd} to write {len(text)} at {at}")
        with mmap.mmap(handle.fd, end) as shown:
            shown[at : at + len(text)] = text
            shown.flush()
        handle.file.data[at : at + len(text)] = text


def exercise(root: Path, seed: int, operations: int, features: str) -> dict[str, str]:
    """Run in a process of its own; the texts that must be there. AssertionError on a difference."""
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.support.exerciser",
            root,
            str(seed),
            str(operations),
            features,
        ],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, f"seed {seed}: {run.stderr[-6000:]}"
    texts: dict[str, str] = json.loads(run.stdout)
    return texts


if __name__ == "__main__":
    exerciser = Exerciser(
        Path(sys.argv[1]),
        int(sys.argv[2]),
        can_map="mmap" in sys.argv[4],
        nameless="nameless" in sys.argv[4],
    )
    print(json.dumps(exerciser.run(int(sys.argv[3]))))
