"""Exit statuses: one closed table from a refusal's code. `tests/house` proves it complete."""

from __future__ import annotations

from memstore.model.errors import MemstoreError

DONE = 0
UNEXPECTED = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4
REFUSED = 5
UNAVAILABLE = 6
INVALID = 7
INTERRUPTED = 130
PIPE_CLOSED = 141
"""What a shell shows for a program that SIGPIPE ended."""

STATUS: dict[str, int] = {
    "error": UNEXPECTED,
    "not_found": NOT_FOUND,
    "path_conflict": CONFLICT,
    "precondition_failed": CONFLICT,
    "conflict": CONFLICT,
    "invalid": INVALID,
    "invalid_path": INVALID,
    "path_too_long": INVALID,
    "invalid_content": INVALID,
    "content_too_large": INVALID,
    "store_full": REFUSED,
    "store_archived": REFUSED,
    "head_not_redactable": REFUSED,
    "request_too_large": INVALID,
    "unauthenticated": REFUSED,
    "forbidden": REFUSED,
    "rate_limited": UNAVAILABLE,
    "unavailable": UNAVAILABLE,
    "not_supported": REFUSED,
}


class Stop(Exception):
    """End the command with a status and one sentence on standard error."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status = status
        super().__init__(sentence)


def status_of(refusal: MemstoreError) -> int:
    """The exit status that stands for a refusal."""
    return STATUS.get(refusal.code, UNEXPECTED)
