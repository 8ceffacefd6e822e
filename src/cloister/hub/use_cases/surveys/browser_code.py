"""The code that a respondent's browser runs: every file of it, with its hash, and one hash of them all."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any

from cloister.errors import NotFoundError

_TYPES = {"js": "text/javascript", "css": "text/css"}
WORKER = "worker.js"
ENTRY = "answer.js"


@dataclass(frozen=True, slots=True)
class CodeFile:
    """One file.

    Attributes:
        name: where the browser finds it, below the address of the code.
        content: what it holds.
    """

    name: str
    content: bytes

    @property
    def media_type(self) -> str:
        """Return what kind of file it is."""
        return _TYPES[self.name.rpartition(".")[2]]

    @property
    def sha256(self) -> str:
        """Return its hash, as people compare it."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def integrity(self) -> str:
        """Return its hash, as browsers check it."""
        return f"sha384-{base64.b64encode(hashlib.sha384(self.content).digest()).decode()}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values with the whole text."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "integrity": self.integrity,
            "text": self.content.decode(),
        }


@cache
def code_files() -> tuple[CodeFile, ...]:
    """Return every file that the answer page loads, sorted by name."""
    static = importlib.resources.files("cloister.hub").joinpath("web", "static")
    found = list(_read_folder(importlib.resources.files("cloister.local").joinpath("js"), "local/"))
    found += _read_folder(static.joinpath("survey"), "")
    found.append(CodeFile("style.css", static.joinpath("style.css").read_bytes()))
    return tuple(sorted(found, key=lambda file: file.name))


@cache
def code_hash() -> str:
    """Return the hash of all files: SHA-256 of the lines ``hash  name``, as sha256sum prints them, sorted by name."""
    lines = "".join(f"{file.sha256}  {file.name}\n" for file in code_files())
    return hashlib.sha256(lines.encode()).hexdigest()


def find_code(name: str, *, code: str | None = None) -> CodeFile:
    """Return a file by its name.

    Raises:
        NotFoundError: if there is none, or it belonged to another version of the code.
    """
    for file in code_files():
        if file.name == name and code in (None, code_hash()):
            return file
    raise NotFoundError("There is no such file.", fix="load the page again.")


def _read_folder(folder: Traversable, prefix: str) -> Iterator[CodeFile]:
    """Yield every file of code in a folder and below."""
    for place in folder.iterdir():
        if place.is_dir():
            yield from _read_folder(place, f"{prefix}{place.name}/")
        elif _is_code(place.name):
            yield CodeFile(f"{prefix}{place.name}", place.read_bytes())


def _is_code(name: str) -> bool:
    return name.rpartition(".")[2] in _TYPES
