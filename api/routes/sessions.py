"""Sessions: the subset that attaches stores to an agent's run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Query
from starlette.responses import Response

from api import wire
from api.requests import (
    ArchivedQuery,
    FromQuery,
    JsonRoute,
    LimitQuery,
    Moment,
    PageQuery,
    Port,
    ToQuery,
)
from api.schemas.requests import Nothing, SessionCreate
from api.schemas.responses import DeletedOut, PageOut, SessionOut, TokenOut
from memstore.model.errors import Invalid
from memstore.model.limits import PAGE_DEFAULT
from memstore.model.pages import Page
from memstore.model.sessions import Session

router = APIRouter(prefix="/v1/sessions", route_class=JsonRoute, tags=["sessions"])
extensions = APIRouter(prefix="/v1/sessions", route_class=JsonRoute, tags=["sessions"])

Status = Literal["rescheduling", "running", "idle", "terminated"]
_MICROSECOND = timedelta(microseconds=1)


@router.post("", response_model=SessionOut)
def create_session(port: Port, body: SessionCreate) -> Response:
    """Open a session with stores attached."""
    session = port.create_session(
        agent=body.agent,
        environment_id=body.environment_id,
        stores=[resource.value() for resource in body.resources or ()],
        title=body.title,
        metadata=body.metadata,
        vault_ids=body.vault_ids or (),
    )
    return wire.reply(wire.session(session))


@router.get("", response_model=PageOut[SessionOut])
def list_sessions(
    port: Port,
    memory_store_id: Annotated[str | None, Query(description="With this store attached.")] = None,
    include_archived: ArchivedQuery = "false",
    created_from: FromQuery = None,
    created_to: ToQuery = None,
    created_after: Annotated[Moment | None, Query(alias="created_at[gt]")] = None,
    created_before: Annotated[Moment | None, Query(alias="created_at[lt]")] = None,
    agent_id: str | None = None,
    agent_version: int | None = None,
    deployment_id: str | None = None,
    statuses: Annotated[list[Status] | None, Query(alias="statuses[]")] = None,
    order: Literal["asc", "desc"] = "desc",
    limit: LimitQuery = PAGE_DEFAULT,
    page: PageQuery = None,
) -> Response:
    """Sessions, newest first."""
    if order == "asc":
        raise Invalid("order: sessions are listed newest first here (desc)")
    lower = [t for t in (created_from, created_after and created_after + _MICROSECOND) if t]
    upper = [t for t in (created_to, created_before and created_before - _MICROSECOND) if t]

    def matches(session: Session) -> bool:
        id, version = wire.agent_reference(session.agent)
        status = "idle" if session.archived_at is None else "terminated"
        return (
            deployment_id is None
            and (statuses is None or status in statuses)
            and (agent_id is None or agent_id == id)
            and (agent_id is None or agent_version is None or agent_version == version)
        )

    def ask(cursor: str | None) -> Page[Session]:
        return port.list_sessions(
            store_id=memory_store_id,
            include_archived=include_archived == "true",
            created_from=max(lower, default=None),
            created_to=min(upper, default=None),
            limit=limit,
            page=cursor,
        )

    return wire.reply(wire.page(_first_matching(ask, page, matches), wire.session))


def _first_matching(
    ask: Callable[[str | None], Page[Session]],
    cursor: str | None,
    matches: Callable[[Session], bool],
) -> Page[Session]:
    """The next page's matching sessions; pages without any are passed over."""
    while True:
        found = ask(cursor)
        shown = tuple(session for session in found.data if matches(session))
        cursor = found.next_page
        if shown or cursor is None:
            return Page(shown, cursor)


@router.get("/{session_id}", response_model=SessionOut)
def get_session(port: Port, session_id: str) -> Response:
    """One session."""
    return wire.reply(wire.session(port.get_session(session_id)))


@router.delete("/{session_id}", response_model=DeletedOut)
def delete_session(port: Port, session_id: str) -> Response:
    """Remove a session and its tokens."""
    port.delete_session(session_id)
    return wire.reply(wire.deleted(session_id, "session"))


@router.post("/{session_id}/archive", response_model=SessionOut)
def archive_session(
    port: Port, session_id: str, body: Annotated[Nothing | None, Body()] = None
) -> Response:
    """End a session: its tokens stop working."""
    return wire.reply(wire.session(port.archive_session(session_id)))


@extensions.post("/{session_id}/tokens", response_model=TokenOut)
def create_session_token(
    port: Port, session_id: str, body: Annotated[Nothing | None, Body()] = None
) -> Response:
    """A secret that acts as this session, shown once."""
    token = port.create_session_token(session_id)
    return wire.reply({"type": "session_token", "session_id": session_id, "token": token})
