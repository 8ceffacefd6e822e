from __future__ import annotations

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.assessment import assess
from cloister.anonymize.risk import Disclosure


def _measured(quasi: list[str], secret: object, *, kind: str = "nominal") -> Disclosure:
    schema = cl.Schema([cl.Column(name="q"), cl.Column(name="secret", role="sensitive", kind=kind)])
    return assess(cl.open_table(pa.table({"q": quasi, "secret": secret}), schema=schema)).risk.disclosure[0]


def test_a_class_with_one_value_is_certain() -> None:
    found = _measured(["a", "a", "b", "b"], ["flu", "flu", "flu", "none"])
    assert found.values == 2
    assert found.homogeneous == 0.5
    assert found.posterior_max == 1
    assert found.posterior_average == 0.75
    assert found.prior == 0.75
    assert found.gain == 0
    assert found.largest_factor == 2
    assert found.near is None


def test_classes_that_know_more_than_the_table_gain() -> None:
    found = _measured(["a"] * 3 + ["b"] * 3, ["x", "x", "y", "y", "y", "x"])
    assert (found.prior, found.posterior_average) == (0.5, pytest.approx(2 / 3))
    assert found.to_dict()["gain"] == pytest.approx(1 / 6)


def test_numbers_near_each_other_give_themselves_away() -> None:
    found = _measured(["a", "a", "b", "b"], [1000, 1050, 0, 10_000], kind="numeric")
    assert found.near == 0.5
    assert found.homogeneous == 0


def test_missing_numbers_are_not_near() -> None:
    found = _measured(["a", "a", "b"], [1.0, None, 3.0], kind="numeric")
    assert found.near == pytest.approx(1 / 3)


def test_a_column_without_numbers_is_not_near() -> None:
    found = _measured(["a", "b"], pa.array([None, None], pa.float64()), kind="numeric")
    assert found.near is None
