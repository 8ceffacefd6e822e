"""Small text files of the custodian: read with one clear error, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from cloister.errors import DataError, SchemaError, SourceNotFoundError


def read_text(path: str | Path, *, what: str) -> str:
    """Return the text of a UTF-8 file, with or without a byte-order mark.

    Raises:
        SourceNotFoundError: if there is no such file.
        SchemaError: if it cannot be read as text.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SourceNotFoundError(f'There is no {what} file "{path}".', fix="check the path.") from None
    except UnicodeDecodeError:
        raise SchemaError(f'The {what} file "{path}" is not UTF-8 text.', fix="save it as UTF-8.") from None
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise SchemaError(
            f'The {what} file "{path}" cannot be read: {reason}.', fix="give the path of a readable file."
        ) from None


def write_text(path: str | Path, text: str, *, overwrite: bool) -> None:
    """Write a UTF-8 file, whole or not at all.

    Raises:
        DataError: if the file is there already and may not be replaced, or cannot be written.
    """
    write_with(path, lambda draft: draft.write(text.encode("utf-8")), overwrite=overwrite)


def write_with(path: str | Path, write: Callable[[IO[bytes]], object], *, overwrite: bool) -> None:
    """Let a function write a file, which appears whole or not at all.

    Raises:
        DataError: if the file is there already and may not be replaced, or cannot be written.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise DataError(f'"{path}" is there already.', fix="choose another name, or say overwrite=True.")
    try:
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.", delete=False) as draft:
            try:
                write(draft)
            except BaseException:
                Path(draft.name).unlink(missing_ok=True)
                raise
        _adopt(Path(draft.name), target)
    except OSError as error:
        reason = error.strerror or "the system refused"
        raise DataError(f'"{path}" cannot be written: {reason}.', fix="choose a folder you may write to.") from None


def _adopt(draft: Path, target: Path) -> None:
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        draft.chmod(mode)
        os.replace(draft, target)  # noqa: PTH105  # the one atomic call
    except OSError:
        draft.unlink(missing_ok=True)
        raise
