"""Mounts where nobody is root: a user namespace, the setuid helper, a passed descriptor.

Each has a /dev of its own in a mount namespace, so that the machine's is not touched.
"""

from __future__ import annotations

import os
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


def _work(desk: Desk, *prefix: str) -> str:
    """Mount, write, read and unmount in a shell behind a prefix; what it printed."""
    names = f'memstore() {{ "{sys.executable}" -m memstore.cli "$@"; }}\n'
    desk.path.chmod(0o777)
    for above in desk.path.parents:
        if above.stat().st_uid == os.geteuid() and above.stat().st_mode & 0o111 != 0o111:
            above.chmod(0o755)  # pytest's own folders: another user has to reach the mount point
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


def test_a_descriptor_that_is_none_is_refused(desk: Desk) -> None:
    """A number that is not a mounted /dev/fuse is a mistake of usage."""
    for number in ("0", "999"):
        refused = desk.run("mount", desk.store_id, f"/dev/fd/{number}")
        assert refused.returncode == 2 and "/dev/fuse" in refused.stderr
