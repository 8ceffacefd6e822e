from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import cloister as cl
from cloister.errors import ParameterError, ParameterTypeError
from cloister.synth import Determines
from cloister.synth.base import Synthesizer

SCHEMA = cl.Schema(
    [
        cl.Column(name="sex", categories=["F", "M"]),
        cl.Column(name="title", categories=["Ms", "Mr"]),
        cl.Column(name="weight", kind="numeric", storage="real", bounds=(0, 200)),
        cl.Column(name="day", kind="datetime", storage="date", bounds=("2024-01-01", "2024-12-31")),
    ]
)
ROWS = {
    "sex": ["F", "M"] * 100,
    "title": ["Ms", "Mr"] * 100,
    "weight": [60.5, 80.5] * 100,
    "day": [dt.date(2024, 3, 1), dt.date(2024, 9, 1)] * 100,
}


def _table() -> cl.Table:
    import pyarrow as pa

    return cl.open_table(pa.table(ROWS), schema=SCHEMA)


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    rule = Determines("sex", "title", {"F": "Ms", "M": "Mr"})
    return cl.synth.IndependentMarginals(epsilon=5, constraints=[rule]).fit(_table())


@pytest.mark.parametrize(
    ("conditions", "error", "fix"),
    [
        ("sex=F", ParameterTypeError, 'conditions={"sex": "F"'),
        ({"sex": "X"}, ParameterError, "declared values: F, M\\."),
        ({"title": "Ms"}, ParameterError, "columns that it follows from"),
        ({"day": ("2024-02-01", "2024-03-01")}, ParameterTypeError, "datetime.date\\(2025, 1, 1\\)"),
        ({"weight": ("a", "b")}, ParameterTypeError, "\\(30, 40\\)"),
    ],
)
def test_conditions_that_cannot_be_met_say_what_can(
    fitted: Synthesizer, conditions: Any, error: type[Exception], fix: str
) -> None:
    with pytest.raises(error, match=fix):
        fitted.sample(3, conditions=conditions)


def test_counts_refuse_conditions_that_are_texts() -> None:
    counted = cl.synth.HistogramSynthesizer(epsilon=5, columns=["sex"]).fit(_table())
    with pytest.raises(ParameterTypeError, match="conditions="):
        counted.count("sex=F")  # type: ignore[arg-type]  # what a user may type


def test_more_bins_than_a_table_can_fill_are_refused_at_once() -> None:
    for bins in (10**9, {"weight": 10**9}):
        with pytest.raises(ParameterError, match="bins=32"):
            cl.synth.IndependentMarginals(epsilon=1, bins=bins).fit(_table())


def test_what_is_no_constraint_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match="is not a constraint"):
        cl.synth.IndependentMarginals(epsilon=1, constraints=["sex"]).fit(_table())
