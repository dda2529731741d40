"""What one driver process is told: which store, through which door, at which place, and how."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fuse_mount.errors import MountError
from fuse_mount.vfs.options import Options

BINDINGS = ("kernel", "portable")
_TEXT_LISTS = ("litter", "temporary")
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Spec:
    """One mount. It travels to the driver over a pipe, never by arguments: it holds a secret.

    `ends_session` is a session made for this mount alone, which `minter` (a key) ends after it.
    """

    url: str
    key: str | None
    store_id: str
    name: str
    place: str
    options: Mapping[str, Any] = field(default_factory=dict)
    allow_other: bool = False
    binding: str = "kernel"
    log: str = ""
    ends_session: str = ""
    minter: str | None = None

    @property
    def vfs(self) -> Options:
        """The file system's options."""
        values: dict[str, Any] = {
            key: tuple(value) if key in _TEXT_LISTS else value
            for key, value in self.options.items()
        }
        return Options(**values)

    @property
    def read_only(self) -> bool:
        """Whether nothing may be written."""
        return bool(self.options.get("read_only", False))

    def dumps(self) -> bytes:
        """For the pipe."""
        return json.dumps(dataclasses.asdict(self)).encode()

    @classmethod
    def loads(cls, data: bytes) -> Spec:
        """From the pipe."""
        return cls(**json.loads(data))


def parse_options(given: list[str], *, uid: int, gid: int, root: bool) -> dict[str, Any]:
    """`-o KEY=VALUE,...` as `Spec` fields: `options`, `allow_other`, `binding`, `log`.

    Keys are the fields of `fuse_mount.vfs.options.Options` (with `-` or `_`; sizes take K, M, G;
    patterns are separated by `:`), `ro`, `allow_other`, `binding` and `log`. MountError (usage)
    names one that is not known or a value that does not fit.
    """
    options: dict[str, Any] = {"uid": uid, "gid": gid}
    spec: dict[str, Any] = {"options": options, "allow_other": root, "binding": "kernel", "log": ""}
    fields = {each.name: each for each in dataclasses.fields(Options)}
    for word in (word for text in given for word in text.split(",") if word):
        key, equals, value = word.partition("=")
        key = key.strip().replace("-", "_")
        if key == "ro":
            options["read_only"] = _flag(key, value if equals else "true")
        elif key == "allow_other":
            spec["allow_other"] = _flag(key, value if equals else "true")
        elif key in ("binding", "log"):
            spec[key] = value
        elif key in fields:
            options[key] = _value(key, value if equals else "true", fields[key].default)
        else:
            known = sorted({*fields, "ro", "allow_other", "binding", "log"})
            raise MountError.usage(f"There is no option {key!r}; known are {', '.join(known)}.")
    if spec["binding"] not in BINDINGS:
        raise MountError.usage(f"binding is one of {', '.join(BINDINGS)}.")
    if options.get("conflict", "fail") not in ("fail", "overwrite"):
        raise MountError.usage("conflict is 'fail' or 'overwrite'.")
    return spec


def _value(key: str, text: str, default: object) -> Any:
    number: float
    try:
        if isinstance(default, bool):
            return _flag(key, text)
        if isinstance(default, int):
            unit = _SIZES.get(text[-1:].upper(), 1)
            number = int(text[:-1] if unit > 1 else text) * unit
        elif isinstance(default, float):
            number = float(text)
        else:
            return text.split(":") if key in _TEXT_LISTS else text
    except ValueError:
        raise MountError.usage(f"{key} is a number, not {text!r}.") from None
    if not 0 <= number < 1 << 62:
        raise MountError.usage(f"{key} is out of range: {text}.")
    return number


def _flag(key: str, text: str) -> bool:
    if text in ("true", "yes", "1", "on"):
        return True
    if text in ("false", "no", "0", "off"):
        return False
    raise MountError.usage(f"{key} is true or false, not {text!r}.")
