"""Mounts where nobody is root: a user namespace, the setuid helper, a passed descriptor.

Each has a /dev of its own in a mount namespace, so that the machine's is not touched.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from fuse_mount.kernel import mounting
from tests.mount.conftest import COMMAND, WAIT_SECONDS, Desk

NOBODY = 65534
OWN_DEV = """
mount -t tmpfs none /dev && mknod -m 666 /dev/fuse c 10 229 && mknod -m 666 /dev/null c 1 3 &&
exec "$@"
"""
AS_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search"),
)
"""An ordinary user who may read every file, for the interpreter may lie in somebody's home."""
WORK = """
set -e
memstore mount "$STORE" "$PLACE" "$@"
echo "written inside" > "$PLACE/a.md"
cat "$PLACE/a.md"
grep " $PLACE " /proc/self/mountinfo
memstore umount "$PLACE"
! grep " $PLACE " /proc/self/mountinfo
"""


def _open_to_others(path: Path) -> None:
    """Let every user make a mount point here."""
    path.chmod(0o777)
    for above in path.parents:
        if above.stat().st_uid == os.geteuid() and above.stat().st_mode & 0o111 != 0o111:
            above.chmod(0o755)  # pytest's own folders: another user has to reach the mount point


def _work(desk: Desk, *prefix: str) -> str:
    """Mount, write, read and unmount in a shell behind a prefix; what it printed."""
    names = f'memstore() {{ "{sys.executable}" -m memstore.cli "$@"; }}\n'
    _open_to_others(desk.path)
    done = subprocess.run(
        [*prefix, "sh", "-c", names + WORK, "sh"],
        env={**desk.environment, "STORE": desk.store_id, "PLACE": str(desk.place)},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        cwd="/",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert desk.texts() == {"/a.md": "written inside\n"}
    return done.stdout


def test_root_of_a_user_namespace(desk: Desk) -> None:
    """`unshare -Umr` is enough to mount, without a helper."""
    assert "written inside" in _work(desk, "unshare", "-Umr")


def test_an_ordinary_user_mounts_by_the_helper(desk: Desk) -> None:
    """Through fusermount3, whose mount other users cannot enter."""
    said = _work(desk, "unshare", "-m", "sh", "-c", OWN_DEV, "sh", *AS_NOBODY)
    assert f"user_id={NOBODY}" in said and "allow_other" not in said


def test_a_passed_descriptor_needs_no_rights(desk: Desk) -> None:
    """A helper mounts and passes the descriptor; the driver serves it without any privilege."""
    point = mounting.mount(str(desk.place), mounting.Options("notes", False, allow_other=True))
    driver = subprocess.Popen(
        [*AS_NOBODY, *COMMAND, "mount", desk.store_id, f"/dev/fd/{point.fd}", "--foreground"],
        env=desk.environment,
        pass_fds=[point.fd],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    desk.running.append(driver)
    os.close(point.fd)
    assert driver.stdout is not None and driver.stderr is not None
    line = driver.stdout.readline()
    assert line.startswith("mounted "), line + driver.stderr.read()
    assert "CapEff:\t0000000000000004" in Path(f"/proc/{driver.pid}/status").read_text()
    (desk.place / "a.md").write_text("through the passed descriptor\n")
    assert desk.texts() == {"/a.md": "through the passed descriptor\n"}
    mounting.unmount(desk.place)
    driver.communicate(timeout=WAIT_SECONDS)
    assert driver.returncode == 0
    point.remove_created()


def test_a_container_is_served_a_prepared_mount(desk: Desk) -> None:
    """`memstore prepare` mounts; namespaces of their own, no capabilities and no new privileges
    are enough to serve it, and to come back there after a kill."""
    without = ("setpriv", "--no-new-privs", "--bounding-set=-all,+dac_read_search", *AS_NOBODY[1:])
    container = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--ipc", "--uts")
    serve = (*COMMAND, "mount", desk.store_id, "{}", "--foreground")
    helper = subprocess.Popen(
        [*COMMAND, "prepare", str(desk.place), "--", *container, *without, *serve],
        env=desk.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    desk.running.append(helper)
    assert helper.stdout is not None and helper.stderr is not None
    line = helper.stdout.readline()
    assert line.startswith("mounted "), line + helper.stderr.read()
    (desk.place / "a.md").write_text("through the container\n")
    file = os.open(desk.place / "a.md", os.O_RDONLY)
    driver = _last_child(helper.pid)
    status = Path(f"/proc/{driver}/status").read_text()
    assert "CapEff:\t0000000000000004" in status and "NoNewPrivs:\t1" in status
    os.kill(driver, signal.SIGKILL)
    assert os.pread(file, 100, 0) == b"through the container\n"
    os.close(file)
    (desk.place / "b.md").write_text("by the next driver\n")
    assert _last_child(helper.pid) != driver
    assert desk.texts() == {"/a.md": "through the container\n", "/b.md": "by the next driver\n"}
    (desk.place / "draft.tmp").write_text("held back\n")
    os.kill(_parent(_last_child(helper.pid)), signal.SIGTERM)
    helper.communicate(timeout=WAIT_SECONDS)
    assert helper.returncode == 0 and not desk.place.exists()
    assert desk.texts()["/draft.tmp"] == "held back\n"


def test_a_prepared_mount_ends_with_its_command(desk: Desk) -> None:
    """Its exit status is told, and no mount is left; a command that is missing is said."""
    done = desk.run("prepare", str(desk.place), "--", "sh", "-c", 'test "$MEMSTORE_DEVICE" = {}')
    assert done.returncode == 0, done.stderr
    assert desk.run("prepare", str(desk.place), "--", "sh", "-c", "exit 7").returncode == 7
    missing = desk.run("prepare", str(desk.place), "--", "no-such-command")
    assert missing.returncode == 2 and "could not be run" in missing.stderr
    assert not desk.mounts() and not desk.place.exists()


def test_an_ordinary_users_mount_survives_its_driver(desk: Desk) -> None:
    """Neither fusermount3 nor a user namespace is asked again when a driver is replaced."""
    script = """
set -e
"$PYTHON" -m memstore.cli mount "$STORE" "$PLACE"
echo before > "$PLACE/a.md"
exec 3< "$PLACE/a.md"
supervisor=$("$PYTHON" -c 'import os, sys
print(os.getxattr(sys.argv[1], "user.memstore.driver").split()[0].decode())' "$PLACE")
kill -9 $(cat /proc/$supervisor/task/$supervisor/children)
read text <&3; test "$text" = before
echo after > "$PLACE/b.md"
"$PYTHON" -m memstore.cli umount "$PLACE"
"""
    for number, prefix in enumerate(
        (
            ("unshare", "-Umr"),
            ("unshare", "-m", "sh", "-c", OWN_DEV, "sh", *AS_NOBODY),
        )
    ):
        place = desk.path / f"place{number}"
        _open_to_others(desk.path)
        done = subprocess.run(
            [*prefix, "sh", "-c", script],
            env={
                **desk.environment,
                "STORE": desk.store_id,
                "PLACE": str(place),
                "PYTHON": sys.executable,
            },
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            cwd="/",
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert desk.texts() == {"/a.md": "before\n", "/b.md": "after\n"}


def _last_child(pid: int) -> int:
    """The end of a chain of processes, each the only child of the one before."""
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[0])
    return pid


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_descriptor_that_is_none_is_refused(desk: Desk) -> None:
    """A number that is not a mounted /dev/fuse is a mistake of usage."""
    for number in ("0", "999"):
        refused = desk.run("mount", desk.store_id, f"/dev/fd/{number}")
        assert refused.returncode == 2 and "/dev/fuse" in refused.stderr
