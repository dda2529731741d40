"""A process that puts load on an HTTP server: keep-alive clients on one event loop.

Takes a line of JSON: host, port, clients, requests (a client), method, path, headers, and body,
in which `{n}` becomes the number of the request. Answers requests a second and the percentiles of
their times in milliseconds; any status but 200 is an error.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial
from typing import Any, cast

import uvloop


class Client(asyncio.Protocol):
    """One connection that sends its next request when the last is answered."""

    def __init__(self, job: dict[str, Any], first: int, done: asyncio.Future[None]) -> None:
        self._job, self._number, self._done = job, first, done
        self._last = first + job["requests"]
        self._buffer = b""
        self._started = 0.0
        self.times: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def _send(self) -> None:
        job = self._job
        body = job["body"].replace("{n}", f"{self._number:07d}").encode()
        lines = [f"{job['method']} {job['path']} HTTP/1.1", f"host: {job['host']}"]
        lines += [f"{name}: {value}" for name, value in job["headers"].items()]
        if body:
            lines += ["content-type: application/json", f"content-length: {len(body)}"]
        self._started = time.perf_counter()
        self._transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(rest) < length:
            return
        self._buffer = b""
        self.times.append((time.perf_counter() - self._started) * 1e3)
        if not head.startswith(b"HTTP/1.1 200"):
            self._fail(f"{head[:40]!r} {rest[:150]!r}")
            return
        self._number += 1
        if self._number < self._last:
            self._send()
        else:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)

    def _fail(self, sentence: str) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(sentence))
        self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(ConnectionError(f"connection lost: {error}"))


def _same(client: Client) -> Client:
    return client


async def load(job: dict[str, Any]) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    clients, waiting = [], []
    started = time.perf_counter()
    for position in range(job["clients"]):
        done = loop.create_future()
        client = Client(job, job["first"] + position * job["requests"], done)
        await loop.create_connection(partial(_same, client), job["host"], job["port"])
        clients.append(client)
        waiting.append(done)
    await asyncio.gather(*waiting)
    seconds = time.perf_counter() - started
    times = sorted(moment for client in clients for moment in client.times)
    middle, late = times[len(times) // 2], times[len(times) * 99 // 100]
    return {"per_second": len(times) / seconds, "p50_ms": middle, "p99_ms": late}


def main() -> None:
    job = json.loads(sys.stdin.readline())
    try:
        print(json.dumps(uvloop.run(load(job))))
    except (OSError, RuntimeError) as error:
        print(json.dumps({"error": str(error)}))


if __name__ == "__main__":
    main()
