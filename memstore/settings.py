"""Every setting once: name, type, default, one sentence.

The order of authority: a flag, else the environment, else `DATA_DIR/config.toml`, else the
default. `docs/configuration.md` is checked against this table.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its key in `config.toml`, its environment variable, its default and meaning."""

    key: str
    variable: str
    default: str
    meaning: str


SETTINGS: tuple[Setting, ...] = (
    Setting("data_dir", "MEMSTORE_DATA_DIR", "", "Where the database, keys and run files live."),
    Setting(
        "database_url", "MEMSTORE_DATABASE_URL", "", "The database; SQLite in the data directory."
    ),
    Setting("listen", "MEMSTORE_LISTEN", "127.0.0.1:8787", "HOST:PORT or unix:PATH to serve on."),
    Setting("base_url", "MEMSTORE_BASE_URL", "", "The service clients talk to; the local one."),
    Setting("api_key", "MEMSTORE_API_KEY", "", "The clients' credential; the local admin.key."),
    Setting("mount_root", "MEMSTORE_MOUNT_ROOT", "/mnt/memory", "Stores are mounted below it."),
    Setting("store", "MEMSTORE_STORE", "", "The store to use when none is named."),
    Setting("max_memories", "MEMSTORE_MAX_MEMORIES", "10000", "Live memories a store may hold."),
    Setting("max_bytes", "MEMSTORE_MAX_BYTES", "104857600", "Live bytes a store may hold."),
    Setting("key_store", "MEMSTORE_KEY_STORE", "", "SQLite file of the keys, apart from the data."),
    Setting("master_key_file", "MEMSTORE_MASTER_KEY_FILE", "", "File that holds the master key."),
    Setting("master_key", "MEMSTORE_MASTER_KEY", "", "The master key itself: 64 hex digits."),
    Setting(
        "master_key_command", "MEMSTORE_MASTER_KEY_COMMAND", "", "Command that prints the key."
    ),
)
_BY_KEY = {setting.key: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the keys of a database are: the key store's URL, and the master key's place.

    The master key itself wins over the command that prints it, and that over the file.
    """

    store: str
    master_file: Path
    master: str = field(default="", repr=False)
    command: str = ""

    @property
    def is_file(self) -> bool:
        """Whether the master key comes from the file, which may then be made and replaced."""
        return not self.master and not self.command


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """`/var/lib/memstore` for root, else `$XDG_DATA_HOME/memstore` (`~/.local/share/memstore`)."""
    if os.geteuid() == 0:
        return Path("/var/lib/memstore")
    base = environ.get("XDG_DATA_HOME")
    return Path(base) / "memstore" if base else Path.home() / ".local/share/memstore"


class Settings:
    """The settings of one process, resolved once from flags, environment and file."""

    def __init__(
        self,
        flags: Mapping[str, str | None] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Resolve; ValueError for an unreadable `config.toml` or a key it does not know."""
        self._environ = os.environ if environ is None else environ
        self._flags = {key: value for key, value in (flags or {}).items() if value is not None}
        self._file: dict[str, str] = {}
        own = self._flags.get("data_dir") or self._environ.get("MEMSTORE_DATA_DIR")
        self.data_dir = Path(own) if own else default_data_dir(self._environ)
        self._file = _read_file(self.data_dir / "config.toml")

    def get(self, key: str) -> str:
        """The value of a setting as text."""
        setting = _BY_KEY[key]
        for source in (
            self._flags.get(key),
            self._environ.get(setting.variable),
            self._file.get(key),
        ):
            if source:
                return source
        return setting.default

    def integer(self, key: str) -> int:
        """The value of a setting as a non-negative integer; ValueError that names it otherwise."""
        text = self.get(key)
        if not text.isdecimal():
            raise ValueError(f"{_BY_KEY[key].variable} must be a whole number, not {text!r}")
        return int(text)

    @property
    def database_url(self) -> str:
        """The database's URL; SQLite in the data directory when none is set."""
        return self.get("database_url") or f"sqlite:///{self.data_dir / 'memstore.db'}"

    @property
    def key_source(self) -> KeySource:
        """Where the keys of the database are."""
        return self.key_source_of(self.database_url)

    def key_source_of(self, database_url: str) -> KeySource:
        """Where the keys of a database are: beside a SQLite file, else in the database's server.

        `memstore.db` has `keys.db`, any other `NAME.db` has `NAME.keys.db`; both `master.key`.
        """
        scheme, _, name = database_url.partition("///")
        store, folder = database_url, self.data_dir
        if scheme.startswith("sqlite"):
            file = Path(name.partition("?")[0])
            own = "keys.db" if file.name == "memstore.db" else f"{file.stem}.keys.db"
            store, folder = f"sqlite:///{file.with_name(own)}", file.parent
        if self.get("key_store"):
            store = f"sqlite:///{self.get('key_store')}"
        return KeySource(
            store,
            Path(self.get("master_key_file") or folder / "master.key"),
            self.get("master_key"),
            self.get("master_key_command"),
        )

    @property
    def admin_key_file(self) -> Path:
        """Where the first start leaves the key of the workspace `default`."""
        return self.data_dir / "admin.key"


def _read_file(path: Path) -> dict[str, str]:
    """The settings of a `config.toml`; empty when there is none."""
    try:
        text = path.read_text()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None
    unknown = sorted(set(values) - set(_BY_KEY))
    if unknown:
        raise ValueError(f"{path} has unknown settings: {', '.join(unknown)}")
    return {key: str(value) for key, value in values.items()}
