"""What can be in the way of a mount."""

from __future__ import annotations

import errno
import os
from pathlib import Path

USAGE, REFUSED, UNAVAILABLE = 2, 5, 6
"""Exit statuses of the command line."""


class MountError(Exception):
    """A mount cannot be made or unmade; the message says what to do. `status` is for exit(3)."""

    def __init__(self, message: str, *, status: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.status = status

    @classmethod
    def usage(cls, message: str) -> MountError:
        """The place or an option is wrong."""
        return cls(message, status=USAGE)

    @classmethod
    def refused(cls, message: str) -> MountError:
        """This user may not."""
        return cls(message, status=REFUSED)

    @classmethod
    def unavailable(cls, message: str) -> MountError:
        """The system cannot."""
        return cls(message, status=UNAVAILABLE)

    @classmethod
    def at(cls, path: Path, error: OSError) -> MountError:
        """A system call about a path failed."""
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"{path} cannot be a mount point ({reason}). Choose another place."
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return cls.refused(message)
        return cls.usage(message)
