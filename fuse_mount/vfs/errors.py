"""The closed table from refusals of the store to errno.

`tests/house/test_errno.py` proves that every class of `memstore.model.errors` has its own row.
"""

from __future__ import annotations

import errno

from memstore.backend import NotSupported
from memstore.model import errors

ERRNO: dict[type[errors.MemstoreError], int] = {
    errors.MemstoreError: errno.EIO,
    errors.NotFound: errno.ENOENT,
    errors.PathConflict: errno.EEXIST,
    errors.PreconditionFailed: errno.ESTALE,
    errors.Conflict: errno.ESTALE,
    errors.Invalid: errno.EINVAL,
    errors.InvalidPath: errno.EINVAL,
    errors.PathTooLong: errno.ENAMETOOLONG,
    errors.InvalidContent: errno.EILSEQ,
    errors.TooLarge: errno.EFBIG,
    errors.StoreFull: errno.EDQUOT,
    errors.StoreArchived: errno.EROFS,
    errors.HeadNotRedactable: errno.EPERM,
    errors.RequestTooLarge: errno.EFBIG,
    errors.Unauthenticated: errno.EACCES,
    errors.Forbidden: errno.EACCES,
    errors.RateLimited: errno.EIO,
    errors.Unavailable: errno.EIO,
    NotSupported: errno.EOPNOTSUPP,
}
"""RateLimited and Unavailable are retried first; they become EIO when the time is up."""

TRANSIENT = (errors.Unavailable, errors.RateLimited)
"""Refusals worth waiting for."""


def as_oserror(error: errors.MemstoreError) -> OSError:
    """The OSError a file operation raises for a refusal of the store."""
    for kind in type(error).__mro__:
        if kind in ERRNO:
            return OSError(ERRNO[kind], error.message)
    return OSError(errno.EIO, error.message)
