"""Open files."""

from __future__ import annotations

import os

from fuse_mount.vfs.inodes import File


class Handle:
    """One open file description.

    `wrote`: it changed the buffer since the last commit. `refused`: the errno that a save through
    it met; until it is closed or starts again from an empty file, every further write and close
    says so again, so that no half text follows a refused one. `seen`, `seen_sha`: the newest
    stored text this handle was shown, the base of what its holder writes.
    """

    __slots__ = ("append", "file", "readable", "refused", "seen", "seen_sha", "writable", "wrote")

    def __init__(self, file: File, flags: int) -> None:
        access = flags & os.O_ACCMODE
        self.file = file
        self.readable = access != os.O_WRONLY
        self.writable = access != os.O_RDONLY
        self.append = bool(flags & os.O_APPEND)
        self.wrote = False
        self.refused = 0
        self.seen: bytes | None = file.text
        self.seen_sha = file.sha
