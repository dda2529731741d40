"""What a user typed becomes one `Spec` a mount: which stores, as whom, where.

Who the mount acts as:

- `MEMSTORE_API_KEY` is a session's own token: it is used as it is, and the access the store was
  attached with decides whether the mount is read-only.
- `--session ID` with a key that may write: a token for that session is made, so that versions
  carry `session_actor`.
- A key alone: the mount acts as the key.

A read-only mount has two locks: the mount is `ro`, and its credential cannot write, so that a
remount alone opens nothing. A session's read-only attachment is such a credential. For an
ordinary key with `--read-only` a session is made with the store attached read-only, which ends
with the mount; where that cannot be (the key itself cannot write, the server has no sessions, the
store is archived) the key is used, and the driver still refuses every write on its own.
"""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuse_mount.errors import MountError
from fuse_mount.spec import Spec
from memstore.backend import Backend, NotSupported
from memstore.cli import names, service
from memstore.model.access import Access, Caller
from memstore.model.errors import Forbidden, Invalid, NotFound
from memstore.model.sessions import AttachedStore, Attachment, Session
from memstore.model.stores import Store, slug
from memstore.settings import Settings
from memstore.urls import absolute


def plan(
    own: Settings,
    given: Mapping[str, Any],
    *,
    store: str | None,
    place: str | None,
    session: str | None,
) -> list[Spec]:
    """The mounts to make; the refusals of the backend, and MountError for what cannot be meant."""
    url = service.base_url(own)
    key = service.api_key(own, url) or None
    with service.opened(own) as backend:
        planner = _Planner(own, given, backend, url, key)
        if session is not None:
            return planner.session(session, store, place)
        assert store is not None
        return [planner.store(store, place)]


class _Planner:
    def __init__(
        self,
        own: Settings,
        given: Mapping[str, Any],
        backend: Backend,
        url: str,
        key: str | None,
    ) -> None:
        self._root = Path(own.get("mount_root"))
        self._given, self._backend, self._url, self._key = given, backend, url, key
        self._caller = self._whoami()

    def _whoami(self) -> Caller | None:
        try:
            return self._backend.whoami()
        except NotSupported:
            return None

    def store(self, text: str, place: str | None) -> Spec:
        """One store, as the credential itself."""
        store = names.find_store(self._backend, text)
        where = place or str(self._root / slug(store.name, store.id))
        spec = self._spec(store, where, self._key)
        grants = self._caller.grants if self._caller else None
        if grants is not None:
            return self._as_attached(spec, grants.get(store.id, "read_only"))
        return self._locked_twice(spec, store) if spec.read_only else spec

    def session(self, session_id: str, text: str | None, place: str | None) -> list[Spec]:
        """All stores of a session, or the one named."""
        session = self._backend.get_session(session_id)
        attached = list(session.stores)
        if text is not None:
            attached = [self._attached(session, text)]
        elif place is not None:
            raise MountError.usage("A session's stores go below --root; DIR is for one STORE.")
        if not attached:
            raise MountError.usage(f"Session {session_id} has no stores attached.")
        token = self._token(session)
        return [self._of_session(each, place, token) for each in attached]

    def _of_session(self, attached: AttachedStore, place: str | None, token: str | None) -> Spec:
        store = self._backend.get_store(attached.store_id)
        where = place or str(self._root / Path(attached.mount_path).name)
        return self._as_attached(self._spec(store, where, token), attached.access)

    def _attached(self, session: Session, text: str) -> AttachedStore:
        """By id, or by the name the store had when it was attached."""
        for attached in session.stores:
            if text in (attached.store_id, attached.name):
                return attached
        raise NotFound(
            "memory store", text, message=f"Session {session.id} has no store {text!r} attached."
        )

    def _token(self, session: Session) -> str | None:
        if self._caller is not None and self._caller.session_id == session.id:
            return self._key
        return self._backend.create_session_token(session.id)

    def _spec(self, store: Store, place: str, key: str | None) -> Spec:
        return Spec(
            url=absolute(self._url),
            key=key,
            store_id=store.id,
            name=slug(store.name, store.id),
            place=str(Path(place).absolute()),
            **self._given,
        )

    def _as_attached(self, spec: Spec, access: Access) -> Spec:
        if access == "read_write":
            return spec
        return dataclasses.replace(spec, options={**spec.options, "read_only": True})

    def _locked_twice(self, spec: Spec, store: Store) -> Spec:
        if self._caller is None or not self._caller.may("write") or store.archived_at is not None:
            return spec
        try:
            session = self._backend.create_session(
                agent="memstore-mount",
                environment_id=socket.gethostname() or "mount",
                stores=[Attachment(store.id, "read_only")],
                title=f"Read-only mount at {spec.place}",
            )
            token = self._backend.create_session_token(session.id)
        except (NotSupported, Forbidden, Invalid):
            return spec
        return dataclasses.replace(spec, key=token, ends_session=session.id, minter=self._key)
