"""Versions per save: each tool saves a few times; every save must be exactly one version.

A version of any other path in the tool's directory (a temporary or swap file that reached the
store) counts too.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench.harness import BenchError, run
from bench.measure import Goal
from bench.product import Mount
from bench.setting import Setting

GROUP = "versions"
_HELD_BACK_S = 6.5
"""Longer than a forgotten temporary name is held back before it is committed as itself."""

_PYTHON_REPLACE = """
import os, sys, tempfile
path, text = sys.argv[1:]
descriptor, name = tempfile.mkstemp(dir=os.path.dirname(path))
with open(descriptor, "w") as file:
    file.write(text)
    file.flush()
    os.fsync(descriptor)
os.replace(name, path)
"""
_PYTHON_OPEN = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
_EMACS = '(progn (goto-char (point-max)) (insert "{n}\\n") (save-buffer))'


@dataclass(frozen=True, slots=True)
class Tool:
    """One way to save. The script has the file as $1, a number as $2, a scratch file as $3.

    `deletes_first`: the tool removes the old file and makes a new one, which is no single save.
    """

    name: str
    needs: str
    script: str
    deletes_first: bool = False


TOOLS = (
    Tool("echo >", "sh", 'echo "text $2" > "$1"'),
    Tool("echo >>", "sh", 'echo "line $2" >> "$1"'),
    Tool("{ echo; echo; } >", "sh", '{ echo "a $2"; echo "b $2"; } > "$1"'),
    Tool("cat >", "cat", 'echo "text $2" | cat > "$1"'),
    Tool("cp", "cp", 'echo "text $2" > "$3"; cp "$3" "$1"'),
    Tool("cp -a", "cp", 'echo "text $2" > "$3"; cp -a "$3" "$1"'),
    Tool("mv from outside", "mv", 'echo "text $2" > "$3"; mv "$3" "$1"', True),
    Tool("install", "install", 'echo "text $2" > "$3"; install -m 644 "$3" "$1"', True),
    Tool("tee", "tee", 'echo "text $2" | tee "$1" > /dev/null'),
    Tool("tee -a", "tee", 'echo "line $2" | tee -a "$1" > /dev/null'),
    Tool("dd", "dd", 'echo "text $2" | dd of="$1" status=none'),
    Tool("sed -i", "sed", 'sed -i "1s/^/$2/" "$1"'),
    Tool("perl -i", "perl", 'perl -i -pe "s/^/$2/" "$1"'),
    Tool("ed", "ed", 'printf "1s/^/%s/\\nw\\nq\\n" "$2" | ed -s "$1"'),
    Tool("vim", "vim", 'vim -es -N -u NONE -c "1s/^/$2/" -c wq "$1" < /dev/null'),
    Tool("emacs", "emacs", f"emacs -Q --batch \"$1\" --eval '{_EMACS}'"),
    Tool("python open", "python3", '"$PYTHON" -c "$OPEN" "$1" "text $2"'),
    Tool("python temp+replace", "python3", '"$PYTHON" -c "$REPLACE" "$1" "text $2"'),
    Tool("jq > tmp && mv", "jq", 'echo "{}" | jq ".n=$2" > "$1.tmp" && mv "$1.tmp" "$1"'),
    Tool("sort -o", "sort", 'printf "%s\\nb\\n" "$2" > "$3"; sort -o "$1" "$3"'),
    Tool("patch", "patch", 'printf "1c\\ntext %s\\n.\\n" "$2" | patch -s -e "$1"'),
    Tool("rsync", "rsync", 'echo "text of length $2$2" > "$3"; rsync --checksum "$3" "$1"'),
    Tool("rsync --inplace", "rsync", 'echo "text $2" > "$3"; rsync -I --inplace "$3" "$1"'),
    Tool(
        "tar x",
        "tar",
        'cd "${3%/*}"; echo "t $2" > file.md; tar c file.md | tar x -C "${1%/*}"',
        True,
    ),
    Tool("truncate -s", "truncate", 'truncate -s "$((12 - $2))" "$1"'),
)


def run_tool(tool: Tool, path: Path, number: int, scratch: Path) -> None:
    environ = {"PYTHON": sys.executable, "OPEN": _PYTHON_OPEN, "REPLACE": _PYTHON_REPLACE}
    script = tool.script.replace("{n}", str(number))
    arguments = [str(path), str(number), str(scratch)]
    run(["sh", "-c", script, "sh", *arguments], timeout_s=30, environ=environ)


def run_group(setting: Setting) -> None:
    service = setting.need_service()
    saves = setting.many(5, 2)
    tools = [tool for tool in TOOLS if shutil.which(tool.needs)]
    homes = {tool: f"tool-{position:02d}" for position, tool in enumerate(tools)}
    texts = {f"{home}/file.md": "first\nsecond\n" for home in homes.values()}
    store = service.store(GROUP, texts)
    mount = Mount(setting.stage, store, service.environ)
    scratch = setting.stage.directory("scratch") / "scratch.md"
    failed: dict[Tool, BaseException] = {}
    for tool in tools:
        setting.stage.check_time(7.5)
        try:
            for number in range(3, 3 + saves):
                run_tool(tool, mount.path / homes[tool] / "file.md", number, scratch)
        except (BenchError, OSError) as error:
            failed[tool] = error
    time.sleep(_HELD_BACK_S)
    versions = [
        (str(version["path"]).split("/")[1:], str(version["operation"]))
        for version in reversed(service.api.versions(store))
    ]
    made = Counter(path[0] for path, _ in versions)
    for tool in tools:
        if tool in failed:
            setting.broken(GROUP, tool.name, failed[tool])
            continue
        figure = (made[homes[tool]] - 1) / saves
        setting.figure(
            GROUP,
            f"{tool.name}: versions a save",
            "",
            lambda figure=figure: figure,  # type: ignore[misc]
            [] if tool.deletes_first else [Goal(exactly=1)],
            note=_note(tool, figure, [each for each in versions if each[0][0] == homes[tool]]),
        )
    missing = sorted({tool.needs for tool in TOOLS if tool not in tools})
    if missing:
        print(f"    not installed here, so not tried: {', '.join(missing)}")


def _note(tool: Tool, figure: float, versions: list[tuple[list[str], str]]) -> str | None:
    """Why a tool makes another number of versions, or which they were."""
    if tool.deletes_first:
        return "it deletes the old file first"
    if figure == 1:
        return None
    shown = [f"{operation} {'/'.join(path[1:])}" for path, operation in versions[1:6]]
    return f"the first versions: {', '.join(shown) or 'none'}"
