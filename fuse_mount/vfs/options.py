"""The options of one mount."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LITTER = (
    ".*.sw?",
    ".*.sw?x",
    "4913",
    ".#*",
    "#*#",
    ".goutputstream-*",
    ".nfs*",
    ".fuse_hidden*",
    ".DS_Store",
    "._*",
    ".~lock.*#",
)
"""Names that never reach the store: swap, lock and desktop files; vim probes with `.f.swpx`."""

TEMPORARY = (
    "*.tmp",
    ".tmp*",
    "*~",
    "tmp????????",
    "sed??????",
    "XX??????",
    ".*.??????",
    "*.o??????",
)
"""Names held back at close, since a rename usually follows: of sed -i, perl -i, rsync, patch..."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a mount behaves; times in seconds, sizes in bytes.

    `conflict` decides when two edits of one text cannot be merged: `fail` (ESTALE, the losing
    text kept beside the file) or `overwrite` (the last writer wins). `temp_hold_s` is how long
    a temporary name waits after its last close for the rename that usually follows. `retry_s`
    bounds the wait of a commit while the server is away. `poll_interval_s` applies where the
    server has no change feed. `versions` shows every version below `.versions` at the root.
    """

    uid: int = 0
    gid: int = 0
    read_only: bool = False
    conflict: Literal["fail", "overwrite"] = "fail"
    cache_bytes: int = 256 * 1024 * 1024
    scratch_bytes: int = 256 * 1024 * 1024
    poll_interval_s: float = 2.0
    temp_hold_s: float = 5.0
    retry_s: float = 30.0
    versions: bool = False
    litter: tuple[str, ...] = LITTER
    temporary: tuple[str, ...] = TEMPORARY
