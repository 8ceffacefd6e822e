from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.attacks import model_difference
from cloister.core.random import SeededRandomSource, integers_below
from cloister.errors import BudgetExceededError, ParameterError, ParameterTypeError, QueryRefusedError
from cloister.learn import PrivateLinearRegression
from cloister.queries.inference_control import ControlledTable, Controls
from tests.support.asked_tables import salary_table

AGES = np.array([25, 31, 38, 44, 47, 52, 58, 61, 33, 40, 70])
INCOMES = np.array([1000, 2000, 3000, 2000, 1000, 6000, 2000, 10_000, 2000, 4000, 100_000])


def exact_line(rows: Any) -> tuple[float, float]:
    slope, intercept = np.polyfit(AGES[rows], INCOMES[rows], deg=1)
    return intercept, slope


def test_two_exact_lines_give_every_income_away() -> None:
    result = model_difference(exact_line, features=AGES, truth=INCOMES)
    assert result.success == 1
    assert result.succeeded
    assert result.queries == 12
    assert result.typical_error < 1e-4


def test_the_outlier_moves_the_line_most() -> None:
    result = model_difference(exact_line, features=AGES, truth=INCOMES)
    assert result.worst[0][0] == 10
    assert result.largest_influence > 10 * result.typical_influence
    without = np.polyfit(AGES[:-1], INCOMES[:-1], deg=1)
    shift = np.polyfit(AGES, INCOMES, deg=1) - without
    assert result.shifts[10] == pytest.approx(tuple(shift[::-1]))


def test_several_features_work_as_well() -> None:
    source = SeededRandomSource(1)
    features = integers_below(source, 100, 90).reshape(30, 3)
    values = integers_below(source, 50, 30)

    def plane(rows: Any) -> Any:
        design = np.hstack([np.ones((len(rows), 1)), features[rows]])
        return np.linalg.lstsq(design, values[rows], rcond=None)[0]

    result = model_difference(plane, features=features, truth=values[[3, 5]], targets=[3, 5])
    assert result.success == 1
    assert {place for place, _ in result.worst} == {3, 5}


def line_of_two_groups(table: ControlledTable) -> Any:
    """Return a fit of the salary by sex from sums and counts, which is what inference control answers."""

    def fit(rows: Any) -> tuple[float, float]:
        missing = sorted(set(range(10)) - set(rows.tolist()))
        others = "".join(f" AND id <> {place + 1}" for place in missing)
        means = [table.mean("salary", f"sex = '{sex}'{others}").value for sex in "FM"]
        return means[0], means[1] - means[0]

    return fit


@pytest.mark.parametrize(("audit", "success"), [(False, 1), (True, 0)], ids=["size-only", "audited"])
def test_inference_control_stops_models_of_nearly_the_same_people_by_its_audit_only(audit: bool, success: int) -> None:
    table = ControlledTable(salary_table(INCOMES[:10].tolist(), women=5), controls=Controls(min_size=2, audit=audit))
    result = model_difference(
        line_of_two_groups(table), features=[0] * 5 + [1] * 5, truth=INCOMES[:10], refusal=QueryRefusedError
    )
    assert result.success == success


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::cloister.errors.CloisterWarning")
def test_private_lines_within_one_epsilon_give_nobody_away() -> None:
    def private_line(rows: Any) -> Any:
        model = PrivateLinearRegression(epsilon=Fraction(1, 12), bounds=([17], [100]), target_bounds=(0, 200_000)).fit(
            AGES[rows, None], INCOMES[rows]
        )
        return [model.intercept_, *np.ravel(model.coef_)]

    result = model_difference(private_line, features=AGES, truth=INCOMES, tolerance=10)
    assert result.queries == 12
    assert not result.succeeded


def test_refused_models_leave_nothing() -> None:
    def closed(rows: Any) -> Any:
        raise BudgetExceededError(requested=Fraction(1), remaining=Fraction(0))

    result = model_difference(closed, features=AGES, truth=INCOMES)
    assert (result.success, result.refused) == (0, 12)
    assert math.isnan(result.largest_influence)
    assert result.to_dict()["largest_influence"] is None
    assert result.worst == ()


def test_the_report_names_nobody() -> None:
    result = model_difference(exact_line, features=AGES, truth=INCOMES)
    text = json.dumps(result.to_dict(), allow_nan=False) + repr(result) + result.verdict
    assert "shifts" not in text
    assert "worst" not in text
    assert "moves a prediction by up to" in dict(result.summary())["influence of one person"]


@pytest.mark.parametrize(
    ("parameters", "error", "fix"),
    [
        ({"features": [1]}, ParameterError, "one row of numbers"),
        ({"features": [1, math.nan]}, ParameterError, "without missing values"),
        ({"features": ["a", "b"]}, ParameterError, "one row of numbers"),
        ({"targets": [2], "truth": [1]}, ParameterError, "from 0 to 1"),
        ({"targets": [], "truth": []}, ParameterError, "from 0 to 1"),
        ({"truth": [1]}, ParameterError, "one true value"),
        ({"fit": lambda rows: [1]}, ParameterTypeError, "one coefficient for each feature"),
        ({"fit": lambda rows: "line"}, ParameterTypeError, "one coefficient for each feature"),
    ],
    ids=["one-row", "missing", "words", "outside", "no-target", "lengths", "short-model", "no-model"],
)
def test_bad_input_is_refused_with_a_fix(parameters: dict[str, Any], error: type[Exception], fix: str) -> None:
    given = {"fit": lambda rows: (0, 0), "features": [1, 2], "truth": [1, 2], **parameters}
    with pytest.raises(error, match=fix):
        model_difference(given.pop("fit"), **given)
