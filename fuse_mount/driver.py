"""The daemon behind `memstore mount`: `python -m fuse_mount.driver`, told by a pipe.

Standard input holds the `Spec` and ends. Standard output gets one JSON line: `{"ready": place}`
or `{"error": sentence, "status": n}`; then it is given up, as a daemon's should be.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from pathlib import Path

from fuse_mount.errors import MountError
from fuse_mount.mount import Ends, run
from fuse_mount.spec import Spec
from memstore.cli.exits import status_of
from memstore.model.errors import MemstoreError


def main() -> int:
    """Serve one mount; the exit status."""
    spec = Spec.loads(sys.stdin.buffer.read())
    log_to(spec.log)
    os.chdir("/")
    ends = Ends()
    told = False

    def ready(place: str) -> None:
        nonlocal told
        told = True
        _tell({"ready": place})
        _give_up_terminal()

    try:
        with ends.on_signals(hangup=False):
            failed = run(spec, ready, ends)
    except (MountError, MemstoreError) as error:
        status = error.status if isinstance(error, MountError) else status_of(error)
        if told:
            logging.getLogger("memstore.mount").error("%s", error.message)
        else:
            _tell({"error": error.message, "status": status})
        return status
    return 1 if failed else 0


def log_to(path: str) -> None:
    """Log to a file, made when missing; to standard error when none is named or it cannot be."""
    handler: logging.Handler = logging.StreamHandler()
    if path:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handler = logging.FileHandler(path)
        except OSError:
            handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _tell(message: dict[str, object]) -> None:
    """To the command that waits; it may be gone."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")


def _give_up_terminal() -> None:
    """Let go of the pipes, so that whoever reads them sees their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main())
