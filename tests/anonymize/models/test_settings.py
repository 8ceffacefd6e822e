"""Models as plain settings, and back."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

import cloister as cl
from cloister.anonymize.models.settings import model_from, plain, settings_of
from cloister.errors import ParameterError

MODELS = [
    cl.KAnonymity(k=5),
    cl.KAnonymity(k=5, unit="patient"),
    cl.LDiversity("disease", l=3),
    cl.LDiversity("disease", l="1.5", kind="entropy"),
    cl.LDiversity("disease", l=2, kind="recursive", c=Fraction(1, 3)),
    cl.TCloseness("disease", t="0.2", kind="ordered"),
    cl.AlphaKAnonymity("disease", alpha="0.5", k=3),
    cl.PSensitivity("disease", p=2, k=3),
    cl.BetaLikeness("disease", beta=1, kind="basic"),
    cl.DeltaPresence(delta_min="0.1", delta_max="0.7"),
    cl.KMap(k=7),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_settings_make_the_same_model_again(model: Any) -> None:
    settings = settings_of(model)
    assert model_from(json.loads(json.dumps(settings))) == model
    assert model_from(model) is model
    short = {name: value for name, value in settings.items() if name != "model"}
    if not isinstance(model, cl.KMap):
        assert model_from(short) == model


@pytest.mark.parametrize(
    ("value", "written"), [(Fraction(3), 3), (Fraction(1, 2), 0.5), (Fraction(1, 3), "1/3"), ("a", "a"), (2, 2)]
)
def test_numbers_are_written_exactly(value: Any, written: Any) -> None:
    assert plain(value) == written


@pytest.mark.parametrize(
    ("settings", "fix"),
    [
        (None, "cl.KAnonymity"),
        ({}, "cl.KAnonymity"),
        ([5], "cl.KAnonymity"),
        ({"attribute": "disease"}, 'for example {"k": 5}'),
        ({"model": "k_anonymty", "k": 5}, "use one of k_anonymity"),
        ({"k": 5, "unitt": "row"}, "give those that apply of k, unit"),
        ({"l": 5}, "give those that apply of attribute"),
        ({"k": 0}, "k"),
    ],
)
def test_settings_of_no_model_are_refused(settings: Any, fix: str) -> None:
    with pytest.raises(ParameterError) as caught:
        model_from(settings)
    assert fix in caught.value.fix


def test_near_names_are_suggested() -> None:
    with pytest.raises(ParameterError, match='Did you mean "k_anonymity"'):
        model_from({"model": "k_anonymty", "k": 5})
