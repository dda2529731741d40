"""Every way a verb can refuse.

MemstoreError
├── NotFound                no such store, memory, version, session or key (or not the caller's)
├── PathConflict            the path is taken, or overlaps a live memory's path
├── PreconditionFailed      the memory is not what the caller believes
├── Conflict                another conflict with the present state
├── Invalid                 the request can never succeed as written
│   ├── InvalidPath
│   │   └── PathTooLong
│   ├── InvalidContent      not text: not UTF-8, or holds NUL
│   ├── TooLarge            over the limit for one memory
│   ├── StoreFull           the store's cap of memories or bytes
│   ├── StoreArchived       an archived store takes no writes
│   └── HeadNotRedactable   the head version of a live memory
├── RequestTooLarge         the whole request is over the limit
├── Unauthenticated         no credential, or not a valid one
├── Forbidden               the credential may not do this
├── RateLimited             too many requests
└── Unavailable             try again later

A refusal carries fields, not prose: the class writes the sentence, and each edge (HTTP, errno,
exit status) maps the `code` by a closed table. Codes are stable: they travel over HTTP as
`error.details.error_code`, from which the client rebuilds the same class.
"""

from __future__ import annotations


class MemstoreError(Exception):
    """Base of every refusal. `code` is stable and public."""

    code = "error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.__class__.__doc__ or self.code)

    @property
    def message(self) -> str:
        """One sentence for people; never holds a memory's text or a secret."""
        return str(self.args[0])


class NotFound(MemstoreError):
    """Nothing of that kind and id that the caller can see."""

    code = "not_found"

    def __init__(self, kind: str = "", id: str = "", *, message: str = "") -> None:
        self.kind, self.id = kind, id
        super().__init__(message or f"No {kind} {id!r} was found.")


class PathConflict(MemstoreError):
    """A live memory holds the path, or an ancestor or a descendant of it."""

    code = "path_conflict"

    def __init__(
        self,
        path: str = "",
        *,
        conflicting_path: str = "",
        conflicting_memory_id: str = "",
        message: str = "",
    ) -> None:
        self.path = path
        self.conflicting_path = conflicting_path
        self.conflicting_memory_id = conflicting_memory_id
        if not message and path == conflicting_path:
            message = f"A memory at {path!r} already exists."
        super().__init__(
            message
            or f"{path!r} overlaps the memory at {conflicting_path!r}: "
            "a path is a file or a directory, never both."
        )


class PreconditionFailed(MemstoreError):
    """The stored content is not the content the caller asked about."""

    code = "precondition_failed"

    def __init__(self, memory_id: str = "", *, message: str = "") -> None:
        self.memory_id = memory_id
        super().__init__(
            message
            or f"Memory {memory_id} has changed: its content_sha256 is not the expected one. "
            "Read it again and retry."
        )


class Conflict(MemstoreError):
    """The request conflicts with the present state."""

    code = "conflict"


class Invalid(MemstoreError):
    """The request can never succeed as written."""

    code = "invalid"


class InvalidPath(Invalid):
    """A path breaks the rules of `memstore.model.paths`."""

    code = "invalid_path"


class PathTooLong(InvalidPath):
    """A path has too many bytes or segments."""

    code = "path_too_long"


class InvalidContent(Invalid):
    """Content is text in UTF-8 without NUL."""

    code = "invalid_content"


class TooLarge(Invalid):
    """Content over the limit for one memory."""

    code = "content_too_large"

    def __init__(self, size: int = 0, limit: int = 0, *, message: str = "") -> None:
        self.size, self.limit = size, limit
        super().__init__(
            message or f"Content is {size} bytes; a memory holds at most {limit}. Split it."
        )


class StoreFull(Invalid):
    """The store's cap of memories or bytes is reached."""

    code = "store_full"

    def __init__(self, store_id: str = "", *, cap: str = "", message: str = "") -> None:
        self.store_id, self.cap = store_id, cap
        super().__init__(
            message or f"Store {store_id} is full ({cap}). Delete memories or raise its cap."
        )


class StoreArchived(Invalid):
    """An archived store takes no writes."""

    code = "store_archived"

    def __init__(self, store_id: str = "", *, message: str = "") -> None:
        self.store_id = store_id
        super().__init__(message or f"Store {store_id} is archived and takes no writes.")


class HeadNotRedactable(Invalid):
    """The head version of a live memory cannot be redacted."""

    code = "head_not_redactable"

    def __init__(self, version_id: str = "", *, message: str = "") -> None:
        self.version_id = version_id
        super().__init__(
            message
            or f"Version {version_id} is the head of a live memory. "
            "Write a new version or delete the memory first."
        )


class RequestTooLarge(MemstoreError):
    """The whole request is over the limit."""

    code = "request_too_large"


class Unauthenticated(MemstoreError):
    """No credential was given, or it is not a valid one."""

    code = "unauthenticated"


class Forbidden(MemstoreError):
    """The credential may not do this."""

    code = "forbidden"


class RateLimited(MemstoreError):
    """Too many requests; wait `retry_after` seconds."""

    code = "rate_limited"

    def __init__(self, message: str = "", *, retry_after: float = 1.0) -> None:
        self.retry_after = retry_after
        super().__init__(message or f"Too many requests. Retry in {retry_after:g} s.")


class Unavailable(MemstoreError):
    """The service or its database cannot answer now; try again later."""

    # `stale`: a reading saw a moment that was over before it ended; reading again answers at once.

    code = "unavailable"

    def __init__(self, message: str = "", *, stale: bool = False) -> None:
        self.stale = stale
        super().__init__(message)


def tree(root: type[MemstoreError] = MemstoreError) -> list[type[MemstoreError]]:
    """Every class of the tree, parents first; the edges' tables are proved complete against it."""
    found = [root]
    for child in root.__subclasses__():
        found.extend(tree(child))
    return found
