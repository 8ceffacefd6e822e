"""Every estimator says before anything is paid that it would learn nothing, and which error to expect."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cloister as cl
from cloister.errors import PrivacyParameterWarning
from cloister.learn import PrivateGaussianNB, PrivateScaler, PrivateSearch
from cloister.learn._outlook import FitOutlook, warn_if_hopeless
from cloister.learn.catalog import load_all
from cloister.testing.estimator_laws import PrivateProblem, find_needed_options

NETWORK = {"delta": Fraction(1, 10**9), "epochs": 2, "hidden_layer_sizes": ()}
OPTIONS: dict[str, dict[str, Any]] = {"mlp": NETWORK, "mlp_regressor": NETWORK, "scaler": {"method": "standard"}}
EVERY = pytest.mark.parametrize("name", sorted(load_all()))
NINE = cl.Budget(epsilon=9, delta=1e-5)


def made(name: str, epsilon: Any, **others: Any) -> tuple[Any, PrivateProblem, Any]:
    """Return an estimator with an account, rows for it, and its ledger."""
    kind = load_all().get(name)
    problem = PrivateProblem.for_kind(kind)
    options = OPTIONS.get(name) or find_needed_options(kind)
    if options.get("delta"):
        options = {**options, "delta": Fraction(1, 10**9)}
    ledger = cl.open_ledger("memory:")
    ledger.open_account("people", budget=NINE)
    model = kind(**{**problem.facts, **options, "epsilon": epsilon, "ledger": ledger, "dataset": "people", **others})
    return model, problem, ledger


def fitted(model: Any, problem: PrivateProblem, rows: Any) -> None:
    if model.target == "none":
        model.fit(rows)
    elif isinstance(rows, cl.Table):
        model.fit(rows, "target")
    else:
        model.fit(rows, problem.target)


def said_about(model: Any, problem: PrivateProblem, rows: Any) -> list[str]:
    """Return what a fit says about its error; other warnings may follow from what was released."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted(model, problem, rows)
    return [str(item.message) for item in caught if "to learn anything" in str(item.message)]


def as_table(problem: PrivateProblem) -> cl.Table:
    return cl.open_table(pd.DataFrame({**problem.columns, "target": problem.target}))


@EVERY
@pytest.mark.parametrize("source", ["table", "frame"])
def test_an_epsilon_that_is_too_small_is_said_before_paying(name: str, source: str) -> None:
    others = {"features": ["first", "second"]}
    model, problem, ledger = made(name, Fraction(1, 10**8), **others)
    rows = as_table(problem) if source == "table" else pd.DataFrame(problem.columns)
    many = "1,000,000" if source == "table" else "120"
    said = rf"epsilon is too small to learn anything: with {many} rows, the noise of .* would be .* times .* more than"
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyParameterWarning)
        with pytest.raises(PrivacyParameterWarning, match=said) as caught:
            fitted(model, problem, rows)
    assert ledger.remaining("people") == NINE
    outlook = model.preview(rows, None if model.target == "none" else "target" if source == "table" else problem.target)
    assert outlook.outlook.what in str(caught.value)
    assert outlook.outlook.to_dict()["rows"] > 10**6


@EVERY
def test_too_few_rows_are_said_to_whoever_holds_them_and_enough_are_not(name: str) -> None:
    model, problem, _ = made(name, 1)
    frame = pd.DataFrame(problem.columns)
    needed = model.preview(frame, None if model.target == "none" else problem.target).outlook.rows
    few = max(2, int(needed / 3))
    less = PrivateProblem(
        columns={column: (cells * few)[:few] for column, cells in problem.columns.items()},
        target=(problem.target * few)[:few],
        facts=problem.facts,
    )
    if few < needed:
        said = said_about(model, less, pd.DataFrame(less.columns))
        assert "too few rows for this epsilon" in said[0]
        assert f"with {few:,} rows" in said[0]
    enough = -(-int(2 * needed) // len(frame)) + 1
    more = PrivateProblem(
        columns={column: cells * enough for column, cells in problem.columns.items()},
        target=problem.target * enough,
        facts=problem.facts,
    )
    assert not said_about(model, more, pd.DataFrame(more.columns))


@EVERY
def test_a_table_says_nothing_about_how_many_rows_it_has(name: str) -> None:
    model, problem, _ = made(name, 1, features=["first", "second"])
    few = PrivateProblem(
        columns={column: cells[:4] for column, cells in problem.columns.items()},
        target=problem.target[:4],
        facts=problem.facts,
    )
    assert not said_about(model, few, as_table(few))


def test_a_declared_number_counts_for_tables_too() -> None:
    model, problem, _ = made("logistic_regression", 1, features=["first", "second"], expected_rows=3)
    with pytest.warns(PrivacyParameterWarning, match="with 3 rows, the noise of a gradient"):
        fitted(model, problem, as_table(problem))


def test_what_is_free_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivateScaler(epsilon=Fraction(1, 10**8), bounds=(0, 1)).fit([[0.5]])


def test_a_search_says_it_of_its_best_candidate() -> None:
    X, y = [[1.0], [9.0]] * 20, [0, 1] * 20
    ledger = cl.open_ledger("memory:")
    ledger.open_account("people", budget=NINE)
    model = PrivateGaussianNB(bounds=(0, 10), classes=[0, 1], ledger=ledger, dataset="people")
    search = PrivateSearch(estimator=model, grid={"variance_floor": [1e-3, 1e-1]}, epsilon=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyParameterWarning)
        with pytest.raises(PrivacyParameterWarning, match=r"with 3[12] rows, the noise of the mean"):
            search.fit(X, y)
    assert ledger.remaining("people") == NINE


def test_the_error_is_that_of_the_noise() -> None:
    outlook = PrivateGaussianNB(epsilon=1, bounds=(0, 1), classes=[0, 1]).preview([[0.5]], [0]).outlook
    assert outlook.rows == pytest.approx(2 * np.sqrt(2) * 2.5)
    assert outlook.error(10) == pytest.approx(outlook.rows / 10)


@pytest.mark.parametrize(("rows", "words"), [(10, "about 20 times"), (0, "about 2e+02 times"), (None, "as large as")])
def test_words(rows: int | None, words: str) -> None:
    assert words in FitOutlook(rows=200, what="a mean", compared="its range").explain(rows)


def test_huge_errors_are_not_counted_out() -> None:
    with pytest.warns(PrivacyParameterWarning, match=re.escape("more than 1,000 times its range")):
        warn_if_hopeless(FitOutlook(rows=2e7, what="a mean", compared="its range"), 100, stacklevel=1)
