"""A hub with made-up people in it: one account per role, a hospital's data, an open survey, and some history."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from fractions import Fraction

from pyarrow import parquet
from sqlalchemy import select

from cloister.accounting.budget import Budget
from cloister.core.random import SystemRandomSource, integers_below
from cloister.data.examples.example_tables import HOSPITAL_SCHEMA, hospital
from cloister.hub import queue
from cloister.hub.domain import actions
from cloister.hub.domain.lifecycles import Admission
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import BudgetLimits, Member, Policy, PolicyRule, RuleEffect
from cloister.hub.domain.policy_edits import RESEARCHERS, research_by_request
from cloister.hub.domain.policy_file import policy_to_dict
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import Dataset, PolicyVersion, User, new_id
from cloister.hub.use_cases import datasets, jobs
from cloister.hub.use_cases.accounts import administration, passwords
from cloister.hub.use_cases.authorization import authorize
from cloister.hub.use_cases.datasets.versions import newest_version
from cloister.hub.use_cases.sessions import subject_of
from cloister.hub.use_cases.surveys import estimates, lifecycle, submissions
from cloister.hub.use_cases.surveys.catalogue import open_document
from cloister.local.survey.example import EXAMPLE
from cloister.local.survey.simulation import simulate

HOSPITAL, UNIVERSITY, OFFICE = "North Hospital", "Example University", "Hub office"
PEOPLE = (
    ("olga", "Olga Owner", AccountRole.DATA_OWNER, HOSPITAL, "shares the hospital's data and runs its survey"),
    ("uma", "Uma User", AccountRole.DATA_USER, UNIVERSITY, "asks questions about the data and trains models on it"),
    ("alva", "Alva Author", AccountRole.ALGORITHM_PROVIDER, UNIVERSITY, "provides algorithms"),
    ("otis", "Otis Operator", AccountRole.OPERATOR, OFFICE, "runs the hub, and sees no data"),
    ("audrey", "Audrey Auditor", AccountRole.AUDITOR, OFFICE, "checks the logs"),
)
RESPONDENTS = 5_000
LEVELS = {"medium": 0.7, "low": 0.2, "off": 0.1}
"""How the made-up people of the survey choose: enough of them, for estimates that say something."""

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "island", "jasper", "kelp", "lark",
          "maple", "north", "ocean", "pebble")  # fmt: skip
_QUESTIONS = (
    ("SELECT COUNT(*) AS visits FROM data", "0.1"),
    ("SELECT sex, COUNT(*) AS visits, AVG(length_of_stay) AS days FROM data GROUP BY sex", "0.3"),
    ("SELECT diagnosis, COUNT(*) AS visits FROM data GROUP BY diagnosis", "0.2"),
)

_LEARNING = PolicyRule(
    effect=RuleEffect.ALLOW,
    operations=frozenset({PolicyOperation.ML_TRAIN, PolicyOperation.ML_PREDICT}),
    limits=BudgetLimits(user=Budget(epsilon=Fraction(2)), organisation=Budget(epsilon=Fraction(2))),
)
"""Training takes more than a question does, so there is more to spend on it."""

_SYNTHESIZING_LIMIT = Budget(epsilon=Fraction(2), delta=Fraction(1, 10**6))
_SYNTHESIZING = PolicyRule(
    effect=RuleEffect.ALLOW,
    operations=frozenset({PolicyOperation.SYNTH_GENERATE, PolicyOperation.SYNTH_READ}),
    limits=BudgetLimits(user=_SYNTHESIZING_LIMIT, organisation=_SYNTHESIZING_LIMIT),
)
"""A synthetic table is asked for once and used for long."""


@dataclass(frozen=True, slots=True)
class Login:
    """How to sign in as one of the made-up people."""

    name: str
    role: AccountRole
    password: str
    does: str


@dataclass(frozen=True, slots=True)
class Demo:
    """What was made."""

    logins: tuple[Login, ...]
    dataset_id: str
    survey_slug: str


def fill(hub: Hub) -> Demo:
    """Fill an empty hub."""
    password = _password()
    subjects = _people(hub, password)
    dataset_id = _dataset(hub, subjects["olga"], member=subjects["uma"].user_id)
    _history(hub, subjects["uma"], dataset_id)
    slug = _survey(hub, subjects["olga"])
    logins = tuple(Login(name, role, password, does) for name, _, role, _, does in PEOPLE)
    return Demo(logins, dataset_id, slug)


def is_empty(hub: Hub) -> bool:
    """Return whether nobody has an account yet."""
    with hub.store.reading() as session:
        return session.scalar(select(User.id).limit(1)) is None


def _password() -> str:
    """Return words that are easy to type; the demo answers on this machine only."""
    places = integers_below(SystemRandomSource(), len(_WORDS), 4)
    return "-".join(_WORDS[place] for place in places)


def _people(hub: Hub, password: str) -> dict[str, AccessSubject]:
    kept = passwords.hash_password(password)
    made: dict[str, AccessSubject] = {}
    with hub.store.writing() as session:
        places = {
            name: administration.create_organisation(session, name, by=None) for name in (HOSPITAL, UNIVERSITY, OFFICE)
        }
        for name, shown, role, place, _ in PEOPLE:
            user: User = administration.create_account(
                session, name, by=None, roles=[role], organisation_id=places[place].id, display_name=shown
            )
            user.password_hash = kept
            made[name] = subject_of(user)
    return made


def _dataset(hub: Hub, owner: AccessSubject, *, member: str) -> str:
    written = io.BytesIO()
    parquet.write_table(hospital(), written)
    written.seek(0)
    with hub.store.writing() as session:
        made = datasets.create_dataset(
            session,
            owner,
            name="hospital-visits",
            title="Visits to North Hospital, 2023 to 2025",
            description="Who came, when and why. Made up: no real person is in it.",
        )
    datasets.upload_version(hub, owner, made.id, written, kind="parquet")
    with hub.store.writing() as session:
        stored, version = session.get_one(Dataset, made.id), newest_version(session, made.id)
        if version is not None:
            text = HOSPITAL_SCHEMA.read_text("utf-8")
            datasets.save_schema(hub.blobs, session, owner, version, text, confirm=True)
        datasets.open_for_questions(
            hub.store,
            session,
            owner,
            stored,
            budget=Budget(epsilon=Fraction(3), delta=Fraction(1, 10**6)),
            max_rows_per_unit=5,
        )
        session.add(_policy(research_by_request(made.id, hidden=["patient_id"]), owner, member))
    return made.id


def _policy(policy: Policy, owner: AccessSubject, member: str) -> PolicyVersion:
    further = (_LEARNING, _SYNTHESIZING)
    wider = policy.next_version(roles=tuple(replace(role, rules=(*role.rules, *further)) for role in policy.roles))
    let_in = replace(wider.with_member(RESEARCHERS, Member(user_id=member)), version=2)
    return PolicyVersion(
        id=new_id("pol"),
        object_kind="dataset",
        object_id=policy.object_id,
        number=let_in.version,
        document=policy_to_dict(let_in),
        author_id=owner.user_id,
    )


def _history(hub: Hub, user: AccessSubject, dataset_id: str) -> None:
    """Let the user ask some questions, as the hub would do it."""
    with hub.store.reading() as session:
        access = authorize(session, actions.RUN_SERVICE, subject=user, target_id=dataset_id)
    for sql, epsilon in _QUESTIONS:
        jobs.submit(
            hub,
            access,
            service="query.sql",
            parameters={"sql": sql, "epsilon": epsilon},
            purpose="research.health",
            idempotency_key=None,
        )
        with hub.store.writing() as session:
            claim = queue.claim(session, "demo", 60)
        if claim is not None:
            jobs.perform(hub, claim, lambda share, stage: None)  # noqa: ARG005


def _survey(hub: Hub, owner: AccessSubject) -> str:
    with hub.store.writing() as session:
        survey = lifecycle.create_survey(
            session, owner, document=EXAMPLE, admission=Admission.EVERYBODY, results_are_public=True
        )
        lifecycle.publish(survey, key=hub.key)
        session.flush()
        made = simulate(open_document(survey.document), respondents=RESPONDENTS, mix=LEVELS)
        submissions.submit_many(session, survey, made.submissions)
        survey_id, slug = survey.id, survey.slug
    estimates.current(hub.store, survey_id)
    return slug
