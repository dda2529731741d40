"""A place in the tree becomes a mount, and stops being one.

Three ways: mount(2) on a `/dev/fuse` descriptor of our own (root, or root of a user namespace),
the setuid helper `fusermount3` (ordinary users), or a descriptor that a privileged helper mounted
and passed on, named `/dev/fd/N`. The options are those of the kernel's `fs/fuse/inode.c`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import socket
import stat
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

from fuse_mount.errors import MountError

DEVICE = "/dev/fuse"
FSTYPE = "fuse.memstore"
MAX_READ = 256 * 1024
PROBE_S = 3.0
"""How long a mount may take to answer before it counts as hanging."""

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOATIME = 1, 2, 4, 1024
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8
_INHERITED = re.compile(r"/dev/fd/(\d+)")
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Options:
    """What the kernel is told. `name` shows as `memstore:<name>` in `mount` and `df`."""

    name: str
    read_only: bool
    allow_other: bool


@dataclass(slots=True)
class Mountpoint:
    """A mount being served: its descriptor, and what is to be undone at the end."""

    fd: int
    path: Path | None
    """None when the descriptor was inherited: whoever mounted it unmounts it."""
    device: str = ""
    created: list[Path] = field(default_factory=list)
    """Directories made for it, outermost first."""

    def mounted(self) -> bool:
        """Whether this very mount is still in the tree."""
        return self.path is not None and device_at(self.path) == self.device

    def unmount(self) -> bool:
        """Take it out of the tree; True when it was busy and is only detached: open files go on
        until they are closed. Nothing to do: False."""
        if self.path is None or not self.mounted():
            return False
        try:
            unmount(self.path)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            unmount(self.path, lazy=True)
            return True
        return False

    def remove_created(self) -> None:
        """Remove the directories that were made for the mount, as far as they are empty."""
        for path in reversed(self.created):
            try:
                path.rmdir()
            except OSError:
                return


def mount(place: str, options: Options) -> Mountpoint:
    """Mount at a place, which may be missing, stale, or an inherited `/dev/fd/N`; MountError."""
    fd = inherited(place)
    if fd is not None:
        os.set_inheritable(fd, False)
        return Mountpoint(fd=fd, path=None)
    path = canonical(place)
    created = prepare(path)
    try:
        fd = _mount_directly(path, options)
        if fd is None:
            fd = _mount_by_helper(path, options)
    except BaseException:
        Mountpoint(fd=-1, path=path, created=created).remove_created()
        raise
    return Mountpoint(fd=fd, path=path, device=device_at(path), created=created)


def canonical(place: str) -> Path:
    """An absolute path without links above its last name, which is not looked at: it may hang."""
    path = Path(place).absolute()
    return path if path.parent == path else Path(os.path.realpath(path.parent)) / path.name


def abort(point: Mountpoint) -> None:
    """End a connection whose files are still in use, so that its loop ends: they get ENOTCONN."""
    minor = point.device.rpartition(":")[2]
    try:
        Path(f"/sys/fs/fuse/connections/{minor}/abort").write_text("1")
    except OSError:
        return  # not mounted there, or not permitted: closing the descriptor ends it as well


def prepare(path: Path) -> list[Path]:
    """Make a place ready to be mounted on: an empty directory, made when missing; the directories
    made. A mount whose driver has died is removed first. MountError says what is in the way."""
    if mounted_type(path) == FSTYPE:
        if not stale(path):
            raise MountError.usage(
                f"{path} is mounted already. Run `memstore umount {path}` first, "
                "or choose another place."
            )
        clear_stale(path)
    try:
        information = path.lstat()
    except FileNotFoundError:
        return _make(path)
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise MountError.at(path, error) from None
        clear_stale(path)
        return prepare(path)
    if not stat.S_ISDIR(information.st_mode):
        raise MountError.usage(
            f"{path} is not a directory; a mount point is an empty one. Choose another place."
        )
    try:
        occupied = next(os.scandir(path), None) is not None
    except OSError as error:
        raise MountError.at(path, error) from None
    if occupied:
        raise MountError.usage(
            f"{path} is not empty, and a mount would hide what is in it. "
            "Empty it or choose another place."
        )
    return []


def stale(path: Path) -> bool:
    """Whether the mount at a path has lost its driver. One that hangs has not.

    statfs(2) is asked: attributes the kernel would still answer from its memory.
    """
    answers: list[int] = []

    def ask() -> None:
        try:
            os.statvfs(path)
            answers.append(0)
        except OSError as error:
            answers.append(error.errno or 0)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PROBE_S)
    return answers == [errno.ENOTCONN]


def clear_stale(path: Path) -> None:
    """Remove a mount that nobody serves any more; MountError when that is not allowed."""
    try:
        unmount(path, lazy=True)
    except OSError as error:
        raise MountError.refused(
            f"{path} holds a dead mount that could not be removed ({_reason(error)}). "
            f"Run `umount -l {path}` as root."
        ) from None


def unmount(path: Path, *, lazy: bool = False) -> None:
    """umount2(2), or `fusermount3 -u` where that is not permitted. OSError; EBUSY when in use."""
    flags = _UMOUNT_NOFOLLOW | (_MNT_DETACH if lazy else 0)
    if _libc.umount2(os.fsencode(path), flags) == 0:
        return
    code = ctypes.get_errno()
    helper = _helper()
    if code != errno.EPERM or helper is None:
        raise OSError(code, os.strerror(code), str(path))
    run = subprocess.run(
        [helper, "-u", *(["-z"] if lazy else []), "--", str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if run.returncode:
        code = errno.EBUSY if "busy" in run.stderr else errno.EPERM
        raise OSError(code, run.stderr.strip() or os.strerror(code), str(path))


@dataclass(frozen=True, slots=True)
class Mounted:
    """One line of /proc/self/mountinfo."""

    device: str
    path: Path
    fstype: str
    source: str
    read_only: bool


def mounts() -> list[Mounted]:
    """The mounts of this namespace in the order they were made (proc(5), mountinfo)."""
    found = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        fields = line.split(b" ")
        fstype, source = fields[fields.index(b"-") + 1 :][:2]
        found.append(
            Mounted(
                device=fields[2].decode(),
                path=Path(os.fsdecode(_unescape(fields[4]))),
                fstype=fstype.decode(),
                source=os.fsdecode(_unescape(source)),
                read_only=b"ro" in fields[5].split(b","),
            )
        )
    return found


def device_at(path: Path) -> str:
    """The `major:minor` of the mount that is on top at a path; empty when it is no mount point."""
    found = [each.device for each in mounts() if each.path == path]
    return found[-1] if found else ""


def mounted_type(path: Path) -> str:
    """The type of the mount that is on top at a path; empty when it is no mount point."""
    found = [each.fstype for each in mounts() if each.path == path]
    return found[-1] if found else ""


def _unescape(field: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), field)


def _make(path: Path) -> list[Path]:
    """Make a directory and its missing parents; the ones made, outermost first."""
    missing = [path]
    while not os.path.lexists(missing[-1].parent):
        missing.append(missing[-1].parent)
    created: list[Path] = []
    for each in reversed(missing):
        try:
            each.mkdir(mode=0o755)
        except OSError as error:
            Mountpoint(fd=-1, path=path, created=created).remove_created()
            raise MountError.at(each, error) from None
        created.append(each)
    return created


def _open_device() -> int:
    try:
        return os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        reason = "does not exist"
    except OSError as error:
        if error.errno not in (errno.ENXIO, errno.ENODEV):
            raise
        reason = "has no driver behind it"
    raise MountError.unavailable(
        f"{DEVICE} {reason}: this system cannot mount. Load the module (`modprobe fuse`), or give "
        "the container the device and the right to mount (`--device /dev/fuse --cap-add SYS_ADMIN`)."
    )


def _mount_directly(path: Path, options: Options) -> int | None:
    """mount(2); None when this process may not, so that the helper can be tried."""
    try:
        fd = _open_device()
    except PermissionError:
        return None
    data = f"fd={fd},rootmode=40000,user_id={os.geteuid()},group_id={os.getegid()}"
    data += f",default_permissions,max_read={MAX_READ}"
    if options.allow_other:
        data += ",allow_other"
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOATIME | (_MS_RDONLY if options.read_only else 0)
    source = f"memstore:{options.name}".encode()
    if _libc.mount(source, os.fsencode(path), FSTYPE.encode(), flags, data.encode()) == 0:
        return fd
    code = ctypes.get_errno()
    os.close(fd)
    if code == errno.EPERM:
        return None
    if code == errno.ENODEV:
        raise MountError.unavailable("This kernel has no FUSE. Load the module (`modprobe fuse`).")
    raise MountError.at(path, OSError(code, os.strerror(code)))


def _helper() -> str | None:
    return shutil.which("fusermount3") or shutil.which("fusermount")


def _mount_by_helper(path: Path, options: Options) -> int:
    """`fusermount3` mounts and passes the descriptor back over a socket (`_FUSE_COMMFD`)."""
    helper = _helper()
    if helper is None:
        raise MountError.refused(
            "This process may not mount, and fusermount3 is not installed. Install the package "
            "fuse3, run as root, or give the container CAP_SYS_ADMIN."
        )
    words = ["default_permissions", "nosuid", "nodev", "noatime", f"max_read={MAX_READ}"]
    words += ["ro"] if options.read_only else []
    words += ["allow_other"] if options.allow_other else []
    words += [f"fsname=memstore:{options.name}", "subtype=memstore"]
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = subprocess.Popen(
                [helper, "-o", ",".join(words), "--", str(path)],
                env={**os.environ, "LC_ALL": "C", "_FUSE_COMMFD": str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        _, complaint = process.communicate()
    if not descriptors:
        reason = complaint.strip().splitlines()[-1] if complaint.strip() else "no reason was given"
        raise MountError.refused(
            f"{path} could not be mounted ({reason}). Check that you own the directory and may "
            "use /dev/fuse; allow_other needs user_allow_other in /etc/fuse.conf."
        )
    os.set_inheritable(descriptors[0], False)
    return descriptors[0]


def inherited(place: str) -> int | None:
    """The descriptor that `/dev/fd/N` names, None for another place; MountError when N is no
    `/dev/fuse`."""
    named = _INHERITED.fullmatch(place)
    if named is None:
        return None
    fd = int(named[1])
    try:
        device = os.fstat(fd)
    except OSError:
        raise MountError.usage(
            f"{place} is not open in this process; pass the mounted /dev/fuse descriptor on."
        ) from None
    if not stat.S_ISCHR(device.st_mode) or device.st_rdev != os.makedev(10, 229):
        raise MountError.usage(f"{place} is not a /dev/fuse descriptor.")
    return fd


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
