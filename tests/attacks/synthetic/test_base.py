"""What the attacks take: a control that holds rows of the original is refused, one of independent people never."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cloister.attacks import (
    distance_to_closest_record,
    synthetic_inference,
    synthetic_linkability,
    synthetic_singling_out,
)
from cloister.attacks.synthetic.base import read_attacked
from cloister.core.random import SeededRandomSource, integers_below
from cloister.errors import DataError
from tests.attacks.synthetic.populations import people, with_copies
from tests.support.thoroughness import examples

ORIGINAL, CONTROL, FRESH = (people(600, seed=seed) for seed in (21, 22, 23))

ATTACKS: dict[str, Callable[..., Any]] = {
    "singling out": synthetic_singling_out,
    "linkability": synthetic_linkability,
    "inference": lambda *tables, **options: synthetic_inference(*tables, secret="ill", known=["job"], **options),
    "closest record": distance_to_closest_record,
}


@pytest.mark.parametrize("name", list(ATTACKS))
def test_the_original_is_no_control(name: str) -> None:
    with pytest.raises(DataError, match="Fix: give control rows that had no part"):
        ATTACKS[name](ORIGINAL, ORIGINAL, control=ORIGINAL)


@pytest.mark.parametrize(
    "control",
    [
        with_copies(CONTROL, ORIGINAL, 0.3),
        pa.concat_tables([ORIGINAL, CONTROL]),
        ORIGINAL.slice(0, 40),
        ORIGINAL.take(integers_below(SeededRandomSource(3), 600, 600)),
    ],
    ids=["a part", "both", "few", "drawn again"],
)
def test_a_control_with_rows_of_the_original_is_refused(control: pa.Table) -> None:
    with pytest.raises(DataError, match="The control holds rows of the original"):
        read_attacked(ORIGINAL, FRESH, control=control)


def test_a_table_of_few_kinds_is_told_from_its_copy_only() -> None:
    original, control = (_coded(600, kinds=24, seed=seed) for seed in (1, 2))
    read_attacked(original, original, control=control)
    with pytest.raises(DataError, match="The control holds rows of the original"):
        read_attacked(original, original, control=original)


@pytest.mark.parametrize("rows", [40, 600, 3_000])
@pytest.mark.parametrize("kinds", [2, 30, 300, 1_200, 6_000, 10**6])
def test_independent_people_are_taken_however_many_of_them_are_alike(kinds: int, rows: int) -> None:
    for seed in range(examples(5, usual=1)):
        original, control = _coded(600, kinds=kinds, seed=seed), _coded(rows, kinds=kinds, seed=100 + seed)
        assert read_attacked(original, original, control=control).names


@pytest.mark.parametrize("name", list(ATTACKS))
@pytest.mark.parametrize("lacking", ["synthetic", "control"])
def test_columns_that_a_table_lacks_are_told(name: str, lacking: str) -> None:
    tables = {"synthetic": FRESH, "control": CONTROL}
    tables[lacking] = tables[lacking].drop_columns(["town", "visits"])
    attack = synthetic_inference if name == "inference" else ATTACKS[name]
    options = {"secret": "ill"} if name == "inference" else {}
    found = attack(ORIGINAL, tables["synthetic"], control=tables["control"], **options)
    assert found.left_out == ("town", "visits")
    assert 'Not compared, because not in every table: "town", "visits".' in found.verdict
    assert dict(found.summary())["columns left out"] == '"town", "visits"'
    assert found.to_dict()["left_out"] == ["town", "visits"]
    assert "columns left out" in found.report().to_markdown()


def test_columns_that_nobody_asked_for_are_not_left_out() -> None:
    assert ATTACKS["inference"](ORIGINAL, FRESH.drop_columns(["town"]), control=CONTROL).left_out == ()


def test_many_columns_left_out_are_counted() -> None:
    wide = pa.table({f"c{place}": [1, 2] for place in range(12)})
    found = distance_to_closest_record(wide, wide.select(["c0"]))
    assert found.verdict.endswith('"c8" and 3 more.')
    assert len(found.left_out) == 11


@pytest.mark.parametrize("table", ["original", "synthetic", "control"])
def test_a_table_with_a_header_only_has_no_rows(table: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text(",".join(ORIGINAL.column_names) + "\n")
    tables = {"original": ORIGINAL, "synthetic": FRESH, "control": CONTROL, table: str(path)}
    with pytest.raises(DataError, match=f"The {table} table has no rows"):
        read_attacked(**tables)


def _coded(count: int, *, kinds: int, seed: int) -> pa.Table:
    return pa.table({"code": integers_below(SeededRandomSource(seed), kinds, count)})
