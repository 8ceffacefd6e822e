"""Hash chains: a text for every JSON value, and a digest over a record and the digest of the one before it.

A chain shows that a record was changed, removed or put in between, to whoever knows a later digest. It does not stop
somebody who can write all of it anew, so the last digest should be noted in another place from time to time.
"""

from __future__ import annotations

import hashlib
import json

__all__ = ["GENESIS", "canonical", "digest"]

GENESIS = "0" * 64
"""What stands for the record before the first one."""


def canonical(value: object) -> str:
    """Return the one text of a JSON value that is hashed: sorted names, no spaces, ASCII.

    >>> canonical({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: object) -> str:
    """Return the SHA-256 of a JSON value's canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
