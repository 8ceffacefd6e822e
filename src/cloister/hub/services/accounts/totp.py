"""Codes that change every half minute (TOTP, RFC 6238, with SHA-1 and six digits as all authenticators know it)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import quote, urlencode

STEP = 30
DIGITS = 6
DRIFT = 1
"""How many steps a clock may be off."""


def code_at(secret: bytes, step: int) -> str:
    """Return the code of one step (HOTP, RFC 4226)."""
    digest = hmac.new(secret, step.to_bytes(8, "big"), hashlib.sha1).digest()
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def matching_step(secret: bytes, code: str, *, time: float, after: int | None) -> int | None:
    """Return the step whose code this is, or None; steps up to ``after`` were used already."""
    current = int(time) // STEP
    steps = range(current - DRIFT, current + DRIFT + 1)
    given = code.strip().replace(" ", "").encode("utf-8", "replace")
    found = [step for step in steps if hmac.compare_digest(code_at(secret, step).encode(), given)]
    fresh = [step for step in found if after is None or step > after]
    return max(fresh, default=None)


def address_of(secret: bytes, *, account: str, issuer: str = "cloister") -> str:
    """Return the otpauth address that authenticators read from a QR code."""
    values = {"secret": text_of(secret), "issuer": issuer, "digits": DIGITS, "period": STEP}
    return f"otpauth://totp/{quote(issuer)}:{quote(account)}?{urlencode(values)}"


def text_of(secret: bytes) -> str:
    """Return a secret as people type it into an authenticator."""
    return base64.b32encode(secret).decode().rstrip("=")
