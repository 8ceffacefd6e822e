"""Text files written whole or not at all: a reader never sees half of one, and a failure leaves the old one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cloister.errors import DataError


def write_text(path: str | os.PathLike[str], text: str, *, overwrite: bool) -> None:
    """Write a UTF-8 file, whole or not at all; a new one is for its owner's eyes only.

    Raises:
        DataError: if the file is there already and may not be replaced, or cannot be written.
    """
    target, content = Path(path), text.encode("utf-8")
    if target.exists() and not overwrite:
        raise DataError(f'"{path}" is there already.', fix="choose another name, or say overwrite=True.")
    try:
        descriptor, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        _fill_and_adopt(descriptor, Path(draft), target, content)
    except OSError as error:
        reason = error.strerror or "the system refused"
        raise DataError(f'"{path}" cannot be written: {reason}.', fix="choose a folder you may write to.") from None


def _fill_and_adopt(descriptor: int, draft: Path, target: Path, content: bytes) -> None:
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        draft.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o600)
        os.replace(draft, target)  # noqa: PTH105  # the one atomic call
    except OSError:
        draft.unlink(missing_ok=True)
        raise
