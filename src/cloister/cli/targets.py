"""Files that a command will write: everything that can be wrong with them is said before work begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cloister.errors import ParameterError

_REPORTS = (".html", ".htm", ".md", ".json")


def check_target(
    path: str | None, *, inputs: Sequence[str | None], force: bool, endings: Sequence[str] = _REPORTS
) -> None:
    """Return nothing when a file can be written, else raise.

    Raises:
        ParameterError: if its ending is not known, its folder is not there, it would replace an input, or it is there
            already and may not be replaced.
    """
    if path is None:
        return
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise ParameterError(
            f'"{path}" has an ending that says no kind of file.', fix=f"use a name that ends in {', '.join(endings)}."
        )
    if not target.parent.is_dir():
        raise ParameterError(f'There is no folder "{target.parent}".', fix="make it first, or choose another one.")
    if any(given is not None and target.resolve() == Path(given).resolve() for given in inputs):
        raise ParameterError(f'"{path}" would replace what is read.', fix="choose another name.")
    if target.exists() and not force:
        raise ParameterError(f'"{path}" is there already.', fix="choose another name, or say --force.")
