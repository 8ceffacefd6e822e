"""Settings of a hub (address, database, workers, sessions, uploads): a TOML file, then ``CLOISTER_HUB_PORT=8080``.

The environment overrides the file. Other limits are constants of the module that keeps them.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cloister.errors import ParameterError, did_you_mean

PREFIX = "CLOISTER_HUB_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that a hub can be told.

    Attributes:
        folder: where files are kept: sealed data, and by default the database and the key.
        database: an SQLAlchemy address; by default an SQLite file in the folder.
        key_file: the master key that wraps every other key; keep it apart from the database and its backups.
        host: where to listen.
        port: where to listen.
        public_url: the address that people type, if a proxy stands before the hub.
        workers: how many processes run jobs.
        lease_seconds: how long a worker may be silent before its job is given to another one.
        answer_seconds: results appear only so long after their start, or twice, four times, eight times ... as long, so
            that durations tell little about the data; 0 lets them appear at once.
        upload_limit: the largest upload, in bytes.
        parsing_seconds: how long reading one upload may take, after it has arrived.
        parsing_memory_bytes: how much memory reading one upload may take.
        least_free_bytes: with less free space on the disks of folder and database, the hub says that it is not well.
        session_hours: how long a sign-in lasts.
        idle_minutes: how long a sign-in lasts that is not used.
        separate_duties: whether operators and auditors hold no other role.
        owner_second_factor: whether data owners who sign in with a password need a second factor to do anything else.
        oidc: providers of sign-in, by name: issuer, client_id, client_secret, title, and new_accounts: "refuse" (the
            default) or "create", which makes an account without roles at somebody's first sign-in.
        log_level: how much is logged.
        demo: whether this is the demo, which says so on every page and never runs on other than loopback.
    """

    folder: Path
    database: str = ""
    key_file: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    public_url: str = ""
    workers: int = 2
    lease_seconds: float = 30.0
    answer_seconds: float = 0.25
    upload_limit: int = 2 * 1024**3
    parsing_seconds: float = 240.0
    parsing_memory_bytes: int = 6 * 1024**3
    least_free_bytes: int = 256 * 1024**2
    session_hours: int = 12
    idle_minutes: int = 60
    separate_duties: bool = True
    owner_second_factor: bool = True
    oidc: Mapping[str, Mapping[str, str]] | None = None
    log_level: str = "info"
    demo: bool = False

    @property
    def database_url(self) -> str:
        """Return the address of the database for SQLAlchemy."""
        address = self.database or f"sqlite:///{self.folder / 'hub.db'}"
        return address.replace("postgresql://", "postgresql+psycopg://", 1)

    @property
    def key_path(self) -> Path:
        """Return where the master key is."""
        return self.key_file or self.folder / "keys" / "master.key"

    @property
    def address(self) -> str:
        """Return the address that people type."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url.rstrip("/") or f"http://{host}:{self.port}"

    @property
    def is_https(self) -> bool:
        """Return whether browsers reach the hub through TLS, so that cookies must too."""
        return self.address.startswith("https://")


def read_settings(path: Path | None = None, *, environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """Return settings: what is given, then the environment, then the file, then defaults."""
    found: dict[str, Any] = {} if path is None else _from_file(path)
    found |= _from_environment(os.environ if environment is None else environment)
    found |= {name: value for name, value in given.items() if value is not None}
    if "folder" not in found:
        raise ParameterError("The hub has no folder for its files.", fix=f"write --folder hub, or set {PREFIX}FOLDER.")
    return Settings(**{name: _read(name, value) for name, value in found.items()})


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ParameterError(f"The settings {path} cannot be read: {error.strerror}.", fix="check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"The settings {path} are not TOML: {error}.", fix="mend the file.") from None
    for name in found:
        if name not in _NAMES:
            raise ParameterError(
                f'There is no setting "{name}".{did_you_mean(name, _NAMES)}', fix=f"use one of {', '.join(_NAMES)}."
            )
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    names = {f"{PREFIX}{name.upper()}": name for name in _NAMES if name != "oidc"}
    return {names[key]: value for key, value in environment.items() if key in names}


def _read(name: str, value: Any) -> Any:
    if isinstance(value, bool) and name not in _SWITCHES:  # it would be taken for 0 or 1
        raise _of_another_kind(name)
    try:
        match name:
            case switch if switch in _SWITCHES:
                return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
            case "folder" | "key_file":
                return Path(value).expanduser().resolve()
            case (
                "port"
                | "workers"
                | "upload_limit"
                | "parsing_memory_bytes"
                | "least_free_bytes"
                | "session_hours"
                | "idle_minutes"
            ):
                return int(value)
            case "lease_seconds" | "answer_seconds" | "parsing_seconds":
                return _seconds(value)
            case "oidc":
                return {provider: dict(facts) for provider, facts in value.items()}
            case _:
                return str(value)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _of_another_kind(name) from None


def _of_another_kind(name: str) -> ParameterError:
    return ParameterError(f'The setting "{name}" is not of its kind.', fix=f"correct {name}.")


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not 0 <= seconds < 86_400:
        raise ValueError
    return seconds


_NAMES = tuple(item.name for item in fields(Settings))
_SWITCHES = tuple(item.name for item in fields(Settings) if item.type == "bool")
