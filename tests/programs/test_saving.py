"""Real programs save in a real mount: their exit status, the text, one version, no litter."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.programs.conftest import Work, need_program
from tests.support.waiting import until

BEFORE = "one\ntwo\nthree\n"


@dataclass(frozen=True, slots=True)
class Save:
    """A script, the texts before and after it, and the changes the store hears of."""

    title: str
    script: str
    after: dict[str, str]
    changes: list[str]
    before: dict[str, str] = field(default_factory=dict)
    program: str = "bash"


def _new(title: str, script: str, text: str, program: str = "bash") -> Save:
    return Save(title, script, {"n": text}, ["created n"], {}, program)


def _edit(title: str, script: str, text: str, program: str = "bash") -> Save:
    return Save(title, script, {"n": text}, ["modified n"], {"n": BEFORE}, program)


SAVES = [
    _new("bash: > a new file", "echo hi > n", "hi\n"),
    _edit("bash: > an old file", "echo hi > n", "hi\n"),
    _edit("bash: >> appends", "echo four >> n", BEFORE + "four\n"),
    _new("bash: a here-document", "cat > n <<'END'\na\nb\nEND", "a\nb\n"),
    _edit("bash: a group", "{ echo a; echo b; } > n", "a\nb\n"),
    _edit("bash: a loop", "for i in 1 2 3; do echo $i; done > n", "1\n2\n3\n"),
    _edit("bash: a pipe", "seq 3 | sort -r > n", "3\n2\n1\n"),
    _edit("bash: : > empties", ": > n", ""),
    _new("bash: noclobber", "set -C; echo a > n; ! echo b > n", "a\n"),
    _new("bash: exec 3>", "exec 3> n; cat <<< hi >&3; exec 3>&-", "hi\n"),
    _edit("cat >>", "seq 4 5 | cat >> n", BEFORE + "4\n5\n"),
    _edit("tee", "echo hi | tee n > /dev/null", "hi\n"),
    _edit("tee -a", "echo hi | tee -a n > /dev/null", BEFORE + "hi\n"),
    _new("cp a new file", 'printf "a\\n" > "$HOME/s"; cp "$HOME/s" n', "a\n"),
    _edit("cp over", 'printf "a\\n" > "$HOME/s"; cp "$HOME/s" n', "a\n"),
    _new(
        "cp -a keeps the time",
        'echo a > "$HOME/s"; touch -d 2020-02-02 "$HOME/s"; cp -a "$HOME/s" n; '
        '[ "$(stat -c %Y n)" = "$(stat -c %Y "$HOME/s")" ]',
        "a\n",
    ),
    _new("install", 'echo a > "$HOME/s"; install -m 600 "$HOME/s" n', "a\n"),
    _new("dd", "printf 'abc\\n' | dd of=n status=none", "abc\n"),
    _edit("dd conv=notrunc", "printf ONE | dd of=n conv=notrunc status=none", "ONE\ntwo\nthree\n"),
    _edit("dd conv=fsync", "printf 'a\\n' | dd of=n conv=fsync status=none", "a\n"),
    _edit("truncate -s", "truncate -s 4 n", "one\n"),
    _edit("sort -o itself", "sort -o n n", "one\nthree\ntwo\n"),
    _edit("sed -i", "sed -i s/two/TWO/ n", "one\nTWO\nthree\n", "sed"),
    _edit("perl -i", "perl -i -pe s/two/TWO/ n", "one\nTWO\nthree\n", "perl"),
    _edit(
        "jq, a temporary file, mv",
        "printf '{\"a\":1}' > n.tmp; jq -c .a=2 n.tmp > n.tmp2.tmp; rm n.tmp; mv n.tmp2.tmp n",
        '{"a":2}\n',
        "jq",
    ),
    _edit(
        "vim",
        "vim -es -u NONE -i NONE -c '%s/two/TWO/' -c wq n < /dev/null",
        "one\nTWO\nthree\n",
        "vim",
    ),
    _new("vim, a new file", "vim -es -u NONE -i NONE -c 'normal iabc' -c wq n", "abc\n", "vim"),
    _edit(
        "python open",
        "python3 -c \"open('n', 'w').write('a' * 3)\"",
        "aaa",
        "python3",
    ),
    _edit(
        "python tempfile and replace",
        "python3 -c \"import os, tempfile; f = tempfile.NamedTemporaryFile('w', dir='.', "
        "delete=False); f.write('new'); f.flush(); os.fsync(f.fileno()); f.close(); "
        "os.replace(f.name, 'n')\"",
        "new",
        "python3",
    ),
    _new("rsync -a, a new file", 'echo a > "$HOME/n"; rsync -a "$HOME/n" .', "a\n", "rsync"),
    _edit("rsync -a over", 'echo a > "$HOME/n"; rsync -a "$HOME/n" .', "a\n", "rsync"),
    _edit(
        "rsync --inplace",
        'echo a > "$HOME/n"; rsync -a --inplace "$HOME/n" .',
        "a\n",
        "rsync",
    ),
    Save(
        "mv is a rename",
        "mv n m",
        {"m": BEFORE},
        ["modified m"],
        {"n": BEFORE},
    ),
    Save(
        "mv onto a file",
        "mv m n",
        {"n": "new\n"},
        ["modified n", "deleted m"],
        {"n": BEFORE, "m": "new\n"},
    ),
    Save("mv -n keeps both", "mv -n m n || true", {"n": "1", "m": "2"}, [], {"n": "1", "m": "2"}),
    Save("cp -u of an older file", "cp -u n m", {"n": "1", "m": "2"}, [], {"n": "1", "m": "2"}),
    Save("touch an old file", "touch -d 2020-02-02 n", {"n": BEFORE}, [], {"n": BEFORE}),
    Save("touch a new file", "touch n; ls n", {"n": ""}, ["created n"]),
    Save("chmod and chown", "chmod 600 n; chown 0:0 n", {"n": "1"}, [], {"n": "1"}),
    Save("rm", "rm n", {"m": "2"}, ["deleted n"], {"n": "1", "m": "2"}),
    Save(
        "saving the same again",
        "cat n > t.tmp; cat t.tmp > n; rm t.tmp",
        {"n": "1"},
        [],
        {"n": "1"},
    ),
    Save(
        "split",
        "split -l 2 n part-",
        {"n": BEFORE, "part-aa": "one\ntwo\n", "part-ab": "three\n"},
        ["created part-aa", "created part-ab"],
        {"n": BEFORE},
    ),
    Save(
        "mkdir, cp -r, rm -r",
        "mkdir -p a/b; cp n a/b/c; cp -r a d; rm -r a",
        {"n": "1", "d/b/c": "1"},
        ["created a/b/c", "created d/b/c", "deleted a/b/c"],
        {"n": "1"},
    ),
    Save(
        "tar c and x",
        'tar cf "$HOME/t.tar" n; mkdir x; tar xf "$HOME/t.tar" -C x; '
        '[ "$(stat -c %Y x/n)" = "$(stat -c %Y n)" ]',
        {"n": BEFORE, "x/n": BEFORE},
        ["created x/n"],
        {"n": BEFORE},
        "tar",
    ),
    Save(
        "emacs",
        'emacs -Q -batch n --eval \'(progn (goto-char (point-max)) (insert "four\\n") '
        "(setq make-backup-files nil) (save-buffer))'",
        {"n": BEFORE + "four\n"},
        ["modified n"],
        {"n": BEFORE},
        "emacs",
    ),
]


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.title)
def test_a_program_saves(work: Work, save: Save) -> None:
    """It succeeds, the text is right in the mount and in the store, and it made one version."""
    need_program(save.program)
    work.put(save.before)

    ran = work.run(save.script)

    assert ran.status == 0, ran.err
    assert work.seen() == save.after
    # The last close of a file without text commits after close(2) has returned.
    until(lambda: len(work.changes()) >= len(save.changes), "the changes to be in the store")
    assert work.changes() == save.changes
    assert work.texts() == save.after
    for name, memory in work.memories().items():
        if name in save.before:
            assert memory.id == work.ids[name], f"{name} is another memory now"
