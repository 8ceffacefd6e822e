from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.cells import read_cells
from cloister.anonymize.comparison import Comparison, compare_cells
from cloister.anonymize.risk.table_classes import find_kept_cells, read_released
from cloister.anonymize.utility.measures import (
    SANITY,
    association_difference,
    count_original,
    count_released,
    marginal_distances,
    measure_queries,
)

ZIPS = cl.Hierarchy.masking([*range(13000, 13100), *range(14850, 14860)])
AGES = cl.Hierarchy.from_levels(
    {age: ["<30" if age < 30 else "30-40" if age < 40 else ">=40"] for age in range(20, 60)}
)
PATIENTS = {
    "zip": [13053, 13068, 13068, 13053, 14853, 14853, 14850, 14850, 13053, 13053, 13068, 13068],
    "age": [28, 29, 21, 23, 50, 55, 47, 49, 31, 37, 36, 35],
}
SHOWN = {"zip": ["130**"] * 4 + ["1485*"] * 4 + ["130**"] * 4, "age": ["<30"] * 4 + [">=40"] * 4 + ["30-40"] * 4}
SCHEMA = cl.Schema([cl.Column(name="zip", hierarchy=ZIPS), cl.Column(name="age", kind="numeric", hierarchy=AGES)])


def _comparison(shown: dict[str, list[object]]) -> Comparison:
    original = read_cells(cl.open_table(pa.table(PATIENTS)), SCHEMA, quasi=["zip", "age"])
    released = read_released(cl.open_table(pa.table(shown)), SCHEMA)
    return compare_cells(original, released, find_kept_cells(released))


def test_the_worked_example_of_a_count() -> None:
    """Zip 13053 and age 37: one patient; 4 * 1/100 * 1/10 after generalization, off by 0.996."""
    comparison = _comparison(SHOWN)
    question = {
        place: np.array([leaf == wanted for leaf in comparison.original.attributes[place].leaves])
        for place, wanted in ((0, "13053"), (1, "37"))
    }
    truth, answer = count_original(comparison, question), count_released(comparison, question)
    assert truth == 1
    assert answer == pytest.approx(0.004)
    assert abs(truth - answer) / max(truth, SANITY * 12) == pytest.approx(0.996)


def test_raw_tables_answer_exactly() -> None:
    found = measure_queries(_comparison(PATIENTS))
    assert (found.mean, found.median, found.worst) == (0, 0, 0)
    assert (found.queries, found.columns) == (200, 2)


def test_the_same_questions_are_asked_every_time() -> None:
    assert measure_queries(_comparison(SHOWN)) == measure_queries(_comparison(SHOWN))


def test_coarser_tables_answer_worse() -> None:
    coarse = {"zip": ["*"] * 12, "age": SHOWN["age"]}
    assert measure_queries(_comparison(coarse)).mean > measure_queries(_comparison(SHOWN)).mean > 0


def test_shares_of_values_are_compared() -> None:
    comparison = _comparison(SHOWN)
    distances = marginal_distances(comparison)
    assert marginal_distances(_comparison(PATIENTS)) == {"zip": 0, "age": 0}
    # Half of the eight rows of 130** lie on two of a hundred values, the other four rows on two of ten.
    assert distances["zip"] == pytest.approx(((4 - 0.08) * 2 + (2 - 0.4) * 2) / 12)
    assert association_difference(_comparison(PATIENTS)) == pytest.approx(0)
    assert 0 < association_difference(comparison) < 1


def test_one_column_has_no_association() -> None:
    original = read_cells(cl.open_table(pa.table(PATIENTS)), SCHEMA, quasi=["age"])
    assert association_difference(compare_cells(original, original, np.ones(len(original), dtype=bool))) is None
