"""Certificates of what commands write: the key that signs, and the certificate beside a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.cli.options import check_target
from cloister.errors import CryptoError

if TYPE_CHECKING:
    from cloister.cli.commands import CommandOutput
    from cloister.crypto.certificates import Certificate
    from cloister.crypto.signatures import SigningKey


def signing_key_of(
    options: dict[str, Any], *, targets: Sequence[str | Path], inputs: Sequence[str | None]
) -> SigningKey | None:
    """Return the key that signs, and refuse a certificate that cannot be written; before anything is paid for."""
    from cloister.crypto.certificates import certificate_path
    from cloister.crypto.signatures import SigningKey

    if options["no_certificate"]:
        return None
    for target in targets:
        check_target(str(certificate_path(target)), inputs=inputs, force=options["force"])
    named = options["signing_key"]
    try:
        return SigningKey.from_file(named, create=named is None)
    except CryptoError as problem:
        fix = problem.fix if named else f"{problem.fix} Or give --signing-key FILE, or --no-certificate."
        raise CryptoError(problem.problem, fix=fix) from None


def say_certified(output: CommandOutput, path: str | Path, key: SigningKey | None) -> None:
    """Say where the certificate is."""
    from cloister.crypto.certificates import certificate_path

    if key is not None:
        output.say(f"The certificate of {path} is in {certificate_path(path)}: publish these two together.")


def is_certified_model(path: str, key: SigningKey) -> bool:
    """Return whether a known key vouches for what a model file says: only then may it be said again, and signed.

    Raises:
        DataError: if the model was changed after it was certified.
    """
    found = read_certificate(path)
    return found is not None and (found.is_vouched or found.signer == key.public)


def read_certificate(path: str | None) -> Certificate | None:
    """Return the certificate beside a file, checked; None if there is none."""
    from cloister.crypto.certificates import find_certificate

    return find_certificate(path) if path is not None and Path(path).is_file() else None
