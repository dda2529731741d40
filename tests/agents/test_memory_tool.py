"""The memory tool over a store, beside the SDK's own file-based tool."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from hypothesis import given
from hypothesis import strategies as st

import memstore
from memstore.agents import AsyncMemoryTool, MemoryTool
from memstore.agents.wording import DOCUMENTED
from memstore.backend import Backend, NotSupported
from memstore.model.memories import Memory
from tests.support.worlds import WORLDS

SEGMENTS = st.sampled_from(["a", "a.md", "b.txt", "d", "e", ".h", "é", "x y"])
PATHS = st.one_of(
    st.lists(SEGMENTS, min_size=1, max_size=4).map(lambda parts: "/memories/" + "/".join(parts)),
    st.sampled_from(
        ["/memories", "/memories/", "/memories//a.md", "/memories/d/../a.md", "/memories/./a.md"]
    ),
    st.sampled_from(["/memories/../x", "/memories/d/../../x", "/etc/passwd", "memories/a", ""]),
)
TEXTS = st.one_of(
    st.text(alphabet="ab\n", max_size=12),
    st.text(alphabet="aé\r\n\t{}`\u2028", max_size=40),
    st.integers(1000, 3000).map(lambda count: "line\n" * count),
)
BITS = st.text(alphabet="ab\n", max_size=3)
LINES = st.integers(-3, 8)
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": PATHS}),
    st.fixed_dictionaries(
        {
            "command": st.just("view"),
            "path": PATHS,
            "view_range": st.one_of(st.tuples(LINES, LINES).map(list), st.just([1])),
        }
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": PATHS, "old_str": BITS, "new_str": BITS}
    ),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PATHS, "insert_line": LINES, "insert_text": BITS}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


class Hosted:
    """A backend without the extensions the tool would use, as a server hosted elsewhere is."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __getattr__(self, verb: str) -> Any:
        if verb in ("get_memory_at", "apply_changes"):
            return self._refuse
        return getattr(self._backend, verb)

    def _refuse(self, *given: object, **named: object) -> None:
        raise NotSupported()


@pytest.fixture(params=[*sorted(WORLDS), "hosted"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The port in process, over HTTP, and without extensions."""
    kind = "local" if request.param == "hosted" else request.param
    world = WORLDS[kind](tmp_path, max_memories=10_000, max_bytes=104_857_600, heartbeat=15.0)
    connected = world.connect(world.admin_secret)
    yield Hosted(connected) if request.param == "hosted" else connected
    connected.close()
    world.close()


@pytest.fixture
def tool(backend: Any) -> MemoryTool:
    """The tool on an empty store."""
    return MemoryTool(backend, backend.create_store(name="memories").id)


def answer(tool: Any, **command: Any) -> str:
    """The tool's text, or its error behind a mark; what leaks from the system is only an error."""
    try:
        return str(tool.call(command))
    except ToolError as error:
        return f"ERR {error}"
    except OSError:
        return "ERR by the system"


def comparable(text: str) -> str:
    """Without the sizes of directories, which a store cannot have from a disk."""
    if not text.startswith("Here're the files"):
        return text
    header, *lines = text.split("\n")
    named = header.split(" levels deep in ")[1].removesuffix(", excluding hidden items:")
    kept = []
    for line in lines:
        size, path = line.split("\t", 1)
        kept.append(f"?\t{path}" if path == named or path.endswith("/") else f"{size}\t{path}")
    return "\n".join([header, *kept])


def prune(root: Path) -> None:
    """Remove empty directories: a store has none."""
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def texts_of(root: Path) -> dict[str, str]:
    """Every file below a directory, read byte for byte."""
    return {
        f"/{path.relative_to(root)}": path.read_bytes().decode()
        for path in root.rglob("*")
        if path.is_file()
    }


def texts_in(backend: Backend, store: str) -> dict[str, str]:
    """Every memory of a store."""
    found: dict[str, str] = {}
    page = None
    while True:
        listed = backend.list_memories(store, view="full", page=page)
        found |= {m.path: m.content or "" for m in listed.data if isinstance(m, Memory)}
        page = listed.next_page
        if page is None:
            return found


@given(commands=st.lists(COMMANDS, min_size=1, max_size=25))
def test_any_commands_get_the_answers_of_the_sdks_own_tool(commands: list[dict[str, Any]]) -> None:
    """Whatever a model asks, the answers and the texts left are those of the SDK's file tool."""
    with tempfile.TemporaryDirectory() as home:
        reference = BetaLocalFilesystemMemoryTool(home)
        backend = memstore.connect(f"sqlite:///{home}/store.sqlite")
        try:
            store = backend.create_store(name="memories").id
            tool = MemoryTool(backend, store)
            for command in commands:
                theirs, ours = answer(reference, **command), answer(tool, **command)
                prune(reference.memory_root)
                if theirs == "ERR by the system":
                    assert ours.startswith("ERR "), command
                else:
                    assert comparable(ours) == comparable(theirs), command
            assert texts_in(backend, store) == texts_of(reference.memory_root)
        finally:
            backend.close()


def test_every_backend_gives_the_same_answers(tool: MemoryTool, tmp_path: Path) -> None:
    """One long conversation reads the same in process, over HTTP and on a server without extras."""
    reference = BetaLocalFilesystemMemoryTool(str(tmp_path / "reference"))
    for command in [
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": "/memories/d/a.md", "file_text": "one\ntwo\nthree\n"},
        {"command": "create", "path": "/memories/d/a.md", "file_text": "again"},
        {"command": "create", "path": "/memories/d", "file_text": "a directory"},
        {"command": "create", "path": "/memories/d/e/f/g.md", "file_text": "deep"},
        {"command": "create", "path": "/memories/.hidden", "file_text": "x" * 1536},
        {"command": "create", "path": "/memories/big.md", "file_text": "x" * 1536},
        {"command": "view", "path": "/memories"},
        {"command": "view", "path": "/memories/d/a.md"},
        {"command": "view", "path": "/memories/d/a.md", "view_range": [2, -1]},
        {"command": "view", "path": "/memories/none"},
        {"command": "str_replace", "path": "/memories/d/a.md", "old_str": "two", "new_str": "2"},
        {"command": "str_replace", "path": "/memories/d/a.md", "old_str": "e", "new_str": ""},
        {"command": "str_replace", "path": "/memories/d", "old_str": "e", "new_str": ""},
        {"command": "insert", "path": "/memories/d/a.md", "insert_line": 3, "insert_text": "end\n"},
        {"command": "insert", "path": "/memories/d/a.md", "insert_line": 9, "insert_text": "x"},
        {"command": "insert", "path": "/memories/none", "insert_line": 0, "insert_text": "x"},
        {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/m/n"},
        {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/z"},
        {"command": "rename", "old_path": "/memories", "new_path": "/memories/z"},
        {"command": "rename", "old_path": "/memories/m", "new_path": "/memories/big.md"},
        {"command": "view", "path": "/memories/m"},
        {"command": "delete", "path": "/memories/m/n/e"},
        {"command": "delete", "path": "/memories"},
        {"command": "delete", "path": "/memories/none"},
        {"command": "view", "path": "/memories/"},
    ]:
        theirs, ours = answer(reference, **command), answer(tool, **command)
        prune(reference.memory_root)
        assert comparable(ours) == comparable(theirs), command
    assert tool.clear_all_memory() == reference.clear_all_memory()
    assert answer(tool, command="view", path="/memories").endswith("\n0B\t/memories")


def test_the_async_tool_answers_the_same(backend: Any) -> None:
    """The tool for the async client gives the same texts and the same errors."""
    tool = AsyncMemoryTool(backend, backend.create_store(name="memories").id)

    async def talk() -> None:
        created = {"command": "create", "path": "/memories/a.md", "file_text": "one\n"}
        assert await tool.call(created) == "File created successfully at: /memories/a.md"
        shown = await tool.call({"command": "view", "path": "/memories/a.md"})
        assert shown == (
            "Here's the content of /memories/a.md with line numbers:\n     1\tone\n     2\t"
        )
        with pytest.raises(ToolError, match=r"File /memories/a\.md already exists"):
            await tool.call(created)
        assert await tool.clear_all_memory() == "All memory cleared"

    asyncio.run(talk())
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_parallel_edits_of_one_file_are_all_kept(tool: MemoryTool) -> None:
    """Edits made by several agents at once all end up in the file."""
    answer(tool, command="create", path="/memories/log.md", file_text="start\n")
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(
                lambda number: answer(
                    tool,
                    command="insert",
                    path="/memories/log.md",
                    insert_line=1,
                    insert_text=f"entry {number}",
                ),
                range(24),
            )
        )
    assert set(answers) == {"The file /memories/log.md has been edited."}
    shown = answer(tool, command="view", path="/memories/log.md")
    assert all(f"\tentry {number}\n" in shown for number in range(24))


@pytest.mark.parametrize(
    "path",
    [
        "/memories/%2e%2e/secret",
        "/memories/a/%2E./%2e%2e/%2e%2e/secret",
        "/memories/%252e%252e/secret",
        "/memories/..%2fsecret",
        "/memories/..%5csecret",
    ],
)
def test_an_encoded_way_out_is_refused(tool: MemoryTool, path: str) -> None:
    """A path that leaves the directory once it is decoded is refused, however it is encoded."""
    expected = f"ERR Path {path} would escape /memories directory"
    assert answer(tool, command="view", path=path) == expected


@pytest.mark.parametrize("path", ["/memoriesX", "/memories.md", "/memories%2fa"])
def test_a_longer_first_name_is_not_the_memory_directory(tool: MemoryTool, path: str) -> None:
    """Only `/memories` itself and what is below it is reachable."""
    expected = f"ERR Path must start with /memories, got: {path}"
    assert answer(tool, command="view", path=path) == expected


def test_a_percent_sign_in_a_name_is_an_ordinary_character(tool: MemoryTool) -> None:
    """A name that merely looks encoded is taken as it is."""
    answer(tool, command="create", path="/memories/100%25.md", file_text="all")
    assert answer(tool, command="view", path="/memories").endswith("\t/memories/100%25.md")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nul \0", "ERR Content may not hold U+0000."),
        ("x" * 102_401, "ERR Content is 102401 bytes"),
    ],
)
def test_what_a_store_refuses_is_told_to_the_model(
    tool: MemoryTool, text: str, reason: str
) -> None:
    """A text the store cannot keep is refused with the reason, and nothing is written."""
    refused = answer(tool, command="create", path="/memories/a.md", file_text=text)
    assert refused.startswith(reason)
    missing = answer(tool, command="view", path="/memories/a.md")
    assert missing.startswith("ERR The path /memories/a.md does not exist.")


def test_an_unknown_command_is_not_implemented(tool: MemoryTool) -> None:
    """A command that the tool does not have is refused as the SDK's tool refuses it."""
    with pytest.raises(NotImplementedError, match="Unknown command: shout"):
        tool.call({"command": "shout"})


def test_the_documented_wording_can_be_chosen(backend: Any) -> None:
    """With the documented wording the errors and sizes read as the tool's documentation shows."""
    store = backend.create_store(name="memories").id
    tool = MemoryTool(backend, store, wording=DOCUMENTED)
    for path in ("/memories/a.md", "/memories/node_modules/x.js"):
        answer(tool, command="create", path=path, file_text="x" * 4096)
    assert answer(tool, command="view", path="/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, "
        "excluding hidden items and node_modules:\n8.0K\t/memories\n4.0K\t/memories/a.md"
    )
    insert = {"command": "insert", "insert_text": "x"}
    assert answer(tool, **insert, path="/memories/a.md", insert_line=7) == (
        "ERR Error: Invalid `insert_line` parameter: 7. "
        "It should be within the range of lines of the file: [0, 1]"
    )
    assert answer(tool, **insert, path="/memories/none", insert_line=0) == (
        "ERR Error: The path /memories/none does not exist"
    )
    assert answer(tool, command="view", path="/memories/none") == (
        "ERR The path /memories/none does not exist. Please provide a valid path."
    )
