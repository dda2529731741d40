"""Which names are litter, which are temporary, and which are for keeps."""

from __future__ import annotations

import fnmatch
import re
from typing import Literal

from fuse_mount.vfs.options import Options

Kind = Literal["memory", "litter", "temporary"]

_LOSER = re.compile(r".+\.conflict-\d{8}T\d{6}(\.\d+)?Z(-\d+)?")


def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    joined = "|".join(fnmatch.translate(pattern) for pattern in patterns)
    return re.compile(joined or r"(?!)")


class Scratch:
    """Judges names by the mount's options."""

    __slots__ = ("_litter", "_temporary")

    def __init__(self, options: Options) -> None:
        self._litter = _matcher(options.litter)
        self._temporary = _matcher(options.temporary)

    def kind(self, name: str) -> Kind:
        """`litter` is local to the mount, `temporary` is held back, `memory` is committed.

        A name under which a losing text was kept is local too, so that it can be edited.
        """
        if self._litter.match(name) or _LOSER.fullmatch(name):
            return "litter"
        return "temporary" if self._temporary.match(name) else "memory"
