"""A file that appears whole, on the disk itself, or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from cloister.crypto.recipe import random_bytes

__all__ = ["DRAFT_ENDING", "Draft", "move_whole"]

DRAFT_ENDING = ".draft"
"""How the name of a file ends that nobody has finished."""


class Draft:
    """A new file of mode 0600 beside its place, which it takes when it is adopted; else it vanishes."""

    def __init__(self, path: Path) -> None:
        self._target = path
        self._draft = path.with_name(f".{path.name}.{random_bytes(8).hex()}{DRAFT_ENDING}")
        self._descriptor = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._is_open = True

    def write(self, content: bytes) -> None:
        """Write all of some bytes at the end."""
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def adopt(self, *, replace: bool) -> None:
        """Put the file in its place once its bytes are on the disk.

        Raises:
            FileExistsError: if another file is there and may not be replaced.
        """
        os.fsync(self._descriptor)
        if replace:
            os.replace(self._draft, self._target)  # noqa: PTH105  # the one atomic call
        else:
            os.link(self._draft, self._target)
        self.discard()
        _sync_folder(self._target.parent)

    def discard(self) -> None:
        """Remove what is not adopted."""
        if self._is_open:
            self._is_open = False
            os.close(self._descriptor)
        self._draft.unlink(missing_ok=True)

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
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
