"""Every code becomes its class again on the client's side."""

from __future__ import annotations

import pytest

import memstore.backend
from memstore.client.errors import BY_CODE, BY_STATUS, BY_TYPE, refusal
from memstore.model.errors import MemstoreError, tree

assert memstore.backend.NotSupported in tree()

TRAVELS = [
    cls for cls in tree() if cls.__module__.startswith(("memstore.model", "memstore.backend"))
]
"""What a service may answer. A database that cannot be opened has no service that could."""


def test_every_code_has_its_class() -> None:
    """The table holds exactly the codes of the drawn tree, each with its own class."""
    assert {cls.code: cls for cls in TRAVELS} == BY_CODE


@pytest.mark.parametrize("cls", TRAVELS, ids=lambda cls: cls.code)
def test_a_code_decides_over_type_and_status(cls: type[MemstoreError]) -> None:
    """The code names the class, with the server's sentence, whatever else the answer says."""
    details = {"error_code": cls.code}
    error = {"type": "api_error", "message": "Because.", "details": details}
    made = refusal(418, {"type": "error", "error": error})
    assert type(made) is cls and made.message == "Because."


def test_fields_come_back() -> None:
    """A path conflict names who holds the path; an oversize text its size and the limit."""
    conflict = refusal(
        409,
        {
            "error": {
                "type": "memory_path_conflict_error",
                "message": "taken",
                "conflicting_path": "/a",
                "conflicting_memory_id": "mem_1",
            }
        },
    )
    assert (conflict.conflicting_path, conflict.conflicting_memory_id) == ("/a", "mem_1")  # type: ignore[attr-defined]
    details = {"error_code": "content_too_large", "size": 5, "limit": 3}
    large = refusal(400, {"error": {"message": "large", "details": details}})
    assert (large.size, large.limit) == (5, 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize("type_", BY_TYPE)
def test_a_hosted_servers_type_is_enough(type_: str) -> None:
    """A server that knows no codes of ours is read by its error type."""
    assert type(refusal(400, {"error": {"type": type_, "message": "m"}})) is BY_TYPE[type_]


@pytest.mark.parametrize("status", BY_STATUS)
def test_a_proxys_status_is_enough(status: int) -> None:
    """An answer without a body of the API is read by its status."""
    assert type(refusal(status, None)) is BY_STATUS[status]


@pytest.mark.parametrize("body", [{}, {"error": None}, {"error": {"details": 1, "type": 7}}])
def test_any_other_answer_is_still_a_refusal(body: dict[str, object]) -> None:
    """Nonsense becomes the base class with a sentence that names the status."""
    made = refusal(500, body)
    assert type(made) is MemstoreError and "500" in made.message
