from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from cloister.core import documents
from cloister.core.documents import from_json, to_json
from cloister.errors import ModelError

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.fractions()
)
NESTED = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner)
)


def there_and_back(value: Any) -> Any:
    return from_json(json.loads(json.dumps(to_json(value), allow_nan=False)))


@settings(max_examples=50)
@given(NESTED)
def test_nested_values_come_back_exactly(value: Any) -> None:
    found = there_and_back(value)
    assert found == value
    assert type(found) is type(value)


@given(
    st.one_of(
        arrays(np.float64, array_shapes(min_side=0), elements=st.floats(allow_nan=False, allow_infinity=False)),
        arrays(np.int64, array_shapes(min_side=0)),
        arrays(np.bool_, array_shapes()),
        arrays("<U5", array_shapes()),
    )
)
def test_arrays_come_back_exactly(value: Any) -> None:
    found = there_and_back({"trees": [value]})["trees"][0]
    assert found.shape == value.shape
    assert found.dtype.kind == value.dtype.kind
    assert found.tobytes() == value.tobytes() or (found == value).all()


def test_minus_zero_and_single_precision_come_back() -> None:
    assert np.signbit(there_and_back(np.array([-0.0])))[0]
    assert there_and_back(np.float32(0.1)) == float(np.float32(0.1))
    assert there_and_back(np.array(["a", "b"], dtype=object)).tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        np.array([np.nan]),
        np.array([np.inf]),
        np.array([2**64 - 1], dtype=np.uint64),
        np.array([object()]),
        object(),
        {1: 2},
        b"bytes",
        1j,
        {"deep": [lambda: None]},
    ],
)
def test_other_values_are_not_saved(value: Any) -> None:
    with pytest.raises(ModelError, match="plain numbers and texts"):
        to_json(value)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"object": "os.system"},
        {},
        {"array": "float64", "shape": [1]},
        {"array": "object", "shape": [1], "values": [1]},
        {"array": "float64", "shape": [1], "values": "1"},
        {"array": "float64", "shape": [2], "values": [1.0]},
        {"array": "float64", "shape": [-1], "values": []},
        {"array": "float64", "shape": "1", "values": [1.0]},
        {"array": "float64", "shape": [1.0], "values": [1.0]},
        {"array": "float64", "shape": [1] * 33, "values": [1.0]},
        {"array": "float64", "shape": [1], "values": [True]},
        {"array": "float64", "shape": [1], "values": ["1"]},
        {"array": "float64", "shape": [1], "values": [float("nan")]},
        {"array": "float64", "shape": [1], "values": [10**400]},
        {"array": "int64", "shape": [1], "values": [1.5]},
        {"array": "int64", "shape": [1], "values": [2**63]},
        {"array": "text", "shape": [1], "values": [1]},
        {"tuple": 5},
        {"tuple": [], "more": 1},
        {"dict": []},
        {"fraction": "1/0"},
        {"fraction": "one"},
        {"fraction": 5},
        {"fraction": "1" * 20_000},
        float("inf"),
        deep(300),
    ],
)
def test_other_values_are_not_read(value: Any) -> None:
    with pytest.raises(ModelError, match="train again"):
        from_json(value)


def test_huge_arrays_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LARGEST", 3)
    with pytest.raises(ModelError, match="too large"):
        from_json({"array": "float64", "shape": [4], "values": [1.0] * 4})


def test_a_fraction_stays_exact() -> None:
    assert there_and_back(Fraction(1, 3)) == Fraction(1, 3)
