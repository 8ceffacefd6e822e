from __future__ import annotations

from collections.abc import Callable

import pytest

from cloister.core.guarantees import Adjacency
from cloister.errors import ParameterError
from cloister.mechanisms import sensitivity

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE


def test_the_lecture_examples() -> None:
    assert sensitivity.overlapping_counts(5, ADD).l1 == 5
    assert sensitivity.histogram(ADD, cells_per_unit=7).l1 == 7
    assert sensitivity.unit_totals(100, ADD) == 100
    assert sensitivity.unit_totals(100, REPLACE, may_move=True) == 200
    assert sensitivity.order_statistic((0, 100), ADD) == 100


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: sensitivity.count(Adjacency.USER), "bound what one unit contributes"),
        (lambda: sensitivity.mean((0, 1), ADD, rows=10), "Adjacency.REPLACE"),
        (lambda: sensitivity.mean((0, 1), REPLACE, rows=0), "rows=1"),
        (lambda: sensitivity.variance((0, 1), REPLACE), "pass rows="),
        (lambda: sensitivity.variance((0, 1), ADD, sample=True), "sample=False"),
        (lambda: sensitivity.bounded_sum((1, 0), ADD), "smaller number first"),
    ],
)
def test_what_has_no_answer_is_refused_with_a_fix(call: Callable[[], object], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        call()
