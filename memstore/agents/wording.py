"""What the memory tool says to a model: the sentences, and how texts and listings are shown.

The sentences of `SDK` are those of the SDK's own memory tool, to the byte; those of `DOCUMENTED`
are the ones the tool's documentation prints where the two differ. Both are an interface that
models are trained on: a changed character is a changed interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_LINES = 999_999
_NUMBER_WIDTH = len(str(MAX_LINES))
_UNITS = "BKMG"
_CONTEXT_LINES = 2

NOT_UNDER_ROOT = "Path must start with /memories, got: {path}"
ESCAPES = "Path {path} would escape /memories directory"
MISSING = "The path {path} does not exist. Please provide a valid path."
NOT_A_FILE = "The path {path} is not a file."
TOO_MANY_LINES = "File {path} exceeds maximum line limit of 999,999 lines."
FILE_HEADER = "Here's the content of {path} with line numbers:"
NO_MATCH = "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
SEVERAL_MATCHES = (
    "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
    "Please ensure it is unique"
)
CREATED = "File created successfully at: {path}"
REPLACED = (
    "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
)
INSERTED = "The file {path} has been edited."
DELETED = "Successfully deleted {path}"
RENAMED = "Successfully renamed {old} to {new}"
CLEARED = "All memory cleared"


@dataclass(frozen=True, slots=True)
class Wording:
    """The sentences in which the SDK's tool and its documentation differ.

    `skipped` are names a listing leaves out beside hidden ones; `whole_sizes` says whether a size
    that is whole is shown without a decimal.
    """

    directory_header: str
    exists: str
    edit_missing: str
    edit_directory: str
    insert_missing: str
    insert_directory: str
    insert_range: str
    absent: str
    root_delete: str
    root_rename: str
    destination_exists: str
    skipped: frozenset[str]
    whole_sizes: bool


SDK = Wording(
    directory_header=(
        "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    ),
    exists="File {path} already exists",
    edit_missing=MISSING,
    edit_directory=NOT_A_FILE,
    insert_missing=MISSING,
    insert_directory=NOT_A_FILE,
    insert_range=(
        "Invalid `insert_line` parameter: {line}. It should be within the range [0, {last}]."
    ),
    absent="The path {path} does not exist",
    root_delete="Cannot delete the /memories directory itself",
    root_rename="Cannot rename the /memories directory itself",
    destination_exists="The destination {path} already exists",
    skipped=frozenset(),
    whole_sizes=True,
)
"""As the SDK's own tool says it; the default."""

DOCUMENTED = Wording(
    directory_header=(
        "Here're the files and directories up to 2 levels deep in {path}, "
        "excluding hidden items and node_modules:"
    ),
    exists="Error: File {path} already exists",
    edit_missing=f"Error: {MISSING}",
    edit_directory=f"Error: {MISSING}",
    insert_missing="Error: The path {path} does not exist",
    insert_directory="Error: The path {path} does not exist",
    insert_range=(
        "Error: Invalid `insert_line` parameter: {line}. "
        "It should be within the range of lines of the file: [0, {last}]"
    ),
    absent="Error: The path {path} does not exist",
    root_delete="Error: Cannot delete the /memories directory itself",
    root_rename="Error: Cannot rename the /memories directory itself",
    destination_exists="Error: The destination {path} already exists",
    skipped=frozenset({"node_modules"}),
    whole_sizes=False,
)
"""As the tool's documentation prints it."""


def size(count: int, wording: Wording) -> str:
    """Bytes in units of 1,024: `0B`, `512B`, `1.5K`; `4K` or `4.0K` by the wording."""
    power = min((max(count, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    scaled = count / 1024**power
    whole = scaled == int(scaled) and (wording.whole_sizes or power == 0)
    return f"{int(scaled) if whole else f'{scaled:.1f}'}{_UNITS[power]}"


def numbered(lines: Iterable[str], first: int) -> str:
    """Lines behind their numbers, right-aligned to six places."""
    return "\n".join(f"{at:>{_NUMBER_WIDTH}}\t{line}" for at, line in enumerate(lines, first))


def view_of_file(path: str, content: str, view_range: Sequence[int] | None) -> str | None:
    """A text with line numbers, or the part `[first, last]` of it; None for too many lines.

    Lines end at LF only. A last line of -1 means to the end; a range of any other length than two
    is ignored.
    """
    lines = content.split("\n")
    if len(lines) > MAX_LINES:
        return None
    start = 0
    if view_range and len(view_range) == 2:
        start = max(1, view_range[0]) - 1
        end = len(lines) if view_range[1] == -1 else view_range[1]
        lines = lines[start:end]
    return f"{FILE_HEADER.format(path=path)}\n{numbered(lines, start + 1)}"


def view_of_directory(
    path: str, files: Iterable[tuple[tuple[str, ...], int]], wording: Wording
) -> str:
    """What is up to two levels below a directory, each directory before its children.

    `files` are the segments of each file below it with its size. Names that begin with a dot are
    left out. A directory's size is that of all texts below it, hidden ones included.
    """
    sizes: dict[tuple[str, ...], int] = {}
    directories: set[tuple[str, ...]] = set()
    total = 0
    for segments, count in files:
        total += count
        for depth in range(1, min(len(segments), 2) + 1):
            entry = segments[:depth]
            if entry[-1].startswith(".") or entry[-1] in wording.skipped:
                break
            sizes[entry] = sizes.get(entry, 0) + count
            if depth < len(segments):
                directories.add(entry)
    lines = [wording.directory_header.format(path=path), f"{size(total, wording)}\t{path}"]
    for entry in sorted(sizes):
        mark = "/" if entry in directories else ""
        lines.append(f"{size(sizes[entry], wording)}\t{path}/{'/'.join(entry)}{mark}")
    return "\n".join(lines)


def snippet(content: str, changed: int) -> str:
    """The lines around the one that changed (counted from 0), numbered."""
    lines = content.split("\n")
    first = max(0, changed - _CONTEXT_LINES)
    return numbered(lines[first : changed + _CONTEXT_LINES + 1], first + 1)


def occurrences(content: str, old: str) -> list[int]:
    """The line of each place where `old` begins, overlapping ones too."""
    found = []
    line, counted, at = 1, 0, content.find(old)
    while at != -1:
        line += content.count("\n", counted, at)
        counted = at
        found.append(line)
        at = content.find(old, at + 1)
    return found
