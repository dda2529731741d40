"""Peers that misbehave on purpose: a real socket, and a script for each connection."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

Script = Callable[[socket.socket], None]

DEADLINE_SECONDS = 20.0


class Scripted:
    """Accepts connections and plays one script on each, the last one for all that follow."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(self.connections, len(self._scripts) - 1)]
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._play, args=(script, connection), daemon=True).start()

    def _play(self, script: Script, connection: socket.socket) -> None:
        try:
            script(connection)
        except OSError:
            connection.close()

    def close(self) -> None:
        """Stop listening and close every connection."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(DEADLINE_SECONDS)
        for connection in self._open:
            connection.close()


def read_request(connection: socket.socket) -> tuple[str, dict[str, Any] | None]:
    """The request's first line and its JSON body; empty when the client has gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return "", None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += connection.recv(65536)
    return head.split(b"\r\n")[0].decode(), json.loads(body) if body else None


def answer(status: int, body: Any, **headers: str) -> bytes:
    """The bytes of an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data
