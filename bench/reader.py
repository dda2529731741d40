"""A process that reads one file again and again and checks what it sees.

The file holds numbered texts: `text(n)` is `n` on every line, and how many lines follows from
`n`, so that a torn read (lines of two texts, a cut tail, padding) shows itself. Takes
`{"path", "last", "deadline_s"}` as a line of JSON; answers when each number was first seen
(seconds of the monotonic clock), how many reads were torn or went back, and what the first torn
ones looked like. Standard library only.
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


def describe(content: bytes, size: int, newest: int) -> str:
    """A torn read in a few words; the texts are the bench's own, so nothing private is shown."""
    heads = sorted({line[:15].decode(errors="replace") for line in content.split(b"\n") if line})
    whole = len(text(int(content[7:15]))) if content[7:15].isdigit() else 0
    nuls = content.count(b"\0")
    words = (
        f"{len(content)} bytes with {nuls} NUL, fstat said {size}, first line's text has {whole}"
    )
    return f"{words}, newest seen {newest}, lines of {', '.join(heads[:3]) or 'nothing'}"


def look(path: str, last: int, deadline_s: float, pause_s: float) -> dict[str, object]:
    """Read until the last number is seen or the time is up."""
    seen: dict[int, float] = {}
    torn = back = reads = 0
    examples: list[str] = []
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
            if len(examples) < 3:
                examples.append(describe(content, size, newest))
        elif number < newest:
            back += 1
        elif number > newest:
            newest = number
            seen[number] = now
        time.sleep(pause_s)
    return {"seen": seen, "torn": torn, "back": back, "reads": reads, "examples": examples}


def main() -> None:
    job = json.loads(sys.stdin.readline())
    print("ready", flush=True)
    answer = look(job["path"], job["last"], job["deadline_s"], job["pause_s"])
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
