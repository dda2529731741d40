"""What a file system answers: the same operations on any directory, told in the same words.

`python -m tests.support.oracle DIR UID < cases.json` plays cases, each in a fresh directory of its
own below DIR, as that user, and prints what each step answered and what was there after it. It
runs in a process of its own: as another user, and never waiting on a mount that its own process
serves.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Step = list[Any]
"""An operation's name and its arguments, as JSON can hold them."""
Outcome = Any
"""What it answered, or the name of its errno."""

LONG = "n" * 256
LONGEST = "n" * 255
DEEP = "/".join(["s" * 200] * 25)
KEEPS = 1_600_000_000_000_000_000
_libc = ctypes.CDLL(None, use_errno=True)

PREPARED: dict[str, list[Step]] = {
    "m": [],
    "f": [["put", "f", "first\n"]],
    "g": [["put", "g", "second\n"]],
    "e": [["mkdir", "e", 0o755]],
    "d": [["mkdir", "d", 0o755], ["put", "d/x", "inside\n"]],
    "d/x": [["mkdir", "d", 0o755], ["put", "d/x", "inside\n"]],
    "d/m": [["mkdir", "d", 0o755], ["put", "d/x", "inside\n"]],
    "d/e": [["mkdir", "d", 0o755], ["mkdir", "d/e", 0o755], ["put", "d/x", "inside\n"]],
    "f/x": [["put", "f", "first\n"]],
    "m/x": [],
    "f/": [["put", "f", "first\n"]],
    "e/": [["mkdir", "e", 0o755]],
    "m/": [],
    "e/.": [["mkdir", "e", 0o755]],
    "e/..": [["mkdir", "e", 0o755]],
    "d/../f": [["put", "f", "first\n"], ["mkdir", "d", 0o755]],
    "r": [["put", "r", "kept\n"], ["chmod", "r", 0o444]],
    "w/x": [["mkdir", "w", 0o755], ["put", "w/x", "kept\n"], ["chmod", "w", 0o555]],
    "w/m": [["mkdir", "w", 0o755], ["put", "w/x", "kept\n"], ["chmod", "w", 0o555]],
    "s/x": [["mkdir", "s", 0o755], ["put", "s/x", "kept\n"], ["chmod", "s", 0o644]],
    "h": [["put", "h", "kept\n"], ["chmod", "h", 0o000]],
    LONGEST: [],
    LONG: [],
    f"d/{LONG}": [["mkdir", "d", 0o755], ["put", "d/x", "inside\n"]],
    DEEP: [],
}
"""Paths of every kind, and what has to be made for each."""


class _Player:
    """Plays the steps of one case below one directory."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._files: dict[str, int] = {}

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def play(self, step: Step) -> Outcome:
        """The answer, or the errno's name."""
        operation: Callable[..., Outcome] = getattr(self, f"do_{step[0]}")
        try:
            return operation(*step[1:])
        except OSError as error:
            return errno.errorcode[error.errno or 0]

    def finish(self) -> None:
        """Close what was left open, as a process does that ends."""
        for fd in self._files.values():
            with contextlib.suppress(OSError):
                os.close(fd)

    # Made and changed by path

    def do_put(self, path: str, text: str) -> Outcome:
        """`printf text > path`."""
        fd = os.open(self._at(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            return os.write(fd, text.encode())
        finally:
            os.close(fd)

    def do_mkdir(self, path: str, mode: int) -> Outcome:
        return os.mkdir(self._at(path), mode)

    def do_rmdir(self, path: str) -> Outcome:
        return os.rmdir(self._at(path))

    def do_unlink(self, path: str) -> Outcome:
        return os.unlink(self._at(path))

    def do_rename(self, old: str, new: str) -> Outcome:
        return os.rename(self._at(old), self._at(new))

    def do_rename2(self, old: str, new: str, flags: int) -> Outcome:
        raw = (os.fsencode(self._at(old)), os.fsencode(self._at(new)))
        if _libc.renameat2(-100, raw[0], -100, raw[1], flags):
            raise OSError(ctypes.get_errno(), "renameat2")
        return None

    def do_link(self, old: str, new: str) -> Outcome:
        return os.link(self._at(old), self._at(new))

    def do_symlink(self, target: str, path: str) -> Outcome:
        return os.symlink(target, self._at(path))

    def do_mkfifo(self, path: str) -> Outcome:
        return os.mkfifo(self._at(path))

    def do_mknod(self, path: str) -> Outcome:
        return os.mknod(self._at(path), stat.S_IFREG | 0o644)

    def do_chmod(self, path: str, mode: int) -> Outcome:
        os.chmod(self._at(path), mode)
        return oct(os.stat(self._at(path)).st_mode)

    def do_chown(self, path: str, uid: int, gid: int) -> Outcome:
        return os.chown(self._at(path), uid, gid)

    def do_utimens(self, path: str, atime_ns: int, mtime_ns: int) -> Outcome:
        os.utime(self._at(path), ns=(atime_ns, mtime_ns))
        found = os.stat(self._at(path))
        return [found.st_atime_ns, found.st_mtime_ns]

    def do_touch(self, path: str) -> Outcome:
        """utimensat(2) with both times "now": the owner, or whoever may write."""
        os.utime(self._at(path))
        return os.stat(self._at(path)).st_mtime_ns > KEEPS

    def do_truncate(self, path: str, size: int) -> Outcome:
        return os.truncate(self._at(path), size)

    # Asked by path

    def do_stat(self, path: str) -> Outcome:
        found = os.stat(self._at(path))
        size = found.st_size if stat.S_ISREG(found.st_mode) else None
        return [stat.S_IFMT(found.st_mode), oct(stat.S_IMODE(found.st_mode)), size]

    def do_nlink(self, path: str) -> Outcome:
        return os.stat(self._at(path)).st_nlink

    def do_access(self, path: str, mode: int) -> Outcome:
        return os.access(self._at(path), mode)

    def do_list(self, path: str) -> Outcome:
        with os.scandir(self._at(path)) as found:
            return sorted([each.name, each.is_dir()] for each in found)

    def do_readlink(self, path: str) -> Outcome:
        return os.readlink(self._at(path))

    def do_text(self, path: str) -> Outcome:
        with open(self._at(path), "rb") as file:
            return file.read().decode("latin-1")

    def do_same(self, first: str, second: str) -> Outcome:
        return os.path.samefile(self._at(first), self._at(second))

    # Through descriptors

    def do_open(self, name: str, path: str, flags: int, mode: int = 0o644) -> Outcome:
        self._files[name] = os.open(self._at(path), flags, mode)

    def do_openclose(self, path: str, flags: int, mode: int = 0o644) -> Outcome:
        os.close(os.open(self._at(path), flags, mode))

    def do_close(self, name: str) -> Outcome:
        return os.close(self._files.pop(name))

    def do_read(self, name: str, size: int, offset: int) -> Outcome:
        return os.pread(self._files[name], size, offset).decode("latin-1")

    def do_write(self, name: str, text: str) -> Outcome:
        return os.write(self._files[name], text.encode())

    def do_pwrite(self, name: str, text: str, offset: int) -> Outcome:
        return os.pwrite(self._files[name], text.encode(), offset)

    def do_seek(self, name: str, offset: int, whence: int) -> Outcome:
        return os.lseek(self._files[name], offset, whence)

    def do_ftruncate(self, name: str, size: int) -> Outcome:
        return os.ftruncate(self._files[name], size)

    def do_fsync(self, name: str) -> Outcome:
        return os.fsync(self._files[name])

    def do_fdatasync(self, name: str) -> Outcome:
        return os.fdatasync(self._files[name])

    def do_fsize(self, name: str) -> Outcome:
        return os.fstat(self._files[name]).st_size

    def do_fnlink(self, name: str) -> Outcome:
        return os.fstat(self._files[name]).st_nlink

    def do_fchmod(self, name: str, mode: int) -> Outcome:
        os.fchmod(self._files[name], mode)
        return oct(stat.S_IMODE(os.fstat(self._files[name]).st_mode))

    def do_dup(self, name: str, copy: str) -> Outcome:
        self._files[copy] = os.dup(self._files[name])

    def do_map(self, name: str, text: str, offset: int) -> Outcome:
        """Write into a shared mapping of the whole file."""
        with mmap.mmap(self._files[name], 0) as shown:
            shown[offset : offset + len(text)] = text.encode()
            shown.flush()

    def do_peek(self, name: str) -> Outcome:
        """Read through a private mapping."""
        private = mmap.mmap(self._files[name], 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
        with private as shown:
            return shown[:].decode("latin-1")

    def do_copy(self, source: str, target: str, size: int) -> Outcome:
        return os.copy_file_range(self._files[source], self._files[target], size)

    def do_sendfile(self, source: str, target: str, size: int) -> Outcome:
        return os.sendfile(self._files[target], self._files[source], 0, size)


def tree(root: str) -> list[list[Any]]:
    """Everything below a directory: path, kind and permissions, and a file's text."""
    found: list[list[Any]] = []
    for folder, folders, names in os.walk(root, onerror=None):
        for name in sorted(folders + names):
            path = f"{folder}/{name}"
            mode = os.lstat(path).st_mode
            text = Path(path).read_bytes().decode("latin-1") if stat.S_ISREG(mode) else None
            found.append([path[len(root) + 1 :], oct(mode), text])
    return sorted(found)


def play_all(root: str, cases: Iterable[tuple[str, list[Step]]], uid: int) -> dict[str, Any]:
    """Play every case in a directory of its own: the outcomes, and the tree at the end."""
    told: dict[str, Any] = {}
    for number, (name, steps) in enumerate(cases):
        home = f"{root}/case{number}"
        os.mkdir(home)
        os.chown(home, uid, uid)
        os.setegid(uid)
        os.seteuid(uid)
        player = _Player(home)
        try:
            outcomes = [player.play(step) for step in steps]
            player.finish()
        finally:
            os.seteuid(0)
            os.setegid(0)
        told[name] = {"outcomes": outcomes, "tree": tree(home)}
    return told


def ask(root: Path, cases: list[tuple[str, list[Step]]], uid: int) -> dict[str, Any]:
    """Play the cases in a process of their own."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.oracle", str(root), str(uid)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


if __name__ == "__main__":
    os.umask(0o022)
    os.setgroups([])
    print(json.dumps(play_all(sys.argv[1], json.load(sys.stdin), int(sys.argv[2]))))
