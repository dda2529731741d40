"""`memstore store ...`."""

from __future__ import annotations

from typing import Annotated

import typer

from memstore.cli import names, output
from memstore.cli.exits import INVALID, Stop
from memstore.cli.options import AsJson, StoreName, Yes
from memstore.cli.service import opened
from memstore.model import clock, objects
from memstore.model.stores import Store

app = typer.Typer(no_args_is_help=True, help="Make, list, change and remove stores.")

Description = Annotated[str | None, typer.Option("--description", help="What it holds.")]
Metadata = Annotated[
    list[str] | None, typer.Option("--metadata", metavar="KEY=VALUE", help="Repeatable.")
]


def _pairs(metadata: list[str] | None) -> dict[str, str]:
    pairs = {}
    for item in metadata or []:
        key, equals, value = item.partition("=")
        if not equals:
            raise Stop(INVALID, f"--metadata takes KEY=VALUE, not {item!r}.")
        pairs[key] = value
    return pairs


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    description: Description = None,
    metadata: Metadata = None,
    json: AsJson = False,
) -> None:
    """Make a store and print its id."""
    with opened() as backend:
        store = backend.create_store(
            name=name, description=description or "", metadata=_pairs(metadata)
        )
    output.as_json(objects.store(store)) if json else output.line(store.id)


@app.command("list")
def list_(
    archived: Annotated[
        bool, typer.Option("--archived", help="Show archived stores, too.")
    ] = False,
    json: AsJson = False,
) -> None:
    """List the stores, newest first."""
    with opened() as backend:
        stores = names.all_stores(backend, archived=archived)
    if json:
        output.data(objects.store(store) for store in stores)
        return
    output.table(
        ("id", "name", "created", "archived"),
        [
            (
                store.id,
                store.name,
                clock.rfc3339(store.created_at)[:19] + "Z",
                "archived" if store.archived_at else "",
            )
            for store in stores
        ],
    )


@app.command()
def show(store: StoreName, json: AsJson = False) -> None:
    """Show one store, and how full it is."""
    from memstore.backend import NotSupported

    with opened() as backend:
        found = names.find_store(backend, store)
        if json:
            output.as_json(objects.store(found))
            return
        pairs = _described(found)
        try:
            usage = backend.store_usage(found.id)
        except NotSupported:
            pass
        else:
            pairs.append(("memories", f"{usage.memories} of {usage.max_memories}"))
            pairs.append(("bytes", f"{usage.bytes} of {usage.max_bytes}"))
    output.fields(pairs)


def _described(store: Store) -> list[tuple[str, str]]:
    pairs = [
        ("id", store.id),
        ("name", store.name),
        ("description", store.description),
        ("created", clock.rfc3339(store.created_at)),
        ("updated", clock.rfc3339(store.updated_at)),
    ]
    if store.archived_at:
        pairs.append(("archived", clock.rfc3339(store.archived_at)))
    return pairs + [(f"metadata {key}", value) for key, value in store.metadata.items()]


@app.command()
def update(
    store: StoreName,
    name: Annotated[str | None, typer.Option("--name", help="The new name.")] = None,
    description: Description = None,
    metadata: Metadata = None,
    remove_metadata: Annotated[
        list[str] | None, typer.Option("--remove-metadata", metavar="KEY", help="Repeatable.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Change a store's name, description or metadata."""
    patch: dict[str, str | None] = {**_pairs(metadata)}
    patch.update(dict.fromkeys(remove_metadata or []))
    with opened() as backend:
        changed = backend.update_store(
            names.store_id(backend, store),
            name=name,
            description=description,
            metadata=patch or None,
        )
    output.as_json(objects.store(changed)) if json else output.line(changed.id)


@app.command()
def archive(store: StoreName, json: AsJson = False) -> None:
    """Close a store to writes, for good; it stays readable."""
    with opened() as backend:
        archived = backend.archive_store(names.store_id(backend, store))
    output.as_json(objects.store(archived)) if json else output.line(archived.id)


@app.command()
def delete(store: StoreName, yes: Yes = False, json: AsJson = False) -> None:
    """Remove a store with all its memories and versions, for ever."""
    with opened() as backend:
        found = names.find_store(backend, store)
        output.confirm(
            f"Delete store {found.name!r} ({found.id}) with its whole history, for ever?", yes=yes
        )
        backend.delete_store(found.id)
    output.as_json(objects.deleted(found.id, "memory_store")) if json else output.line(found.id)
