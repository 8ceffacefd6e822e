"""Where a person may be sent after signing in: only to a page of the hub itself."""

from __future__ import annotations

from urllib.parse import urlsplit

LONGEST = 500


def local_path(wanted: str | None, *, otherwise: str = "/") -> str:
    """Return a path on this hub, or another one where it could lead anywhere else."""
    if wanted is None or not 0 < len(wanted) <= LONGEST:
        return otherwise
    if not wanted.isascii() or not wanted.isprintable() or any(letter in wanted for letter in ' \\"<>{}'):
        return otherwise
    if not wanted.startswith("/") or wanted.startswith("//"):
        return otherwise
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return otherwise
    return otherwise if parts.scheme or parts.netloc else wanted
