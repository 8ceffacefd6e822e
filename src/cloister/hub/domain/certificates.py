"""Certificates of releases: what was promised, from what and under which terms, so that anybody can check a copy.

A certificate holds everything that the digest of a result covers. Whoever has it and the files can compute the digest
again without the hub, and ask the hub whether it let a result with that digest out.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from cloister.errors import DataError
from cloister.hub.domain.digests import digest_of

__all__ = ["COVERED", "NAME", "SCHEMA", "check_certificate", "result_digest"]

SCHEMA = "cloister.certificate/1"
NAME = "certificate.json"
COVERED = ("document", "guarantee", "files", "provenance", "nonce")
"""What the digest of a result covers."""


def result_digest(covered: Mapping[str, Any]) -> str:
    """Return the digest of a result."""
    return digest_of({name: covered[name] for name in COVERED})


def check_certificate(certificate: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> str:
    """Return the digest of a certificate that is whole and fits the files given with it, else raise.

    Only the hub can say whether it let the result out: ask it about the digest.

    Args:
        certificate: what the file ``certificate.json`` holds.
        files: the content of files that came with it, by their names.

    Raises:
        DataError: if the certificate was changed, or a file is not the one that it is about.
    """
    try:
        if certificate["schema"] != SCHEMA:
            raise _damaged()
        digest = result_digest(certificate["result"])
        named = {str(item["name"]): str(item["sha256"]) for item in certificate["result"]["files"]}
        stated = str(certificate["digest"])
    except (KeyError, TypeError, ValueError):
        raise _damaged() from None
    if not hmac.compare_digest(digest, stated):
        raise _damaged()
    for name, content in (files or {}).items():
        if named.get(name) != hashlib.sha256(content).hexdigest():
            raise DataError(
                f'The file "{name}" is not the one that the certificate is about.', fix="get both from the hub again."
            )
    return digest


def _damaged() -> DataError:
    return DataError("This is no certificate of a release, or it was changed.", fix="get it from the hub again.")
