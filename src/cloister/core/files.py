"""Files written whole or not at all: a reader never sees half of one, and a failure leaves the old one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from cloister.errors import DataError


def write_text(path: str | os.PathLike[str], text: str, *, overwrite: bool) -> None:
    """Write a UTF-8 file, whole or not at all; a new one is for its owner's eyes only.

    Raises:
        DataError: if the file is there already and may not be replaced, or cannot be written.
    """
    content = text.encode("utf-8")
    write_with(path, lambda stream: stream.write(content), overwrite=overwrite)


def write_with(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object], *, overwrite: bool) -> None:
    """Let a function write a file, which appears whole or not at all.

    Raises:
        DataError: if the file is there already and may not be replaced, or cannot be written.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise DataError(f'"{path}" is there already.', fix="choose another name, or say overwrite=True.")
    try:
        descriptor, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        _fill_and_adopt(descriptor, Path(draft), target, write)
    except OSError as error:
        reason = error.strerror or "the system refused"
        raise DataError(f'"{path}" cannot be written: {reason}.', fix="choose a folder you may write to.") from None


def _fill_and_adopt(descriptor: int, draft: Path, target: Path, write: Callable[[IO[bytes]], object]) -> None:
    try:
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
        draft.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o600)
        os.replace(draft, target)  # noqa: PTH105  # the one atomic call
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
