"""Files written whole or not at all: a reader never sees half of one, and a failure leaves the old one.

A `Draft` is a new file of mode 0600 beside its place. Its bytes are on the disk itself before it takes that place, and
so is the entry of the folder: after a power cut there is the old file or the new one, never an empty one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

from cloister.core.random import SystemRandomSource
from cloister.errors import DataError

__all__ = ["DRAFT_ENDING", "Draft", "move_whole", "write_text", "write_with"]


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
        DataError: if the file is there already and may not be replaced, is no file, or cannot be written.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise DataError(f'"{path}" is there already.', fix="choose another name, or say overwrite=True.")
    # A device such as /dev/null, or a pipe, would be gone for every other program.
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise DataError(f'"{path}" is there already, and no file.', fix="choose the name of a file.")
    try:
        with Draft(target) as draft:
            draft.fill(write)
            if target.exists():
                draft.take_mode(target)
            draft.adopt(replace=True)
    except OSError as error:
        reason = error.strerror or "the system refused"
        raise DataError(f'"{path}" cannot be written: {reason}.', fix="choose a folder you may write to.") from None


DRAFT_ENDING = ".draft"
"""How the name of a file ends that nobody has finished."""


class Draft:
    """A new file of mode 0600 beside its place, which it takes when it is adopted; else it vanishes."""

    def __init__(self, path: Path) -> None:
        self._target = path
        # In the same folder, since only there a file can be renamed in one step.
        self._draft = path.with_name(f".{path.name}.{SystemRandomSource().random_bytes(8).hex()}{DRAFT_ENDING}")
        self._descriptor = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._is_open = True

    def write(self, content: bytes) -> None:
        """Write all of some bytes at the end."""
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def fill(self, write: Callable[[IO[bytes]], object]) -> None:
        """Let a function write into the file as into any stream."""
        with os.fdopen(os.dup(self._descriptor), "wb") as stream:
            write(stream)

    def take_mode(self, target: Path) -> None:
        """Take over who may read a file that is about to be replaced."""
        self._draft.chmod(target.stat().st_mode & 0o777)

    def adopt(self, *, replace: bool) -> None:
        """Put the file in its place once its bytes are on the disk.

        Raises:
            FileExistsError: if another file is there and may not be replaced.
        """
        os.fsync(self._descriptor)
        # Some systems do not move a file that is still open.
        self._close()
        if replace:
            os.replace(self._draft, self._target)  # noqa: PTH105  # the one atomic call
        else:
            # Unlike a rename, a link fails where a file is.
            os.link(self._draft, self._target)
        self.discard()
        _sync_folder(self._target.parent)

    def discard(self) -> None:
        """Remove what is not adopted."""
        self._close()
        self._draft.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self._descriptor)

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


def move_whole(source: Path, target: Path) -> None:
    """Move a finished file into another folder of the same disk.

    Raises:
        FileExistsError: if another file is there.
    """
    target.hardlink_to(source)
    source.unlink()
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    # The new name is lost in a power cut until the folder itself is written; Windows has no such call, and no flag.
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
