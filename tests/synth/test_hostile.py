"""Every synthesizer on hostile rows and extreme settings: no row decides whether a fit fails, warns or ends otherwise.

The second wall is held open, so that a failure shows: none may need it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cloister.accounting import show_failures
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.synth import synthesizers
from cloister.synth.documents import own_settings
from cloister.synth.marginal_based import MarginalSynthesizer
from cloister.testing.hostile import HostileColumn, check_alike, hostile_pairs
from tests.support.thoroughness import examples

NUMBERS = (
    HostileColumn("age", "real", low=0.0, high=110.0),
    HostileColumn("size", "real", low=-1e150, high=1e150),
)
MIXED = (
    HostileColumn("age", "real", low=0.0, high=110.0),
    HostileColumn("visits", "integer", low=0, high=9),
    HostileColumn("sex", "text", values=("F", "M")),
)
FEW = examples(8, usual=3)
FEWER = examples(8, usual=2)
"""For settings that are not the ordinary ones of a synthesizer."""

# For synthesizers with settings of their own: their columns, and settings from the ordinary to the extreme.
DRIVEN: dict[str, tuple[tuple[HostileColumn, ...], tuple[dict[str, Any], ...]]] = {
    "adaptive": (
        MIXED,
        ({"epsilon": 1}, {"epsilon": 1e-9, "delta": 1e-6, "max_cells": 1}, {"epsilon": 1e6, "max_cells": 1}),
    ),
    "bayesian_network": (MIXED, ({"epsilon": 1}, {"epsilon": 1e-9}, {"epsilon": 1e6})),
    "grouped_gaussian": (NUMBERS, ({"epsilon": 1, "bins": None}, {"epsilon": 1e-6, "bins": None})),
    "histogram": (MIXED, ({"epsilon": 1e4}, {"epsilon": 1e-9})),
    "microaggregated_gaussian": (
        NUMBERS,
        (
            {"epsilon": 1, "bins": None, "adjacency": "replace", "k": 2},
            {"epsilon": 1e-6, "bins": None, "adjacency": "replace", "k": 2},
        ),
    ),
    "mwem": (MIXED, ({"epsilon": 1, "rounds": 2}, {"epsilon": 1e-9, "rounds": 1})),
    "spanning_tree": (MIXED, ({"epsilon": 1}, {"epsilon": 1e-9}, {"epsilon": 50, "delta": 1e-9})),
}
APART = frozenset({"k_anonymous"})
"""Not private by itself: its fit is the owner's, and may say what is wrong with the rows."""

USUAL = (MIXED, ({"epsilon": 1}, {"epsilon": 1e-9, "delta": 1e-9}, {"epsilon": 1e4}))
"""What a synthesizer of all kinds of columns is driven with that has no settings of its own."""


def is_usual(name: str) -> bool:
    return issubclass(synthesizers.get(name), MarginalSynthesizer) and not own_settings(name)


CASES = [
    (name, place) for name in sorted(set(synthesizers) - APART) for place in range(len(DRIVEN.get(name, USUAL)[1]))
]


def test_every_synthesizer_is_driven() -> None:
    assert {name for name in synthesizers if not is_usual(name)} <= set(DRIVEN) | APART <= set(synthesizers)


@pytest.mark.filterwarnings("ignore:Every", "ignore:.*noise")
@pytest.mark.parametrize(("name", "place"), CASES)
def test_no_row_decides_how_a_fit_ends(name: str, place: int) -> None:
    columns, options = DRIVEN.get(name, USUAL)[0], DRIVEN.get(name, USUAL)[1][place]
    settings = {"bins": 3, **options}
    schema = Schema.from_dict({"columns": {column.name: described(column) for column in columns}})

    def run(rows: pa.Table) -> str:
        with show_failures():
            made = synthesizers.get(name)(**settings).fit(open_table(rows, schema=schema))
            drawn = made.sample(3)
        return f"{made.guarantee_.brief()} {drawn.columns} {drawn.count()} {len(made._learned_state())}"

    most = FEWER if place else FEW
    report = check_alike(run, hostile_pairs(columns, most=most))
    assert report.pairs == most
    assert not report.refused, report.behavior


def described(column: HostileColumn) -> dict[str, Any]:
    if column.values:
        return {"kind": "nominal", "categories": list(column.values)}
    return {"kind": "numeric", "bounds": [column.low, column.high]}
