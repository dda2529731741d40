"""Waiting for a condition instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_SECONDS = 20.0


def until(condition: Callable[[], object], what: str) -> None:
    """Return when the condition holds; fail when it does not for a long time."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < end, f"still waiting for {what}"
        time.sleep(0.005)


def together(work: Callable[[int], object], count: int) -> list[object]:
    """Run `work(0..count-1)` in threads that start at once; each result, or what it raised."""
    import threading

    barrier = threading.Barrier(count)
    results: list[object] = [None] * count

    def run(number: int) -> None:
        barrier.wait(DEADLINE_SECONDS)
        try:
            results[number] = work(number)
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive(), "a thread did not end"
    return results
