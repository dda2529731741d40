"""Failures that users of other FUSE mounts have met, tried on two real mounts of one store."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fuse_mount.kernel import mounting
from memstore.urls import connect
from tests.mount.conftest import Desk, shows
from tests.support.requirements import need
from tests.support.serving import Served
from tests.support.waiting import until

FS_IOC_GETFLAGS, FICLONE = 0x80086601, 0x40049409
UNSUPPORTED = {errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


@pytest.fixture(scope="module")
def desk(service: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One store for these tests, mounted at `one` and `two` by processes of their own."""
    need(os.geteuid() == 0 and Path(mounting.DEVICE).exists(), "root and /dev/fuse")
    path = tmp_path_factory.mktemp("reported")
    backend = connect(service.url, key=service.admin_secret)
    store = backend.create_store(name=path.name)
    backend.close()
    made = Desk(service, store.id, store.name, path)
    try:
        for name in ("one", "two"):
            done = made.run("mount", store.id, str(path / name))
            assert done.returncode == 0, done.stderr
        yield made
    finally:
        made.close()


@pytest.fixture
def here(desk: Desk, request: pytest.FixtureRequest) -> Path:
    """A directory of this test in the first mount."""
    folder = desk.path / "one" / request.node.name
    folder.mkdir()
    return folder


@pytest.fixture
def there(desk: Desk, here: Path) -> Path:
    """The same directory in the second mount, where it is once something is in it."""
    (here / "keep").write_text("")
    there = desk.path / "two" / here.name
    until(there.is_dir, "the directory to be in the other mount")
    return there


def _refusal(call: Callable[[], object]) -> int:
    """The errno a call is refused with, 0 when it is not."""
    try:
        call()
    except OSError as error:
        return error.errno or -1
    return 0


def _python(script: str, *words: object) -> subprocess.Popen[str]:
    """A process that runs a script and prints what it has to say."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, words)], stdout=subprocess.PIPE, text=True
    )


# Attributes


def test_listings_and_stat_agree_about_inode_numbers(here: Path) -> None:
    """readdir tells the number that stat tells; none is 0, and no two live files share one."""
    for directory in (here, here / "a", here / "a" / "b"):
        directory.mkdir(exist_ok=True)
        for number in range(10):
            (directory / f"n{number}").write_text("x")
    numbers = [
        (entry.inode(), entry.stat().st_ino)
        for directory in (here, here / "a", here / "a" / "b")
        for entry in os.scandir(directory)
    ]
    assert all(listed == told != 0 for listed, told in numbers)
    assert len({told for _, told in numbers}) == len(numbers) == 32


def test_a_save_changes_no_inode_number_and_its_time_stays(here: Path) -> None:
    """What an editor remembers of a file it saved is still so when it looks again."""
    file = here / "a"
    with file.open("w") as opened:
        number = os.fstat(opened.fileno()).st_ino
        opened.write("one")
    saved = file.stat()
    assert file.read_text() == "one"
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (number, saved.st_mtime_ns)
    assert file.stat().st_nlink == 1
    file.write_text("two")
    assert file.stat().st_ino == number and file.stat().st_mtime_ns > saved.st_mtime_ns
    assert abs(file.stat().st_mtime - time.time()) < 60


def test_blocks_are_told(here: Path) -> None:
    """A file that holds something has blocks: tar takes it for no hole, and du counts it."""
    (here / "a").write_text("text\n" * 4000)
    told = (here / "a").stat()
    assert told.st_blocks * 512 >= told.st_size
    packed = subprocess.run(["tar", "-cSf", "-", "a"], cwd=here, capture_output=True, check=True)
    unpacked = subprocess.run(
        ["tar", "-xOf", "-"], input=packed.stdout, capture_output=True, check=True
    )
    assert unpacked.stdout == b"text\n" * 4000


def test_statvfs_answers_with_room(here: Path) -> None:
    """df has a block size to divide by, and space to show."""
    told = os.statvfs(here)
    assert told.f_bsize and told.f_frsize and told.f_bavail and told.f_favail
    assert told.f_namemax == 255


def test_metadata_is_taken_on_files_and_directories(here: Path) -> None:
    """chmod, chown and utime by path and by descriptor succeed, and a copy keeps mode and time."""
    (here / "f").write_text("x")
    (here / "d").mkdir()
    for path in (here / "f", here / "d"):
        for mode in (0o600, 0o755):
            path.chmod(mode)
        os.chown(path, os.getuid(), os.getgid())
        os.chown(path, -1, -1)
        os.utime(path)
    with (here / "f").open("r+") as opened:
        os.fchmod(opened.fileno(), 0o640)
        os.fchown(opened.fileno(), -1, -1)
    for copy in (shutil.copy, shutil.copy2):
        copy(here / "f", here / "d" / "copied")
        assert (here / "d" / "copied").read_text() == "x"
    shutil.copytree(here / "d", here / "e")
    shutil.move(str(here / "e"), str(here / "g"))
    assert (here / "g" / "copied").read_text() == "x"


def test_attributes_are_refused_as_unsupported(here: Path) -> None:
    """`cp -a` takes ENOTSUP and ENODATA for an answer; nothing is inherited by a later file."""
    file = here / "a"
    file.write_text("x")
    assert _refusal(lambda: os.setxattr(file, "user.note", b"1")) == errno.ENOTSUP
    for name in ("user.note", "security.capability"):
        assert _refusal(lambda name=name: os.getxattr(file, name)) in (  # type: ignore[misc]
            errno.ENODATA,
            errno.ENOTSUP,
        )


# Calls a store has no use for


def test_unsupported_controls_are_no_disk_fault(here: Path) -> None:
    """Flags and clones are refused as unsupported, never with EIO; the file is as it was."""
    file = here / "a"
    file.write_text("abc")
    with file.open("r+b") as opened, (here / "b").open("w+b") as other:
        for number, argument in ((FS_IOC_GETFLAGS, bytes(8)), (FICLONE, opened.fileno())):
            refused = _refusal(lambda: fcntl.ioctl(other, number, argument))  # noqa: B023
            assert refused in UNSUPPORTED
    assert file.read_text() == "abc"


def test_room_can_be_asked_for(here: Path) -> None:
    """posix_fallocate makes the file as long as asked, within the limit; it is saved once it holds
    text only."""
    with (here / "a").open("w+b", buffering=0) as opened:
        opened.write(b"abc")
        os.posix_fallocate(opened.fileno(), 0, 10)
        assert os.fstat(opened.fileno()).st_size == 10
        os.posix_fallocate(opened.fileno(), 0, 5)
        assert os.fstat(opened.fileno()).st_size == 10
        opened.truncate(3)
        too_much = _refusal(lambda: os.posix_fallocate(opened.fileno(), 0, 102_401))
        assert too_much == errno.EFBIG
    assert (here / "a").read_text() == "abc"


def test_directories_can_be_synced(here: Path) -> None:
    """fsync of a directory, as databases and editors do after a rename, succeeds."""
    descriptor = os.open(here, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def test_copy_file_range_copies_or_says_that_it_cannot(here: Path) -> None:
    """Inside the mount it copies; from elsewhere EXDEV comes before a byte is copied, and tools
    copy by hand. Never an empty copy that looks like success."""
    body = b"0123456789abcdef" * 3000
    (here / "s").write_bytes(body)
    with (here / "s").open("rb") as source, (here / "copy").open("wb") as copy:
        left = len(body)
        while left:
            left -= os.copy_file_range(source.fileno(), copy.fileno(), left)
    assert (here / "copy").read_bytes() == body
    with tempfile.NamedTemporaryFile() as outside, (here / "other").open("wb") as copy:
        outside.write(body)
        outside.flush()
        refused = _refusal(
            lambda: os.copy_file_range(outside.fileno(), copy.fileno(), len(body), 0)
        )
        assert refused == errno.EXDEV
        outside.seek(0)
        shutil.copyfileobj(outside, copy)
    assert (here / "other").read_bytes() == body


def test_files_can_be_mapped(here: Path) -> None:
    """Read-only shared and private maps both show the text."""
    (here / "a").write_text("mapped text")
    with (here / "a").open("rb") as opened:
        for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
            with mmap.mmap(opened.fileno(), 0, flags=flags, prot=mmap.PROT_READ) as view:
                assert view[:] == b"mapped text"


# Locks


@pytest.mark.parametrize("lock", [fcntl.flock, fcntl.lockf], ids=["flock", "fcntl"])
def test_a_lock_keeps_others_out(here: Path, lock: Callable[[int, int], object]) -> None:
    """A second process is told that a file is locked, and gets the lock once it is free."""
    script = (
        "import fcntl, sys\nopened = open(sys.argv[1], 'r+')\n"
        "try: getattr(fcntl, sys.argv[2])(opened, fcntl.LOCK_EX | fcntl.LOCK_NB); print('mine')\n"
        "except (BlockingIOError, PermissionError): print('locked')"
    )
    (here / "a").write_text("x")
    with (here / "a").open("r+") as opened:
        lock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert _python(script, here / "a", lock.__name__).communicate()[0] == "locked\n"
    assert _python(script, here / "a", lock.__name__).communicate()[0] == "mine\n"


# Two mounts


REPLACE = """
import os, sys
for number in range(100):
    with open(sys.argv[1] + '.tmp', 'w') as opened:
        opened.write(str(number % 10) * 500)
    os.replace(sys.argv[1] + '.tmp', sys.argv[1])
"""


def test_a_file_being_replaced_is_always_there(here: Path, there: Path) -> None:
    """Readers in both mounts never miss a file that is replaced by rename, nor see it empty."""
    (here / "a").write_text("0" * 500)
    shows(there / "a", "0" * 500)
    writer = _python(REPLACE, here / "a")
    while writer.poll() is None:
        for folder in (here, there):
            text = (folder / "a").read_text()
            assert len(text) == 500 and len(set(text)) == 1
    assert writer.communicate()[0] == "" and writer.returncode == 0
    shows(there / "a", "9" * 500)


RACE = """
import os, sys
won = 0
for number in range(15):
    try:
        opened = os.open(f'{sys.argv[1]}/n{number}', os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        continue
    os.write(opened, sys.argv[2].encode())
    try:
        os.close(opened)
        won += 1
    except OSError as error:
        assert error.errno == 116, error
print(won)
"""


def test_of_those_who_create_a_name_one_wins(here: Path, there: Path) -> None:
    """With O_EXCL in two mounts at once one save succeeds; every other maker hears of it, at open
    (EEXIST) or at close (ESTALE)."""
    racers = [_python(RACE, folder, number) for number, folder in enumerate([here, there] * 2)]
    won = [int(racer.communicate()[0]) for racer in racers]
    assert all(racer.returncode == 0 for racer in racers)
    assert sum(won) == 15


MAKE = """
import os, sys
for number in range(10):
    os.makedirs(f'{sys.argv[1]}/d{number}/e/f', exist_ok=True)
    open(f'{sys.argv[1]}/d{number}/e/f/{sys.argv[2]}', 'w').write('x')
"""


def test_directories_are_made_by_many_at_once(here: Path, there: Path) -> None:
    """`mkdir -p` of the same paths in two mounts and four processes fails nowhere, and no file is lost."""
    makers = [_python(MAKE, folder, number) for number, folder in enumerate([here, there] * 2)]
    assert [maker.wait() for maker in makers] == [0] * 4
    for maker in makers:
        maker.communicate()
    for folder in (here, there):
        until(
            lambda folder=folder: len(list(folder.glob("d*/e/f/*"))) == 40,  # type: ignore[misc]
            "all files to be there",
        )


LIST = """
import os, sys
wanted = {f's{number}' for number in range(60)}
while not os.path.exists(sys.argv[1] + '/stop'):
    listed = [name for name in os.listdir(sys.argv[1]) if name.startswith('s') and name != 'stop']
    assert len(listed) == 60 and set(listed) == wanted, listed
"""


def test_listings_are_whole_while_others_come_and_go(here: Path) -> None:
    """Files that stay are in every listing exactly once, whoever lists and whatever else changes."""
    for number in range(60):
        (here / f"s{number}").write_text("")
    listers = [_python(LIST, here) for _ in range(2)]
    for number in range(150):
        (here / f"v{number % 20}").write_text(str(number))
        if number % 3:
            (here / f"v{number % 20}").unlink()
    (here / "stop").write_text("")
    assert [lister.wait() for lister in listers] == [0, 0]
    for lister in listers:
        lister.communicate()


# Killed, interrupted, away


WRITE_ON = """
import os, sys
opened = os.open(sys.argv[1], os.O_WRONLY)
print('open', flush=True)
while True:
    os.pwrite(opened, b'N' * 1000, 0)
"""


@pytest.mark.parametrize("deleted", [False, True], ids=["stays", "deleted meanwhile"])
def test_a_killed_writer_leaves_old_or_new_text(here: Path, deleted: bool) -> None:
    """Never a mixture; and what was deleted while it wrote does not come back."""
    file = here / "a"
    file.write_text("old")
    writer = _python(WRITE_ON, file)
    assert writer.stdout is not None and writer.stdout.readline() == "open\n"
    if deleted:
        file.unlink()
    writer.kill()
    writer.communicate()
    (here / "b").write_text("alive")
    if deleted:
        assert sorted(os.listdir(here)) == ["b"]
    else:
        until(lambda: file.read_text() in ("old", "N" * 1000), "one text or the other")


def test_signals_stop_programs_and_not_the_mount(here: Path) -> None:
    """Programs that are interrupted in the middle of calls end, and later calls work."""
    for number in range(30):
        (here / f"n{number}").write_text("x" * 500)
    for turn in range(15):
        busy = subprocess.Popen(
            ["sh", "-c", "while :; do cat ./*; echo y > w; done"],
            cwd=here,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        (here / "n0").read_text()
        os.killpg(busy.pid, signal.SIGTERM if turn % 2 else signal.SIGKILL)
        busy.wait(timeout=30)
    (here / "after").write_text("ok")
    assert (here / "after").read_text() == "ok"
    assert len(os.listdir(here)) >= 31


def test_a_shell_hears_that_the_service_is_away(tmp_path: Path) -> None:
    """`echo > file` fails while the service stays away, though a shell ignores what close says; the
    old text stays, and a file can still be read."""
    need(os.geteuid() == 0 and Path(mounting.DEVICE).exists(), "root and /dev/fuse")
    service = Served(tmp_path / "data")
    desk = Desk(service, "", "notes", tmp_path)
    try:
        desk.store_id = desk.backend.create_store(name="notes").id
        place = desk.mount("-o", "retry_s=0.2")
        (place / "a").write_text("old\n")
        service.stop()

        def told() -> bool:
            done = subprocess.run(["sh", "-c", "echo lost > a"], cwd=place, capture_output=True)
            return done.returncode != 0

        until(told, "a save from a shell to fail")
        shows(place / "a", "old\n")
    finally:
        desk.close()
        service.stop()
