"""The small rules: errors, actors, access, attachments, the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.model import clock, errors
from memstore.model.access import SCOPES, Caller, for_session, validate_scopes
from memstore.model.actors import ID_FIELD, Actor
from memstore.model.errors import Forbidden, Invalid, PathConflict
from memstore.model.preconditions import ContentIs
from memstore.model.sessions import Attachment, validate_attachments

STORE = "memstore_01" + "1" * 22


@pytest.mark.parametrize("error", errors.tree(), ids=lambda error: error.__name__)
def test_every_refusal_has_a_code_and_a_sentence(error: type[errors.MemstoreError]) -> None:
    """Each class stands alone without arguments, and its code is a plain word."""
    raised = error()
    assert raised.code.replace("_", "").isalpha() and raised.code.islower()
    assert raised.message == str(raised) and raised.message.endswith(".")


def test_no_two_refusals_share_a_code() -> None:
    """A client rebuilds the class from the code alone."""
    codes = [error.code for error in errors.tree()]
    assert len(set(codes)) == len(codes)


def test_a_path_conflict_says_which_kind() -> None:
    """The sentence tells a taken path from an overlapping one."""
    taken = PathConflict("/a", conflicting_path="/a", conflicting_memory_id="mem_x")
    overlap = PathConflict("/a/b", conflicting_path="/a")
    assert "already exists" in taken.message and "overlaps" in overlap.message
    assert (taken.conflicting_path, taken.conflicting_memory_id) == ("/a", "mem_x")


@pytest.mark.parametrize("kind", ID_FIELD)
def test_an_actor_travels(kind: str) -> None:
    """An actor's wire form names its id by kind, and comes back the same."""
    actor = Actor(kind, "id_1")  # type: ignore[arg-type]
    assert actor.to_wire() == {"type": kind, ID_FIELD[kind]: "id_1"}
    assert Actor.from_wire(actor.to_wire()) == actor


def test_an_unknown_actor_is_nobody() -> None:
    """Null and kinds of a later version are read as not recorded."""
    assert Actor.from_wire(None) is None
    assert Actor.from_wire({"type": "robot_actor", "robot_id": "x"}) is None


def caller(*scopes: str) -> Caller:
    """A key's caller."""
    return Caller("wrkspc", Actor("api_actor", "apikey"), frozenset(scopes))


@pytest.mark.parametrize(
    ("scopes", "may"),
    [
        (["admin"], {"admin", "read", "write", "redact", "audit"}),
        (["write"], {"read", "write"}),
        (["read"], {"read"}),
        (["redact"], {"redact"}),
        (["audit"], {"audit"}),
        ([], set()),
    ],
)
def test_what_a_scope_implies(scopes: list[str], may: set[str]) -> None:
    """Admin implies all, write implies read, the others themselves."""
    who = caller(*scopes)
    assert {scope for scope in SCOPES if who.may(scope, STORE)} == may
    for scope in set(SCOPES) - may:
        with pytest.raises(Forbidden):
            who.require(scope, STORE)


def test_what_a_session_may() -> None:
    """It reads and writes where attached so, sees nothing else, and never redacts."""
    who = for_session("wrkspc", "sesn_1", {"w": "read_write", "r": "read_only"})
    assert who.may("write", "w") and who.may("read", "r")
    assert not who.may("write", "r") and not who.may("read", "other")
    assert not who.may("redact", "w") and not who.may("admin")
    assert who.sees("r") and not who.sees("other")
    assert who.actor == Actor("session_actor", "sesn_1")


def test_scopes_are_kept_in_order() -> None:
    """The canonical order, each once."""
    assert validate_scopes(["redact", "read", "read"]) == ("read", "redact")
    for bad in ([], ["root"], ["read", ""]):
        with pytest.raises(Invalid):
            validate_scopes(bad)


def test_attachments_have_limits() -> None:
    """Eight stores, each once; the ninth is refused in the documented words."""
    eight = tuple(Attachment(f"{STORE}{n}") for n in range(8))
    assert validate_attachments(eight) == eight
    with pytest.raises(Invalid, match="cannot contain more than 8 memory_store entries"):
        validate_attachments((*eight, Attachment("ninth")))
    for bad in (
        (eight[0], eight[0]),
        (Attachment(STORE, "none"),),  # type: ignore[arg-type]
        (Attachment(STORE, instructions="x" * 4097),),
    ):
        with pytest.raises(Invalid):
            validate_attachments(bad)
    validate_attachments((Attachment(STORE, instructions="é" * 4096),))


@pytest.mark.parametrize("bad", ["", "0" * 63, "F" * 64])
def test_a_precondition_has_a_whole_hash(bad: str) -> None:
    """A malformed hash is a mistake, not a mismatch."""
    with pytest.raises(Invalid):
        ContentIs(bad)


@given(
    st.datetimes(
        min_value=datetime(1970, 1, 2), max_value=datetime(9000, 1, 1), timezones=st.just(UTC)
    )
)
def test_moments_are_exact_to_the_microsecond(moment: datetime) -> None:
    """A moment survives being stored, and its wire form has six decimals and a Z."""
    us = clock.to_us(moment)
    assert clock.from_us(us) == moment
    wire = clock.rfc3339(moment)
    assert wire == clock.rfc3339_us(us)
    assert len(wire) == 27 and wire.endswith("Z")
    assert datetime.fromisoformat(wire) == moment


def test_offsets_are_turned_to_utc() -> None:
    """The same moment in another zone is the same."""
    there = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=9)))
    assert clock.rfc3339(there) == "2026-01-01T18:04:05.000006Z"
    assert clock.from_us(clock.to_us(there)) == there
