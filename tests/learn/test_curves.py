from __future__ import annotations

from typing import Any

import pytest

from cloister.core.guarantees import NoGuarantee
from cloister.errors import CloisterError, ParameterError
from cloister.learn import PrivateGaussianNB, learning_curve
from tests.learn import data

X, Y = [[1.0], [2.0], [8.0], [9.0]] * 30, [0, 0, 1, 1] * 30


def curve(**options: Any) -> Any:
    model = PrivateGaussianNB(bounds=(0, 10), classes=[0, 1])
    return learning_curve(model, X, Y, **{"test": (X, Y), "epsilons": [1, 0.1, 50], "repeats": 3, **options})


def test_a_curve_has_a_figure_for_each_model_and_price() -> None:
    found = curve()
    assert found.epsilons == (0.1, 1.0, 50.0)
    assert [len(values) for values in found.values] == [3, 3, 3]
    assert found.medians[-1] == (50.0, 1.0)
    assert found.baseline == 0.5
    assert isinstance(found.guarantee, NoGuarantee)
    assert "not for release" in str(found)
    assert found.to_dict()["schema"] == "cloister.learning_curve/1"


def test_a_curve_is_drawn_with_its_warning() -> None:
    drawn = str(curve().plot().to_dict())
    assert "not for release" in drawn
    assert "simplest guess" in drawn
    assert curve(epsilons=[1]).plot() is not None


def test_no_ledger_is_charged() -> None:
    ledger = data.book()
    model = data.bayes(ledger=ledger, dataset="patients")
    learning_curve(model, data.patients(), "sick", test=(data.patients(), "sick"), epsilons=[1], repeats=1)
    assert float(ledger.spent("patients").amount) == 0


@pytest.mark.parametrize(
    "wrong", [{"epsilons": []}, {"epsilons": "1"}, {"epsilons": 5}, {"epsilons": [0]}, {"repeats": 0}]
)
def test_odd_curves_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(CloisterError):
        curve(**wrong)


def test_a_test_without_rows_is_refused() -> None:
    empty = data.patients(sick=["maybe"] * 8)
    with pytest.raises(ParameterError, match="more rows"):
        learning_curve(data.bayes(), data.patients(), "sick", test=(empty, "sick"), epsilons=[1], repeats=1)
