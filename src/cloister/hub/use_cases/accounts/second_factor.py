"""Second factors of accounts: codes from an authenticator, and recovery codes for when it is lost.

Codes change every half minute (TOTP, RFC 6238, with SHA-1 and six digits as all authenticators know it). The
authenticator's secret is kept wrapped by the hub's master key, bound to its account. A code works once. Recovery codes
have 80 random bits, are kept as digests, and work once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from cloister.core.lazy_imports import late_module
from cloister.crypto.keys import DataKey, MasterKey
from cloister.errors import ConflictError, ForbiddenError
from cloister.hub.store.models import RecoveryCode, User
from cloister.hub.store.models.base import random_text
from cloister.hub.use_cases.sessions import digest_secret

segno = late_module("segno")

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
    # All steps are compared, each in constant time: how long it takes does not tell how near a guess was.
    found = [step for step in steps if hmac.compare_digest(code_at(secret, step).encode(), given)]
    fresh = [step for step in found if after is None or step > after]
    return max(fresh, default=None)


def otpauth_address(secret: bytes, *, account: str, issuer: str = "cloister") -> str:
    """Return the otpauth address that authenticators read from a QR code."""
    values = {"secret": format_secret(secret), "issuer": issuer, "digits": DIGITS, "period": STEP}
    return f"otpauth://totp/{quote(issuer)}:{quote(account)}?{urlencode(values)}"


def qr_picture(address: str) -> str:
    """Return an address as a QR code: an SVG picture without style or script, as a data address."""
    code = segno.make_qr(address, error="m")
    return str(code.svg_data_uri(light="#fff", omitsize=True, svgclass=None, lineclass=None))


def format_secret(secret: bytes) -> str:
    """Return a secret as people type it into an authenticator."""
    return base64.b32encode(secret).decode().rstrip("=")


PURPOSE = "totp"
SECRET_BYTES = 20
RECOVERY_CODES = 10


@dataclass(frozen=True, slots=True)
class Proposal:
    """A new authenticator, shown once: it counts after its first code came back."""

    secret: str
    address: str


def propose(session: Session, key: MasterKey, user: User) -> Proposal:
    """Make a secret for a new authenticator; the one in use, if any, stays until a code of the new one comes."""
    made = DataKey.generate()
    user.totp_proposed = key.wrap(made, purpose=PURPOSE, object_id=user.id)
    session.flush()
    secret = made.reveal()[:SECRET_BYTES]
    return Proposal(format_secret(secret), otpauth_address(secret, account=user.name))


def confirm(session: Session, key: MasterKey, user: User, code: str) -> list[str]:
    """Begin to use the proposed authenticator and return new recovery codes, shown once."""
    if user.totp_proposed is None:
        raise ConflictError("There is no new authenticator to confirm.", fix="begin with a new secret.")
    step = _step(key, user, user.totp_proposed, code, after=None)
    if step is None:
        raise _wrong()
    user.totp_sealed, user.totp_proposed, user.totp_last_step = user.totp_proposed, None, step
    user.factor_reset_by = None
    return _new_recovery_codes(session, user)


def is_on(user: User) -> bool:
    """Return whether an account has a second factor."""
    return user.totp_sealed is not None


def accept(session: Session, key: MasterKey, user: User, code: str) -> bool:
    """Use up a code from the authenticator, or a recovery code; return whether it was right."""
    if user.totp_sealed is None:
        return True
    step = _step(key, user, user.totp_sealed, code, after=user.totp_last_step)
    if step is not None:
        user.totp_last_step = step
        return True
    plain = code.strip().lower().replace("-", "").replace(" ", "")
    # Deleted and counted by one statement: of two who use the same code at once, one succeeds.
    used = session.connection().execute(
        delete(RecoveryCode).where(RecoveryCode.digest == digest_secret(plain), RecoveryCode.user_id == user.id)
    )
    return used.rowcount == 1


def remove(session: Session, user: User) -> None:
    """Take the second factor away."""
    user.totp_sealed = user.totp_proposed = user.totp_last_step = None
    session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user.id))


def codes_left(session: Session, user: User) -> int:
    """Return how many recovery codes are left."""
    found = session.scalar(select(func.count()).select_from(RecoveryCode).where(RecoveryCode.user_id == user.id))
    return int(found or 0)


def _step(key: MasterKey, user: User, wrapped: bytes, code: str, *, after: int | None) -> int | None:
    secret = key.unwrap(wrapped, purpose=PURPOSE, object_id=user.id).reveal()[:SECRET_BYTES]
    return matching_step(secret, code, time=time.time(), after=after)


def _new_recovery_codes(session: Session, user: User) -> list[str]:
    session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user.id))
    codes = [random_text(10) for _ in range(RECOVERY_CODES)]
    session.add_all(RecoveryCode(digest=digest_secret(code), user_id=user.id) for code in codes)
    return ["-".join(code[start : start + 4] for start in range(0, 16, 4)) for code in codes]


def _wrong() -> ForbiddenError:
    return ForbiddenError("This code is not right.", fix="check the clock of your phone and take the next code.")
