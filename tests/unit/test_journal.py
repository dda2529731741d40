"""What a driver leaves behind for the next one, at whatever moment it is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from fuse_mount.vfs import journal as journals
from fuse_mount.vfs.handles import Handle, number_for, read_only_ino
from fuse_mount.vfs.inodes import File
from fuse_mount.vfs.journal import Journal, Recalled
from fuse_mount.vfs.tree import Tree

Files = tuple[int, int]


@pytest.fixture
def files() -> Iterator[Files]:
    """The two memory files of a supervisor."""
    first, second = os.memfd_create("first"), os.memfd_create("second")
    yield first, second
    os.close(first)
    os.close(second)


def _tree() -> Tree:
    return Tree(uid=0, gid=0, dir_mode=0o40755, file_mode=0o100644, time_ns=1)


def _noted(tree: Tree, files: Files) -> Journal:
    """A journal that begins with a tree and follows it."""
    journal = tree.journal = Journal(files)
    journal.recall()
    nodes = [node for node in tree.nodes.values() if node is not tree.root]
    journal.begin(nodes, [], [], tree.last_ino)
    return journal


def _recalled(files: Files) -> Recalled:
    found = Journal(files).recall()
    assert found is not None
    return found


def _stored(tree: Tree, name: str) -> File:
    file = tree.new_file(1)
    file.memory_id = f"mem_{name}"
    tree.attach(tree.root, name, file)
    return file


def test_an_empty_journal_recalls_nothing(files: Files) -> None:
    """The first driver of a mount has nothing to go on with."""
    assert Journal(files).recall() is None


def test_names_follow_the_tree(files: Files) -> None:
    """Names that came, moved and went since the beginning are known as they were last."""
    tree = _tree()
    kept, gone = _stored(tree, "kept.md"), _stored(tree, "gone.md")
    _noted(tree, files)
    where = tree.new_dir(1)
    tree.attach(tree.root, "café", where)
    tree.detach(kept)
    tree.attach(where, "moved.md", kept)
    tree.detach(gone)
    found = _recalled(files)
    assert found.path_of(found.nodes[kept.ino]) == "/café/moved.md"
    assert found.by_memory["mem_kept.md"].ino == kept.ino
    assert found.path_of(found.nodes[gone.ino]) is None
    assert found.by_path["/café"].ino == where.ino and found.last_ino == where.ino


def test_handles_are_dirty_until_acknowledged(files: Files) -> None:
    """Of each writable handle it is known whether it has bytes to lose; closed ones are gone."""
    tree = _tree()
    file = _stored(tree, "a.md")
    journal = _noted(tree, files)
    handles = [Handle(file, os.O_WRONLY, number_for(file.ino, n, writable=True)) for n in range(3)]
    for handle in handles:
        journal.opened(handle)
        handle.noted = True
        journal.handle(handle)
    handles[1].noted = False
    journal.handle(handles[1])
    journal.closed(handles[2].number)
    found = _recalled(files).handles
    assert {number: note.dirty for number, note in found.items()} == {
        handles[0].number: True,
        handles[1].number: False,
    }


def test_a_readers_number_says_which_node(files: Files) -> None:
    """A handle that only reads needs no note."""
    assert read_only_ino(number_for(77, 5, writable=False)) == 77
    assert read_only_ino(number_for(77, 5, writable=True)) == 0


def test_a_record_cut_off_is_left_out(files: Files) -> None:
    """Wherever its writer was killed, what was whole before is recalled."""
    tree = _tree()
    _stored(tree, "a.md")
    _noted(tree, files)
    (used,) = [fd for fd in files if os.fstat(fd).st_size]
    began = os.fstat(used).st_size
    late = _stored(tree, "b.md")
    whole = os.fstat(used).st_size
    for size in range(whole - 1, began - 1, -1):
        os.ftruncate(used, size)
        found = _recalled(files)
        assert set(found.by_memory) == {"mem_a.md"} and late.ino not in found.nodes


def test_a_new_beginning_that_was_not_finished_is_ignored(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it writes everything anew, the journal before is still there."""
    tree = _tree()
    _stored(tree, "a.md")
    journal = _noted(tree, files)
    write, calls = journals._write_all, []

    def killed(fd: int, data: bytes, offset: int) -> None:
        if calls:
            raise KeyboardInterrupt
        calls.append(fd)
        write(fd, data[: len(data) // 2], offset)

    monkeypatch.setattr(journals, "_write_all", killed)
    with pytest.raises(KeyboardInterrupt):
        journal.begin([], [], [], 9)
    assert set(_recalled(files).by_memory) == {"mem_a.md"}


def test_an_outgrown_journal_begins_anew(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size follows what there is, not what happened; the latest text of a name is kept."""
    monkeypatch.setattr(journals, "GROWTH_BYTES", 1000)
    tree = _tree()
    file = _stored(tree, "draft.tmp")
    journal = _noted(tree, files)
    for stamp in range(100):
        journal.text(file.ino, False, b"x" * 100 + b"%d" % stamp, stamp)
    assert journal.outgrown
    journal.begin([file], [], [(file, False, b"latest")], tree.last_ino)
    assert not journal.outgrown
    assert sum(os.fstat(fd).st_size for fd in files) < 1000
    assert _recalled(files).texts == {file.ino: b"latest"}
    _stored(tree, "b.md")
    assert "mem_b.md" in _recalled(files).by_memory
