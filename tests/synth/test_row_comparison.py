from __future__ import annotations

from cloister import synth
from cloister.synth.row_comparison import compare_with_rows
from tests.synth.toys import people


def test_rows_are_compared_in_the_bins_that_were_modeled() -> None:
    table = people(200)
    made = synth.SpanningTree(epsilon=5, bins={"age": [0, 1, 50, 100], "weight": 2}).fit(table)
    found = compare_with_rows(made, table, made.sample(200))
    assert found is not None
    columns = {item["name"]: item["labels"] for item in found.to_dict()["fidelity"]["columns"]}
    assert len(columns["age"]) == 4
    assert len(columns["weight"]) == 3


def test_numbers_that_were_not_cut_are_compared_in_usual_bins() -> None:
    table = people(200)
    made = synth.GroupedGaussian(epsilon=5, columns=["age", "weight"]).fit(table)
    found = compare_with_rows(made, table, made.sample(200))
    assert found is not None
    assert all(len(item["labels"]) > 10 for item in found.to_dict()["fidelity"]["columns"])
