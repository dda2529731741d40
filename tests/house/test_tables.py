"""The table from refusals to HTTP answers is closed, and every row can be told."""

from __future__ import annotations

from typing import get_args

import pytest
from anthropic.types.shared.error_type import ErrorType

import memstore.service  # noqa: F401  (refusals of lower layers belong to the tree too)
from api.errors import TABLE, answer
from memstore.model.errors import MemstoreError, PathConflict, RateLimited, tree

DRAWN = [kind for kind in tree() if kind.__module__.startswith("memstore.")]


def test_every_code_has_a_row_and_nothing_else() -> None:
    """Each class of the drawn tree is mapped by its own code; no row is left over."""
    codes = [kind.code for kind in DRAWN]
    assert sorted(codes) == sorted(set(codes)), "two refusals share a code"
    assert set(TABLE) == set(codes)


def test_every_error_type_is_the_apis() -> None:
    """The official client knows each type; `request_too_large` it only passes on."""
    known = {*get_args(ErrorType), "request_too_large"}
    assert {type_ for _, type_ in TABLE.values()} <= known


@pytest.mark.parametrize("kind", DRAWN, ids=lambda kind: kind.code)
def test_every_refusal_is_told(kind: type[MemstoreError]) -> None:
    """Its answer has the row's status, the code in the details, and headers that guide retries."""
    status, type_ = TABLE[kind.code]
    told = answer(kind(), "req_1")
    assert told.status_code == status
    assert f'"type":"{type_}"'.encode() in told.body
    assert f'"error_code":"{kind.code}"'.encode() in told.body
    assert told.headers.get("x-should-retry") == ("false" if status == 409 else None)
    assert ("retry-after" in told.headers) == (status in (429, 503))


def test_fields_stand_where_the_api_documents_them() -> None:
    """A path conflict's fields are beside its message; a wait is whole seconds, at least one."""
    told = answer(
        PathConflict("/a/b", conflicting_path="/a", conflicting_memory_id="mem_1"), "req_1"
    )
    assert b'"conflicting_path":"/a","conflicting_memory_id":"mem_1","details"' in told.body
    assert b'"path":"/a/b"' in told.body
    assert answer(RateLimited(retry_after=0.2), "req_1").headers["retry-after"] == "1"
    assert answer(RateLimited(retry_after=7), "req_1").headers["retry-after"] == "7"
