"""Key files, which only their owner may read: written whole with mode 0600, refused when others could read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cloister.core.atomic_files import Draft
from cloister.errors import CryptoError

__all__ = ["KeyFileExistsError", "create_private", "read_private", "replace_private"]


_LARGEST = 2**16
_OTHERS = 0o077


class KeyFileExistsError(CryptoError):
    """A key file is there already, perhaps since a moment ago."""


def read_private(path: Path) -> str:
    """Return the text of a key file.

    Raises:
        CryptoError: if it cannot be read, or if other accounts may read or write it.
    """
    try:
        # A pipe in the place of the file would make an ordinary open wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        reason = error.strerror or "the system refused"
        raise CryptoError(f'The key file "{path}" cannot be read: {reason}.', fix="check the path.") from None
    try:
        # What was opened is asked, and not the path, which may name another file by now.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CryptoError(f'"{path}" is not a file.', fix="give the path of a key file.")
        if status.st_mode & _OTHERS:
            raise CryptoError(f'Other accounts may read the key file "{path}".', fix=f'chmod 600 "{path}"')
        return os.read(descriptor, _LARGEST).decode("utf-8", errors="replace")
    finally:
        os.close(descriptor)


def create_private(path: Path, text: str) -> None:
    """Make a key file; of two who do it at the same time, one succeeds.

    Raises:
        KeyFileExistsError: if there is one already.
        CryptoError: if it cannot be made.
    """
    try:
        with Draft(path) as draft:
            draft.write(text.encode())
            draft.adopt(replace=False)
    except FileExistsError:
        raise KeyFileExistsError(
            f'"{path}" is there already.', fix="read it instead; a key is never overwritten."
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from None


def replace_private(path: Path, text: str) -> None:
    """Write a key file, whole or not at all.

    Raises:
        CryptoError: if it cannot be written.
    """
    try:
        with Draft(path) as draft:
            draft.write(text.encode())
            draft.adopt(replace=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> CryptoError:
    reason = error.strerror or "the system refused"
    return CryptoError(f'"{path}" cannot be written: {reason}.', fix="choose a folder you may write to.")
