"""Texts in memory, bounded by bytes; the least recently opened go first."""

from __future__ import annotations

from collections import OrderedDict

from fuse_mount.vfs.inodes import File


class TextCache:
    """Keeps `File.text` of many files under one bound. Every method needs the vfs lock.

    A text in use (an open handle, a buffer based on it) is never dropped, so a read through a
    handle never has to fetch.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._files: OrderedDict[int, tuple[File, int]] = OrderedDict()
        self.bytes = 0

    def put(self, file: File, text: bytes) -> None:
        """Keep a file's text."""
        self.drop(file)
        file.text = text
        self._files[file.ino] = (file, len(text))
        self.bytes += len(text)
        if self.bytes > self._limit:
            self._shrink()

    def used(self, file: File) -> None:
        """Note that a file was opened."""
        if file.ino in self._files:
            self._files.move_to_end(file.ino)

    def drop(self, file: File) -> None:
        """Forget a file's text."""
        entry = self._files.pop(file.ino, None)
        if entry is not None:
            self.bytes -= entry[1]
        file.text = None

    def _shrink(self) -> None:
        for file, _ in list(self._files.values()):
            if self.bytes <= self._limit:
                return
            if not file.opens and file.buffer is None and not file.away:
                self.drop(file)
