"""Digests of JSON values: the one text of a value, and what results, certificates and hash chains are known by.

There are two texts, which must not be mixed up. `canonical` keeps letters as they are; results, certificates and the
public records of local protocols are known by its digest, `digest_of`. `chain_text` is ASCII throughout; hash chains,
such as those of ledgers and transcripts, are made with its digest, `chain_digest`, over a record and the digest of the
one before it.

A chain shows that a record was changed, removed or put in between, to whoever knows a later digest. It does not stop
somebody who can write all of it anew, so the last digest should be noted in another place from time to time.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["GENESIS", "canonical", "chain_digest", "chain_text", "digest_of"]


def canonical(value: Any) -> str:  # any JSON value
    """Return the one text of a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(value: Any) -> str:  # any JSON value
    """Return the SHA-256 of the one text of a JSON value."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


GENESIS = "0" * 64
"""What stands for the record before the first one."""


def chain_text(value: object) -> str:
    """Return the one text of a JSON value that is hashed: sorted names, no spaces, ASCII.

    >>> chain_text({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def chain_digest(value: object) -> str:
    """Return the SHA-256 of a JSON value's canonical text, in hexadecimal."""
    return hashlib.sha256(chain_text(value).encode()).hexdigest()
