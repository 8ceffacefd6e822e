from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import cloister as cl
from cloister.anonymize.assessment import assess
from cloister.testing import check_golden, load_golden

GOLDEN = Path(__file__).parents[2] / "golden" / "anonymize" / "risk"


def _table(classes: list[list[int]], *, ordered: bool = False, parents: list[str] | None = None) -> cl.Table:
    """A table with one class per list, which holds each sensitive value so many times."""
    lines = [
        (f"class {row}", value)
        for row, counts in enumerate(classes)
        for value, n in enumerate(counts)
        for _ in range(n)
    ]
    names = [str(value) for value in range(len(classes[0]))]
    hierarchy = None if parents is None else cl.Hierarchy.from_levels(list(zip(names, parents, strict=True)))
    schema = cl.Schema(
        [
            cl.Column(name="quasi"),
            cl.Column(
                name="secret",
                role="sensitive",
                kind="ordinal" if ordered else "nominal",
                categories=names if ordered else None,
                hierarchy=hierarchy,
            ),
        ]
    )
    data = pa.table({"quasi": [line[0] for line in lines], "secret": [str(line[1]) for line in lines]})
    return cl.open_table(data, schema=schema)


def _attained(**inputs: Any) -> dict[str, Any]:
    models = assess(_table(**inputs)).risk.models
    found = models.sensitive[0]
    recursive = {f"recursive_{size}": c for size, c in found.recursive.items()}
    return {
        "k": models.k,
        **recursive,
        **{name: getattr(found, name) for name in found.to_dict() if name != "recursive"},
    }


def test_worked_examples_of_every_model() -> None:
    golden = load_golden(GOLDEN / "attained.toml")
    for case in golden.cases:
        found = _attained(**case.inputs)
        for name, expected in case.expected.items():
            assert found[name] == pytest.approx(float(expected), abs=float(golden.tolerance)), (case.name, name)


def test_worked_examples_of_k_anonymity() -> None:
    def measured(rows: list[list[str]]) -> dict[str, int]:
        columns = {f"q{place}": list(column) for place, column in enumerate(zip(*rows, strict=True))}
        risk = assess(cl.open_table(pa.table(columns)), quasi_identifiers=list(columns)).risk
        return {"k": risk.models.k, "unique": risk.reidentification.unique}

    check_golden(load_golden(GOLDEN / "k_anonymity.toml"), measured)


def test_a_class_with_one_value_has_no_recursive_diversity() -> None:
    found = assess(_table([[2, 0], [1, 1]])).risk.models.sensitive[0]
    assert math.isinf(found.recursive[2])
    assert found.to_dict()["recursive"]["2"] is None


def test_models_without_order_or_hierarchy_are_left_out() -> None:
    found = assess(_table([[2, 1]])).risk.models.sensitive[0]
    assert found.ordered is None
    assert found.hierarchical is None


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any), min_size=1, max_size=5))
def test_the_models_follow_from_their_definitions(classes: list[list[int]]) -> None:
    found = assess(_table(classes)).risk.models
    value = found.sensitive[0]
    total = [sum(column) for column in zip(*classes, strict=True)]
    overall = [count / sum(total) for count in total]
    shares = [[count / sum(counts) for count in counts] for counts in classes]
    entropies = [-sum(p * math.log(p) for p in row if p) for row in shares]
    assert found.k == min(map(sum, classes))
    assert value.distinct == min(sum(count > 0 for count in counts) for counts in classes)
    assert value.frequency == pytest.approx(1 / max(map(max, shares)))
    assert value.alpha == pytest.approx(max(map(max, shares)))
    assert value.entropy == pytest.approx(math.exp(min(entropies)))
    distances = [sum(abs(p - q) for p, q in zip(row, overall, strict=True)) / 2 for row in shares]
    assert value.equal == pytest.approx(max(distances))
    gains = [p / q - 1 for row in shares for p, q in zip(row, overall, strict=True) if q]
    assert value.beta == pytest.approx(max(gains))


def test_other_sensitive_columns_may_be_known_too() -> None:
    data = pa.table({"q": ["a"] * 4, "first": ["x", "x", "y", "y"], "second": ["1", "1", "2", "3"]})
    models = assess(cl.open_table(data), quasi_identifiers=["q"], sensitive=["first", "second"]).risk.models
    first, second = models.sensitive
    assert (first.distinct, first.distinct_beside_others) == (2, 1)
    assert (second.distinct, second.distinct_beside_others) == (3, 1)


def test_persons_are_counted_where_a_column_tells_them_apart() -> None:
    data = pa.table({"who": ["1", "1", "2", "3", "3", "3"], "q": ["a", "a", "a", "b", "b", "b"]})
    schema = cl.Schema([cl.Column(name="who", role="identifier", subject=True), cl.Column(name="q")])
    risk = assess(cl.open_table(data, schema=schema)).risk
    assert (risk.models.k, risk.models.k_persons, risk.unit) == (3, 1, "who")
    assert risk.reidentification.prosecutor_max == 1


def test_columns_called_insensitive_are_counted_as_if_known() -> None:
    data = pa.table({"q": ["a"] * 4, "harmless": ["1", "2", "2", "2"]})
    schema = cl.Schema([cl.Column(name="q"), cl.Column(name="harmless", role="insensitive")])
    models = assess(cl.open_table(data, schema=schema)).risk.models
    assert (models.k, models.k_all_columns) == (4, 1)
