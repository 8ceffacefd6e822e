"""Memory that is handed to another process as a descriptor: a block that stays as it is, a result of a fixed size."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

__all__ = ["of_size", "sealed"]

_SIZE_IS_FIXED = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


@contextlib.contextmanager
def sealed(content: bytes) -> Iterator[int]:
    """Yield a descriptor of memory that holds a content and cannot be changed by anybody."""
    with _memory("block") as descriptor:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | _SIZE_IS_FIXED)
        yield descriptor


@contextlib.contextmanager
def of_size(size: int) -> Iterator[int]:
    """Yield a descriptor of empty memory whose size cannot be changed by anybody."""
    with _memory("result") as descriptor:
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SIZE_IS_FIXED)
        yield descriptor


@contextlib.contextmanager
def _memory(name: str) -> Iterator[int]:
    descriptor = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
