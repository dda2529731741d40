"""The process that serves a mount, run by `fuse_mount.supervisor` and told by a pipe.

Standard input holds JSON: the `Spec`, the numbers of the inherited descriptors, and the mount to
go on with when an earlier driver died.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

from fuse_mount.errors import MountError
from fuse_mount.keeping import Keeper
from fuse_mount.mount import CannotGoOn, Ends, run
from fuse_mount.spec import Spec
from fuse_mount.supervisor import GIVE_UP
from memstore.cli.exits import status_of
from memstore.model.errors import MemstoreError


def main() -> int:
    """Serve one mount; the exit status."""
    told = json.loads(sys.stdin.buffer.read())
    spec = Spec(**told["spec"])
    foreground = bool(told["foreground"])
    log_to(spec.log)
    ends = Ends()
    ready = False

    def serving(place: str) -> None:
        nonlocal ready
        ready = True
        keeper.tell({"ready": place})
        if not foreground:
            _give_up_terminal()

    with ends.on_signals(hangup=foreground):
        keeper = Keeper(told)
        try:
            failed = run(spec, serving, ends, keeper)
        except CannotGoOn as error:
            logging.getLogger("memstore.mount").error("%s", error)
            return GIVE_UP
        except (MountError, MemstoreError) as error:
            status = error.status if isinstance(error, MountError) else status_of(error)
            keeper.tell({"error": error.message, "status": status})
            return status
    if failed and foreground:
        listed = ", ".join(failed)
        print(f"memstore: Not everything could be saved: {listed}. See the log.", file=sys.stderr)
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


def _give_up_terminal() -> None:
    """Let go of the pipes, so that whoever reads them sees their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main())
