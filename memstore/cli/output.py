"""What reaches the screen. Text from memories is hostile: a terminal never gets it raw."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from memstore.cli.exits import REFUSED, Stop

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories that move the cursor, reorder or hide text: controls, formats such as the bidi
overrides, surrogates, private use, line and paragraph separators."""


def visible(text: str, *, keep: str = "") -> str:
    """The text with every character that a terminal could act on written as an escape.

    `keep` holds those that may stay, newline and tab for a memory's content.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in keep or unicodedata.category(character) not in _HIDDEN
        else _escape(ord(character))
        for character in text
    )


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def write(text: str) -> None:
    """Send text to standard output as UTF-8, whatever the locale says."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def line(text: str) -> None:
    """One line; escaped on a terminal, exact in a pipe."""
    write((visible(text) if on_terminal() else text) + "\n")


def content(text: str) -> None:
    """A memory's text: the exact bytes in a pipe, every control character visible on a terminal."""
    if on_terminal():
        text = visible(text, keep="\n\t")
        text += "" if text.endswith("\n") or not text else "\n"
    write(text)


def as_json(value: Any) -> None:
    """An object of the API. On a terminal everything outside ASCII is escaped, too."""
    write(json.dumps(value, indent=2, ensure_ascii=on_terminal()) + "\n")


def data(items: Iterable[Any]) -> None:
    """A list of the API's objects, under `data`."""
    as_json({"data": list(items)})


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns, heads on a terminal only; nothing at all for no rows."""
    shown = [[visible(cell) for cell in row] for row in rows]
    if on_terminal() and shown:
        shown.insert(0, [head.upper() for head in heads])
    widths = [max((len(row[i]) for row in shown), default=0) for i in range(len(heads))]
    for row in shown:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        write("  ".join(cells).rstrip() + "\n")


def fields(pairs: Sequence[tuple[str, str]]) -> None:
    """One `name: value` a line."""
    width = max(len(name) for name, _ in pairs) + 1
    for name, value in pairs:
        write(f"{name + ':':<{width}} {visible(value)}\n")


def tell(text: str) -> None:
    """One line to standard error, always escaped."""
    sys.stderr.write(visible(text).encode("utf-8", "replace").decode("utf-8") + "\n")
    sys.stderr.flush()


def confirm(question: str, *, yes: bool) -> None:
    """Go on when told so: by `--yes`, or by an answer on a terminal. Otherwise stop, refused."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Stop(REFUSED, f"{question} There is no terminal to ask on: say --yes.")
    sys.stderr.write(f"{visible(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Stop(REFUSED, "Nothing was changed.")
