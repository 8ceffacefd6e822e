"""Saved models as JSON documents in files: written whole or not at all, read without running anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

from cloister.core.files import write_with
from cloister.errors import ModelError, SourceNotFoundError

__all__ = ["FIX", "read_document", "write_document"]

FIX = "use the file as save() wrote it, or train again."

_LARGEST_FILE = 512 * 1024 * 1024


def write_document(path: str | Path, document: dict[str, Any], *, overwrite: bool = False) -> None:
    """Write a document to a file, whole or not at all."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)

    def write(file: IO[bytes]) -> None:
        file.write(text.encode())

    write_with(path, write, overwrite=overwrite)


def read_document(path: str | Path) -> Any:  # whatever JSON holds
    """Return what a file holds.

    Raises:
        SourceNotFoundError: if there is no such file.
        ModelError: if it cannot be read, is too large or is not JSON.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise SourceNotFoundError(f'There is no file "{path}".', fix="check the path of the model.") from None
    except OSError:
        raise ModelError(f'"{path}" cannot be read.', fix="check who may read the file.") from None
    if len(data) > _LARGEST_FILE:
        raise ModelError("The file is too large for a model.", fix=FIX)
    try:
        return json.loads(data, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise ModelError("The file is not a saved model.", fix=FIX) from None


def _refuse(_: str) -> Any:
    raise ValueError("not a finite number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the same name twice")
    return found
