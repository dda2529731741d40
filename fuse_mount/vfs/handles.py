"""Open files."""

from __future__ import annotations

import os

from fuse_mount.vfs.inodes import File

_SERIALS = 1 << 19
_INO_SHIFT = 20


def number_for(ino: int, serial: int, *, writable: bool) -> int:
    """The number of a handle on a node; the lowest bit says that it may write."""
    return ino << _INO_SHIFT | serial % _SERIALS << 1 | writable


def read_only_ino(number: int) -> int:
    """The node a handle reads; 0 when the handle may write."""
    return 0 if number & 1 else number >> _INO_SHIFT


class Handle:
    """One open file description.

    `wrote`: it changed the buffer since the last commit. `refused`: the errno that a save through
    it met; until it is closed or starts again from an empty file, every further write and close
    says so again, so that no half text follows a refused one. `seen`, `seen_sha`: the newest
    stored text this handle was shown, the base of what its holder writes.

    `noted`: the journal says that it has bytes nobody acknowledged. `number` says which node it is
    of and whether it may write, so that a handle which only reads is known from its number alone.
    """

    __slots__ = (
        "append",
        "file",
        "flags",
        "noted",
        "number",
        "readable",
        "refused",
        "seen",
        "seen_sha",
        "writable",
        "wrote",
    )

    def __init__(self, file: File, flags: int, number: int) -> None:
        access = flags & os.O_ACCMODE
        self.file, self.flags, self.number = file, flags & 0xFFFFFFFF, number
        self.readable = access != os.O_WRONLY
        self.writable = access != os.O_RDONLY
        self.append = bool(flags & os.O_APPEND)
        self.wrote = self.noted = False
        self.refused = 0
        self.seen: bytes | None = file.text
        self.seen_sha = file.sha
