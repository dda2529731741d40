"""Access: keys, secrets, and who a secret stands for."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memstore.model import clock, ids, pages
from memstore.model import stores as rules
from memstore.model.access import Caller, Key, Scope, for_session, validate_scopes
from memstore.model.actors import Actor
from memstore.model.errors import Forbidden, Invalid, NotFound, Unauthenticated
from memstore.service.core import Core, created_key, keys_only, plain_text
from memstore.storage import access, sessions
from memstore.storage.engine import Duplicate
from memstore.storage.statement import Tx

KEY_PREFIX, TOKEN_PREFIX = "msk_", "mst_"
DEFAULT_WORKSPACE = "default"
KEY_NAME_CHARS = 255
CACHE_SECONDS = 0.5
"""How long an answer about a secret is reused: a revocation is effective within a second."""
CACHE_SIZE = 4096


def new_secret(prefix: str) -> str:
    """256 random bits behind a prefix that scanners of leaked secrets can know."""
    return prefix + secrets.token_urlsafe(32)


def secret_hash(secret: str) -> str:
    """What is kept of a secret. Plain SHA-256 is right: there are 256 bits to guess."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Known:
    """A caller and until when, by the monotonic clock, it may be answered again."""

    caller: Caller
    until: float


class Authenticator:
    """Secrets to callers, through a small and short-lived cache."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def __call__(self, secret: str | None) -> Caller:
        """The caller; Unauthenticated for anything that is not a working secret."""
        if not secret or not secret.startswith((KEY_PREFIX, TOKEN_PREFIX)):
            raise Unauthenticated("Give a valid key: Authorization: Bearer, or x-api-key.")
        hash = secret_hash(secret)
        known = self._known.get(hash)
        if known is not None and time.monotonic() < known.until:
            return known.caller
        until = time.monotonic() + CACHE_SECONDS
        with self._core.engine.read() as tx:
            caller = _caller(tx, secret, hash)
        if caller is None:
            self._known.pop(hash, None)
            raise Unauthenticated("The key is not valid, or was revoked.")
        with self._lock:
            if len(self._known) >= CACHE_SIZE:
                self._known.clear()
            self._known[hash] = _Known(caller, until)
        return caller

    def known(self, secret: str) -> Caller | None:
        """The caller, when the last answer about the secret still counts; asks nobody."""
        known = self._known.get(secret_hash(secret)) if secret else None
        return known.caller if known is not None and time.monotonic() < known.until else None

    def forget(self) -> None:
        """Something was revoked: ask the database again."""
        with self._lock:
            self._known.clear()


def _caller(tx: Tx, secret: str, hash: str) -> Caller | None:
    """Whom the database says the secret stands for."""
    if secret.startswith(KEY_PREFIX):
        key = access.by_hash(tx, hash)
        if key is None or not hmac.compare_digest(key[0], hash):
            return None
        return Caller(key[2], Actor("api_actor", key[1]), frozenset(key[3]))
    token = sessions.of_token(tx, hash)
    if token is None or not hmac.compare_digest(token[0], hash):
        return None
    _, session_id, workspace_id, attached = token
    return for_session(workspace_id, session_id, {one.store_id: one.access for one in attached})


def _key(workspace_id: str, workspace: str, name: str, scopes: tuple[Scope, ...]) -> Key:
    """A new key."""
    return Key(
        id=ids.new(ids.KEY),
        workspace_id=workspace_id,
        workspace=workspace,
        name=name,
        scopes=scopes,
        created_at=clock.from_us(clock.now_us()),
        revoked_at=None,
    )


def create_key(
    core: Core, caller: Caller, *, name: str, scopes: Sequence[Scope], workspace: str
) -> tuple[Key, str]:
    """A key and its secret. Only keys of the workspace `default` make keys of other workspaces."""
    keys_only(caller, "admin")
    valid = validate_scopes(tuple(scopes))
    if len(name) > KEY_NAME_CHARS:
        raise Invalid(f"A key's name has at most {KEY_NAME_CHARS} characters.")
    plain_text(name, "A key's name")
    if workspace:
        rules.validate_name(workspace)
    secret = new_secret(KEY_PREFIX)

    def work(tx: Tx) -> Key:
        own = access.workspace_name(tx, caller.workspace_id) or ""
        wanted = workspace or own
        if wanted != own and own != DEFAULT_WORKSPACE:
            raise Forbidden(f"Only a key of {DEFAULT_WORKSPACE!r} makes keys of other workspaces.")
        workspace_id = access.workspace_id(tx, wanted)
        if workspace_id is None:
            workspace_id = ids.new(ids.WORKSPACE)
            access.add_workspace(tx, workspace_id, wanted, clock.now_us())
        key = _key(workspace_id, wanted, name, valid)
        access.add_key(tx, key, secret_hash(secret))
        return key

    try:
        return core.engine.write(work), secret
    except Duplicate:  # another process has just made the workspace
        return core.engine.write(work), secret


def list_keys(core: Core, caller: Caller, *, limit: int, page: str | None) -> pages.Page[Key]:
    """Keys of the caller's workspace, newest first."""
    keys_only(caller, "admin")
    limit = pages.page_limit(limit)
    before = created_key("keys", page)
    with core.engine.read() as tx:
        found = access.page(tx, caller.workspace_id, before=before, limit=limit + 1)
    shown = tuple(found[:limit])
    if len(found) <= limit:
        return pages.Page(shown, None)
    key = [clock.to_us(shown[-1].created_at), shown[-1].id]
    return pages.Page(shown, pages.encode_cursor("keys", key))


def revoke_key(core: Core, caller: Caller, key_id: str) -> Key:
    """Make a key useless. Again changes nothing."""
    keys_only(caller, "admin")

    def work(tx: Tx) -> Key:
        if ids.is_id(key_id, ids.KEY) and access.get_key(tx, caller.workspace_id, key_id):
            access.revoke(tx, key_id, clock.now_us())
        key = None
        if ids.is_id(key_id, ids.KEY):
            key = access.get_key(tx, caller.workspace_id, key_id)
        if key is None:
            raise NotFound("API key", key_id)
        return key

    return core.engine.write(work)


def bootstrap(core: Core, deliver: Callable[[str], None] | None) -> str | None:
    """Make the workspace `default` and its admin key, unless they are there; the secret, once.

    `deliver` is given the secret before the commit: when it fails nothing was made, and a crash
    leaves at worst a secret that never worked.
    """
    secret = new_secret(KEY_PREFIX)

    def work(tx: Tx) -> bool:
        if access.workspace_id(tx, DEFAULT_WORKSPACE) is not None:
            return False
        workspace_id = ids.new(ids.WORKSPACE)
        access.add_workspace(tx, workspace_id, DEFAULT_WORKSPACE, clock.now_us())
        key = _key(workspace_id, DEFAULT_WORKSPACE, "admin", ("admin",))
        access.add_key(tx, key, secret_hash(secret))
        if deliver is not None:
            deliver(secret)
        return True

    try:
        return secret if core.engine.write(work) else None
    except Duplicate:
        return None


def operator(core: Core) -> Caller:
    """The caller for who opens the database itself: the workspace `default`'s oldest admin key."""
    bootstrap(core, None)

    def work(tx: Tx) -> Key:
        workspace_id = access.workspace_id(tx, DEFAULT_WORKSPACE) or ""
        for key in access.working_keys(tx, workspace_id):
            if "admin" in key.scopes:
                return key
        key = _key(workspace_id, DEFAULT_WORKSPACE, "admin", ("admin",))
        access.add_key(tx, key, secret_hash(new_secret(KEY_PREFIX)))
        return key

    key = core.engine.write(work)
    return Caller(key.workspace_id, Actor("api_actor", key.id), frozenset(key.scopes))
