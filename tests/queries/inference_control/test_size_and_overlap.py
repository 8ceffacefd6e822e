from __future__ import annotations

import numpy as np
import pytest

from cloister.queries.inference_control.controls import fewest_questions, overlap_permits, size_permits


def test_of_ten_rows_none_one_nine_and_all_are_refused_at_a_size_of_two() -> None:
    permitted = [size for size in range(11) if size_permits(asked=size, among=10, contributing=size, min_size=2)]
    assert permitted == [2, 3, 4, 5, 6, 7, 8]


def test_rows_without_a_value_do_not_count() -> None:
    assert size_permits(asked=50, among=100, contributing=10, min_size=10)
    assert not size_permits(asked=50, among=100, contributing=9, min_size=10)


def rows(*places: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    members = np.zeros(10, dtype=np.bool_)
    members[list(places)] = True
    return members


def test_sets_share_at_most_so_many_rows() -> None:
    answered = [rows(0, 1, 2, 3), rows(6, 7, 8, 9)]
    assert overlap_permits(rows(3, 4, 5, 6), answered, max_overlap=1)
    assert not overlap_permits(rows(2, 3, 4, 5), answered, max_overlap=1)
    assert not overlap_permits(rows(3, 4, 5, 6), answered, max_overlap=0)


def test_the_same_set_again_is_no_overlap() -> None:
    assert overlap_permits(rows(0, 1, 2, 3), [rows(0, 1, 2, 3)], max_overlap=0)


@pytest.mark.parametrize(("size", "overlap", "questions"), [(10, 1, 10), (10, 3, 4), (2, 1, 2), (100, 2, 51)])
def test_overlap_control_makes_attackers_ask_often(size: int, overlap: int, questions: int) -> None:
    assert fewest_questions(min_size=size, max_overlap=overlap) == questions
