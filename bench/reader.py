"""A process that reads one file again and again and checks what it sees.

The file holds numbered texts: `text(n)` is `n` on every line, and how many lines follows from
`n`, so that a torn read (lines of two texts, a cut tail, padding) shows itself. Takes
`{"path", "last", "deadline_s"}` as a line of JSON; answers when each number was first seen
(seconds of the monotonic clock) and how many reads were torn or went back. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import time


def text(number: int) -> str:
    """The text with this number, between 20 bytes and 4 KB."""
    return f"number {number:08d}\n" * (1 + number * 37 % 240)


def number_of(content: bytes) -> int | None:
    """The number of a whole text; None for anything else."""
    head = content[:15]
    if head[:7] != b"number " or not head[7:].isdigit():
        return None
    number = int(head[7:])
    return number if content == text(number).encode() else None


def look(path: str, last: int, deadline_s: float, pause_s: float) -> dict[str, object]:
    """Read until the last number is seen or the time is up."""
    seen: dict[int, float] = {}
    torn = back = reads = 0
    newest = -1
    until = time.monotonic() + deadline_s
    while newest < last and time.monotonic() < until:
        descriptor = os.open(path, os.O_RDONLY)
        size = os.fstat(descriptor).st_size
        content = os.read(descriptor, 131072)
        os.close(descriptor)
        now = time.monotonic()
        reads += 1
        number = number_of(content)
        if number is None:
            torn += 1
        elif number < newest:
            back += 1
        elif number > newest:
            newest = number
            seen[number] = now
            if size > 131072:
                torn += 1
        time.sleep(pause_s)
    return {"seen": seen, "torn": torn, "back": back, "reads": reads}


def main() -> None:
    job = json.loads(sys.stdin.readline())
    print("ready", flush=True)
    answer = look(job["path"], job["last"], job["deadline_s"], job["pause_s"])
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
