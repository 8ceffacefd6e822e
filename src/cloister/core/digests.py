"""The one text of a JSON value, and its digest: what results and certificates are known by."""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["canonical", "digest_of"]


def canonical(value: Any) -> str:  # any JSON value
    """Return the one text of a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(value: Any) -> str:  # any JSON value
    """Return the SHA-256 of the one text of a JSON value."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()
