"""Where the service listens: `HOST:PORT`, `[IPv6]:PORT` or `unix:PATH`, bound before all else."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from memstore.model.errors import Invalid, Unavailable

_UNIX = "unix:"
_PROBE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Address:
    """One place to listen: a host and a port (0: any free one), or a Unix socket's path."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        if self.path or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse(text: str) -> Address:
    """The address of a text; Invalid when it is none."""
    if text.startswith(_UNIX) and text != _UNIX:
        return Address(path=str(Path(text.removeprefix(_UNIX)).absolute()))
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not (host and colon and port.isascii() and port.isdecimal() and int(port) < 65536):
        raise Invalid(
            f"{text!r} is no place to listen at: give HOST:PORT (127.0.0.1:8787) or unix:PATH."
        )
    return Address(host, int(port))


def bind(addresses: Sequence[Address]) -> list[socket.socket]:
    """A bound socket for each address, all or none. Unavailable when one cannot be had."""
    bound: list[socket.socket] = []
    try:
        for address in addresses:
            bound.append(_bind_unix(address.path) if address.path else _bind_tcp(address))
    except BaseException:
        release(bound, addresses[: len(bound)])
        raise
    return bound


def release(sockets: Sequence[socket.socket], addresses: Sequence[Address]) -> None:
    """Close bound sockets, open or not, and remove the files of their addresses."""
    for bound, address in zip(sockets, addresses, strict=True):
        bound.close()
        if address.path:
            Path(address.path).unlink(missing_ok=True)


def url_of(bound: socket.socket) -> str:
    """The base URL of a bound socket, with its real port."""
    name = bound.getsockname()
    if bound.family == socket.AF_UNIX:
        return f"http+unix://{quote(name, safe='')}"
    host = f"[{name[0]}]" if bound.family == socket.AF_INET6 else name[0]
    return f"http://{host}:{name[1]}"


def _bind_tcp(address: Address) -> socket.socket:
    """A TCP socket at a host and port."""
    try:
        family, _, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise Invalid(
            f"{address.host!r} is not a host of this machine; give --listen another."
        ) from None
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(place)
    except OSError as error:
        bound.close()
        raise Unavailable(_why(error, f"{address.host}:{address.port}")) from None
    return bound


def _bind_unix(path: str) -> socket.socket:
    """A Unix socket that only its owner may open. One that a dead service left is replaced."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_dead(path)
        before = os.umask(0o177)
        try:
            bound.bind(path)
        finally:
            os.umask(before)
    except OSError as error:
        bound.close()
        raise Unavailable(_why(error, path)) from None
    return bound


def _remove_dead(path: str) -> None:
    """Remove a socket nobody answers at; OSError(EADDRINUSE) when somebody does."""
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise OSError(errno.EEXIST, "a file that is no socket is there")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
            return
    raise OSError(errno.EADDRINUSE, "in use")


def _why(error: OSError, where: str) -> str:
    """Why an address cannot be had, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use: stop what listens there, or choose another with --listen."
    if error.errno == errno.EACCES:
        return f"{where} may not be listened at by this user: choose another with --listen."
    return f"{where} cannot be listened at ({error.strerror}): choose another with --listen."
