"""What the kernel must forget.

An inode's attributes and pages are invalidated by whoever announces it, who goes on when the
kernel has forgotten: the vfs then knows that no reader will see the old size again. It may wait
for a page that is being read. A name may have to wait much longer, for the lock of a directory in
which a request is under way; names go through a queue and a thread of their own, so that a busy
directory holds up no file's new text.
"""

from __future__ import annotations

import logging
import os
import threading
import time

from fuse_mount.kernel import messages
from fuse_mount.kernel.channel import GONE, Channel

log = logging.getLogger(__name__)

PATIENCE_S = 0.05
"""How long an announcer waits for a busy directory."""


class _Lane:
    """A thread that writes messages in order; one that waits already is not queued again."""

    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[bytes, None] = {}
        self._writing = False
        self._stopped = False
        self._channel: Channel | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self, channel: Channel) -> None:
        self._channel = channel
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()

    def put(self, message: bytes) -> None:
        with self._changed:
            if self._channel is None or self._stopped:
                return
            self._channel.announce()
            self._waiting.pop(message, None)
            self._waiting[message] = None
            self._changed.notify_all()

    def flush(self, end: float) -> bool:
        with self._changed:
            while self._waiting or self._writing:
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def _run(self) -> None:
        while batch := self._next_batch():
            assert self._channel is not None
            with self._channel.order:
                pass  # every reply computed before these changes is written now
            for message in batch:
                if not self._write(message):
                    return

    def _next_batch(self) -> list[bytes]:
        with self._changed:
            self._writing = False
            self._changed.notify_all()
            while not self._waiting and not self._stopped:
                self._changed.wait()
            batch, self._waiting = list(self._waiting), {}
            self._writing = bool(batch)
            return batch

    def _write(self, message: bytes) -> bool:
        """Hand one message to the kernel; False when the mount is gone."""
        assert self._channel is not None
        if write(self._channel, message):
            return True
        self.stop()
        with self._changed:
            self._writing = False
            self._changed.notify_all()
        return False


def write(channel: Channel, message: bytes) -> bool:
    """Hand an invalidation to the kernel; False when the mount is gone."""
    try:
        os.write(channel.fd, message)
    except OSError as error:
        if error.errno in GONE:
            return False
        # ENOENT: the kernel does not know the inode or the name, so there is nothing to forget.
        log.debug("an invalidation was not taken: %s", error)
    return True


class KernelNotifier:
    """The vfs's `Notifier` for a mounted channel. Before `attach` the kernel knows nothing yet,
    and nothing is written.
    """

    def __init__(self) -> None:
        self._names = _Lane("fuse-forget-names")
        self._channel: Channel | None = None

    def attach(self, channel: Channel) -> None:
        """Start to write to a channel."""
        self._channel = channel
        self._names.start(channel)

    def stop(self) -> None:
        """Write nothing more."""
        self._channel = None
        self._names.stop()

    def flush(self, deadline_s: float) -> bool:
        """Wait until every name announced is with the kernel; False when time is over first."""
        end = time.monotonic() + deadline_s
        return self._names.flush(end)

    def inval_inode(self, ino: int) -> None:
        """FUSE_NOTIFY_INVAL_INODE over the whole range: attributes and all pages; done on return."""
        channel = self._channel
        if channel is None:
            return
        channel.announce()
        with channel.order:
            pass  # every reply computed before the change is written now
        layout = messages.INVAL_INODE
        write(channel, layout.pack(layout.size, messages.NOTIFY_INVAL_INODE, 0, ino, 0, 0))

    def inval_entry(self, parent: int, name: str) -> None:
        """FUSE_NOTIFY_INVAL_ENTRY; done on return unless the directory is busy."""
        self.queue_entry(parent, name)
        self.flush(PATIENCE_S)

    def queue_entry(self, parent: int, name: str) -> None:
        """The same without waiting, for the loop: it must answer what makes a directory busy."""
        layout, raw = messages.INVAL_ENTRY, name.encode("utf-8", "surrogateescape")
        head = layout.pack(
            layout.size + len(raw) + 1, messages.NOTIFY_INVAL_ENTRY, 0, parent, len(raw), 0
        )
        self._names.put(head + raw + b"\0")

    def expire_entry(self, parent: int, name: str) -> None:
        """Have the kernel look a name up again before it uses it next; unlike the invalidation it
        does not take the name from whoever works below it. Since protocol 7.38."""
        channel = self._channel
        if channel is None:
            return
        layout, raw = messages.INVAL_ENTRY, name.encode("utf-8", "surrogateescape")
        head = layout.pack(
            layout.size + len(raw) + 1,
            messages.NOTIFY_INVAL_ENTRY,
            0,
            parent,
            len(raw),
            messages.EXPIRE_ONLY,
        )
        channel.announce()
        write(channel, head + raw + b"\0")

    def deleted(self, parent: int, ino: int, name: str) -> None:
        """FUSE_NOTIFY_DELETE: as `inval_entry`, and inotify watchers of the file hear of it."""
        layout, raw = messages.DELETE, name.encode("utf-8", "surrogateescape")
        head = layout.pack(
            layout.size + len(raw) + 1, messages.NOTIFY_DELETE, 0, parent, ino, len(raw), 0
        )
        self._names.put(head + raw + b"\0")
        self.flush(PATIENCE_S)
