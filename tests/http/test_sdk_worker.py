"""The official client's own environment worker keeps a directory in step: checks 53 and 54."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
from anthropic.lib.tools import _memories as worker

from tests.support.serving import Loop, Served

BIG = "x" * 102_401


class Bench:
    """A worker at a session's stores, acting with the session's token."""

    def __init__(self, client: Any, agent: Any, store_id: str, root: Path) -> None:
        self.memories = client.beta.memory_stores.memories
        self.versions = client.beta.memory_stores.memory_versions
        self.agent, self.store_id, self.root = agent, store_id, root
        self.stores: worker.SessionMemoryStores = None  # type: ignore[assignment]

    async def sync(self) -> None:
        """One sync, as the worker does between tool calls."""
        await self.stores._sync_all(final=False)

    async def texts(self) -> dict[str, str]:
        """What the service holds, by path."""
        listed = self.memories.list(self.store_id, view="full", limit=20)
        return {memory.path: memory.content async for memory in listed}

    async def find(self, path: str) -> Any:
        """The memory at a path."""
        listed = [m async for m in self.memories.list(self.store_id, limit=100)]
        return next(memory for memory in listed if memory.path == path)

    async def write(self, path: str, text: str) -> None:
        """Change a memory by another hand."""
        memory = await self.find(path)
        await self.memories.update(memory.id, memory_store_id=self.store_id, content=text)


@asynccontextmanager
async def bench(
    served: Served, folder: Path, access: str, texts: dict[str, str]
) -> AsyncIterator[Bench]:
    """A store with texts, attached to a session whose worker has downloaded it."""
    options: dict[str, Any] = {"base_url": served.url, "max_retries": 0}
    async with anthropic.AsyncAnthropic(api_key=served.admin_secret, **options) as client:
        store = await client.beta.memory_stores.create(name="Worker")
        for path, text in texts.items():
            await client.beta.memory_stores.memories.create(store.id, path=path, content=text)
        session = await client.beta.sessions.create(
            agent="agent_1",
            environment_id="env_1",
            resources=[{"type": "memory_store", "memory_store_id": store.id, "access": access}],  # type: ignore[typeddict-item]
        )
        made: Any = await client.post(f"/v1/sessions/{session.id}/tokens", cast_to=object)
        async with anthropic.AsyncAnthropic(api_key=made["token"], **options) as agent:
            own = await agent.beta.sessions.retrieve(session.id)
            # The mount path is meant for a container; here it is moved below a test's folder.
            assert own.resources[0].mount_path == "/mnt/memory/worker"
            root = folder / "worker"
            own.resources[0].mount_path = str(root)
            found = Bench(client, agent, store.id, root)
            found.stores = worker.SessionMemoryStores(agent, workdir=folder)
            await found.stores.download(own)
            yield found
            await found.stores.dispose()


def run(loop: Loop, work: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario to its end."""
    loop.run(work())


def test_53_a_directory_and_its_store_stay_in_step(
    served: Served, loop: Loop, tmp_path: Path, monkeypatch: Any
) -> None:
    """Downloads, creates, updates, deletes, lost races, re-creations and refusals come out right."""
    monkeypatch.setattr(worker, "DELETE_CORROBORATION_SECONDS", 0.0)

    async def scenario() -> None:
        texts = {"/a.md": "a", "/deep/b.md": "b", "/c.md": "c", "/gone.md": "g"}
        async with bench(served, tmp_path, "read_write", texts) as it:
            assert (it.root / "deep/b.md").read_text() == "b"

            (it.root / "a.md").write_text("a, edited\r\n")
            (it.root / "new.md").write_text("new")
            (it.root / "deep/b.md").unlink()
            (it.root / "big.md").write_text(BIG)
            await it.sync()
            await it.sync()
            stored = await it.texts()
            expected = {"/a.md": "a, edited\r\n", "/c.md": "c", "/gone.md": "g", "/new.md": "new"}
            assert stored == expected or stored == {**expected, "/deep/b.md": "b"}
            await it.sync()
            assert await it.texts() == expected

            (remembered,) = it.stores._stores[0].refused_shas
            assert remembered == "big.md"
            (it.root / "big.md").write_text("small")
            await it.sync()
            assert (await it.texts())["/big.md"] == "small"

            await it.write("/c.md", "theirs")
            (it.root / "c.md").write_text("mine")
            await it.sync()
            assert (it.root / "c.md").read_text() == "theirs"

            gone = await it.find("/gone.md")
            await it.memories.delete(gone.id, memory_store_id=it.store_id)
            (it.root / "gone.md").write_text("still wanted")
            await it.sync()
            assert (await it.texts())["/gone.md"] == "still wanted"

            version = (await it.versions.list(it.store_id)).data[0]
            assert version.created_by.type == "session_actor"
            (it.root / "last.md").write_text("last")
            (it.root / "new.md").unlink()
            await it.stores.finish()
            assert "/new.md" not in await it.texts()
            (it.root / "flushed.md").write_text("flushed")
            await it.stores.flush_writes()
            assert (await it.texts())["/flushed.md"] == "flushed"

    run(loop, scenario)


def test_53_lost_races_and_late_deletes(served: Served, loop: Loop, tmp_path: Path) -> None:
    """An upload against a changed memory is a 409 that keeps the winner; a late edit re-creates."""

    async def scenario() -> None:
        async with bench(served, tmp_path, "read_write", {"/a.md": "a", "/b.md": "b"}) as it:
            attached = it.stores._stores[0]
            listed, other = await it.find("/a.md"), await it.find("/b.md")
            await it.write("/a.md", "theirs")
            (it.root / "a.md").write_text("mine")
            assert await it.stores._upload(attached, "a.md", "sha", existing=listed) is None
            assert (await it.texts())["/a.md"] == "theirs"

            await it.memories.delete(other.id, memory_store_id=it.store_id)
            (it.root / "b.md").write_text("mine")
            assert await it.stores._upload(attached, "b.md", "sha", existing=other)
            assert (await it.texts())["/b.md"] == "mine"
            kept = await it.stores._delete_remote(attached, "a.md", listed, listed.content_sha256)
            assert kept == listed.content_sha256
            assert await it.stores._delete_remote(attached, "b.md", other, "0" * 64) is None

    run(loop, scenario)


def test_54_a_read_only_attachment_never_pushes(served: Served, loop: Loop, tmp_path: Path) -> None:
    """It pulls what others write; local edits, new files and deletes stay local."""

    async def scenario() -> None:
        async with bench(served, tmp_path, "read_only", {"/a.md": "a", "/b.md": "b"}) as it:
            (it.root / "b.md").write_text("mine")
            (it.root / "new.md").write_text("new")
            await it.write("/a.md", "theirs")
            await it.sync()
            await it.stores.flush_writes()
            await it.stores.finish()
            assert (it.root / "a.md").read_text() == "theirs"
            assert await it.texts() == {"/a.md": "theirs", "/b.md": "b"}
            assert len([v async for v in it.versions.list(it.store_id)]) == 3

    run(loop, scenario)
