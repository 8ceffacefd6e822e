"""The same fit wherever the rows are, and in whichever way they are counted."""

from __future__ import annotations

import numpy as np
import pytest

from cloister import synth
from cloister.synth import _cell_counts as cell_counts
from cloister.synth._cell_counts import CellCounts
from tests.support.engine_tables import NamedOpener
from tests.synth.toys import SCHEMA, listing


def test_every_engine_counts_the_same_cells(any_engine: NamedOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = listing(80)
    table = any_engine.open(rows, schema=SCHEMA)
    made = synth.SpanningTree(epsilon=1, bins=4, complete=["age"])
    domain = made.declared(table).domain
    here = CellCounts(synth.base.open_table(rows, schema=SCHEMA), domain)
    whole = CellCounts(table, domain)
    monkeypatch.setattr(cell_counts, "_LARGEST_HELD", 0)
    apart = CellCounts(table, domain)
    for part in ((0,), (1, 2), (0, 3), (0, 1, 3)):
        assert np.array_equal(here.marginal(part), whole.marginal(part))
        assert np.array_equal(here.marginal(part), apart.marginal(part))
    assert made.fit(table).sample(5).count() == 5
