"""The keys of an open database: records are sealed and opened here, epochs made and destroyed.

Epoch keys and facts are kept open in memory, at most `EPOCHS_KEPT` and `FACTS_KEPT` of them (the
latter some 12 MB) and none longer than `KEPT_SECONDS`, so that what another process destroyed is
forgotten here as well. Texts and versions' keys are not kept.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memstore.model import ids
from memstore.model.errors import Invalid, Unavailable
from memstore.settings import KeySource
from memstore.storage import crypto, master
from memstore.storage.crypto import BadSeal, Epoch, Facts, Sealed
from memstore.storage.keystore import Intent, KeyStore, Survivor

EPOCHS_KEPT = 4096
FACTS_KEPT = 20_000
KEPT_SECONDS = 30.0
_SIGNING = b"signing key"


class Keyring:
    """The open key store."""

    def __init__(self, source: KeySource, store: KeyStore, key: bytes) -> None:
        self._source = source
        self.store = store
        self._lock = threading.Lock()
        self._epochs: dict[str, tuple[float, Epoch]] = {}
        self._facts: dict[str, tuple[float, bytes, Facts]] = {}
        self._set_master(key)
        self._signing = Ed25519PrivateKey.from_private_bytes(self._signing_key())

    def _set_master(self, key: bytes) -> None:
        self._mark = master.mark_of(key)
        self._master = AESGCM(key)

    def _signing_key(self) -> bytes:
        wrapped = self.store.fact("signing_key") or b""
        try:
            return crypto.unwrap(self._master, wrapped, _SIGNING)
        except BadSeal:
            raise Unavailable("The key store is damaged: restore a backup of it.") from None

    # Records

    def seal(self, epoch: Epoch, id: str, facts: Facts, text: bytes | None) -> Sealed:
        """Seal a record under a new key of its own."""
        return crypto.seal(epoch, id, facts, text)

    def open(self, id: str, store_id: str, sealed: Sequence[Any]) -> tuple[Facts, bytes | None]:
        """Facts and text of a record's four columns; NOTHING and None when they are null.

        Unavailable when its key is gone, or when the blobs were tampered with.
        """
        epoch_id, wrapped, facts, body = sealed
        if wrapped is None or facts is None:
            return crypto.NOTHING, None
        now = time.monotonic()
        if body is None:
            seen = self._facts.get(id)
            if seen is not None and seen[0] > now and seen[1] == facts:
                return seen[2], None
        about = f" {store_id} {id}".encode()
        try:
            kept = self._epochs.get(epoch_id)
            if kept is not None and kept[0] > now:
                key = crypto.unwrap(kept[1].cipher, wrapped, b"key" + about)
            else:
                key = self.key(id, store_id, epoch_id, wrapped)
            cipher = AESGCM(key)
            found = crypto.open_facts(cipher, b"facts" + about, facts)
            if body is None:
                self._know(id, now, facts, found)
                return found, None
            return found, crypto.open_text(cipher, b"text" + about, body)
        except BadSeal:
            raise Unavailable(f"{id} cannot be read: it is damaged, or not as written.") from None

    def _know(self, id: str, now: float, blob: bytes, facts: Facts) -> None:
        """Keep the facts of a record for the listings that come."""
        with self._lock:
            self._facts.pop(id, None)
            self._facts[id] = now + KEPT_SECONDS, blob, facts
            if len(self._facts) > FACTS_KEPT:
                del self._facts[next(iter(self._facts))]

    def key(self, id: str, store_id: str, epoch_id: str, wrapped: bytes) -> bytes:
        """The key of a record; Unavailable when it was destroyed; BadSeal."""
        epoch = self.epoch(epoch_id)
        if epoch is None:
            kept = self.store.survivor(id)
            epoch = None if kept is None else self.epoch(kept.epoch_id)
            if kept is None or epoch is None:
                raise Unavailable(f"{id} was destroyed by a redaction.", stale=True)
            wrapped = kept.wrapped
        return crypto.unwrap(epoch.cipher, wrapped, crypto.record_key(id, store_id))

    def wrap(self, epoch: Epoch, id: str, key: bytes) -> bytes:
        """A record's key under an epoch."""
        return crypto.wrap(epoch.cipher, key, crypto.record_key(id, epoch.store_id))

    # Epochs

    def epoch(self, id: str) -> Epoch | None:
        """An epoch by its id; None when it was destroyed."""
        found = self._epochs.get(id)
        if found is not None and found[0] > time.monotonic():
            return found[1]
        row = self.store.epoch(id)
        if row is None:
            self.forget(id)
            return None
        store_id, first_seq, wrapped = row
        key = self._unwrapped(wrapped, f"epoch {store_id} {id}".encode())
        return self._remember(Epoch(id, store_id, first_seq, AESGCM(key)))

    def new_epoch(
        self, store_id: str, first_seq: int, *, id: str = "", intent: Intent | None = None
    ) -> Epoch:
        """A new epoch key, on disk before this returns; with the intent it is made for."""
        id = id or ids.new(ids.EPOCH)
        key = crypto.new_key()
        about = f"epoch {store_id} {id}".encode()
        for _ in range(2):
            wrapped = crypto.wrap(self._master, key, about)
            if self.store.add_epoch(self._mark, id, store_id, first_seq, wrapped, intent):
                return self._remember(Epoch(id, store_id, first_seq, AESGCM(key)))
            self._reload()
        raise Unavailable("The master key was rotated just now; try again.")

    def destroy_orphan(self, id: str) -> None:
        """Remove an epoch that nothing uses: what a migration that was killed left."""
        self.store.remove_epoch(id)
        self.forget(id)

    def _remember(self, epoch: Epoch) -> Epoch:
        with self._lock:
            self._epochs.pop(epoch.id, None)
            self._epochs[epoch.id] = time.monotonic() + KEPT_SECONDS, epoch
            while len(self._epochs) > EPOCHS_KEPT:
                del self._epochs[next(iter(self._epochs))]
        return epoch

    def forget(self, id: str | None = None) -> None:
        """Drop an open epoch key, or all of them; and all facts."""
        with self._lock:
            self._facts.clear()
            if id is None:
                self._epochs.clear()
            else:
                self._epochs.pop(id, None)

    def _unwrapped(self, wrapped: bytes, about: bytes) -> bytes:
        """A key under the master key, which another process may have rotated."""
        try:
            return crypto.unwrap(self._master, wrapped, about)
        except BadSeal:
            self._reload()
        try:
            return crypto.unwrap(self._master, wrapped, about)
        except BadSeal:
            raise Unavailable("The key store is damaged: restore a backup of it.") from None

    def _reload(self) -> None:
        """Take the master key again, after a rotation by another process."""
        self._set_master(unlocked(self._source, self.store))

    # Destruction

    def intend(self, kind: str, store_id: str, target_id: str, old_epoch: str) -> str:
        """Note, on disk, a destruction whose data is about to go; the intent's id."""
        intent = Intent(ids.new(ids.EPOCH), kind, store_id, target_id, old_epoch)
        self.store.intend(intent)
        return intent.id

    def finish(self, intent: Intent, kept: Sequence[tuple[str, bytes]], receipt: str = "") -> None:
        """Destroy what an intent names; `kept` are versions and their keys under the new epoch."""
        survivors = [Survivor(id, intent.store_id, intent.id, wrapped) for id, wrapped in kept]
        if intent.kind == "version":
            survivors += self._elsewhere(intent, {id for id, _ in kept})
        self.store.finish(intent, survivors, receipt)
        self.forget(intent.old_epoch if intent.kind == "version" else None)

    def _elsewhere(self, intent: Intent, seen: set[str]) -> list[Survivor]:
        """Kept keys of versions that only backups have, put under the new epoch too."""
        old, new = self.epoch(intent.old_epoch), self.epoch(intent.id)
        found = []
        for one in self.store.survivors_under(intent.old_epoch):
            if one.version_id in seen or one.version_id == intent.target_id:
                continue
            if old is not None and new is not None:
                about = crypto.record_key(one.version_id, one.store_id)
                key = crypto.unwrap(old.cipher, bytes(one.wrapped), about)
                found.append(
                    one._replace(epoch_id=new.id, wrapped=self.wrap(new, one.version_id, key))
                )
        return found

    # Signatures

    @property
    def public_key(self) -> str:
        """The key that receipts are checked against, in base64."""
        raw = self._signing.public_key().public_bytes_raw()
        return base64.b64encode(raw).decode()

    def sign(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body with a signature over its canonical form."""
        value = base64.b64encode(self._signing.sign(canonical(body))).decode()
        signature = {"algorithm": "ed25519", "public_key": self.public_key, "value": value}
        return {**body, "signature": signature}

    def close(self) -> None:
        """Release the key store."""
        self.forget()
        self.store.close()


def canonical(body: Mapping[str, Any]) -> bytes:
    """What is signed: the JSON of the body, keys sorted, no spaces, ASCII."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def is_signed(document: Mapping[str, Any], public_key: str) -> bool:
    """Whether a document carries this key's signature over the rest of it."""
    body = {name: value for name, value in document.items() if name != "signature"}
    try:
        signature = base64.b64decode(document["signature"]["value"], validate=True)
        raw = base64.b64decode(public_key, validate=True)
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, canonical(body))
    except (InvalidSignature, KeyError, TypeError, ValueError):
        return False
    return True


def open_keyring(source: KeySource, *, data: bool) -> Keyring:
    """The keys of a database; made at its first start. `data`: there is sealed data already.

    Unavailable, in one sentence, when the master key or the key store is missing or another's.
    """
    store = KeyStore(source.store)
    try:
        if store.fact("mark") is None:
            if data:
                raise Unavailable(
                    f"The key store ({store.where}) is missing or empty, and without it the "
                    "database cannot be read: put it back."
                )
            _found(source, store)
        return Keyring(source, store, unlocked(source, store))
    except BaseException:
        store.close()
        raise


def _found(source: KeySource, store: KeyStore) -> None:
    """The first start: a master key, when none is given, and the first facts."""
    key = master.load(source)
    if key is None:
        key = master.make(source.master_file)
    store.prepare()
    signing = Ed25519PrivateKey.generate()
    store.found(
        {
            "format": b"1",
            "mark": master.mark_of(key),
            "signing_key": crypto.wrap(AESGCM(key), signing.private_bytes_raw(), _SIGNING),
            "public_key": signing.public_key().public_bytes_raw(),
        }
    )


def unlocked(source: KeySource, store: KeyStore) -> bytes:
    """The master key that the key store is under; Unavailable when it is not to be had.

    Finishes a rotation whose process ended before the new file took the old one's name.
    """
    key = master.load(source)
    if key is not None and master.mark_of(key) == store.fact("mark"):
        return key
    if source.is_file and source.master_file.parent.is_dir():
        with master.alone(source.master_file):
            found = _waiting(source, store)
        if found is not None:
            return found
    if key is None:
        raise Unavailable(
            f"The master key {source.master_file} is missing, and without it the database cannot "
            "be read: put it back, or set MEMSTORE_MASTER_KEY."
        )
    raise Unavailable(
        f"The master key is not the one that the key store ({store.where}) is locked with: "
        "give the right one."
    )


def _waiting(source: KeySource, store: KeyStore) -> bytes | None:
    """The key of a rotation that ended, or was killed, since the file was read."""
    mark = store.fact("mark")
    for file in (source.master_file, master.successor(source.master_file)):
        key = master.read(file)
        if key is not None and master.mark_of(key) == mark:
            if file != source.master_file:
                master.promote(source.master_file)
            return key
    return None


def rotate_master(source: KeySource, new_file: str | None = None) -> None:
    """Put every key under a new master key; texts stay as they are. Safe to kill and to repeat.

    The new key takes the old one's file; with `new_file` it is the key in that file, made when
    there is none, and the old file stays. Invalid when the old one is not a file's and no new one
    is given.
    """
    if new_file is None and not source.is_file:
        raise Invalid("The master key is not in a file of memstore's: name the new one's file.")
    store = KeyStore(source.store)
    try:
        if store.fact("mark") is None:
            raise Unavailable(f"The key store ({store.where}) is missing or empty: put it back.")
        old = unlocked(source, store)
        if new_file is not None:
            _rewrap(store, old, master.make(Path(new_file)))
            return
        with master.alone(source.master_file):
            new = crypto.new_key()
            if master.mark_of(old) != store.fact("mark"):
                raise Unavailable("Another process rotated the master key just now.")
            master.write(master.successor(source.master_file), new)
            master.sync_folder(source.master_file.parent)
            _rewrap(store, old, new)
            master.promote(source.master_file)
    finally:
        store.close()


def _rewrap(store: KeyStore, old: bytes, new: bytes) -> None:
    """One transaction from the one master key to the other."""
    before, after = AESGCM(old), AESGCM(new)

    def change(wrapped: bytes, about: bytes) -> bytes:
        return crypto.wrap(after, crypto.unwrap(before, wrapped, about), about)

    if not store.rewrap(change, master.mark_of(old), master.mark_of(new)):
        raise Unavailable("The master key was rotated by another process just now; try again.")
