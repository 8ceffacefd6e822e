"""Attempts to learn more than the hub means to tell, each by somebody who may ask questions. None may succeed.

Each test says what success would be; where it is cheap, the same attempt is shown to succeed against something weaker.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from cloister.accounting.budget import Budget
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.policy import ALL_USES, BudgetLimits, ColumnRule, ColumnRules
from cloister.hub.queue import FailureCount
from cloister.hub.services.registry import ServiceOutcome, service_registry
from cloister.hub.store import sealed_tables
from cloister.hub.store.models import AuditEntry, Dataset, Job, NoticeRecord, User
from cloister.hub.use_cases.datasets import _views as views
from tests.support.hub_attacks import API, VICTIM, WITH, WITHOUT, Heard, ask, charges, dataset, give, told
from tests.support.hub_datasets import set_policy, subject
from tests.support.hub_services import RowCount
from tests.support.hub_world import (
    HIDDEN_COLUMN,
    MEMBER,
    OWNER,
    PURPOSE,
    REQUESTER,
    ROWS,
    STRANGERS,
    World,
    open_policy,
    work,
)

pytestmark = pytest.mark.slow


def exactly(sql: str, content: str = WITH) -> float:
    """Return the answer of a database without protection."""
    with duckdb.connect() as database:
        header, *lines = content.strip().splitlines()
        names = header.split(",")
        database.execute(f"CREATE TABLE data ({', '.join(f'{n} {_kind(n)}' for n in names)})")
        database.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(names))})", [x.split(",") for x in lines])
        row = database.execute(sql).fetchone()
        assert row is not None
        return float(row[0] or 0)


def _kind(name: str) -> str:
    return "INTEGER" if name == "age" else "TEXT"


# Singling out ---------------------------------------------------------------------------------------------------------

SINGLED_OUT = {
    "one-hot count": ([(1, f"SELECT COUNT(*) AS n FROM data WHERE {VICTIM}")], 1),
    "one-hot sum": ([(Fraction(1, 103), f"SELECT SUM(age) AS n FROM data WHERE {VICTIM}")], 1),
    "one-hot measure": ([(1, f"SELECT SUM(CASE WHEN {VICTIM} THEN 1 ELSE 0 END) AS n FROM data")], 1),
    "differencing": (
        [(1, "SELECT COUNT(*) AS n FROM data"), (-1, f"SELECT COUNT(*) AS n FROM data WHERE NOT ({VICTIM})")],
        1,
    ),
    "differencing sums": (
        [
            (Fraction(1, 103), "SELECT SUM(age) AS n FROM data WHERE sex = 'F'"),
            (Fraction(-1, 103), "SELECT SUM(age) AS n FROM data WHERE sex = 'F' AND age <> 103"),
        ],
        1,
    ),
    "tracker": (
        [
            (1, f"SELECT COUNT(*) AS n FROM data WHERE ({VICTIM}) OR diagnosis = 'flu'"),
            (1, f"SELECT COUNT(*) AS n FROM data WHERE ({VICTIM}) OR diagnosis <> 'flu'"),
            (-1, "SELECT COUNT(*) AS n FROM data WHERE diagnosis = 'flu'"),
            (-1, "SELECT COUNT(*) AS n FROM data WHERE diagnosis <> 'flu'"),
        ],
        1,
    ),
}


@pytest.mark.parametrize("name", sorted(SINGLED_OUT))
def test_nobody_is_singled_out(world: World, name: str) -> None:
    """Success: to learn whether the victim's row is there from questions that are exact together."""
    questions, present = SINGLED_OUT[name]
    assert sum(weight * exactly(sql) for weight, sql in questions) == pytest.approx(present)
    assert sum(weight * exactly(sql, WITHOUT) for weight, sql in questions) == pytest.approx(0)
    epsilon = Fraction(1, 5 * len(questions))
    heard = [ask(world, world.things["with"], sql, epsilon=str(epsilon)) for _, sql in questions]
    assert all(one.state == "done" for one in heard)
    parts = zip(questions, heard, strict=True)
    margin = math.sqrt(sum((weight * (one.margins[0] or 0)) ** 2 for (weight, _), one in parts))
    assert margin > 5 * present, "a margin that tells the attacker more than the price allows"
    assert charges(world, world.things["with"]) == len(questions)


@pytest.mark.parametrize("name", sorted(SINGLED_OUT))
def test_margins_do_not_depend_on_whether_the_victim_is_there(world: World, name: str) -> None:
    """Success: anything but the noisy number is different where the victim is there."""
    for _, sql in SINGLED_OUT[name][0]:
        seen = [ask(world, world.things[place], sql) for place in ("with", "without")]
        assert seen[0].outcome == seen[1].outcome
        assert seen[0].margins == seen[1].margins


@pytest.mark.parametrize(("unit", "rows", "most"), [("patient", 2, 2), ("row", None, 400)])
def test_replicated_rows_count_no_more_than_agreed(world: World, unit: str, rows: int | None, most: int) -> None:
    """Success: rows of one person, copied 400 times, show in a count. Protecting rows instead, they do."""
    content = ROWS.splitlines()[0] + "\n" + "zzrowmark1,50,F,flu,zzhiddenmarka\n" * 400
    copied = dataset(world, content, unit=unit, max_rows_per_unit=rows)
    heard = ask(world, copied, "SELECT COUNT(*) AS n FROM data", epsilon="50")
    assert heard.state == "done"
    assert heard.columns[0][0] == pytest.approx(most, abs=2 + 1)


# Averaging ------------------------------------------------------------------------------------------------------------

SPELLINGS = (
    "SELECT COUNT(*) AS n FROM data",
    "select count(*) as n from data",
    "SELECT COUNT(*) AS other FROM data",
    "SELECT COUNT(1) AS n FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE TRUE",
    "SELECT COUNT(*) AS n FROM data WHERE 1 = 1",
    "SELECT COUNT(*) AS n FROM data AS d",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM data) AS d",
    "SELECT SUM(1) AS n FROM data",
    "SELECT COUNT(*) AS n FROM data -- again",
    "SELECT COUNT(*) AS n FROM data ORDER BY n",
    "SELECT COUNT(*) AS n FROM data LIMIT 1",
)


def test_repeating_a_question_gives_no_second_draw_for_free(world: World) -> None:
    """Success: more different answers to one question than were paid for."""
    place = world.things["with"]
    heard = [ask(world, place, sql, epsilon="0.01") for sql in (*SPELLINGS, *SPELLINGS)]
    answers = {one.columns[0][0] for one in heard if one.state == "done"}
    assert answers
    assert len(answers) <= charges(world, place) <= len(SPELLINGS)
    assert len({ask(world, place, SPELLINGS[0], epsilon="0.01").columns for _ in range(5)}) == 1


def test_new_noise_is_paid_for(world: World) -> None:
    """Success: answers with new noise beyond what the person may spend."""
    place = world.things["with"]
    give(world, place, limits=BudgetLimits(user=Budget(epsilon=Fraction(1, 2))))
    heard = [ask(world, place, SPELLINGS[0], epsilon="0.1", fresh=True) for _ in range(7)]
    assert [one.submitted[0] for one in heard] == [202] * 5 + [409] * 2
    assert charges(world, place) == 5


def test_cheaper_questions_do_not_refine_a_dear_answer(world: World) -> None:
    """Success: an answer to the same question for less, with noise of its own, and no charge."""
    place = world.things["with"]
    dear, cheap = (ask(world, place, SPELLINGS[0], epsilon=epsilon) for epsilon in ("0.5", "0.1"))
    assert dear.columns == cheap.columns
    assert charges(world, place) == 1


# Oracles --------------------------------------------------------------------------------------------------------------

FAILING = (
    "SELECT SUM(1 / (age - 103)) AS n FROM data",
    "SELECT SUM(age / NULLIF(age - 103, 0)) AS n FROM data",
    "SELECT SUM(CAST(diagnosis AS INTEGER)) AS n FROM data",
    "SELECT SUM(CASE WHEN age = 103 THEN CAST(sex AS INTEGER) ELSE 0 END) AS n FROM data",
    "SELECT SUM(age * 1e308 * 1e308) AS n FROM data",
    "SELECT SUM(CASE WHEN age = 103 THEN 9e307 * age ELSE 0 END) AS n FROM data",
    "SELECT SUM(age * 9223372036854775807) AS n FROM data",
    "SELECT SUM(age * age * age * age * age * age * age * age * age * age * age) AS n FROM data",
    "SELECT SUM(SQRT(102 - age)) AS n FROM data",
    "SELECT SUM(LN(103 - age)) AS n FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE regexp_matches(sex, CASE WHEN age = 103 THEN '[' ELSE 'F' END)",
    "SELECT COUNT(*) AS n FROM data WHERE sex LIKE '%' ESCAPE 'ab'",
    "SELECT COUNT(*) AS n FROM data WHERE error(CASE WHEN age = 103 THEN 'x' ELSE NULL END) IS NULL",
    "SELECT SUM(MOD(age, age - 103)) AS n FROM data",
    "SELECT AVG(age) AS n FROM data WHERE age > 102",
    "SELECT MAX(age) AS n FROM data",
    "SELECT MEDIAN(age) AS n FROM data WHERE age > 102",
    "SELECT STDDEV(age) AS n FROM data WHERE age > 102",
    "SELECT SUBSTRING(sex, age - 103) AS k, COUNT(*) AS n FROM data GROUP BY 1",
    "SELECT age, COUNT(*) AS n FROM data GROUP BY age",
    "SELECT CAST(age AS VARCHAR) AS k, COUNT(*) AS n FROM data GROUP BY 1",
    "SELECT COUNT(*) / COUNT(CASE WHEN age > 102 THEN 1 END) AS n FROM data",
    "SELECT COUNT(*) AS n FROM data HAVING COUNT(*) > 120",
    "SELECT sex, COUNT(*) AS n FROM data WHERE age > 102 GROUP BY sex HAVING COUNT(*) > 0",
    "SELECT (SELECT MAX(age) FROM data) AS n",
    "SELECT COUNT(*) AS n FROM data WHERE age = (SELECT MAX(age) FROM data)",
    "SELECT COUNT(*) AS n FROM data, data AS other WHERE data.age = other.age",
)


@pytest.mark.parametrize("sql", FAILING)
def test_failures_do_not_depend_on_the_rows(world: World, sql: str) -> None:
    """Success: whether a question is refused, fails or works tells whether the victim is there."""
    seen = [ask(world, world.things[place], sql) for place in ("with", "without")]
    assert seen[0].preview == seen[1].preview
    assert (seen[0].submitted, seen[0].state, seen[0].error) == (seen[1].submitted, seen[1].state, seen[1].error)
    assert seen[0].state in ("", "done"), "work that fails after it was paid for"
    assert len(seen[0].columns) == len(seen[1].columns)
    if "HAVING" not in sql:
        assert [len(column) for column in seen[0].columns] == [len(column) for column in seen[1].columns]


class _Telling(RowCount):
    """A service that fails where the victim is there, and says so."""

    name = "test.telling"

    def run(self, work: Any, parameters: Any) -> ServiceOutcome:
        work.progress(0.5, "counting")
        if work.table.count(parameters.where):
            raise ZeroDivisionError("the victim is there")
        return ServiceOutcome(document={})


@pytest.mark.hidden_failures
def test_a_service_that_fails_with_the_rows_is_not_seen_to_fail(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Success: anything that the requester, the owner or the audit can read of the work differs by the victim."""
    monkeypatch.setitem(service_registry._members, _Telling.name, _Telling())
    count = FailureCount(world.hub.settings.folder)
    seen = []
    for place, failures in (("with", 1), ("without", 0)):
        before = count.value
        asked = {"parameters": {"epsilon": "0.1", "where": VICTIM}, "purpose": PURPOSE}
        address = f"{API}/datasets/{world.things[place]}/services/{_Telling.name}/runs"
        run = world.client(REQUESTER).post(address, json=asked).json()["id"]
        work(world.hub)
        views_of_it = [world.client(name).get(f"{API}/jobs/{run}").json() for name in (REQUESTER, OWNER)]
        result = world.client(REQUESTER).get(f"{API}/jobs/{run}/result").json()
        with world.hub.store.reading() as session:
            notices = sorted(
                notice.text for notice in session.query(NoticeRecord).filter(NoticeRecord.link == f"/jobs/{run}")
            )
            entries = session.query(AuditEntry).filter(AuditEntry.target == f"job:{run}").order_by(AuditEntry.number)
            ends = [(entry.action, json.loads(entry.details)) for entry in entries]
        told = json.dumps([views_of_it, notices, ends])
        assert "ZeroDivision" not in told + json.dumps(result)
        assert "victim" not in told.replace(VICTIM, "")
        assert count.value - before == failures, "operators know how often"
        seen.append(
            (
                [(one["state"], one["error"], one["progress"], one["stage"]) for one in views_of_it],
                {name: result[name] for name in ("document", "guarantee", "summary", "files", "report", "figure")},
                [text.replace("without", "with") for text in notices],
                [(action, details.get("state")) for action, details in ends],
            )
        )
    assert seen[0] == seen[1]
    assert seen[0][0][0][:2] == ("done", None)


def test_nothing_is_read_before_it_is_paid_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Success: a preview, a refusal or a charge that opened the rows, and so could be timed or differ by them."""

    def closed(*_: Any, **__: Any) -> Any:
        raise AssertionError("somebody opened the rows")

    for module, name in ((views, "open_view"), (views, "open_sealed_table"), (sealed_tables, "open_sealed_table")):
        monkeypatch.setattr(module, name, closed)
    place = f"{API}/datasets/{world.things['with']}/services/query.sql"
    client = world.client(REQUESTER)
    for sql in (*SPELLINGS, *FAILING, f"SELECT SUM({HIDDEN_COLUMN}) AS n FROM data"):
        for step in ("preview", "runs"):
            asked = {"parameters": {"sql": sql, "epsilon": "0.1"}, "purpose": PURPOSE}
            assert client.post(f"{place}/{step}", json=asked).status_code in (200, 202, 403, 422), sql
    work(world.hub)
    with world.hub.store.reading() as session:
        ended = session.query(Job).filter_by(dataset_id=world.things["with"]).all()
    assert {job.state for job in ended} == {"failed"}, "only work that was paid for opens the rows"


def test_what_is_left_depends_on_what_was_spent_only(world: World) -> None:
    """Success: budgets of equal histories differ where the rows do."""
    left = []
    for place in ("with", "without"):
        for sql in SPELLINGS[:3]:
            ask(world, world.things[place], sql, epsilon="0.3", fresh=True)
        address = f"{API}/datasets/{world.things[place]}/services/query.sql/preview"
        asked = {"parameters": {"sql": SPELLINGS[0], "epsilon": "0.1"}, "purpose": PURPOSE}
        left.append(told(world.client(REQUESTER).post(address, json=asked).json(), world.things[place]))
    assert left[0] == left[1]


def test_a_stored_answer_belongs_to_one_view(world: World) -> None:
    """Success: an answer about rows or columns that somebody may not use, because somebody else asked before."""
    place, sql = world.things["with"], "SELECT COUNT(*) AS n FROM data"
    give(world, place, rows=RowPredicate("sex = 'F'"))
    first = ask(world, place, sql, epsilon="50")
    give(world, place, users=(REQUESTER, MEMBER), rows=RowPredicate("sex = 'M'"))
    second = ask(world, place, sql, epsilon="50", who=MEMBER)
    assert charges(world, place) == 2
    assert (first.columns[0][0], second.columns[0][0]) == (pytest.approx(61, abs=1), pytest.approx(60, abs=1))


def test_a_stored_answer_belongs_to_one_version_of_the_rows(world: World) -> None:
    """Success: an old answer is told as if it were about the new rows, or two versions share a draw of noise."""
    place = world.things["with"]
    ask(world, place, SPELLINGS[0])
    owner = world.client(OWNER)
    sent = owner.post(f"{API}/datasets/{place}/versions", content=WITHOUT, headers={"content-type": "text/csv"})
    assert sent.status_code == 201, sent.text
    assert sent.json()["state"] == "ready", "it has the columns of the version before"
    ask(world, place, SPELLINGS[0])
    assert charges(world, place) == 2


def test_idempotency_keys_of_others_tell_nothing(world: World) -> None:
    """Success: to get somebody's job, or to learn that there is one, by trying their key."""
    place = world.things["with"]
    give(world, place, users=(REQUESTER, MEMBER))
    theirs = ask(world, place, SPELLINGS[0], key="monday")
    mine = ask(world, place, "SELECT COUNT(*) AS n FROM data WHERE sex = 'F'", who=MEMBER, key="monday")
    assert mine.submitted[0] == 202
    assert mine.job != theirs.job
    assert ask(world, place, SPELLINGS[3], key="monday").submitted[0] == 409


# Work of others -------------------------------------------------------------------------------------------------------


def test_lists_and_cursors_show_ones_own_work_only(world: World) -> None:
    """Success: to see somebody's job in a list, or to learn of it from a cursor made of its id."""
    place = world.things["with"]
    give(world, place, users=(REQUESTER, MEMBER))
    theirs = ask(world, place, SPELLINGS[0]).job
    own = ask(world, place, SPELLINGS[0], who=MEMBER).job
    client = world.client(MEMBER)
    whole = client.get(f"{API}/jobs").json()["items"]
    assert [item["id"] for item in whole] == [own]
    cursors = [theirs, theirs.upper(), f"{theirs}' OR 1=1 --", "job_" + "a" * 24, "", "%", "\x00", own[:-1]]
    assert {str(client.get(f"{API}/jobs", params={"after": cursor}).json().get("items")) for cursor in cursors} == {
        str(client.get(f"{API}/jobs", params={"after": "job_invented"}).json()["items"])
    }
    for wanted in ({"dataset": world.things["dataset_id"]}, {"state": "done", "dataset": place}):
        assert {item["id"] for item in client.get(f"{API}/jobs", params=wanted).json()["items"]} <= {own}


def test_ids_cannot_be_counted(world: World) -> None:
    """Success: to guess the next id. They have 120 random bits and nothing in common."""
    made = [ask(world, world.things["with"], SPELLINGS[0]).job for _ in range(6)]
    assert all(len(job.removeprefix("job_")) == 24 for job in made)
    assert len({job[:12] for job in made}) == len({job[-12:] for job in made}) == 6


def test_answers_are_for_who_asked(world: World) -> None:
    """Success: to read the answer, the file or the digest of somebody else's question."""
    job = ask(world, world.things["with"], SPELLINGS[0]).job
    for who in (OWNER, MEMBER, *STRANGERS):
        for path in ("result", "files/answer.csv", "report", "certificate"):
            assert world.client(who).get(f"{API}/jobs/{job}/{path}").status_code in (403, 404), (who, path)


# Hidden columns and rows ----------------------------------------------------------------------------------------------

NOT_THERE = "zznosuchname_ward"
POSITIONS = (
    "SELECT {} FROM data",
    "SELECT COUNT(*) AS n, {} FROM data GROUP BY {}",
    "SELECT COUNT(*) AS n FROM data WHERE {} = 'zzhiddenmarka'",
    "SELECT COUNT(*) AS n FROM data WHERE {} IS NOT NULL",
    "SELECT COUNT(*) AS n FROM data WHERE age > 20 OR {} = 'x'",
    "SELECT COUNT(*) AS n FROM data WHERE data.{} = 'x'",
    'SELECT COUNT(*) AS n FROM data WHERE "{}" = 1',
    "SELECT COUNT({}) AS n FROM data",
    "SELECT COUNT(DISTINCT {}) AS n FROM data",
    "SELECT SUM({}) AS n FROM data",
    "SELECT SUM(CASE WHEN {} = 'x' THEN 1 ELSE 0 END) AS n FROM data",
    "SELECT COUNT(*) FILTER (WHERE {} = 'x') AS n FROM data",
    "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex ORDER BY {}",
    "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex HAVING MAX({}) = 'x'",
    "SELECT COUNT(*) AS n FROM (SELECT {} FROM data) AS d",
    "SELECT COUNT(*) AS n FROM (SELECT {} AS sex FROM data) AS d WHERE sex = 'x'",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM data) AS d WHERE {} = 'x'",
    "WITH d AS (SELECT {} AS k FROM data) SELECT k, COUNT(*) AS n FROM d GROUP BY k",
    "SELECT COUNT(*) AS n FROM data AS a JOIN data AS b ON a.{} = b.{}",
    "SELECT COUNT(*) AS n FROM data JOIN (SELECT * FROM data) AS b USING ({})",
    "SELECT COUNT(*) OVER (PARTITION BY {}) AS n FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE EXISTS (SELECT 1 FROM data AS d WHERE d.{} = 'x')",
    "SELECT LENGTH({}) AS k, COUNT(*) AS n FROM data GROUP BY 1",
)


def _heard(one: Heard, name: str) -> tuple[Any, ...]:
    return tuple(str(part).lower().replace(name, "it") for part in (one.preview, one.submitted, one.state, one.error))


@pytest.mark.parametrize(
    ("position", "spelled"), [*((position, str.lower) for position in POSITIONS), (POSITIONS[2], str.upper)]
)
def test_hidden_columns_are_like_columns_that_do_not_exist(world: World, position: str, spelled: Any) -> None:
    """Success: any difference between a hidden column and an invented one."""
    names = (HIDDEN_COLUMN, NOT_THERE)
    seen = [ask(world, world.things["with"], position.replace("{}", spelled(name))) for name in names]
    assert _heard(seen[0], HIDDEN_COLUMN) == _heard(seen[1], NOT_THERE)
    assert seen[0].submitted[0] in (403, 422)


def test_columns_that_are_not_hidden_are_told_from_invented_ones(world: World) -> None:
    """The owner sees the difference, so that the test above could."""
    sql = "SELECT COUNT(*) AS n FROM data WHERE {} IS NOT NULL"
    seen = [ask(world, world.things["with"], sql.format(name), who=OWNER) for name in (HIDDEN_COLUMN, NOT_THERE)]
    assert [one.submitted[0] for one in seen] == [202, 422]


@pytest.mark.parametrize("misspelled", [HIDDEN_COLUMN[:-1], "zzhiddenmark", "patients", "patien"])
def test_suggestions_do_not_name_hidden_columns(world: World, misspelled: str) -> None:
    """Success: "did you mean" names what is hidden."""
    seen = ask(world, world.things["with"], f"SELECT COUNT(*) AS n FROM data WHERE {misspelled} = 'x'")
    assert seen.submitted[0] == 422
    assert "mean" not in seen.submitted[1]
    assert HIDDEN_COLUMN not in seen.submitted[1]


def test_parts_of_questions_do_not_reach_hidden_columns(world: World) -> None:
    """Success: the builder for people without SQL lets a name through that the console refuses."""
    place = f"{API}/datasets/{world.things['with']}/services/query.build/runs"
    for name in (HIDDEN_COLUMN, f'sex" = 1 OR "{HIDDEN_COLUMN}', f"{HIDDEN_COLUMN}) FROM data --", "patient"):
        for question in (
            {"measures": [{"kind": "sum", "column": name}]},
            {"measures": [{}], "groups": [name]},
            {"measures": [{}], "conditions": [{"column": name, "value": "x"}]},
        ):
            asked = {"parameters": {"question": question, "epsilon": "0.1"}, "purpose": PURPOSE}
            answer = world.client(REQUESTER).post(place, json=asked)
            assert answer.status_code == 422, (name, question)


PREDICATES = (
    "SELECT COUNT(*) AS n FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE sex = 'F' OR 1 = 1",
    "SELECT COUNT(*) AS n FROM data WHERE NOT (sex = 'M')",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM data) AS d",
    "WITH data AS (SELECT * FROM data) SELECT COUNT(*) AS n FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE sex = 'F'",
    "SELECT COUNT(*) AS n FROM main.data",
    "SELECT COUNT(*) AS n FROM data UNION ALL SELECT COUNT(*) FROM data",
    "SELECT SUM(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) AS n FROM data",
)


@pytest.mark.parametrize("sql", PREDICATES)
def test_rows_outside_of_the_policy_are_not_there(world: World, sql: str) -> None:
    """Success: to count rows that the policy does not give: of men, none is anywhere near."""
    place = world.things["with"]
    give(world, place, rows=RowPredicate("age >= 100"))
    heard = ask(world, place, sql, epsilon="50")
    if heard.state == "done":
        assert heard.columns[0][0] == pytest.approx(1, abs=1), "exactly() counts 61 women and 121 people"
    else:
        assert heard.submitted[0] == 422
    assert exactly("SELECT COUNT(*) FROM data") == 121


@pytest.mark.parametrize(
    "purpose",
    [
        "",
        "marketing",
        "Research",
        "research ",
        " research",
        "researchers",
        "research.",
        "*",
        "research,marketing",
        "a" * 200,
    ],
)
def test_other_purposes_are_refused(world: World, purpose: str) -> None:
    """Success: work for a purpose that the policy does not name."""
    heard = ask(world, world.things["with"], SPELLINGS[0], purpose=purpose)
    assert heard.submitted[0] in (403, 422)
    assert charges(world, world.things["with"]) == 0


# Changes while somebody works -----------------------------------------------------------------------------------------


def test_a_policy_that_was_withdrawn_does_not_come_back(world: World) -> None:
    """Success: queued work, a stored answer or an old version of the policy gives what the newest one does not."""
    place = world.things["with"]
    done = ask(world, place, SPELLINGS[0])
    asked = {"parameters": {"sql": SPELLINGS[0], "epsilon": "0.1", "fresh": True}, "purpose": PURPOSE}
    address = f"{API}/datasets/{place}/services/query.sql/runs"
    queued = world.client(REQUESTER).post(address, json=asked).json()["id"]
    give(world, place, users=())
    work(world.hub)
    job = world.client(REQUESTER).get(f"{API}/jobs/{queued}").json()
    assert job["state"] == "denied"
    assert ask(world, place, SPELLINGS[0]).submitted[0] == 404
    for more in ({"policy_version": 2}, {"version": 1}, {"version_id": "x"}):
        assert world.client(REQUESTER).post(address, json=asked | more).status_code in (404, 422)
    assert world.client(REQUESTER).get(f"{API}/jobs/{done.job}").status_code == 200, "what was told stays told"


def test_columns_that_were_withdrawn_are_gone_for_queued_work(world: World) -> None:
    """Success: work that was queued before a column was hidden still reads it."""
    place = world.things["with"]
    asked = {"parameters": {"sql": "SELECT SUM(age) AS n FROM data", "epsilon": "0.1"}, "purpose": PURPOSE}
    queued = world.client(REQUESTER).post(f"{API}/datasets/{place}/services/query.sql/runs", json=asked).json()["id"]
    columns = ColumnRules(named=(("age", ColumnRule()),), others=ColumnRule(uses=ALL_USES))
    set_policy(world.hub, place, open_policy(world, users=(REQUESTER,), object_id=place, columns=columns))
    work(world.hub)
    assert world.client(REQUESTER).get(f"{API}/jobs/{queued}").json()["state"] in ("denied", "failed")
    assert world.client(REQUESTER).get(f"{API}/jobs/{queued}/result").status_code == 409


@pytest.mark.parametrize("by_token", [False, True])
def test_a_role_that_was_taken_away_is_gone_at_once(world: World, *, by_token: bool) -> None:
    """Success: an open sign-in or a token still does what the account no longer may."""
    client = world.client("nobody" if by_token else OWNER)
    headers = world.bearer(OWNER) if by_token else {}
    address = f"{API}/datasets/{world.things['dataset_id']}/ledger"
    assert client.get(address, headers=headers).status_code == 200
    _change(world, OWNER, roles=["data_user"])
    assert client.get(address, headers=headers).status_code == 403
    _change(world, OWNER, roles=["data_owner"], organisation_id=None)
    assert client.get(address, headers=headers).status_code == 404
    _change(world, OWNER, is_disabled=True)
    assert client.get(address, headers=headers).status_code == 401


def test_the_work_of_a_closed_account_is_not_done(world: World) -> None:
    """Success: work that was queued by somebody who was shut out since is still done for them."""
    asked = {"parameters": {"sql": SPELLINGS[0], "epsilon": "0.1"}, "purpose": PURPOSE}
    address = f"{API}/datasets/{world.things['with']}/services/query.sql/runs"
    queued = world.client(REQUESTER).post(address, json=asked).json()["id"]
    _change(world, REQUESTER, is_disabled=True)
    work(world.hub)
    with world.hub.store.reading() as session:
        assert session.get_one(Job, queued).state == "denied"


def test_a_deleted_dataset_answers_nothing(world: World) -> None:
    """Success: a stored answer, a preview or queued work tells something about deleted rows."""
    place = world.things["with"]
    ask(world, place, SPELLINGS[0])
    assert world.client(OWNER).delete(f"{API}/datasets/{place}").status_code == 204
    assert ask(world, place, SPELLINGS[0]).preview[0] == 404
    with world.hub.store.reading() as session:
        assert all(version.blob_id is None for version in session.get_one(Dataset, place).versions)


def _change(world: World, who: str, **values: Any) -> None:
    with world.hub.store.writing() as session:
        user = session.get_one(User, world.people[who])
        for name, value in values.items():
            setattr(user, name, value)
    assert subject(world.hub, world.people[who])
