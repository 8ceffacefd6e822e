"""Models that protect persons with several rows."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from cloister.core.guarantees import Adjacency, PureDP
from cloister.data.table import Table
from cloister.errors import ParameterError, UnknownColumnError
from cloister.learn._inputs import read
from cloister.learn.base import PUBLIC_FACTS
from tests.learn import data
from tests.support.engine_tables import NamedOpener


def rows_of(table: Table, **options: Any) -> Counter[Any]:
    rows = read(data.bayes(unit="patient", **options), table, "sick").rows()
    assert rows.target is not None
    found: Counter[Any] = Counter()
    for features, label, weight in zip(rows.features.tolist(), rows.target, rows.weights.tolist(), strict=True):
        found[(*features, int(label))] += weight
    return found


@pytest.fixture(scope="module")
def whole_and_others(any_engine: NamedOpener) -> list[Table]:
    """All patients, and then all but each of three."""
    whole = pa.table(data.VALUES)
    kept = [pa.compute.or_kleene(pa.compute.not_equal(whole["patient"], person), False) for person in (1, 2, 3)]
    return [any_engine.open(part) for part in (whole, *map(whole.filter, kept))]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_neighbors_that_differ_in_a_person_differ_in_at_most_so_many_rows(
    whole_and_others: list[Table], most: int
) -> None:
    whole, *without = (rows_of(table, max_rows_per_unit=most) for table in whole_and_others)
    for others in without:
        assert (others - whole).total() == 0
        assert 0 < (whole - others).total() <= most


def test_a_person_counts_for_no_more_than_the_rows_that_are_used() -> None:
    table = data.patients(patient=[1] * 8, sick=["yes"] * 8)
    assert rows_of(table, max_rows_per_unit=3).total() == 3


def test_the_noise_is_that_of_a_group() -> None:
    made = data.bayes(epsilon=1, unit="patient", max_rows_per_unit=4)
    single = data.bayes(epsilon=Fraction(1, 4))
    made.fit(data.patients(), "sick")
    single.fit(data.patients(), "sick")
    assert made.steps_ == single.steps_
    assert made.guarantee_ == PureDP(
        epsilon=Fraction(1), unit="patient", adjacency=Adjacency.USER, assumptions=(PUBLIC_FACTS,)
    )


def test_persons_are_no_features() -> None:
    table = data.patients().with_schema(data.schema(patient={"bounds": [0, 9], "kind": "numeric"}))
    reading = read(data.bayes(unit="patient", features=None), table, "sick")
    assert reading.facts.encoding.columns == ("age", "sex")
    with pytest.raises(ParameterError, match="take the column of the unit out"):
        read(data.bayes(unit="patient", features=["age", "patient"], bounds=(0, 9), domain=None), table, "sick")


def test_persons_are_named_by_a_column() -> None:
    with pytest.raises(UnknownColumnError):
        read(data.bayes(unit="patiemt"), data.patients(), "sick")
    with pytest.raises(ParameterError, match='unit="patient_id"'):
        read(data.bayes(max_rows_per_unit=2), data.patients(), "sick")
