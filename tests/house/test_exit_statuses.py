"""Every refusal has an exit status, and no other code has one."""

from __future__ import annotations

import memstore.service.database
from memstore.cli.exits import STATUS, status_of
from memstore.model.errors import tree

assert memstore.service.database, "imported for the classes that it adds to the tree"


def test_the_table_is_complete() -> None:
    """The table's codes are exactly the codes of the drawn tree."""
    ours = {cls.code for cls in tree() if cls.__module__.startswith("memstore.")}
    assert set(STATUS) == ours


def test_statuses_are_the_documented_ones() -> None:
    """A refusal never ends a command with success, usage, or a number nobody documented."""
    assert set(STATUS.values()) <= {1, 3, 4, 5, 6, 7}
    for cls in tree():
        if cls.__module__.startswith("memstore."):
            assert status_of(cls()) == STATUS[cls.code]
