"""The table from refusals to errno is closed."""

from __future__ import annotations

import errno

from fuse_mount.vfs.errors import ERRNO, as_oserror
from memstore.backend import NotSupported
from memstore.model.errors import MemstoreError, tree


def test_every_refusal_has_its_own_row() -> None:
    """Each class of the drawn tree is mapped, the port's own too, and nothing else is."""
    drawn = {kind for kind in tree() if kind.__module__ == MemstoreError.__module__}
    assert set(ERRNO) == drawn | {NotSupported}


def test_every_row_is_an_errno() -> None:
    """The table holds numbers that the system knows."""
    assert all(code in errno.errorcode for code in ERRNO.values())


def test_an_unlisted_refusal_takes_its_nearest_ancestor() -> None:
    """A refusal of a later version is told as its parent's errno."""

    def made() -> type[MemstoreError]:
        from memstore.model.errors import StoreArchived

        return type("Later", (StoreArchived,), {})

    kind = made()
    assert as_oserror(kind("s")).errno == errno.EROFS
