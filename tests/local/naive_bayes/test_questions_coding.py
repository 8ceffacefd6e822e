from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.local.naive_bayes._questions import JointCoding


@given(st.integers(1, 50), st.integers(1, 12), st.data())
def test_a_code_gives_back_value_and_class(value: int, classes: int, data: st.DataObject) -> None:
    """LDP-13."""
    label = data.draw(st.integers(1, classes))
    coding = JointCoding((value,), classes)
    codes = coding.encode([np.array([value - 1])], np.array([label - 1]))
    assert codes + 1 == (value - 1) * classes + label <= coding.size
    (values,), labels = coding.decode(codes)
    assert (values[0] + 1, labels[0] + 1) == (value, label)


@pytest.mark.parametrize("sizes", [(), (3,), (2, 3), (3, 2, 4)])
def test_codes_of_several_features_are_all_different_and_decode(sizes: tuple[int, ...]) -> None:
    coding = JointCoding(sizes, 3)
    rows = np.array(list(itertools.product(*map(range, sizes), range(3))))
    values, labels = list(rows[:, :-1].T), rows[:, -1]
    codes = coding.encode(values, labels)
    assert sorted(codes.tolist()) == list(range(coding.size))
    found, classes = coding.decode(codes)
    assert classes.tolist() == labels.tolist()
    assert [column.tolist() for column in found] == [column.tolist() for column in values]


def test_codes_of_one_feature_are_the_published_ones_less_one() -> None:
    coding = JointCoding((3,), 2)
    for value, label in itertools.product(range(3), range(2)):
        code = coding.encode([np.array([value])], np.array([label]))[0]
        assert code + 1 == value * 2 + label + 1


def test_a_table_adds_up_the_other_features() -> None:
    coding = JointCoding((2, 3), 2)
    people = np.array([[0, 2, 1], [1, 2, 1], [1, 0, 0], [1, 2, 1]])
    counts = np.bincount(coding.encode([people[:, 0], people[:, 1]], people[:, 2]), minlength=coding.size)
    assert coding.table(counts, 0).tolist() == [[0, 1], [1, 2]]
    assert coding.table(counts, 1).tolist() == [[1, 0], [0, 0], [0, 3]]
