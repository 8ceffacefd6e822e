"""How much of what takes long is tried: the usual share in `make test`, all of it in `make audit`.

Hypothesis draws new examples in each run, so the usual share of one day is another one than that of the next; tests
that count seeds or pairs take the first ones.
`tests/README.md` lists what is thinned and what protects instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

THOROUGH = "CLOISTER_THOROUGH"


def is_thorough() -> bool:
    """Return whether everything is to be tried."""
    return os.environ.get(THOROUGH, "") not in ("", "0")


def examples(full: int, *, usual: int) -> int:
    """Return how many random examples a test tries."""
    if not 0 < usual <= full:
        raise ValueError("the usual number of examples is positive, and not above the full number")
    return full if is_thorough() else usual


def audited(cases: Iterable[Any], *, but: Iterable[Any]) -> list[Any]:
    """Return cases for `parametrize`, marked `audit` except for those that always run.

    A tuple stands for several arguments.
    """
    kept = list(but)
    cases = list(cases)
    if missing := [case for case in kept if case not in cases]:
        raise ValueError(f"these are no cases: {missing}")
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if case in kept else pytest.mark.audit)
        for case in cases
    ]


_ENGINES: dict[str, list[pytest.MarkDecorator]] = {
    "duckdb": [],
    "postgres": [pytest.mark.postgres, pytest.mark.slow],
    "spark": [pytest.mark.spark, pytest.mark.slow],
}


def on_engines(cases: Iterable[Any], *, spark: Iterable[Any]) -> list[Any]:
    """Return pairs of an engine's name and a case for `parametrize`.

    On Spark, where each case takes a second, only some always run; the others are marked `audit`.
    """
    cases, always = list(cases), list(spark)
    if missing := [case for case in always if case not in cases]:
        raise ValueError(f"these are no cases: {missing}")
    return [
        pytest.param(
            engine, case, marks=[*marks, pytest.mark.audit] if engine == "spark" and case not in always else marks
        )
        for engine, marks in _ENGINES.items()
        for case in cases
    ]
