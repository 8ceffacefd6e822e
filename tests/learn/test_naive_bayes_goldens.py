from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting.events import DiscreteLaplaceEvent
from cloister.learn import PrivateCategoricalNB
from cloister.testing import check_golden, load_goldens
from tests.learn.quiet_naive_bayes import without_noise

FOLDER = Path(__file__).parents[1] / "golden" / "learn" / "naive_bayes"
DOMAIN = [["young", "medium", "old"], ["low", "medium", "high"], ["male", "female"]]
ROWS = [
    ("young", "low", "male", "yes"),
    ("young", "high", "female", "yes"),
    ("medium", "high", "male", "no"),
    ("old", "medium", "male", "no"),
    ("old", "high", "male", "no"),
    ("old", "low", "female", "yes"),
    ("medium", "low", "female", "no"),
    ("medium", "medium", "male", "yes"),
    ("young", "low", "male", "no"),
    ("old", "high", "female", "no"),
]


def toy(**options: Any) -> PrivateCategoricalNB:
    """Fit the ten customers without noise, correction and smoothing."""
    settings = {"correction": "none", "alpha": 0, **options}
    model = PrivateCategoricalNB(domain=DOMAIN, classes=["no", "yes"], **settings)
    with without_noise():
        return model.fit(np.array([row[:3] for row in ROWS]), [row[3] for row in ROWS])


def _joint(*, query: list[str]) -> list[float]:
    model = toy()
    codes = model.encoding_.codes(list(np.array([query]).T)).astype(np.float64)
    return np.exp(model._scores(codes))[0].tolist()  # type: ignore[no-any-return]


def _shares(*, feature: int) -> dict[str, Any]:
    model = toy()
    return {"prior": model.class_prior_.tolist(), "age": np.exp(model.feature_log_prob_[feature]).tolist()}


def _query_vector(*, sizes: list[int], classes: int, epsilon: str) -> dict[str, Any]:
    model = PrivateCategoricalNB(domain=sizes, classes=list(range(classes)), epsilon=epsilon)
    model.fit(np.zeros((4, len(sizes)), dtype=np.int64), np.arange(4) % classes)
    (step,) = model.steps_
    assert isinstance(step.event, DiscreteLaplaceEvent)
    return {
        "length": model.released_counts_.size,
        "sensitivity": int(step.event.sensitivity),
        "scale": int(step.event.scale),
    }


FUNCTIONS = {"query_vector": _query_vector, "toy_joint": _joint, "toy_shares": _shares}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])


def test_ml_01_the_toy_example_predicts_yes() -> None:
    assert _joint(query=["young", "medium", "female"]) == pytest.approx([0.0055556, 0.025], abs=5e-8)
    assert toy().predict([["young", "medium", "female"]]).tolist() == ["yes"]
    assert toy().predict_proba([["young", "medium", "female"]])[0] == pytest.approx([2 / 11, 9 / 11])


def test_ml_02_the_query_vectors_of_adult_and_nursery() -> None:
    adult, nursery = [9, 16, 7, 15, 6, 5, 2, 42], [3, 5, 4, 4, 3, 2, 3, 3]
    assert _query_vector(sizes=adult, classes=2, epsilon="1") == {"length": 204, "sensitivity": 8, "scale": 8}
    assert _query_vector(sizes=nursery, classes=5, epsilon="1") == {"length": 135, "sensitivity": 8, "scale": 8}
