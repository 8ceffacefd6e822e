"""What the attacks take: a control that holds rows of the original is refused, one of independent people never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from cloister.attacks import (
    distance_to_closest_record,
    synthetic_inference,
    synthetic_linkability,
    synthetic_singling_out,
)
from cloister.attacks.synthetic.reading import read_attacked
from cloister.core.random import SeededRandomSource, integers_below
from cloister.errors import DataError
from tests.attacks.synthetic.populations import people, with_copies

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
    for seed in range(5):
        original, control = _coded(600, kinds=kinds, seed=seed), _coded(rows, kinds=kinds, seed=100 + seed)
        read_attacked(original, original, control=control)


def _coded(count: int, *, kinds: int, seed: int) -> pa.Table:
    return pa.table({"code": integers_below(SeededRandomSource(seed), kinds, count)})
