"""The master key: 32 bytes from a file, the environment or a command.

A file's key is replaced in three steps, each whole or not done: the new key is written beside it
(`master.key.new`), the key store is re-wrapped in one transaction, the new file takes the old
one's name. Whoever finds the key store under the key of the `.new` file finishes the third step.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memstore.model.errors import Invalid, Unavailable
from memstore.settings import KeySource
from memstore.storage.crypto import KEY_BYTES, new_key

COMMAND_SECONDS = 30
"""How long the command that prints the key may take."""


def mark_of(key: bytes) -> bytes:
    """What tells one master key from another, and tells nothing of it."""
    return hashlib.sha256(b"memstore master key\0" + key).digest()[:16]


def load(source: KeySource) -> bytes | None:
    """The key; None when its file is not there. Unavailable or Invalid says what to mend."""
    if source.master:
        return _parsed(source.master, "MEMSTORE_MASTER_KEY")
    if source.command:
        return _parsed(_said(source.command), "What MEMSTORE_MASTER_KEY_COMMAND printed")
    return read(source.master_file)


def read(file: Path) -> bytes | None:
    """The key in a file; None when there is no such file."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(
            f"The master key {file} cannot be read ({type(error).__name__})."
        ) from None
    return _parsed(text, f"The content of {file}")


def make(file: Path) -> bytes:
    """A new key in a file of mode 0600, whole and on disk; the one there is when another was first."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(draft, new_key())
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        sync_folder(file.parent)
    except OSError as error:
        raise Unavailable(f"The master key {file} cannot be written: {error.strerror}.") from None
    found = read(file)
    if found is None:
        raise Unavailable(f"The master key {file} cannot be read.")
    return found


def write(file: Path, key: bytes) -> None:
    """Put a key into a file of mode 0600, on disk."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(handle, key.hex().encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)


def successor(file: Path) -> Path:
    """Where the next key waits until the key store is under it."""
    return file.with_name(file.name + ".new")


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Keep other processes from replacing the file meanwhile."""
    handle = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def promote(file: Path) -> None:
    """Let the waiting key take the name."""
    with suppress(FileNotFoundError):
        successor(file).replace(file)
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Make names of files durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _parsed(text: str, what: str) -> bytes:
    """The key of 64 hex digits; Invalid, without a digit of it, for anything else."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise Invalid(f"{what} is not a master key: 64 hex digits.")
    return key


def _said(command: str) -> str:
    """What the command prints."""
    try:
        done = subprocess.run(
            shlex.split(command), capture_output=True, timeout=COMMAND_SECONDS, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise Unavailable(
            f"MEMSTORE_MASTER_KEY_COMMAND did not give the master key ({type(error).__name__})."
        ) from None
    if done.returncode != 0:
        raise Unavailable(f"MEMSTORE_MASTER_KEY_COMMAND ended with status {done.returncode}.")
    return done.stdout.decode(errors="replace")
