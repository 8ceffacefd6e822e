"""What is publicly known to hold between columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import CloisterError, ParameterError
from cloister.synth import SpanningTree
from cloister.synth.constraints import Impossible, constraint_from_dict


def test_a_constraint_about_too_many_combinations_is_refused_before_memory_is_taken_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"c{place}" for place in range(6)]
    described = {name: {"kind": "numeric", "bounds": [0, 99]} for name in names}
    table = open_table(pa.table({name: [1, 2] for name in names}), schema=Schema.from_dict({"columns": described}))
    wide = SpanningTree(bins=100, constraints=[Impossible(dict.fromkeys(names, 1))])
    asked: list[object] = []
    monkeypatch.setattr(np, "ones", lambda shape, **_: asked.append(shape))
    with pytest.raises(ParameterError, match="too many combinations"):
        wide.declared(table)
    assert not asked


@pytest.mark.parametrize(
    "given",
    [
        {"sum": "total", "parts": []},
        {"at_most": ["age", "age"]},
        {"determines": ["color", "total"], "mapping": [1, 2]},
        {"determines": ["color", "total"], "mapping": [[["blue"], 2]]},
    ],
)
def test_what_no_table_could_keep_is_refused_as_it_is_read(given: dict[str, object]) -> None:
    with pytest.raises(CloisterError, match="Fix: "):
        constraint_from_dict(given)
