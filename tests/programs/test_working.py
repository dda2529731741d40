"""Programs that do more than save: editors on a terminal, watchers, archives, refusals."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time

from tests.programs.conftest import RUN_SECONDS, Work, need_program
from tests.support.waiting import until

BEFORE = "one\ntwo\nthree\n"


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, work: Work, *words: str) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(work.folder)
            os.execvpe(words[0], words, {**os.environ, "TERM": "xterm", "HOME": "/nonexistent"})
        self._seen = b""

    def wait(self, shown: bytes) -> None:
        """Read until the program shows this, counting from the last time."""
        end = time.monotonic() + RUN_SECONDS
        while shown not in self._seen:
            left = end - time.monotonic()
            assert left > 0 and select.select([self._fd], [], [], left)[0], (
                f"{shown!r} was not shown, but {self._seen!r}"
            )
            self._seen += os.read(self._fd, 4096)
        self._seen = self._seen.partition(shown)[2]

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._fd, keys)

    def end(self) -> int:
        """Wait until it has ended; its exit status."""
        try:
            while os.read(self._fd, 4096):
                pass
        except OSError:
            pass  # EIO: the other side of the terminal is closed
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        """End it by force."""
        os.kill(self.pid, signal.SIGKILL)
        self.end()


def _unchanged(work: Work) -> bool:
    return work.changes() == []


def test_nano_saves_on_a_terminal(work: Work) -> None:
    """Typing a line and Ctrl-O in nano is one version of the same memory."""
    need_program("nano")
    work.put({"n": BEFORE})
    nano = Terminal(work, "nano", "--ignorercfiles", "n")
    nano.wait(b"three")

    nano.type(b"zero\r")
    nano.type(b"\x0f")
    nano.wait(b"Name to Write")
    nano.type(b"\r")
    nano.wait(b"Wrote 4 lines")
    nano.type(b"\x18")

    assert nano.end() == 0
    assert work.texts() == work.seen() == {"n": "zero\n" + BEFORE}
    assert work.changes() == ["modified n"]
    assert work.memories()["n"].id == work.ids["n"]


def test_vim_on_a_terminal_leaves_no_swap_file(work: Work) -> None:
    """While vim has a file open its swap file is in the mount only; saving twice is two versions."""
    need_program("vim")
    work.put({"n": BEFORE})
    vim = Terminal(work, "vim", "-u", "NONE", "-i", "NONE", "n")
    vim.wait(b"three")
    until(lambda: (work.folder / ".n.swp").exists(), "the swap file")

    vim.type(b"ifirst \x1b:w\r")
    until(lambda: (work.folder / "n").read_text().startswith("first one"), "the first save")
    vim.type(b"isecond \x1b:wq\r")

    assert vim.end() == 0
    assert work.seen() == work.texts()
    assert work.changes() == ["modified n", "modified n"]
    assert work.memories()["n"].id == work.ids["n"]


def test_emacs_backup_is_a_file_beside_the_memory(work: Work) -> None:
    """Emacs moves the old file to `n~` and writes a new one: the memory goes on under its name,
    with one version, and the backup is held back as a temporary name."""
    need_program("emacs")
    work.put({"n": BEFORE})

    ran = work.run(
        'emacs -Q -batch n --eval \'(progn (goto-char (point-max)) (insert "four\\n") '
        "(setq backup-inhibited nil backup-enable-predicate (lambda (_) t)) (save-buffer))'"
    )

    assert ran.status == 0, ran.err
    assert work.seen() == {"n": BEFORE + "four\n", "n~": BEFORE}
    assert work.changes() == ["modified n"]
    assert work.memories()["n"].id == work.ids["n"]
    (work.folder / "n~").unlink()


def test_tail_follows_changes_made_elsewhere(work: Work) -> None:
    """`tail -f` in the mount shows a line that was appended through the API."""
    work.put({"n": "one\n"})
    tail = subprocess.Popen(
        ["tail", "-n", "+1", "-s", "0.05", "-f", str(work.folder / "n")], stdout=subprocess.PIPE
    )
    assert tail.stdout is not None
    try:
        assert tail.stdout.readline() == b"one\n"
        work.change("n", "one\ntwo\n")
        assert select.select([tail.stdout], [], [], RUN_SECONDS)[0]
        assert tail.stdout.readline() == b"two\n"
    finally:
        tail.kill()
        tail.communicate()


def test_searching_tools_find_what_grep_finds(work: Work) -> None:
    """`rg`, `grep -r` and `find` see every file below a folder."""
    need_program("rg")
    work.put({f"d{n % 3}/f{n}": f"line {n}\nneedle {n}\n" for n in range(12)})

    found = work.run("rg -c needle | sort")
    assert found.status == 0, found.err
    assert found.out == work.run("grep -rc needle * | sort").out
    assert len(found.out.splitlines()) == 12
    assert (
        len(work.run("find . -type f -newermt 2000-01-01 -size -1k -o -type f").out.split()) == 12
    )
    assert _unchanged(work)


def test_git_compares_two_versions_of_a_file(work: Work) -> None:
    """`git diff --no-index` shows the difference of two files and exits with 1, as it should."""
    work.put({"a": BEFORE, "b": BEFORE.replace("two", "TWO")})

    ran = work.run("git diff --no-index a b")

    assert ran.status == 1, ran.err
    assert "-two\n+TWO\n" in ran.out
    assert _unchanged(work)


def test_git_init_fails_cleanly(work: Work) -> None:
    """A repository's objects are no text: `git init` says that it may not, and leaves nothing."""
    ran = work.run("git init -q .")

    assert ran.status != 0
    assert "Operation not permitted" in ran.err
    assert work.seen() == work.texts() == {}
    assert _unchanged(work)


def test_sqlite_is_refused_and_leaves_no_garbage(work: Work) -> None:
    """A database is no text: sqlite reports an error, and no byte of it reaches the store."""
    need_program("sqlite3")

    ran = work.run("sqlite3 n.db 'create table t(x); insert into t values (1);'")

    assert ran.status != 0
    assert "rror" in ran.err
    assert set(work.texts().items()) <= {("n.db", "")}
    assert "n.db-journal" not in work.seen()


def test_binary_files_are_refused_at_the_call_a_tool_checks(work: Work) -> None:
    """Copying what is no text fails, says so, and leaves the old memory as it was."""
    work.put({"n": BEFORE})

    ran = work.run("cp /bin/true n")

    assert ran.status != 0
    assert ran.err.startswith("cp: ")
    assert work.texts() == work.seen() == {"n": BEFORE}
    assert _unchanged(work)


def test_a_file_over_the_limit_is_refused(work: Work) -> None:
    """Writing more than a memory holds fails with "File too large"; the old text stays."""
    work.put({"n": BEFORE})

    ran = work.run("seq 100000 > n")

    assert ran.status != 0
    assert "File too large" in ran.err
    assert work.texts() == work.seen() == {"n": BEFORE}
    assert _unchanged(work)


def test_links_are_refused(work: Work) -> None:
    """`ln` and `ln -s` fail with a message and make nothing."""
    work.put({"n": BEFORE})

    for script in ("ln n m", "ln -s n m", "mkfifo m"):
        ran = work.run(script)
        assert ran.status != 0
        assert "not permitted" in ran.err
    assert work.seen() == {"n": BEFORE}
    assert _unchanged(work)


def test_appending_programs_lose_nothing(work: Work) -> None:
    """Eight shells appending to one file at once: every line is there, each once."""
    work.put({"n": ""})

    ran = work.run(
        "for w in 1 2 3 4 5 6 7 8; do (for i in $(seq 10); do echo $w-$i >> n; done) & done; wait"
    )

    assert ran.status == 0, ran.err
    lines = (work.folder / "n").read_text().split()
    assert sorted(lines) == sorted(f"{w}-{i}" for w in range(1, 9) for i in range(1, 11))
    assert work.texts() == work.seen()
