"""Reading listings to their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memstore.model.pages import Page


def every(listing: Callable[..., Page[Any]], *arguments: Any, **options: Any) -> list[Any]:
    """All items of a listing, page by page."""
    items: list[Any] = []
    page = listing(*arguments, **options)
    items.extend(page.data)
    while page.next_page is not None:
        page = listing(*arguments, **options, page=page.next_page)
        assert page.data, "a page behind a cursor is not empty"
        items.extend(page.data)
    return items
