"""Adult: a private synthetic table, and the same with a tenth of its rows copied from the original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from cloister import synth
from cloister.attacks import (
    distance_to_closest_record,
    synthetic_inference,
    synthetic_linkability,
    synthetic_singling_out,
)
from cloister.core.random import SeededRandomSource, permutation
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table

pytestmark = [
    pytest.mark.slow,
    # The randomness is not what is tested here: the same tables every time.
    pytest.mark.filterwarnings("ignore::cloister.errors.SeededRandomnessWarning"),
]

ROWS = 8_000
BOUNDS = {
    "age": (17, 91),
    "fnlwgt": (12_000, 1_500_000),
    "capital-gain": (0, 100_000),
    "capital-loss": (0, 4_500),
    "hours-per-week": (1, 100),
}


@pytest.fixture(scope="module")
def tables(shared_data: Path) -> dict[str, pa.Table]:
    whole = pacsv.read_csv(shared_data / "adult" / "adult.csv").drop_columns(["education-num"])
    order = permutation(SeededRandomSource(1), len(whole))
    original, control = whole.take(pa.array(order[:ROWS])), whole.take(pa.array(order[ROWS : 2 * ROWS]))
    schema = Schema(
        Column(name=name, kind="numeric", bounds=BOUNDS[name])
        if name in BOUNDS
        else Column(name=name, categories=whole[name].unique().to_pylist())
        for name in whole.column_names
    )
    made = synth.SpanningTree(epsilon=1, delta=1e-9, bins=32, complete=True, random_state=2)
    clean = made.fit(open_table(original, schema=schema)).sample(ROWS, random_state=3).to_arrow()
    copied = pa.concat_tables([clean.slice(ROWS // 10), original.slice(0, ROWS // 10).cast(clean.schema)])
    return {"original": original, "control": control, "clean": clean, "copied": copied}


@pytest.mark.parametrize(
    ("attack", "options"),
    [
        (synthetic_singling_out, {}),
        (synthetic_linkability, {}),
        (synthetic_inference, {"secret": "occupation"}),
        (distance_to_closest_record, {}),
    ],
    ids=["singling out", "linkability", "inference", "closest record"],
)
def test_a_table_with_copies_is_told_from_a_clean_one(
    attack: Any, options: dict[str, Any], tables: dict[str, pa.Table]
) -> None:
    found = {
        name: attack(
            tables["original"], tables[name], control=tables["control"], random_state=SeededRandomSource(4), **options
        )
        for name in ("clean", "copied")
    }
    assert not found["clean"].succeeded
    assert found["copied"].succeeded
    assert found["copied"].interval[0] > found["clean"].interval[1]
