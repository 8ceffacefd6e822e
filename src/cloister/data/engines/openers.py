"""What opens which source: engines enter here, by the ending of a file, the scheme of a URL, or an object's package.

An engine's module enters itself with a decorator, and is imported when the first table is opened: nothing else has to
know its name.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from cloister.core.registry import Registry
from cloister.data.engines.base import Engine
from cloister.data.values import StorageType
from cloister.errors import DataError, ParameterTypeError, SourceNotFoundError, did_you_mean

__all__ = [
    "SourceOptions",
    "UrlKind",
    "check_readable",
    "database_path",
    "database_urls",
    "file_endings",
    "load_engines",
    "not_a_table",
    "object_packages",
    "opens_files",
    "opens_objects",
    "opens_urls",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How a source is read.

    Attributes:
        missing: texts that stand for a missing value.
        storage: the types that the schema states for columns, by name.
        encoding: of a file of text; None for the default.
    """

    missing: tuple[str, ...] = ()
    storage: Mapping[str, StorageType] = field(default_factory=dict)
    encoding: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlKind:
    """A kind of database.

    Attributes:
        open: returns an engine over a table, given the URL, of a server without its table, and the table's name.
        example: how such a URL begins, for people.
        is_file: whether the path of the URL is a file of this machine.
    """

    open: Callable[[str, str, SourceOptions], Engine]
    example: str
    is_file: bool = False


FileOpener: TypeAlias = Callable[[Sequence[Path], SourceOptions], Engine]
ObjectOpener: TypeAlias = Callable[[Any, SourceOptions], Engine]
Opener = TypeVar("Opener", bound=Callable[..., Engine])

file_endings: Registry[FileOpener] = Registry("kind of file")
"""What opens files, by how their names end."""
database_urls: Registry[UrlKind] = Registry("kind of database")
"""What opens a table of a database, by the scheme of its URL."""
object_packages: Registry[ObjectOpener] = Registry("kind of object")
"""What opens an object, by the package that its class comes from."""


def opens_files(*endings: str) -> Callable[[Opener], Opener]:
    """Return a decorator for a function that opens files whose names end so, all of one layout as one table."""

    def enter(opener: Opener) -> Opener:
        for ending in endings:
            file_endings.register(ending)(opener)
        return opener

    return enter


def opens_urls(*schemes: str, example: str, is_file: bool = False) -> Callable[[Opener], Opener]:
    """Return a decorator for a function that opens a table of a database; see `UrlKind`."""

    def enter(opener: Opener) -> Opener:
        kind = UrlKind(open=opener, example=example, is_file=is_file)
        for scheme in schemes:
            database_urls.register(scheme)(kind)
        return opener

    return enter


def opens_objects(package: str) -> Callable[[Opener], Opener]:
    """Return a decorator for a function that opens objects of a package."""
    return object_packages.register(package)


@cache
def load_engines() -> None:
    """Import every module of this package, so that each has entered itself; drivers are imported when one is used."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{__package__}.{module.name}")


def database_path(url: str) -> Path:
    """Return the file of a URL that stands for one."""
    return Path(unquote(urlsplit(url).path.removeprefix("/")) or ".")


def check_readable(path: Path) -> None:
    """Raise unless a file is there, may be read, and is not empty."""
    if path.is_dir():
        raise DataError(
            f'"{path}" is a folder.',
            fix=f'name a file in it, or all of them with "{path}/*.csv" or "{path}/*.parquet".',
        )
    if not path.exists():
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise SourceNotFoundError(
            f'There is no file "{path}".{did_you_mean(path.name, siblings)}',
            fix="check the path and the working folder.",
        )
    if not os.access(path, os.R_OK):
        raise DataError(f'"{path}" may not be read by this account.', fix="ask its owner for the right to read it.")
    if path.stat().st_size == 0:
        raise DataError(f'"{path}" is empty.', fix="give a file with a header line and rows below it.")


def not_a_table(source: Any) -> ParameterTypeError:
    """Return the refusal of an object that no engine can open."""
    return ParameterTypeError(
        f"This is not a table but of type {type(source).__name__}.",
        fix="give a path, a pandas, polars or Spark data frame, Arrow data, a DuckDB relation or a database URL.",
    )
