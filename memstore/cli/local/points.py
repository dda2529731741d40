"""Mount points: what stands at a path, and making it ready to be mounted on."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

FUSE_DEVICE = Path("/dev/fuse")
NO_FUSE = (
    "/dev/fuse is missing, so the stores are not mounted (the service is up): load the module with "
    "`modprobe fuse`, or give this container the device with `--device /dev/fuse`."
)


class Unusable(Exception):
    """Nothing can be mounted there now; the sentence says why and what to do."""


def mounted(path: Path) -> bool:
    """Whether something is mounted exactly there, by the kernel's own table."""
    wanted = os.path.realpath(path.parent) + "/" + path.name
    return any(point == wanted for point, _ in table())


def table() -> list[tuple[str, str]]:
    """Every mount point with its file system's type (proc(5), mountinfo)."""
    found = []
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) > 4 and right:
            found.append((_unescaped(fields[4]), right.split(" ")[0]))
    return found


def _unescaped(text: str) -> str:
    """Octal escapes of the kernel's table: blanks, newlines, backslashes."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def prepare(path: Path) -> bool:
    """Make the directory usable as a mount point; whether it had to be made. Unusable otherwise."""
    made = False
    for _ in range(2):
        try:
            path.mkdir(parents=True)
            made = True
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno == errno.ENOTCONN:
                detach(path)
                continue
            raise Unusable(
                f"{path} cannot be made ({error.strerror}): choose another --root."
            ) from None
        try:
            entries = os.scandir(path)
            with entries:
                empty = next(entries, None) is None
        except NotADirectoryError:
            raise Unusable(
                f"{path} is a file, not a directory: move it away, or choose another --root."
            ) from None
        except OSError as error:
            if error.errno == errno.ENOTCONN:
                detach(path)
                continue
            raise Unusable(f"{path} cannot be listed ({error.strerror}).") from None
        if mounted(path):
            raise Unusable(f"{path} has something mounted on it: `umount {path}` first.")
        if not empty:
            raise Unusable(
                f"{path} is not empty, and a mount would hide what is there: "
                "move it away, or choose another --root."
            )
        return made
    raise Unusable(f"{path} is a mount whose driver is gone: `umount -l {path}` as root.")


def detach(path: Path) -> None:
    """Take a mount away, also one whose driver is gone or that is busy."""
    for command in (["umount", "-l", str(path)], ["fusermount3", "-uz", str(path)]):
        try:
            done = subprocess.run(command, capture_output=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return


def remove(path: Path) -> None:
    """Remove a directory that was made for a mount, if it is empty."""
    try:
        path.rmdir()
    except OSError:
        return
