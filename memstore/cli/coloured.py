"""A unified diff on a terminal: lines in colour, the words that differ reversed.

The text of memories is made visible first, piece by piece: the only escape sequences that reach
the terminal are the ones written here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from memstore.cli import output

_RED, _GREEN, _CYAN, _BOLD, _REVERSED, _PLAIN = "31", "32", "36", "1", "7", "0"
_HAN_AND_KIN = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[^\W{_HAN_AND_KIN}]+|\s+|.", re.DOTALL)
"""Words; of scripts written without spaces each character is one."""
_MOST_WORDS = 2000
"""Words of a line above which it is shown as changed altogether."""


def show(diff: str) -> None:
    """Write a diff: exact in a pipe, in colour on a terminal unless `NO_COLOR` is set."""
    if not output.on_terminal():
        output.write(diff)
    elif os.environ.get("NO_COLOR"):
        output.content(diff)
    else:
        output.write("".join(f"{line}\n" for line in _lines(diff)))


def _lines(diff: str) -> Iterator[str]:
    gone: list[str] = []
    come: list[str] = []
    in_hunk = False
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        if in_hunk and line.startswith("-") and not come:
            gone.append(line[1:])
            continue
        if in_hunk and line.startswith("+"):
            come.append(line[1:])
            continue
        yield from _changed(gone, come)
        gone, come = [], []
        if in_hunk and line.startswith("-"):
            gone.append(line[1:])
        elif line.startswith("@@"):
            in_hunk = True
            yield _in(_CYAN, line)
        elif in_hunk and line.startswith((" ", "\\")):
            yield _shown(line)
        else:
            in_hunk = False
            yield _in(_BOLD, line)
    yield from _changed(gone, come)


def _changed(gone: list[str], come: list[str]) -> Iterator[str]:
    """Lines that went and lines that came; word by word where there are as many of both."""
    if len(gone) == len(come):
        pairs = [_words(old, new) for old, new in zip(gone, come, strict=True)]
        yield from (f"{_in(_RED, '-')}{old}" for old, _ in pairs)
        yield from (f"{_in(_GREEN, '+')}{new}" for _, new in pairs)
        return
    yield from (_in(_RED, f"-{line}") for line in gone)
    yield from (_in(_GREEN, f"+{line}") for line in come)


def _words(old: str, new: str) -> tuple[str, str]:
    first, second = _WORD.findall(old), _WORD.findall(new)
    if max(len(first), len(second)) > _MOST_WORDS:
        return _in(_RED, old), _in(_GREEN, new)
    left, right = "", ""
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for kind, low, high, start, end in matcher.get_opcodes():
        same = kind == "equal"
        left += _in(_RED if same else f"{_RED};{_REVERSED}", "".join(first[low:high]))
        right += _in(_GREEN if same else f"{_GREEN};{_REVERSED}", "".join(second[start:end]))
    return left, right


def _in(style: str, text: str) -> str:
    return f"\x1b[{style}m{_shown(text)}\x1b[{_PLAIN}m" if text else ""


def _shown(text: str) -> str:
    return output.visible(text, keep="\t")
