"""A process that changes a store without pause and prints each change once it is acknowledged.

Usage: python -m tests.support.writer_child DATABASE_URL STORE_ID SEED THREADS
A line is `operation memory_id version_id sha256`, `-` for what does not apply. A database that
does not answer is told as `unavailable - - -`, and the thread goes on with memories of its own.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

from memstore.backend import Backend
from memstore.model.errors import Unavailable
from memstore.model.memories import Memory
from memstore.service import Service


def go_on(backend: Backend, store_id: str, name: str, seed: int) -> None:
    """Change random memories for ever, in a new folder after each outage."""
    outages = 0
    while True:
        try:
            work(backend, store_id, f"{name}-{outages}", seed + 1000 * outages)
        except Unavailable:
            outages += 1
            say("unavailable", "-")
            time.sleep(0.05)


def work(backend: Backend, store_id: str, name: str, seed: int) -> None:
    """Change random memories of this thread's own folder for ever."""
    chance = random.Random(seed)
    own: list[Memory] = []
    number = 0
    while True:
        number += 1
        text = name + "x" * chance.randrange(3000)
        dice = chance.random()
        if not own or dice < 0.5:
            path = f"/{name}/{number}"
            memory = backend.create_memory(store_id, path=path, content=text)
            own.append(memory)
            say("created", memory.id, memory.version_id, memory.content_sha256)
        elif dice < 0.8:
            index = chance.randrange(len(own))
            memory = own[index]
            before = memory.version_id
            path = f"/{name}/r{number}" if chance.random() < 0.3 else None
            memory = backend.update_memory(store_id, memory.id, content=text, path=path)
            own[index] = memory
            if memory.version_id == before:
                continue
            say("modified", memory.id, memory.version_id, memory.content_sha256)
            if chance.random() < 0.2:
                backend.redact_version(store_id, before)
                say("redacted", memory.id, before)
        else:
            memory = own.pop(chance.randrange(len(own)))
            backend.delete_memory(store_id, memory.id)
            say("deleted", memory.id)


def say(operation: str, memory_id: str, version_id: str = "-", sha256: str = "-") -> None:
    """Tell the parent what was acknowledged, in one write that threads cannot mix."""
    os.write(1, f"{operation} {memory_id} {version_id} {sha256}\n".encode())


def main() -> None:
    """Open the database and begin."""
    url, store_id, seed, threads = sys.argv[1:]
    service = Service(url, max_memories=10**9, max_bytes=10**12)
    backend = service.backend_for(service.operator())
    for number in range(int(threads)):
        name = f"s{seed}-{number}"
        arguments = (backend, store_id, name, int(seed) * 100 + number)
        threading.Thread(target=go_on, args=arguments, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
