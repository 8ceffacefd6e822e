from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import pytest

import cloister as cl
from cloister.core import guarantees as g
from cloister.core.guarantees import base
from cloister.errors import InternalError, ParameterError

EVERY = [
    cl.PureDP(epsilon=0.1),
    cl.PureDP(epsilon=600, unit="patient", adjacency=cl.Adjacency.USER),
    cl.ApproxDP(epsilon=1, delta=1e-6),
    cl.ZeroConcentratedDP(rho=0.1),
    cl.ZeroConcentratedDP(rho=0.1, delta=1e-9, adjacency="replace"),
    cl.RenyiDP(alpha=2, epsilon=0.5),
    cl.LocalDP(epsilon=1),
    cl.KAnonymity(k=5),
    cl.LDiversity("occupation", l=3, kind="entropy"),
    cl.LDiversity("occupation", l=3, kind="recursive", c="2.5"),
    cl.TCloseness("occupation", t=0.2),
    cl.AlphaKAnonymity("occupation", alpha=0.5, k=5),
    cl.PSensitivity("occupation", p=3, k=5),
    cl.BetaLikeness("occupation", beta=1),
    cl.BetaLikeness("occupation", beta=1, kind="basic"),
    cl.KMap(k=5),
    cl.DeltaPresence(delta_max=0.5),
    g.AllOf(parts=(cl.KAnonymity(k=5), cl.LDiversity("occupation", l=3))),
    cl.NoGuarantee(reason="raw data"),
]


@pytest.mark.parametrize("guarantee", EVERY, ids=lambda item: item.kind)
def test_every_guarantee_survives_json(guarantee: g.Guarantee) -> None:
    tainted = guarantee.with_caveat(g.SEEDED_RANDOMNESS).with_assumption("bounds are public")
    for item in (guarantee, tainted):
        assert g.guarantee_from_dict(json.loads(json.dumps(item.to_dict()))) == item


@pytest.mark.parametrize("guarantee", EVERY, ids=lambda item: item.kind)
def test_every_guarantee_explains_itself_in_a_sentence(guarantee: g.Guarantee) -> None:
    text = guarantee.explain()
    assert text[0].isupper()
    assert text.endswith(".")
    assert "{" not in text
    assert guarantee.brief()


@pytest.mark.parametrize("guarantee", EVERY, ids=lambda item: item.kind)
def test_guarantees_are_frozen(guarantee: g.Guarantee) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.unit = "other"  # type: ignore[misc]


def test_numbers_are_exact() -> None:
    assert cl.ApproxDP(epsilon=0.1, delta=1e-6) == cl.ApproxDP(epsilon=Fraction(1, 10), delta=Fraction(1, 10**6))


def test_a_breaking_caveat_breaks_the_promise_and_says_so() -> None:
    honest = cl.PureDP(epsilon=1)
    broken = honest.with_caveat(g.SEEDED_RANDOMNESS)
    assert honest.holds
    assert not broken.holds
    assert "does NOT hold" in broken.explain()
    assert "[promise broken]" in broken.brief()
    assert broken.with_caveat(g.SEEDED_RANDOMNESS) == broken


def test_a_note_does_not_break_the_promise() -> None:
    noted = cl.PureDP(epsilon=1).with_caveat(g.Caveat("note", "rounded to whole numbers", breaks=False))
    assert noted.holds
    assert "Note: rounded" in noted.explain()


def test_assumptions_are_told_once() -> None:
    assumed = cl.PureDP(epsilon=1).with_assumption("bounds are public").with_assumption("bounds are public")
    assert assumed.explain().count("bounds are public") == 1


def test_no_guarantee_never_holds() -> None:
    nothing = cl.NoGuarantee(reason="raw data")
    assert not nothing.holds
    assert "raw data" in nothing.explain()
    assert nothing.brief() == "no guarantee"


def test_the_relation_is_named_in_the_promise() -> None:
    assert "one row is added or removed" in cl.PureDP(epsilon=1).explain()
    assert "one patient is changed" in cl.PureDP(epsilon=1, unit="patient", adjacency="replace").explain()
    assert all(relation.meaning for relation in cl.Adjacency)


def test_delta_is_explained_as_slack_not_as_failure_probability() -> None:
    text = cl.ApproxDP(epsilon=1, delta=1e-6).explain()
    assert "plus 1e-06" in text
    assert "with probability" not in text


SYNTACTIC = [guarantee for guarantee in EVERY if isinstance(guarantee, g.Syntactic)]


@pytest.mark.parametrize("model", SYNTACTIC, ids=lambda item: item.kind)
def test_syntactic_models_do_not_claim_differential_privacy(model: g.Syntactic) -> None:
    assert "not differential privacy" in model.explain()


def test_every_syntactic_model_is_tried_here() -> None:
    # Models that stand beside their checks are tried by tests/anonymize/models/test_family.py.
    here = [model for model in g.Syntactic.__subclasses__() if model.__module__.startswith("cloister.core.")]
    assert {model.kind for model in SYNTACTIC} == {model.kind for model in here}


def test_a_kind_that_stands_beside_its_check_is_loaded_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = cl.KAnonymity(k=5).to_dict() | {"schema": "cloister.guarantee.k_elsewhere/1"}
    with pytest.raises(ParameterError, match="not a guarantee that this version"):
        g.guarantee_from_dict(written)
    (tmp_path / "kinds_elsewhere.py").write_text(
        "from cloister.core.guarantees.base import REGISTRY\n"
        "from cloister.core.guarantees import KAnonymity\n"
        "REGISTRY['k_elsewhere'] = KAnonymity\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(base, "PACKAGES_WITH_KINDS", ("kinds_elsewhere",))
    try:
        assert g.guarantee_from_dict(written) == cl.KAnonymity(k=5)
    finally:
        base.REGISTRY.pop("k_elsewhere", None)


def test_no_kind_takes_the_name_of_another() -> None:
    class Weaker(g.PureDP):
        """Would read what the other one promised as something else."""

    with pytest.raises(InternalError, match='called "pure_dp"'):
        base.register(Weaker)
    assert base.REGISTRY["pure_dp"] is g.PureDP
    assert base.register(g.PureDP) is g.PureDP


@pytest.mark.parametrize("model", SYNTACTIC, ids=lambda item: item.kind)
def test_a_model_can_be_about_persons(model: g.Syntactic) -> None:
    about = model.with_unit("patient_id")
    assert about.unit == "patient_id"
    assert about.brief() == model.brief().replace("per row", "per patient_id")
    assert g.guarantee_from_dict(about.to_dict()) == about


def test_looking_alike_is_said_of_rows_or_of_persons() -> None:
    assert "looks the same as at least 4 others" in cl.KAnonymity(k=5).explain()
    assert "rows of at least 4 other persons (told apart by id)" in cl.KAnonymity(k=5, unit="id").explain()


def test_the_factor_of_recursive_diversity_is_told() -> None:
    model = cl.LDiversity("a", l=3, kind="recursive", c="2.5")
    assert model.c == Fraction(5, 2)
    assert model.brief() == "c = 2.5, l = 3 (a) per row"
    assert "c = 2.5" in model.explain()


def test_several_promises_hold_together_or_not_at_all() -> None:
    both = g.AllOf(parts=(cl.KAnonymity(k=5), cl.TCloseness("a", t="0.2")))
    assert both.holds
    assert both.brief() == "k = 5 per row; t = 0.2 (a) per row"
    assert both.explain().count("not differential privacy") == 1
    assert "These are properties of the table" in both.explain()
    assert not both.with_caveat(g.GUESSED_SCHEMA).holds
    broken = g.AllOf(parts=(cl.KAnonymity(k=5), cl.KMap(k=9).with_caveat(g.GUESSED_SCHEMA)))
    assert not broken.holds
    assert "promise broken" in broken.brief()
    assert g.guarantee_from_dict(json.loads(json.dumps(broken.to_dict()))) == broken


def test_presence_is_bounded_from_both_sides() -> None:
    model = cl.DeltaPresence(delta_min="0.1", delta_max="0.5")
    assert (model.delta_min, model.delta_max) == (Fraction(1, 10), Fraction(1, 2))
    assert "from 0.1 to 0.5" in model.explain()


@pytest.mark.parametrize(
    ("make", "fix"),
    [
        (lambda: cl.PureDP(epsilon=-1), "epsilon=0.5"),
        (lambda: cl.PureDP(epsilon=float("nan")), "finite"),
        (lambda: cl.PureDP(epsilon=1, unit=" "), 'unit="patient"'),
        (lambda: cl.ApproxDP(epsilon=1, delta=1), "delta=1e-6"),
        (lambda: cl.ZeroConcentratedDP(rho=-1), "not negative"),
        (lambda: cl.RenyiDP(alpha=1, epsilon=1), "alpha=2"),
        (lambda: cl.KAnonymity(k=0), "k=1"),
        (lambda: cl.LDiversity("a", l=0.5), "l=3"),
        (lambda: cl.LDiversity("a", l=2, kind="entropic"), "entropy"),
        (lambda: cl.LDiversity("a", l="2.5"), "l=3"),
        (lambda: cl.LDiversity("a", l="2.5", kind="recursive", c=2), "l=3"),
        (lambda: cl.LDiversity("a", l=2, kind="recursive"), "c=3"),
        (lambda: cl.LDiversity("a", l=2, c=2), "drop c"),
        (lambda: cl.LDiversity("a", l=2, kind="recursive", c=0), "c"),
        (lambda: cl.TCloseness("a", t=-1), "not negative"),
        (lambda: cl.TCloseness("a", t=1, kind="manhattan"), "ordered"),
        (lambda: cl.TCloseness("a", t="1.01"), "promises nothing"),
        (lambda: cl.TCloseness("a", t=20, kind="ordered"), "such as 0.2"),
        (lambda: cl.AlphaKAnonymity("a", alpha=2, k=5), "0 .* 1|between"),
        (lambda: cl.AlphaKAnonymity("a", alpha="0.5", k=0), "k=1"),
        (lambda: cl.PSensitivity("a", p=6, k=5), "raise k or lower p"),
        (lambda: cl.PSensitivity("a", p=0, k=5), "p=1"),
        (lambda: cl.BetaLikeness("a", beta=0), "beta"),
        (lambda: cl.BetaLikeness("a", beta=1, kind="strong"), "enhanced"),
        (lambda: cl.KMap(k=0), "k=1"),
        (lambda: cl.DeltaPresence(delta_min="0.6", delta_max="0.5"), "smaller number"),
        (lambda: cl.DeltaPresence(delta_max=2), "0 .* 1|between"),
        (lambda: g.guarantee_from_dict({"schema": "cloister.guarantee.pure_dp/9"}), "newer cloister"),
        (lambda: g.guarantee_from_dict({}), "to_dict"),
    ],
)
def test_bad_parameters_are_refused_with_a_fix(make: object, fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        make()  # type: ignore[operator]


def test_an_unknown_relation_is_refused() -> None:
    with pytest.raises(ParameterError, match='Did you mean "user"'):
        cl.PureDP(epsilon=1, adjacency="usr")


def _changed(**changes: object) -> dict[str, object]:
    return cl.PureDP(epsilon=1).with_caveat(g.SEEDED_RANDOMNESS).to_dict() | changes


SEEDED = {"code": "seeded_randomness", "text": "fine", "breaks": False}


def test_a_dictionary_cannot_whitewash_a_broken_promise() -> None:
    assert not g.guarantee_from_dict(_changed(caveats=[SEEDED])).holds
    for changed in (_changed(holds=True), _changed(caveats=[]), _changed(caveats=[SEEDED], holds=1)):
        with pytest.raises(ParameterError, match="as to_dict"):
            g.guarantee_from_dict(changed)


def test_parts_that_are_missing_or_too_many_are_refused() -> None:
    whole = cl.PureDP(epsilon=1).to_dict()
    for changed in (
        whole | {"delta": "1/2"},
        {k: v for k, v in whole.items() if k != "adjacency"},
        whole | {"unit": 5},
    ):
        with pytest.raises(ParameterError, match="as to_dict"):
            g.guarantee_from_dict(changed)
    with pytest.raises(TypeError, match="as to_dict"):
        g.guarantee_from_dict([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"caveats": [SEEDED | {"breaks": 0}]},
        {"caveats": [{"code": "x"}]},
        {"caveats": ["seeded"]},
        {"caveats": [SEEDED | {"code": []}]},
        {"assumptions": "abc"},
    ],
)
def test_malformed_dictionaries_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="as to_dict"):
        g.guarantee_from_dict(_changed(**changes))


def test_what_all_promises_assume_is_said_once() -> None:
    parts = (cl.KAnonymity(k=5).with_assumption("A", "B"), cl.LDiversity("a", l=2).with_assumption("B"))
    text = g.AllOf(parts=parts).explain()
    assert text.count("This assumes: A.") == 1
    assert text.endswith("This assumes: B.")
    assert g.AllOf(parts=()).explain() == ""


def test_promises_of_different_kinds_keep_their_own_closing() -> None:
    parts = (cl.PureDP(epsilon=1), cl.KAnonymity(k=5), cl.KMap(k=5))
    assert g.AllOf(parts=parts).explain().count("This is a property of the table") == 2


def test_a_factor_in_a_sentence_is_rounded_up() -> None:
    assert "a factor of 1.01 " in g.PureDP(epsilon=Fraction("0.0049")).explain()
    assert "a factor of 1.29 " in g.PureDP(epsilon=Fraction("0.25")).explain()
    assert "a factor of 2,990 " in g.PureDP(epsilon=Fraction(8)).explain()
    assert "a factor of 2.69e+43 " in g.PureDP(epsilon=Fraction(100)).explain()
