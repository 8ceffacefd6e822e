"""Invitations: one-time tokens that the hub shows once and keeps as digests, and blind signatures in exchange."""

from __future__ import annotations

import hashlib

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from cloister.crypto.keys import MasterKey
from cloister.errors import ConflictError, ForbiddenError, ParameterError
from cloister.hub.domain.lifecycles import Admission, SurveyState
from cloister.hub.store.models import HubSurvey, SurveyInvitation
from cloister.hub.store.models.base import random_text
from cloister.hub.use_cases.surveys.lifecycle import signing_key

MOST_AT_ONCE = 10_000
MOST = 1_000_000
_TOKEN_BYTES = 15


def invite(session: Session, survey: HubSurvey, *, count: int) -> list[str]:
    """Make invitations and return their tokens, which nobody can read again."""
    if survey.admission == Admission.EVERYBODY or survey.state == SurveyState.CLOSED:
        raise ConflictError("This survey takes no invitations.", fix="make a survey for invited people.")
    if not 1 <= count <= MOST_AT_ONCE:
        raise ParameterError(
            f"Invitations are made 1 to {MOST_AT_ONCE:,} at once.", fix="ask for fewer, several times."
        )
    made = select(func.count()).select_from(SurveyInvitation).where(SurveyInvitation.survey_id == survey.id)
    if (session.scalar(made) or 0) + count > MOST:
        raise ConflictError(f"A survey has at most {MOST:,} invitations.", fix="make another survey.")
    tokens = [random_text(_TOKEN_BYTES) for _ in range(count)]
    # In the order of the digests: the rows must not show which place a link has in the list that is handed out.
    digests = sorted(digest_for_survey(survey.id, token) for token in tokens)
    session.execute(
        insert(SurveyInvitation),
        [{"survey_id": survey.id, "digest": digest, "is_used": False} for digest in digests],
    )
    return tokens


def sign(session: Session, survey: HubSurvey, *, token: str, blinded: bytes, key: MasterKey) -> bytes:
    """Return the one blind signature of an invitation; whoever repeats the same request gets the same one.

    Raises:
        ForbiddenError: if the token is no invitation, or was used for another request.
    """
    if survey.state != SurveyState.OPEN or survey.admission != Admission.BLIND:
        raise ConflictError("This survey signs nothing now.", fix="look at its page.")
    signer = signing_key(survey, key=key)
    asked = hashlib.sha256(blinded).hexdigest()
    # Locked, so that one invitation cannot be signed for two messages at once.
    invitation = _lock_invitation(session, survey.id, token)
    if invitation.is_used and invitation.asked != asked:
        raise refuse_invitation()
    signature = signer.sign(blinded)
    invitation.is_used, invitation.asked = True, asked
    return signature


def use_token(session: Session, survey_id: str, token: str) -> None:
    """Use an invitation up.

    Raises:
        ForbiddenError: if it is none, or was used before.
    """
    invitation = _lock_invitation(session, survey_id, token)
    if invitation.is_used:
        raise refuse_invitation()
    invitation.is_used = True


def digest_for_survey(survey_id: str, secret: str) -> str:
    """Return what is kept of a secret of one survey."""
    return hashlib.sha256(f"cloister.hub_survey/1\n{survey_id}\n{secret}".encode()).hexdigest()


def _lock_invitation(session: Session, survey_id: str, token: str) -> SurveyInvitation:
    found = session.get(
        SurveyInvitation, (survey_id, digest_for_survey(survey_id, token.strip().lower())), with_for_update=True
    )
    if found is None:
        raise refuse_invitation()
    return found


def refuse_invitation() -> ForbiddenError:
    """Return the refusal of an invitation or of its signature, which says the same for whatever is wrong with them."""
    return ForbiddenError(
        "This invitation is not valid, or was used before.", fix="use the link as you got it, or ask for another one."
    )
