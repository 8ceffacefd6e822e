"""Second factors of accounts: codes from an authenticator, and recovery codes for when it is lost.

The authenticator's secret is kept wrapped by the hub's master key, bound to its account. A code works once. Recovery
codes have 80 random bits, are kept as digests, and work once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from cloister.crypto.keys import DataKey, MasterKey
from cloister.errors import ConflictError, ForbiddenError
from cloister.hub.services.accounts import totp
from cloister.hub.services.sessions import digest_of
from cloister.hub.store.models import RecoveryCode, User
from cloister.hub.store.models.base import random_text

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
    return Proposal(totp.text_of(secret), totp.address_of(secret, account=user.name))


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
    used = session.connection().execute(
        delete(RecoveryCode).where(RecoveryCode.digest == digest_of(plain), RecoveryCode.user_id == user.id)
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
    return totp.matching_step(secret, code, time=time.time(), after=after)


def _new_recovery_codes(session: Session, user: User) -> list[str]:
    session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user.id))
    codes = [random_text(10) for _ in range(RECOVERY_CODES)]
    session.add_all(RecoveryCode(digest=digest_of(code), user_id=user.id) for code in codes)
    return ["-".join(code[start : start + 4] for start in range(0, 16, 4)) for code in codes]


def _wrong() -> ForbiddenError:
    return ForbiddenError("This code is not right.", fix="check the clock of your phone and take the next code.")
