"""Secret keys: where one is kept is part of a recipe, the key itself never is.

A key comes from an environment variable, from a file, or from bytes in memory. It must be long and look random: a
short key is found by trying all of them, and then every pseudonym made with it falls.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloister.core.atomic_files import write_text
from cloister.core.random import random_source
from cloister.errors import DataError, ParameterError, ParameterTypeError, SourceNotFoundError

_SHORTEST = 32
_FEWEST_DIFFERENT = 8
_FIX = "make a key with Secret.create(path), or in a shell with: openssl rand -hex 32."


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A key of at least 32 bytes, or the place where it is kept; ``repr`` never shows the key.

    Attributes:
        env: the name of an environment variable that holds the key.
        file: the path of a file that holds it; line breaks at its end do not count.
        value: the key itself; such a secret cannot be written into a recipe.
    """

    env: str | None = None
    file: Path | None = None
    value: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if sum(place is not None for place in (self.env, self.file, self.value)) != 1:
            raise ParameterError(
                "A key has one place: an environment variable, a file, or bytes.",
                fix='write for example Secret(env="STUDY_KEY").',
            )
        if self.file is not None:
            object.__setattr__(self, "file", Path(os.path.normpath(Path(self.file).absolute())))
        if self.value is not None:
            _check_key(self.value)

    @classmethod
    def of(cls, given: Any, *, folder: Path | None = Path()) -> Secret:  # from a recipe, hence anything
        """Return a secret from whatever says what or where it is.

        Args:
            given: a `Secret`, bytes, ``{"env": name}``, ``{"file": path}``, ``"env:name"`` or ``"file:path"``.
            folder: where paths count from; None refuses to open files.
        """
        if isinstance(given, Secret):
            return given
        if isinstance(given, bytes | bytearray):
            return cls(value=bytes(given))
        if isinstance(given, str):
            place, _, where = given.partition(":")
            given = {place: where.strip()}
        if not isinstance(given, Mapping) or len(given) != 1:
            raise _unknown()
        (place, where), *_ = given.items()
        if place == "env" and isinstance(where, str) and where:
            return cls(env=where)
        if place == "file" and isinstance(where, str | Path) and str(where):
            if folder is None:
                raise ParameterError("The key is in a file, and files are not opened here.", fix="use env: NAME.")
            return cls(file=folder / where)
        raise _unknown()

    @classmethod
    def create(cls, path: str | Path) -> Secret:
        """Write a fresh key of 256 bits into a new file that only its owner can read, and return the secret."""
        write_text(path, random_source(None).random_bytes(32).hex() + "\n", overwrite=False)
        return cls(file=Path(path))

    def read(self) -> bytes:
        """Return the key.

        Raises:
            SourceNotFoundError: if its place is empty.
            ParameterError: if it is too short, or not random.
        """
        if self.value is not None:
            return self.value
        return _check_key(self._from_environment() if self.env is not None else self._from_file())

    def to_dict(self, *, folder: Path | None = None) -> dict[str, str]:
        """Return the place of the key as plain values; a path counts from a folder, if one is given.

        Raises:
            ParameterError: if the key itself would have to be written.
        """
        if self.env is not None:
            return {"env": self.env}
        if self.file is not None:
            return {"file": str(self.file) if folder is None else os.path.relpath(self.file, folder.absolute())}
        raise ParameterError(
            "A key in memory cannot be written: secrets are referred to, never stored.",
            fix='keep it in an environment variable or a file, and give key={"env": "NAME"} or key={"file": "path"}.',
        )

    def _from_environment(self) -> bytes:
        text = os.environ.get(str(self.env))
        if text is None:
            raise SourceNotFoundError(f'The environment variable "{self.env}" is not set.', fix=f"set it; {_FIX}")
        return text.strip().encode()

    def _from_file(self) -> bytes:
        try:
            return Path(str(self.file)).read_bytes().rstrip(b"\r\n")
        except FileNotFoundError:
            raise SourceNotFoundError(f'There is no key file "{self.file}".', fix=_FIX) from None
        except OSError as error:
            reason = error.strerror or "it cannot be opened"
            raise DataError(f'The key file "{self.file}" cannot be read: {reason}.', fix="check the path.") from None


def _check_key(key: object) -> bytes:
    if not isinstance(key, bytes):
        raise ParameterTypeError("The key is not bytes.", fix=_FIX)
    # Few different bytes are a sign of a word or of a repeated one, which is guessed.
    if len(key) < _SHORTEST or len(set(key)) < _FEWEST_DIFFERENT:
        raise ParameterError(f"The key is empty, shorter than {_SHORTEST} bytes, or not random.", fix=_FIX)
    return key


def _unknown() -> ParameterTypeError:
    return ParameterTypeError(
        "The key is not the place of a secret.",
        fix='write key={"env": "STUDY_KEY"} or key={"file": "study.key"}; in a recipe, key: {env: STUDY_KEY}.',
    )
