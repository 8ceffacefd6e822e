"""SYN-15: a tree of pairs keeps at least 40 % more of Adult's pairs than columns by themselves."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from cloister import synth
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.synth._cell_counts import CellCounts

pytestmark = pytest.mark.slow


NUMBERS = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 5_000),
    "hours-per-week": (1, 99),
}


def adult(folder: Path) -> Table:
    """Return all 15 columns; the values of categories are taken for public here."""
    plain = open_table(folder / "adult" / "adult.csv")
    return plain.with_schema(
        Schema(
            Column(name=name, kind="numeric", bounds=NUMBERS[name])
            if name in NUMBERS
            else Column(name=name, categories=plain.frequencies([name]).decode()[name])
            for name in plain.columns
        )
    )


def test_syn_15_pairs_of_columns(shared_data: Path) -> None:
    table = adult(shared_data)
    distances, rows = [], table.count()
    kinds = (synth.IndependentMarginals, synth.SpanningTree)
    models = [kind(epsilon=1, delta=1e-6, bins=32).fit(table) for kind in kinds]
    domain = models[0].fitted_facts.domain
    pairs = list(combinations(range(len(domain.names)), 2))
    real = CellCounts(table, domain)
    for made in models:
        drawn = CellCounts(made.sample(rows), domain)
        apart = [0.5 * np.abs(real.marginal(pair) - drawn.marginal(pair)).sum() / rows for pair in pairs]
        distances.append(float(np.mean(apart)))
    assert distances[1] <= 0.6 * distances[0]
