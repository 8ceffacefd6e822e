"""Many analysts at once on one dataset, through a real server with workers, beside the bare library call.

Each analyst asks questions of the example dataset with a token, waits for each answer, and asks the next. The budget is
for three quarters of them: the others have to be refused, all spends together must be exactly what was promised, and
both chains must verify. Set CLOISTER_POSTGRES to the address of an empty database to measure that too.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx2
from pyarrow import parquet

import cloister as cl
from cloister.accounting.budget import Budget
from cloister.data.examples.example_tables import HOSPITAL_SCHEMA, hospital, hospital_table
from cloister.hub.domain.policy import Member
from cloister.hub.domain.policy_edits import RESEARCHERS, research_by_request
from cloister.hub.domain.policy_file import policy_to_dict
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.hub.store.models import Dataset, PolicyVersion, new_id
from cloister.hub.use_cases import audit_log, datasets
from cloister.hub.use_cases.accounts import administration, own_account
from cloister.hub.use_cases.datasets.versions import newest_version
from cloister.hub.use_cases.sessions import subject_of

TITLE = "Hub"
ANALYSTS, QUESTIONS, WORKERS = 200, 2, 2
EPSILON = Fraction(1, 1000)
PATIENCE = 600.0


@dataclass(slots=True)
class Seen:
    """What the analysts saw: seconds, and anything that should not have been."""

    submits: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    requests: int = 0
    seconds: float = 0.0


def main(analysts: int = ANALYSTS, questions: int = QUESTIONS) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"name": "the bare library call", "ours": 1000 * _bare(), "unit": "ms"},
    ]
    for name, database in (("SQLite", ""), ("PostgreSQL", os.environ.get("CLOISTER_POSTGRES", ""))):
        if name == "SQLite" or database:
            with tempfile.TemporaryDirectory() as folder:
                rows += _measured(name, Path(folder) / "hub", database, analysts, questions)
    return rows


def _measured(name: str, folder: Path, database: str, analysts: int, questions: int) -> list[dict[str, Any]]:
    settings = Settings(folder=folder, database=database, port=free_port(), workers=WORKERS, answer_seconds=0.0)
    total = analysts * questions
    budget = EPSILON * (3 * total // 4)
    hub = open_hub(settings)
    try:
        dataset, secrets = _filled(hub, analysts, budget)
        with serving(settings) as start:
            seen = asyncio.run(_ask_all(settings.address, dataset, secrets, questions))
        problems = [*seen.wrong, *_checked(hub, dataset, budget, total, seen)]
    finally:
        hub.close()
    what = f"{analysts} analysts, {name}"
    return [
        {
            "name": f"{name}: from start to first answer",
            "ours": start,
            "unit": "s",
            "target": "under 3",
            "met": start < 3,
        },
        {"name": f"{what}: submit, p50", "ours": 1000 * share(seen.submits, 50), "unit": "ms"},
        {"name": f"{what}: submit, p95", "ours": 1000 * share(seen.submits, 95), "unit": "ms"},
        {"name": f"{what}: submit to answer, p50", "ours": 1000 * share(seen.answers, 50), "unit": "ms"},
        {"name": f"{what}: submit to answer, p95", "ours": 1000 * share(seen.answers, 95), "unit": "ms"},
        {"name": f"{what}: requests", "ours": seen.requests / seen.seconds, "unit": "per second"},
        {"name": f"{what}: answers", "ours": len(seen.answers) / seen.seconds, "unit": "per second"},
        {
            "name": f"{what}: errors, overspends, damages",
            "ours": len(problems),
            "unit": "; ".join(problems[:3]) or "none",
            "target": "0",
            "met": not problems,
        },
    ]


def _bare() -> float:
    """Return the seconds of one question of the same table, without a hub."""
    private = cl.PrivateTable(hospital_table(), budget=cl.Budget(epsilon=3), unit="patient_id", max_rows_per_unit=5)
    taken = []
    for place in range(20):
        start = time.perf_counter()
        private.sql(_question(place), epsilon=float(EPSILON))
        taken.append(time.perf_counter() - start)
    return share(taken, 50)


def _question(place: int) -> str:
    return f"SELECT COUNT(*) AS visits FROM data WHERE length_of_stay >= {place % 20}"


def _filled(hub: Hub, analysts: int, budget: Fraction) -> tuple[str, list[str]]:
    """Return the dataset, and a token for each analyst."""
    with hub.store.writing() as session:
        place = administration.create_organisation(session, "North Hospital", by=None).id
        owner = subject_of(
            administration.create_account(
                session, "olga", by=None, roles=[AccountRole.DATA_OWNER], organisation_id=place
            )
        )
        users = [
            subject_of(
                administration.create_account(session, f"analyst-{number}", by=None, roles=[AccountRole.DATA_USER])
            )
            for number in range(analysts)
        ]
        secrets = [
            own_account.make_token(session, by=user, name="bench", scopes=["*"], days=1).secret for user in users
        ]
    return _dataset(hub, owner, users, budget), secrets


def _dataset(hub: Hub, owner: AccessSubject, users: list[AccessSubject], budget: Fraction) -> str:
    written = io.BytesIO()
    parquet.write_table(hospital(), written)
    written.seek(0)
    with hub.store.writing() as session:
        made = datasets.create_dataset(session, owner, name="hospital-visits")
    datasets.upload_version(hub, owner, made.id, written, kind="parquet")
    with hub.store.writing() as session:
        stored, version = session.get_one(Dataset, made.id), newest_version(session, made.id)
        assert version is not None
        datasets.save_schema(hub.blobs, session, owner, version, HOSPITAL_SCHEMA.read_text("utf-8"), confirm=True)
        datasets.open_for_questions(
            hub.store, session, owner, stored, budget=Budget(epsilon=budget), max_rows_per_unit=5
        )
        policy = research_by_request(made.id, hidden=["patient_id"])
        for user in users:
            policy = policy.with_member(RESEARCHERS, Member(user_id=user.user_id))
        policy = replace(policy, version=2)
        session.add(
            PolicyVersion(
                id=new_id("pol"), object_kind="dataset", object_id=made.id, number=2, document=policy_to_dict(policy)
            )
        )
    return made.id


@contextlib.contextmanager
def serving(settings: Settings) -> Iterator[float]:
    """Run a server in a process of its own, and yield the seconds until it answered."""
    command = [
        *(
            sys.executable,
            "-c",
            "from cloister.cli import main; main()",
            "hub",
            "serve",
            "--json",
            "--folder",
            str(settings.folder),
        ),
        *("--port", str(settings.port), "--workers", str(settings.workers)),
    ]
    variables = os.environ | {
        "PYTHONPATH": str(Path(cl.__file__).parents[1]),
        "CLOISTER_HUB_ANSWER_SECONDS": "0",
        "CLOISTER_HUB_LOG_LEVEL": "error",
        **({"CLOISTER_HUB_DATABASE": settings.database} if settings.database else {}),
    }
    start = time.perf_counter()
    server = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(httpx2.TransportError):
                httpx2.get(f"{settings.address}/health").raise_for_status()
                break
            if server.poll() is not None or time.perf_counter() - start > 60:
                raise RuntimeError("the hub did not start")
            time.sleep(0.02)
        yield time.perf_counter() - start
    finally:
        server.terminate()
        server.wait(60)


async def _ask_all(address: str, dataset: str, secrets: list[str], questions: int) -> Seen:
    seen = Seen()
    limits = httpx2.Limits(max_connections=len(secrets) + 10)
    start = time.perf_counter()
    async with httpx2.AsyncClient(base_url=f"{address}/api/v1", limits=limits, timeout=PATIENCE) as client:
        await asyncio.gather(
            *(_analyst(client, dataset, secret, place, questions, seen) for place, secret in enumerate(secrets))
        )
    seen.seconds = time.perf_counter() - start
    return seen


async def _analyst(client: Any, dataset: str, secret: str, place: int, questions: int, seen: Seen) -> None:
    headers = {"authorization": f"Bearer {secret}"}
    for turn in range(questions):
        parameters = {"sql": _question(place + turn), "epsilon": str(EPSILON), "fresh": True}
        start = time.perf_counter()
        made = await client.post(
            f"/datasets/{dataset}/services/query.sql/runs",
            json={"parameters": parameters, "purpose": "research.health"},
            headers=headers,
        )
        seen.requests += 1
        seen.submits.append(time.perf_counter() - start)
        if made.status_code == 409 and made.json()["error"] == "BudgetExceededError":
            seen.refused += 1
        elif made.status_code != 202:
            seen.wrong.append(f"{made.status_code}: {made.text[:100]}")
        else:
            await _wait(client, made.json()["id"], headers, start, seen)


async def _wait(client: Any, job: str, headers: dict[str, str], start: float, seen: Seen) -> None:
    pause = 0.05
    while time.perf_counter() - start < PATIENCE:
        state = (await client.get(f"/jobs/{job}", headers=headers)).json()["state"]
        seen.requests += 1
        if state == "done":
            seen.answers.append(time.perf_counter() - start)
            return
        if state not in ("queued", "running"):
            seen.wrong.append(f"a job ended as {state}")
            return
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 1.0)
    seen.wrong.append("a job took too long")


def _checked(hub: Hub, dataset: str, budget: Fraction, total: int, seen: Seen) -> list[str]:
    """Return what is not as it must be: the spends, and both chains."""
    problems = []
    with hub.store.reading() as session:
        ledger = hub.store.ledger(session)
        ledger.verify()
        audit_log.verify(session)
        spent = budget - ledger.remaining(dataset).amount
    if spent != budget or spent != EPSILON * len(seen.answers):
        problems.append(f"{spent} of {budget} was spent for {len(seen.answers)} answers")
    if len(seen.answers) + seen.refused + len(seen.wrong) != total:
        problems.append("questions were lost")
    return problems


def share(values: list[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
