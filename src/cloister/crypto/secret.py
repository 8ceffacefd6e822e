"""What all keys have in common."""

from __future__ import annotations

from typing import NoReturn

from cloister.errors import CryptoError

__all__ = ["Secret"]


class Secret:
    """What is neither shown, nor compared by accident, nor copied into a queue."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __reduce__(self) -> NoReturn:
        raise CryptoError(
            "A key may not be copied to another process or to a file.", fix="read it there from the key file."
        )
