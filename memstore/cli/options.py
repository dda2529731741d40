"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

StoreName = Annotated[
    str, typer.Argument(metavar="STORE", help="A store's id or unique name.", show_default=False)
]
MemoryPath = Annotated[
    str, typer.Argument(metavar="PATH", help="A memory's path.", show_default=False)
]
MaybePath = Annotated[
    str | None, typer.Argument(metavar="[PATH]", help="A memory's path.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's own objects.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
OneVersion = Annotated[
    str | None, typer.Option("--version", metavar="ID", help="A version, memver_...")
]
Expected = Annotated[
    str | None,
    typer.Option("--if-sha256", metavar="HASH", help="Only if the stored text has this SHA-256."),
]
