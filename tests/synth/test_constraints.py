from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister import synth
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import CloisterError, ParameterError, ParameterTypeError
from cloister.synth import AtMost, Determines, Impossible, SumOf
from cloister.synth.constraints import constraint_from_dict

YEARS = {"first": 1, "second": 2, "third": 3}
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "sex": {"categories": ["f", "m"]},
            "pregnant": {"categories": ["no", "yes"]},
            "came": {"kind": "datetime", "bounds": ["2024-01-01", "2024-03-31"]},
            "went": {"kind": "datetime", "bounds": ["2024-01-01", "2024-03-31"]},
            "class": {"categories": list(YEARS)},
            "year": {"kind": "numeric", "bounds": [1, 3]},
            "wage": {"kind": "numeric", "bounds": [0, 1000]},
            "gift": {"kind": "numeric", "bounds": [0, 1000]},
            "income": {"kind": "numeric", "bounds": [0, 2000]},
        }
    }
)
RULES = [
    Impossible({"sex": "m", "pregnant": "yes"}),
    AtMost("came", "went"),
    Determines("class", "year", YEARS),
    SumOf("income", ("wage", "gift")),
]


def people(rows: int = 300) -> Table:
    place = np.arange(rows)
    came = [dt.date(2024, 1, 1) + dt.timedelta(days=int(day)) for day in place % 80]
    classes = [list(YEARS)[number] for number in place % 3]
    columns: dict[str, Any] = {
        "sex": ["fm"[number % 2] for number in place],
        "pregnant": ["yes" if number % 6 == 0 else "no" for number in place],
        "came": pa.array(came, pa.date32()),
        "went": pa.array([day + dt.timedelta(days=5) for day in came], pa.date32()),
        "class": classes,
        "year": [YEARS[item] for item in classes],
        "wage": place % 900,
        "gift": place % 50,
    }
    columns["income"] = columns["wage"] + columns["gift"]
    return open_table(pa.table(columns), schema=SCHEMA)


@pytest.mark.parametrize("kind", [synth.IndependentMarginals, synth.SpanningTree, synth.AdaptiveMarginals])
def test_every_synthetic_row_keeps_the_rules(kind: Any) -> None:
    made = kind(epsilon=1, bins=6, constraints=RULES).fit(people())
    rows = made.sample(500).to_arrow()
    assert rows.column_names == list(people().columns)
    pairs = set(zip(rows["sex"].to_pylist(), rows["pregnant"].to_pylist(), strict=True))
    assert ("f", "yes") in pairs
    assert ("m", "yes") not in pairs
    stays = [(a, b) for a, b in zip(rows["came"].to_pylist(), rows["went"].to_pylist(), strict=True) if a and b]
    assert stays
    assert all(came <= went for came, went in stays)
    assert [None if item is None else YEARS[item] for item in rows["class"].to_pylist()] == rows["year"].to_pylist()
    parts = zip(rows["wage"].to_pylist(), rows["gift"].to_pylist(), rows["income"].to_pylist(), strict=True)
    assert all((total is None) if None in (wage, gift) else total == wage + gift for wage, gift, total in parts)


def test_columns_that_follow_from_others_cost_nothing() -> None:
    made = synth.IndependentMarginals(epsilon=1, constraints=RULES).fit(people())
    assert {step.label for step in made.steps_} == {"sex", "pregnant", "came", "went", "class", "wage", "gift"}


def test_rules_come_back_from_a_file(tmp_path: Any) -> None:
    made = synth.SpanningTree(epsilon=1, bins=6, constraints=RULES).fit(people())
    made.save(tmp_path / "m.cloister")
    again = synth.load(tmp_path / "m.cloister")
    assert again.fitted_facts.constraints == made.fitted_facts.constraints
    assert again.fit(people()).fitted_facts.constraints == made.fitted_facts.constraints
    again = synth.load(tmp_path / "m.cloister")
    assert again.sample(50, random_state=1).to_arrow() == made.sample(50, random_state=1).to_arrow()


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_comes_back_from_its_plain_values(rule: Any) -> None:
    again = constraint_from_dict(rule.to_dict())
    assert again.to_dict() == rule.to_dict()


@pytest.mark.parametrize(
    ("rule", "error", "fix"),
    [
        ("sex", ParameterTypeError, "constraints="),
        (Impossible({"sex": "x", "pregnant": "yes"}), ParameterError, "declared values"),
        (Impossible({"wage": 5, "sex": "f"}), ParameterError, "AtMost"),
        (Impossible({"sex": ["f", "m", None], "pregnant": ["no", "yes", None]}), ParameterError, "correct it"),
        (Impossible({"sexx": "f", "pregnant": "yes"}), CloisterError, "sex"),
        (AtMost("wage", "came"), ParameterTypeError, "compare numbers or dates"),
        (AtMost("wage", "wages"), CloisterError, "wage"),
        (Determines("wage", "year", {}), ParameterError, "categories"),
        (SumOf("income", ["wage", "sex"]), ParameterError, "add numbers"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rule: Any, error: type[Exception], fix: str) -> None:
    with pytest.raises(error, match=fix):
        synth.SpanningTree(epsilon=1, constraints=[rule]).fit(people())


def test_a_combination_needs_two_columns() -> None:
    with pytest.raises(ParameterTypeError, match="pregnant"):
        Impossible({"sex": "m"})


def test_what_follows_from_others_is_not_asked_for() -> None:
    with pytest.raises(ParameterError, match="leave it out of columns"):
        synth.SpanningTree(constraints=RULES, columns=["class", "year"]).fit(people())


def test_damaged_plain_values_are_refused() -> None:
    with pytest.raises(ParameterError, match="to_dict"):
        constraint_from_dict({"at_most": ["a"]})
