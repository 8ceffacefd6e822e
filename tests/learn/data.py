"""Small protected tables for the tests of learning."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.learn import PrivateGaussianNB

VALUES = {
    "patient": [1, 1, 1, 2, 2, 3, None, None],
    "age": [20, 30, 40, 50, 60, 70, 80, 90],
    "sex": ["F", "F", "M", "M", None, "F", "X", "M"],
    "sick": ["no", "no", "no", "yes", "yes", "yes", "maybe", None],
}


def patients(**columns: Any) -> Table:
    return open_table(pa.table({**VALUES, **columns})) if columns else _opened()


@cache
def _opened() -> Table:
    """Return the patients, opened once, since that takes longer than most tests."""
    return open_table(pa.table(VALUES))


def schema(**columns: Any) -> Schema:
    described: dict[str, Any] = {
        "patient": {"role": "identifier"},
        "age": {"kind": "numeric", "bounds": [0, 110]},
        "sex": {"categories": ["F", "M"]},
        "sick": {"role": "sensitive", "categories": ["no", "yes"]},
    }
    return Schema.from_dict({"columns": {**described, **columns}})


def bayes(**options: Any) -> Any:
    given: dict[str, Any] = {
        "epsilon": 5,
        "bounds": {"age": (0, 110)},
        "domain": {"sex": ["F", "M"]},
        "features": ["age", "sex"],
        "classes": ["no", "yes"],
    }
    return PrivateGaussianNB(**{**given, **options})


def book(epsilon: Any = 10, delta: Any = 0, **options: Any) -> Ledger:
    """A ledger in memory with an account called patients."""
    ledger = open_ledger("memory:")
    ledger.open_account("patients", budget=Budget(epsilon=epsilon, delta=delta), **options)
    return ledger
