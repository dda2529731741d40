"""One `/dev/fuse` descriptor: replies go out here, in an order that keeps caches true."""

from __future__ import annotations

import errno
import logging
import os
import threading

from fuse_mount.kernel.messages import error_reply

log = logging.getLogger(__name__)

GONE = frozenset({errno.ENODEV, errno.EBADF, errno.ECONNABORTED})
"""Errors of the descriptor that mean: the mount is no more."""


class Channel:
    """The descriptor and the lock `order` that the package's docstring explains.

    `changes` counts invalidations announced so far; it is read without a lock and only compared.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.order = threading.Lock()
        self.changes = 0
        self._counting = threading.Lock()

    def announce(self) -> None:
        """Count an invalidation that will be written."""
        with self._counting:
            self.changes += 1

    def send(self, message: bytes) -> None:
        """Write a reply. One that nobody waits for any more (ENOENT: interrupted) is dropped."""
        try:
            os.write(self.fd, message)
        except OSError as error:
            if error.errno == errno.ENOENT or error.errno in GONE:
                return
            log.error("the kernel refused a reply: %s", error)
            self._send_failure(message)

    def _send_failure(self, message: bytes) -> None:
        """Answer EIO in place of a reply that was refused, so that nobody waits for ever."""
        unique = int.from_bytes(message[8:16], "little" if _LITTLE else "big")
        try:
            os.write(self.fd, error_reply(unique, errno.EIO))
        except OSError:
            log.debug("no answer could be given to request %d", unique)

    def close(self) -> None:
        """Close the descriptor: the kernel aborts the connection when it was the last one."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


_LITTLE = memoryview(b"\1\0").cast("H")[0] == 1
