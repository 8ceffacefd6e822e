"""A hub with one of everything in it, and somebody of every kind to knock at its doors.

Marked words stand where nobody else may see them: in the cells of rows, in the categories of a column that the policy
hides, and in the names of a dataset that strangers must not know of.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from cloister.accounting.budget import Budget
from cloister.core.exact import number
from cloister.hub.app import create_app
from cloister.hub.domain import actions
from cloister.hub.domain.lifecycles import Admission
from cloister.hub.domain.operations import PolicyOperation, expand
from cloister.hub.domain.policy import (
    ALL_USES,
    FORBIDDEN,
    BudgetLimits,
    ColumnRule,
    ColumnRules,
    Member,
    Members,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
)
from cloister.hub.domain.roles import AccountRole
from cloister.hub.domain.terms import PurposeSet, UsageTerms
from cloister.hub.gateway.identity import COOKIE, CSRF_COOKIE, CSRF_HEADER
from cloister.hub.hub import Hub, open_hub
from cloister.hub.services.registry import service_registry
from cloister.hub.settings import Settings
from cloister.hub.store.models import (
    AlgorithmVersion,
    Dataset,
    Job,
    LoginSession,
    Organisation,
    ResultRecord,
    User,
    new_id,
    now,
)
from cloister.hub.use_cases import algorithms as algorithms_service, jobs
from cloister.hub.use_cases.access.requests import ask_for_access
from cloister.hub.use_cases.accounts import administration, enrolment, own_account
from cloister.hub.use_cases.authorization import authorize, load_target
from cloister.hub.use_cases.sessions import open_login, subject_of
from cloister.hub.use_cases.surveys import lifecycle, submissions
from cloister.hub.use_cases.surveys.catalogue import open_document
from cloister.hub.workers import OpenTables
from cloister.local.survey.example import EXAMPLE
from cloister.local.survey.simulation import simulate
from tests.support import hub_services
from tests.support.foreign import unhurried_k_means
from tests.support.hub_datasets import ready_dataset, set_policy, subject

ADDRESS = "http://127.0.0.1:8080"
PURPOSE = "research.health"
ROW_MARK = "zzrowmark"
"""Stands in cells only: nobody may ever see it."""
HIDDEN_MARK = "zzhiddenmark"
"""Stands in the name and in the categories of a column that only owners may know of."""
NAME_MARK = "zznamemark"
"""Stands in the name, title and description of the dataset, which strangers may not know of."""

ROLES = tuple(AccountRole)
STRANGERS = tuple(f"stranger {role.words}" for role in ROLES)
NOBODY, OWNER, MEMBER, REQUESTER = "nobody", "owner", "member", "requester"
AUTHOR, PROVIDER = "author", "provider"

_WARDS = (f"{HIDDEN_MARK}a", f"{HIDDEN_MARK}b")
ROWS = f"patient,age,sex,diagnosis,{HIDDEN_MARK}_ward\n" + "".join(
    f"{ROW_MARK}{n % 40},{20 + n % 60},{'FM'[n % 2]},{('asthma', 'flu', 'none')[n % 3]},{_WARDS[n % 7 == 0]}\n"
    for n in range(120)
)
SCHEMA: dict[str, Any] = {
    "columns": {
        "patient": {"role": "identifier", "kind": "nominal", "storage": "text", "subject": True},
        "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 110], "storage": "integer"},
        "sex": {"role": "quasi", "kind": "nominal", "categories": ["F", "M"], "storage": "text"},
        "diagnosis": {
            "role": "sensitive",
            "kind": "nominal",
            "categories": ["asthma", "flu", "none"],
            "storage": "text",
        },
        f"{HIDDEN_MARK}_ward": {
            "role": "sensitive",
            "kind": "nominal",
            "categories": list(_WARDS),
            "storage": "text",
        },
    }
}
_RELEASE = next(service for service in hub_services.SERVICES if service.name == "test.release")
HIDDEN_COLUMN = f"{HIDDEN_MARK}_ward"
COUNT = {"parameters": {"sql": "SELECT COUNT(*) AS n FROM data", "epsilon": "0.1"}, "purpose": PURPOSE}

SYNTHESIS = {"method": "independent", "epsilon": "0.1", "columns": ["age", "sex"], "rows": 5}


@dataclass(slots=True)
class World:
    """The hub, its people and its things, and how to put everything back."""

    hub: Hub
    app: FastAPI
    folder: Path
    people: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, tuple[str, str]] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    things: dict[str, str] = field(default_factory=dict)
    tables: OpenTables = field(default_factory=OpenTables)
    _clients: dict[str, TestClient] = field(default_factory=dict)

    def client(self, who: str) -> TestClient:
        """Return somebody's browser, with the cookies of the sign-in and the proof against cross-site requests."""
        if who not in self._clients:
            client = TestClient(self.app, base_url=ADDRESS, follow_redirects=False, raise_server_exceptions=False)
            self._clients[who] = client
        client = self._clients[who]
        client.cookies.clear()
        client.headers.pop(CSRF_HEADER, None)
        if who != NOBODY:
            cookie, csrf = self.cookies[who]
            client.cookies.set(COOKIE, cookie)
            client.cookies.set(CSRF_COOKIE, csrf)
            client.headers[CSRF_HEADER] = csrf
        return client

    def bearer(self, who: str) -> dict[str, str]:
        """Return the header with somebody's token for everything."""
        return {"authorization": f"Bearer {self.secrets[who]}"}

    def keep(self) -> None:
        """Remember how everything is now."""
        with closing(sqlite3.connect(self._database)) as live, closing(sqlite3.connect(self._copy)) as copy:
            live.backup(copy)
        shutil.copytree(self.hub.settings.folder / "blobs", self.folder / "blobs", dirs_exist_ok=True)

    def put_back(self) -> None:
        """Make everything as it was."""
        with closing(sqlite3.connect(self._copy)) as copy, closing(sqlite3.connect(self._database)) as live:
            copy.backup(live)
        shutil.copytree(self.folder / "blobs", self.hub.settings.folder / "blobs", dirs_exist_ok=True)

    def close(self) -> None:
        """Close the browsers and the hub."""
        for client in self._clients.values():
            client.close()
        self.hub.close()

    @property
    def _database(self) -> Path:
        return self.hub.settings.folder / "hub.db"

    @property
    def _copy(self) -> Path:
        return self.folder / "kept.db"


@contextmanager
def populated(folder: Path, **settings: Any) -> Iterator[World]:
    """Yield a hub with one of everything."""
    hub = open_hub(Settings(folder=folder / "hub", workers=0, answer_seconds=0.0, **settings))
    made = World(hub, create_app(hub), folder)
    service_registry._members[_RELEASE.name] = _RELEASE
    try:
        _people(made)
        _dataset(made)
        _jobs(made)
        _request(made)
        _algorithm(made)
        _survey(made)
        _accounts(made)
        made.keep()
        yield made
    finally:
        del service_registry._members[_RELEASE.name]
        made.close()


def _people(world: World) -> None:
    known = {name: (role, "elsewhere") for name, role in zip(STRANGERS, ROLES, strict=True)}
    known |= {
        OWNER: (AccountRole.DATA_OWNER, "north"),
        MEMBER: (AccountRole.DATA_USER, "north"),
        AUTHOR: (AccountRole.DATA_USER, "north"),
        REQUESTER: (AccountRole.DATA_USER, "south"),
        PROVIDER: (AccountRole.ALGORITHM_PROVIDER, "methods"),
    }
    with world.hub.store.writing() as session:
        for name, (role, place) in known.items():
            organisation = session.query(Organisation).filter_by(name=place).one_or_none()
            if organisation is None:
                organisation = Organisation(id=new_id("org"), name=place)
                session.add(organisation)
                session.flush()
            user = User(
                id=new_id("usr"),
                name=name.replace(" ", "-"),
                roles=[str(role)],
                organisation_id=organisation.id,
                attributes={"branch": place},
            )
            session.add(user)
            session.flush()
            world.people[name] = user.id
            world.things.setdefault("organisation_id", organisation.id)
            world.cookies[name] = open_login(session, user, hours=1)
    for name, user_id in world.people.items():
        who = subject(world.hub, user_id)
        with world.hub.store.writing() as session:
            made = own_account.make_token(session, by=who, name="all", scopes=["*"], days=1)
            none = own_account.make_token(session, by=who, name="little", scopes=["home.see"], days=1)
            world.secrets[name], world.secrets[f"{name}, little"] = made.secret, none.secret
            if name == OWNER:
                world.things["token_id"] = made.token.id


def open_policy(world: World, *, users: tuple[str, ...], **changes: Any) -> Policy:
    """Return the policy of the world's dataset: some people may query it for research, without the hidden columns."""
    rule = PolicyRule(
        effect=RuleEffect.ALLOW,
        operations=expand("query.*", named_only=True)
        | {PolicyOperation.RELEASE_ANONYMIZE, PolicyOperation.SYNTH_GENERATE},
        limits=changes.pop("limits", BudgetLimits(user=Budget(epsilon=number("2")))),
    )
    role = PolicyRole(
        name="researchers",
        members=Members(users=tuple(Member(user_id=world.people[user]) for user in users)),
        rules=(rule,),
    )
    hidden = tuple((name, FORBIDDEN) for name in ("patient", HIDDEN_COLUMN))
    given: dict[str, Any] = {
        "object_id": world.things["dataset_id"],
        "version": changes.pop("version", 2),
        "roles": (role,),
        "columns": ColumnRules(named=hidden, others=ColumnRule(uses=ALL_USES)),
        "terms": UsageTerms(purposes=PurposeSet.of("research")),
    }
    return Policy(**(given | changes))


def _dataset(world: World) -> None:
    owner = subject(world.hub, world.people[OWNER])
    made = ready_dataset(world.hub, owner, name=f"{NAME_MARK}-visits", epsilon="3", content=ROWS, schema=SCHEMA)
    with world.hub.store.writing() as session:
        stored = session.get_one(Dataset, made)
        stored.title, stored.description = f"{NAME_MARK} visits", f"{NAME_MARK} of a hospital."
    world.things["dataset_id"] = made
    set_policy(world.hub, made, open_policy(world, users=(REQUESTER,)))


def _jobs(world: World) -> None:
    answered = submit(world, REQUESTER, "query.sql", COUNT["parameters"])
    released, waiting = (submit(world, REQUESTER, _RELEASE.name, {}) for _ in range(2))
    synthetic = submit(world, REQUESTER, "synth.generate", SYNTHESIS)
    queued = submit(world, REQUESTER, "query.sql", COUNT["parameters"] | {"fresh": True}, is_done=False)
    for job in (released, synthetic):
        with world.hub.store.reading() as session:
            access = authorize(
                session, actions.DECIDE_RELEASE, subject=subject(world.hub, world.people[OWNER]), target_id=job
            )
        jobs.decide_release(world.hub, access, job, approve=True, note="")
    world.things |= {
        "job_id": answered,
        "synthetic_id": synthetic,
        "released_job_id": released,
        "waiting_job_id": waiting,
        "queued_job_id": queued,
    }
    with world.hub.store.reading() as session:
        world.things["digest"] = session.query(ResultRecord).filter_by(job_id=answered).one().digest


def submit(
    world: World, who: str, service: str, parameters: Any, *, purpose: str = PURPOSE, is_done: bool = True
) -> str:
    """Run a service, to its end if so wanted, and return the job."""
    with world.hub.store.reading() as session:
        access = authorize(
            session,
            actions.RUN_SERVICE,
            subject=subject(world.hub, world.people[who]),
            target_id=world.things["dataset_id"],
        )
    job = jobs.submit(world.hub, access, service=service, parameters=parameters, purpose=purpose)
    if is_done:
        work(world.hub)
    return job.id


def work(hub: Hub, **options: Any) -> None:
    """Do everything that waits, as a worker would."""
    while (held := jobs.take(hub, "tests")) is not None:
        jobs.perform(hub, held, lambda share, stage: None, **options)


def _request(world: World) -> None:
    """Let the requester ask for more than the policy gives."""
    asking = subject(world.hub, world.people[REQUESTER])
    with world.hub.store.writing() as session:
        target = load_target(session, "dataset", world.things["dataset_id"])
        assert target is not None
        made = ask_for_access(session, asking, target, purpose=PURPOSE, operations=["ml.train"], note=NAME_MARK)
        world.things |= {"request_id": made.id, "number": "1"}


def _algorithm(world: World) -> None:
    """Publish an algorithm, its checks skipped, and let the owner allow it."""
    made = algorithms_service.register(
        world.hub, subject(world.hub, world.people[PROVIDER]), unhurried_k_means().to_zip()
    )
    with world.hub.store.writing() as session:
        for job in session.query(Job).filter_by(requester_id=world.people[PROVIDER]):
            job.state = "canceled"
        version = session.query(AlgorithmVersion).one()
        version.state, version.published = "published", now()
        session.flush()
        allowance = algorithms_service.allow(
            session,
            subject(world.hub, world.people[OWNER]),
            world.things["dataset_id"],
            algorithm="k-means@1.0.0",
            digest=version.digest,
            has_read=True,
        )
        world.things |= {"algorithm_id": version.algorithm_id, "version": "1.0.0", "allowance_id": allowance.id}
    assert made is not None


def _survey(world: World) -> None:
    author = subject(world.hub, world.people[AUTHOR])
    with world.hub.store.writing() as session:
        survey = lifecycle.create_survey(
            session, author, document=EXAMPLE, admission=Admission.EVERYBODY, results_are_public=True, least=10
        )
        lifecycle.publish(survey, key=world.hub.key)
        session.flush()
        # Enough respondents for a chart: with a handful nothing can be said about single values.
        made = simulate(open_document(survey.document), respondents=400, mix={"low": 1})
        submissions.submit_many(session, survey, made.submissions)
        world.things |= {"survey_id": survey.id, "question": "married"}


def _accounts(world: World) -> None:
    with world.hub.store.writing() as session:
        world.things["token"] = enrolment.make_link(session, world.people[MEMBER], by=None).token
        login = session.query(LoginSession).filter_by(user_id=world.people[OWNER]).one()
        world.things["login_id"] = login.id
        operator = subject_of(session.get_one(User, world.people[f"stranger {AccountRole.OPERATOR.words}"]))
        north = session.get_one(User, world.people[OWNER]).organisation_id
        joining = administration.create_account(
            session, "joining", by=operator, roles=[AccountRole.DATA_OWNER], organisation_id=north
        )
        world.things["joining_id"] = joining.id
        locked_out = User(
            id=new_id("usr"), name="locked-out", roles=[str(AccountRole.DATA_OWNER)], organisation_id=north
        )
        session.add(locked_out)
        session.flush()
        enrolment.make_link(session, locked_out.id, by=operator)
        world.things["locked_out_id"] = locked_out.id
    world.things["account_id"] = world.people[MEMBER]
