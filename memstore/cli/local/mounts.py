"""The mounts of a running service: one child for each store, made and ended as stores are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memstore.cli.local import points
from memstore.cli.local.child import Child
from memstore.model.stores import Store, slug

DRAIN_S = 45.0
"""How long mounts may take to commit what is dirty: the driver's own 30 s, and some."""


@dataclass(slots=True)
class Mount:
    """One store's mount, wanted or there."""

    store_id: str
    name: str
    path: Path
    child: Child
    made: bool = False
    problem: str = ""

    @property
    def ready(self) -> bool:
        """Whether it serves."""
        return self.child.ready is not None

    @property
    def settled(self) -> bool:
        """Whether it serves, or has failed at least once."""
        return self.ready or bool(self.problem or self.child.problem)

    def state(self) -> dict[str, Any]:
        """For `status`."""
        return {
            "store_id": self.store_id,
            "name": self.name,
            "path": str(self.path),
            "state": "mounted" if self.ready else "failed" if self.settled else "starting",
            "problem": None if self.ready else (self.problem or self.child.problem or None),
            "pid": self.child.pid,
        }


class Mounts:
    """Every store of the listing, mounted below a root.

    Trouble goes to `report`, what went well to `tell`, in sentences.
    """

    def __init__(
        self,
        root: Path,
        logs: Path,
        environment: Mapping[str, str],
        report: Callable[[str], None],
        tell: Callable[[str], None],
    ) -> None:
        self._root = root
        self._logs = logs
        self._environment = environment
        self._report = report
        self._news = tell
        self._mounts: dict[str, Mount] = {}
        self._said: dict[str, str] = {}

    def __iter__(self) -> Iterator[Mount]:
        return iter(list(self._mounts.values()))

    def follow(self, stores: Iterable[Store]) -> None:
        """Begin mounts for stores that have none, and end those whose store is gone."""
        listed = {store.id: store for store in stores}
        for store_id in [id for id in self._mounts if id not in listed]:
            self._end([self._mounts.pop(store_id)])
        for store in sorted(listed.values(), key=lambda store: store.created_at):
            if store.id not in self._mounts and store.archived_at is None:
                self._mounts[store.id] = self._new(store)

    def _new(self, store: Store) -> Mount:
        base = name = slug(store.name, store.id)
        taken = {mount.path.name for mount in self._mounts.values()}
        number = 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        # NAME_MAX; a slug that long is not unique any more, its id is.
        path = self._root / (name if len(name) <= 200 else store.id)
        command = [sys.executable, "-m", "memstore.cli", "mount", store.id, str(path)]
        child = Child(
            f"the mount of {store.name!r} at {path}",
            [*command, "--foreground"],
            self._environment,
            self._logs / f"mount-{path.name}.log",
            self._report,
        )
        return Mount(store.id, store.name, path, child)

    def look(self) -> None:
        """Start, and start again, what should be there; report what fails, once."""
        for mount in list(self._mounts.values()):
            child = mount.child
            if child.due:
                self._begin(mount)
            child.look()
            self._tell(mount)

    def _begin(self, mount: Mount) -> None:
        """Start the driver where the mount point can be used; else look again later."""
        try:
            mount.made = points.prepare(mount.path) or mount.made
        except points.Unusable as error:
            mount.problem = str(error)
            mount.child.postpone()
            return
        mount.problem = ""
        mount.child.start()

    def _tell(self, mount: Mount) -> None:
        """Say what changed: a failure once, and its end."""
        said = self._said.get(mount.store_id, "")
        if mount.ready:
            if said != "mounted":
                self._news(f"store {mount.name!r} is mounted at {mount.path}.")
            self._said[mount.store_id] = "mounted"
            return
        problem = mount.problem or mount.child.problem
        if problem and problem != said and not mount.child.running:
            if said != "mounted":
                # Else the child has just reported its unexpected end itself.
                self._report(f"store {mount.name!r} is not mounted: {problem.rstrip('.')}.")
            self._said[mount.store_id] = problem

    def settled(self) -> bool:
        """Whether every mount serves or has failed."""
        return all(mount.settled for mount in self._mounts.values())

    def outputs(self) -> list[int]:
        """Descriptors that become readable when a child says something or ends."""
        outputs = (mount.child.output for mount in self._mounts.values())
        return [output for output in outputs if output is not None]

    def states(self) -> list[dict[str, Any]]:
        """For `status`."""
        return [mount.state() for mount in self._mounts.values()]

    def close(self) -> None:
        """Drain and unmount all, at the same time."""
        self._end(list(self._mounts.values()))
        self._mounts.clear()

    def _end(self, mounts: list[Mount]) -> None:
        deadline = time.monotonic() + DRAIN_S
        for mount in mounts:
            mount.child.terminate()
        for mount in mounts:
            if not mount.child.finish(deadline):
                self._report(
                    f"the mount at {mount.path} did not drain within {DRAIN_S:g} s and was ended; "
                    f"what could not be saved is in {self._logs}."
                )
            if mount.child.exit_status is not None and points.mounted(mount.path):
                points.detach(mount.path)
            if mount.made:
                points.remove(mount.path)
            self._said.pop(mount.store_id, None)
