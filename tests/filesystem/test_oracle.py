"""The mount answers as a plain directory does, operation by operation, in the same run.

What a store cannot hold, or a binding cannot do, is declared in `EXCEPTIONS`; any other
difference fails, and so does an exception that no case meets any more.
"""

from __future__ import annotations

import fnmatch
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fuse_mount.portable import LIMITS
from memstore.model.limits import CONTENT_BYTES
from tests.support.mounted import Place
from tests.support.oracle import ask
from tests.support.oracle_cases import Case, every_case
from tests.support.real_files import BINDINGS

NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Exception_:
    """Where the mount may differ: cases by pattern, what each answers there, and why."""

    cases: str
    plain: object
    mount: object
    reason: str
    bindings: tuple[str, ...] = ("linux", "portable")


TEXT_ONLY = (
    "A memory is text without NUL: what would put one there is refused, and nothing changes."
)
NO_SPECIALS = "A store holds texts: no symbolic or hard links, no devices and no fifos."
BY_PATH = LIMITS["nameless files"]
NO_FLAGS = LIMITS["RENAME_NOREPLACE"]
NO_SHARED_PAGES = LIMITS["shared mmap"]
EXCEPTIONS = (
    Exception_("truncate same *", None, "EILSEQ", TEXT_ONLY),
    Exception_("a hole that stays", None, "EILSEQ", TEXT_ONLY),
    Exception_(
        "a text over the limit", CONTENT_BYTES + 1, "EFBIG", "A memory holds 102,400 bytes."
    ),
    Exception_("mkfifo *", None, "EPERM", NO_SPECIALS),
    Exception_("symlink *", None, "EPERM", NO_SPECIALS),
    Exception_("link *", None, "EPERM", NO_SPECIALS),
    Exception_("an unlinked open file *", 0, "ENOENT", BY_PATH, ("portable",)),
    Exception_("an unlinked open file *", 6, "ENOENT", BY_PATH, ("portable",)),
    Exception_("an unlinked open file *", "0o600", "ENOENT", BY_PATH, ("portable",)),
    Exception_("a mapping *", None, "ENODEV", NO_SHARED_PAGES, ("portable",)),
    Exception_("a mapping *", "FIRST\n", "first\n", NO_SHARED_PAGES, ("portable",)),
    Exception_("a mapping *", "FIRST\nsecond\n", "first\nsecond\n", NO_SHARED_PAGES, ("portable",)),
    Exception_("rename noreplace *", None, "EINVAL", NO_FLAGS, ("portable",)),
)


@pytest.fixture
def plain() -> Iterator[Path]:
    """A directory of the machine's own file system, which any user may enter."""
    with tempfile.TemporaryDirectory(prefix="memstore-plain-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(params=sorted(BINDINGS))
def binding(request: pytest.FixtureRequest) -> str:
    """Each way to mount for real."""
    return str(request.param)


def _place(tmp_path: Path, binding: str) -> Place:
    return Place(tmp_path, BINDINGS[binding])


def _declared(case: str, plain: object, mount: object, binding: str) -> Exception_ | None:
    for each in EXCEPTIONS:
        if (
            binding in each.bindings
            and fnmatch.fnmatchcase(case, each.cases)
            and (each.plain, each.mount) == (plain, mount)
        ):
            return each
    return None


@pytest.mark.parametrize("uid", [0, NOBODY], ids=["root", "ordinary user"])
def test_the_mount_answers_as_a_plain_directory(
    tmp_path: Path, plain: Path, binding: str, uid: int
) -> None:
    """Every operation on every kind of path: the same answers, and the same tree after them."""
    place = _place(tmp_path, binding)
    try:
        files = place.mount(uid=uid, gid=uid)
        cases = every_case()
        expected = ask(plain, cases, uid)
        found = ask(files.root, cases, uid)  # type: ignore[attr-defined]
    finally:
        place.close()

    met: set[Exception_] = set()
    different = list(_differences(cases, expected, found, binding, met.add))
    assert not different, f"{len(different)} differences, the first:\n" + "\n".join(different[:20])
    unmet = {each for each in EXCEPTIONS if binding in each.bindings} - met
    assert not unmet, f"no longer met: {sorted(each.cases for each in unmet)}"


def _differences(
    cases: list[Case],
    expected: dict[str, dict[str, list[object]]],
    found: dict[str, dict[str, list[object]]],
    binding: str,
    meet: Callable[[Exception_], object],
) -> Iterator[str]:
    for name, steps in cases:
        excused = False
        answers = zip(expected[name]["outcomes"], found[name]["outcomes"], strict=True)
        for step, (plain, mount) in zip(steps, answers, strict=True):
            if plain == mount:
                continue
            exception = _declared(name, plain, mount, binding)
            if exception is None:
                yield f"{name}: {step} answers {plain!r} in a plain directory, {mount!r} here"
            else:
                excused = True
                meet(exception)
        if not excused and expected[name]["tree"] != found[name]["tree"]:
            lost = [each for each in expected[name]["tree"] if each not in found[name]["tree"]]
            extra = [each for each in found[name]["tree"] if each not in expected[name]["tree"]]
            yield f"{name}: leaves {extra} instead of {lost}"
