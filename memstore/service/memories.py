"""Memories: read and list. Changing them is in `changes`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from memstore.backend import Snapshot
from memstore.model import ids, pages, paths
from memstore.model.access import Caller
from memstore.model.errors import Invalid, NotFound
from memstore.model.memories import Memory, MemoryPrefix
from memstore.service.core import Core, check_view, judged, reread, see_store, text_key
from memstore.storage import memories
from memstore.storage.statement import Row, Tx

FIRST_AFTER = "\x01"
"""Appended to a path: greater than it, and not greater than any other path that is."""
FOLDED_CHUNK = 4
"""Rows read after a directory was passed over: few, since the next may be of another one."""


@reread
def get(core: Core, caller: Caller, store_id: str, memory_id: str, view: str) -> Memory:
    """One live memory."""
    with judged(core, caller, store_id, "read"):
        check_view(view)
    with core.engine.read() as tx:
        see_store(tx, caller, store_id)
        return find(tx, store_id, memory_id, view)


def find(tx: Tx, store_id: str, memory_id: str, view: str) -> Memory:
    """The live memory of an id; else NotFound."""
    memory = None
    if ids.is_id(memory_id, ids.MEMORY):
        memory = memories.get(tx, store_id, memory_id, view)
    if memory is None:
        raise NotFound("memory", memory_id)
    return memory


@reread
def get_at(core: Core, caller: Caller, store_id: str, path: str, view: str) -> Memory:
    """The live memory at a path."""
    with judged(core, caller, store_id, "read"):
        check_view(view)
        paths.validate(path)
    with core.engine.read() as tx:
        see_store(tx, caller, store_id)
        memory = memories.at_path(tx, store_id, path, view)
    if memory is None:
        raise NotFound(message=f"No memory is at {path!r}.")
    return memory


@reread
def list_(
    core: Core,
    caller: Caller,
    store_id: str,
    *,
    path_prefix: str | None,
    depth: int,
    view: str,
    limit: int,
    page: str | None,
) -> pages.Page[Memory | MemoryPrefix]:
    """Live memories in byte order of their paths."""
    with judged(core, caller, store_id, "read"):
        check_view(view)
        limit = pages.page_limit(limit, view)
        if depth not in (0, 1):
            raise Invalid("depth is 0 or 1")
        prefix = paths.validate_prefix("/" if path_prefix is None else path_prefix)
        listing = f"memories {store_id} {depth} {prefix}"
        low, high = prefix, _past(prefix)
        if page is not None:
            low = max(low, text_key(pages.decode_cursor(listing, page)))
    with core.engine.read() as tx:
        see_store(tx, caller, store_id)

        def read(low: str, count: int) -> list[Row]:
            return memories.page(tx, store_id, low=low, high=high, view=view, limit=count)

        if depth == 0:
            found: list[Memory | MemoryPrefix] = [
                memories.from_row(tx, row) for row in read(low, limit + 1)
            ]
        else:
            found = _folded(tx, read, prefix, low, limit + 1)
    shown = tuple(found[:limit])
    if len(found) <= limit:
        return pages.Page(shown, None)
    last = shown[-1]
    key = last.path + FIRST_AFTER if isinstance(last, Memory) else _past(last.path)
    return pages.Page(shown, pages.encode_cursor(listing, key))


def _past(prefix: str) -> str:
    """The bound above everything below a directory: `/a/` gives `/a0`."""
    return prefix[:-1] + "0"


def _folded(
    tx: Tx, read: Callable[[str, int], list[Row]], prefix: str, low: str, count: int
) -> list[Memory | MemoryPrefix]:
    """Up to `count` direct children; what lies deeper is passed over by its directory's bound."""
    found: list[Memory | MemoryPrefix] = []
    chunk = count
    while len(found) < count:
        rows = read(low, chunk)
        jumped = False
        for row in rows:
            path: str = row[memories.PATH]
            if path < low:
                continue
            slash = path.find("/", len(prefix))
            jumped = slash != -1
            if jumped:
                found.append(MemoryPrefix(path[: slash + 1]))
                low = _past(path[: slash + 1])
            else:
                found.append(memories.from_row(tx, row))
                low = path + FIRST_AFTER
            if len(found) == count:
                break
        if len(rows) < chunk:
            break
        chunk = FOLDED_CHUNK if jumped else min(chunk * 2, count)
    return found


class _Stream(Iterator[Memory]):
    """The memories of a snapshot; its reading ends with it, however that comes."""

    def __init__(self, rows: Generator[Memory, None, None], end: Callable[[], None]) -> None:
        self._rows = rows
        self._end = end

    def __next__(self) -> Memory:
        try:
            return next(self._rows)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the reading. The rows go first: an open cursor would pin the connection's view."""
        self._rows.close()
        self._end()

    def __del__(self) -> None:
        self.close()


def snapshot(core: Core, caller: Caller, store_id: str) -> Snapshot:
    """Every live memory with its text at one moment."""
    with judged(core, caller, store_id, "read"):
        pass
    tx, end = core.engine.open_read()
    try:
        cursor = see_store(tx, caller, store_id)[-1]
        return Snapshot(cursor, _Stream(memories.stream(tx, store_id), end))
    except BaseException:
        end()
        raise
