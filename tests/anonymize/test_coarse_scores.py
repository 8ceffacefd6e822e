from __future__ import annotations

from typing import Any

import pytest

from cloister.anonymize.coarse_scores import coarsen_scores
from cloister.errors import CloisterError

SCORES = [[0.1234, 0.8766], [0.5, 0.5]]


def test_scores_are_rounded() -> None:
    told = coarsen_scores(SCORES, digits=2)
    assert told.values.tolist() == [[0.12, 0.88], [0.5, 0.5]]
    assert str(told) == "rounded scores for 2 cases, no guarantee"
    assert told.to_dict()["values"] == [[0.12, 0.88], [0.5, 0.5]]


def test_labels_alone_are_told() -> None:
    told = coarsen_scores(SCORES, labels=["no", ("a", "pair")])
    assert told.values.tolist() == [("a", "pair"), "no"]
    assert str(told).startswith("labels")


def test_nothing_is_promised() -> None:
    promise = coarsen_scores(SCORES, digits=0).guarantee
    assert not promise.holds
    assert "train it privately" in promise.explain()


@pytest.mark.parametrize(
    ("scores", "options", "fix"),
    [
        ([0.5], {"digits": 1}, "one row"),
        ([[]], {"digits": 1}, "one row"),
        ([[float("nan")]], {"digits": 1}, "one row"),
        (SCORES, {}, "one of digits"),
        (SCORES, {"digits": 1, "labels": ["a", "b"]}, "one of digits"),
        (SCORES, {"digits": -1}, "digits"),
        (SCORES, {"labels": ["a"]}, "2 labels"),
    ],
)
def test_odd_input_is_refused(scores: Any, options: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        coarsen_scores(scores, **options)
