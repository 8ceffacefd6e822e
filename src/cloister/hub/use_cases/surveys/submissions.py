"""Taking answers: a submission is checked whole, counted once, and taken apart before it is kept.

What stays of it are single reports under random keys, and apart from them a digest of its one-time id and one of its
invitation or signature. Nothing leads from one to the other. The database is made to forget the order of answers: often
while there are few, less often as they grow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy.orm import Session

from cloister.crypto.blind_signatures import BlindPublicKey
from cloister.errors import ConflictError, CryptoError, ForbiddenError
from cloister.hub.domain.lifecycles import Admission, SurveyState
from cloister.hub.store.arrival_order import empty_log, forget_order
from cloister.hub.store.database import Store
from cloister.hub.store.models import HubSurvey, SurveySignature
from cloister.hub.use_cases.surveys._stored_submissions import StoredSubmissions
from cloister.hub.use_cases.surveys.catalogue import checker_of
from cloister.hub.use_cases.surveys.invitations import digest_for_survey, refuse_invitation, use_token
from cloister.local.survey.intake import SubmissionIntake
from cloister.local.survey.submissions import Submission


def submit(
    session: Session,
    survey: HubSurvey,
    *,
    submission: dict[str, Any],
    token: str | None = None,
    message: bytes | None = None,
    signature: bytes | None = None,
) -> bool:
    """Count a submission and return True, or return False if it was counted before.

    Raises:
        ConflictError: if the survey is not open.
        ReportError: if it is not something that the survey's devices make.
        ForbiddenError: if it has no valid invitation or signature, or one that was used for another submission.
    """
    if survey.state != SurveyState.OPEN:
        raise ConflictError("This survey takes no answers now.", fix="look at its page.")
    intake = SubmissionIntake(
        checker_of(survey.document),
        StoredSubmissions(session, survey),
        admit=lambda _: _admit(session, survey, token=token, message=message, signature=signature),
    )
    return intake.take(submission)


def submit_many(session: Session, survey: HubSurvey, submissions: Iterable[Submission]) -> None:
    """Count the submissions of made-up people, all at once, to a survey for everybody; each must be new.

    Raises:
        ConflictError: if one of them cannot be counted.
    """
    taken = SubmissionIntake(checker_of(survey.document), StoredSubmissions(session, survey)).take_many(submissions)
    if taken.refused:
        raise ConflictError(
            f"Some submissions cannot be counted: {', '.join(taken.reasons())}.", fix="make them anew for this survey."
        )


def _admit(
    session: Session, survey: HubSurvey, *, token: str | None, message: bytes | None, signature: bytes | None
) -> None:
    """Use up what admits one person, or raise."""
    given = (token is not None, message is not None, signature is not None)
    match Admission(survey.admission):
        case Admission.EVERYBODY:
            _insist(given == (False, False, False), "This survey takes no invitations.")
        case Admission.LINKS:
            _insist(given == (True, False, False), "This survey is for invited people.")
            use_token(session, survey.id, token or "")
        case Admission.BLIND:
            _insist(given == (False, True, True), "This survey is for invited people.")
            _use_signature(session, survey, message or b"", signature or b"")


def _use_signature(session: Session, survey: HubSurvey, message: bytes, signature: bytes) -> None:
    facts = json.loads(survey.public_key or "{}")
    key = BlindPublicKey(int(facts["modulus"], 16), int(facts["exponent"], 16))
    try:
        key.verify(message, signature)
    except CryptoError:
        raise refuse_invitation() from None
    digest = digest_for_survey(survey.id, f"signature {hashlib.sha256(message).hexdigest()}")
    if session.get(SurveySignature, (survey.id, digest)) is not None:
        raise refuse_invitation()
    session.add(SurveySignature(survey_id=survey.id, digest=digest))


def _insist(claim: bool, problem: str) -> None:  # noqa: FBT001
    if not claim:
        raise ForbiddenError(problem, fix="open the link of your invitation, and answer on that page.")


SMALLEST_TURN = 8
TURN_SHARE = 8


def is_turn(count: int, *, dialect: str) -> bool:
    """Return whether so many submissions are a turn for writing rows anew, each eighth more.

    All rows are written anew at a turn, so that turns at fixed distances would take ever longer in all. SQLite waits
    for at least eight new submissions.

    >>> print(*(count for count in range(1, 30) if is_turn(count, dialect="postgresql")))
    8 9 10 11 12 13 14 15 16 18 20 22 24 27
    >>> print(*(count for count in range(1, 130) if is_turn(count, dialect="sqlite")))
    8 16 24 32 40 48 56 64 72 81 91 102 114 128
    """
    least = SMALLEST_TURN if dialect == "sqlite" else 1
    turn = SMALLEST_TURN
    while turn < count:
        turn += max(least, turn // TURN_SHARE)
    return turn == count


def forget_when_due(store: Store, survey_id: str, count: int) -> None:
    """Make the database forget the order of a survey's answers if it is the turn of this count, else its newest log."""
    if is_turn(count, dialect=store.dialect):
        forget_order(store, survey_id=survey_id)
    elif count % SMALLEST_TURN == 0:
        empty_log(store)
