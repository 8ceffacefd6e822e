"""scikit-learn's own checks of every registered estimator.

scikit-learn's checks know nothing of public facts. The subclasses here, for these checks alone, take bounds, values and
classes from the rows that a check passes, and a huge epsilon, so that what is learned is nearly exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cloister.learn.base import PrivateClusterer
from cloister.learn.catalog import load_all
from cloister.testing.estimator_laws import find_needed_options

pytestmark = pytest.mark.no_cover  # tracing would take minutes; every estimator has tests of its own

NETWORK = {"delta": Fraction(1, 10**5), "epochs": 2, "hidden_layer_sizes": (), "expected_rows": 200}
OPTIONS: dict[str, dict[str, Any]] = {
    "mlp": NETWORK,
    "mlp_regressor": NETWORK,
    "tree": {"depth": 3},
    "forest": {"trees": 3, "depth": 3},
}
"""What an estimator is made with besides public facts, by its registered name; a delta is found out."""

STEPS = "how many steps a solver took may depend on the rows, and is not kept"
RANDOM = "a fit draws fresh noise, so that two of them differ"

EXCEPTIONS = {
    "check_fit_idempotent": RANDOM,
    "check_non_transformer_estimators_n_iter": STEPS,
    "check_transformer_n_iter": STEPS,
    "check_dtype_object": "a cell that is a dictionary is refused, in words that are not NumPy's",
}
"""Checks that private estimators need not pass, with the reason."""

CODES = {"check_estimators_nan_inf": "a category that is missing counts as none of the declared values"}
"""Checks that estimators of categories need not pass, with the reason."""

CLUSTERERS = dict.fromkeys(
    ("check_clustering", "check_fit_score_takes_y"), "labels of the rows learned from are not private, and not kept"
)
"""Checks that clusterings need not pass, with the reason."""

OWN_EXCEPTIONS: dict[str, dict[str, str]] = {}
"""Checks that an estimator cannot pass, by its registered name, with the reason."""


def facts_of(kind: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return public facts that fit the rows; any, where the rows cannot be learned from anyway."""
    cells = _finite(X)
    cells = cells if cells.ndim == 2 else np.zeros((1, 1))
    facts: dict[str, Any] = {}
    if kind.encodes == "codes":
        facts["domain"] = [sorted(set(column)) or [0] for column in cells.T]
    else:
        lows, highs = cells.min(axis=0, initial=0.0), cells.max(axis=0, initial=1.0)
        facts["bounds"] = (lows.tolist(), np.maximum(highs, lows + 1.0).tolist())
    if kind.target == "classes":
        facts["classes"] = _labels(y)
    if kind.target == "number":
        numbers = _finite(y)
        low, high = float(numbers.min(initial=0.0)), float(numbers.max(initial=1.0))
        facts["target_bounds"] = (low, high)
    return facts


def _finite(given: Any) -> Any:
    """Return numbers of any shape, zero where there is none."""
    try:
        found = np.asarray(np.real(given) if np.iscomplexobj(given) else given, dtype=np.float64)
    except (TypeError, ValueError):
        try:
            texts = np.asarray(given, dtype=object)
            found = pd.to_numeric(pd.Series(texts.ravel()), errors="coerce").to_numpy(float).reshape(texts.shape)
        except (TypeError, ValueError):
            return np.zeros((1, 1))
    return np.where(np.isfinite(found), found, 0.0)


def _labels(y: Any) -> list[Any]:
    """Return the different labels, and one more where there is one only."""
    try:
        found = pd.Series(np.ravel(np.asarray(y))).dropna().unique().tolist()
    except TypeError:
        found = []
    plain = [item for item in found if isinstance(item, str | int) or np.isfinite(item)] or [0]
    return plain if len(plain) > 1 else [*plain, "other" if isinstance(plain[0], str) else 99]


def lenient(name: str, kind: Any) -> Any:
    """Return an instance of a subclass that takes public facts from the rows."""

    @dataclass(kw_only=True, eq=False, repr=False)
    class Lenient(kind):  # type: ignore[misc]  # any kind
        epsilon: Any = 1e4

        def fit(self, X: Any, y: Any = None) -> Any:
            facts = facts_of(kind, X, y)
            before = {fact: getattr(self, fact) for fact in facts}
            try:
                for fact, value in facts.items():
                    setattr(self, fact, value)
                return super().fit(X, y)
            finally:
                for fact, value in before.items():
                    setattr(self, fact, value)

    Lenient.__name__ = Lenient.__qualname__ = f"Lenient{kind.__name__}"
    globals()[Lenient.__name__] = Lenient  # where pickle looks for it
    return Lenient(**(OPTIONS.get(name) or find_needed_options(kind)))


CASES = {name: lenient(name, kind) for name, kind in load_all().items()}


def exceptions_of(made: Any) -> dict[str, str]:
    name = next(name for name, other in CASES.items() if type(other) is type(made))
    codes = CODES if made.encodes == "codes" else {}
    clusterers = CLUSTERERS if isinstance(made, PrivateClusterer) else {}
    return {**EXCEPTIONS, **codes, **clusterers, **OWN_EXCEPTIONS.get(name, {})}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(list(CASES.values()), expected_failed_checks=exceptions_of, xfail_strict=False)
def test_checks(estimator: Any, check: Any) -> None:
    check(estimator)
