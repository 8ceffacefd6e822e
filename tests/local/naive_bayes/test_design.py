from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.core import exact
from cloister.core.guarantees import SEEDED_RANDOMNESS
from cloister.core.random import SeededRandomSource
from cloister.errors import ForeignReportError, MalformedReportError, TooFewReportsError
from cloister.local import LocalCategoricalNaiveBayes, LocalGaussianNaiveBayes
from cloister.local.draws import law_of
from cloister.local.naive_bayes._design import QuestionDesign
from cloister.local.naive_bayes.features import LabeledPeople
from cloister.testing.local_laws import worst_ratio

FEATURES = {"smokes": ["no", "yes"], "age": ["young", "medium", "old"]}
ROWS = {"smokes": ["no", "yes", "yes", "no"] * 50, "age": ["young", "medium", "old", "old"] * 50}
LABELS = ["well", "ill", "ill", "well"] * 50


def categorical(epsilon: object = 1, **options: Any) -> LocalCategoricalNaiveBayes:
    return LocalCategoricalNaiveBayes(features=FEATURES, classes=["well", "ill"], epsilon=epsilon, **options)


def laws_of(design: QuestionDesign, sizes: tuple[int, ...], classes: int) -> list[dict[bytes, Fraction]]:
    """The exact law of everything that one person sends, for every person."""

    def law(person: tuple[int, ...]) -> dict[bytes, Fraction]:
        *features, label = person
        people = LabeledPeople(tuple(np.array([value]) for value in features), np.array([label]))
        return law_of(lambda draws: b"|".join(rows.tobytes() for rows in design.answer(people, draws)))

    return [law(person) for person in itertools.product(*map(range, sizes), range(classes))]


@pytest.mark.parametrize("protocol", ["auto", "direct_encoding", "optimized_unary_encoding"])
@pytest.mark.parametrize("epsilon", ["1/2", "5"])
def test_everything_that_a_person_sends_has_exactly_the_epsilon_asked_for(protocol: str, epsilon: str) -> None:
    model = categorical(epsilon, protocol=protocol)
    laws = laws_of(model.design, (2, 3), 2)
    worst = worst_ratio(laws)
    assert all(sum(law.values()) == 1 for law in laws)
    assert worst is not None
    low, high = exact.log_bounds(worst)
    assert low <= Fraction(epsilon)
    assert high >= Fraction(epsilon) - Fraction(1, 10**9)
    assert model.design.guarantee.epsilon == Fraction(epsilon)
    assert model.design.guarantee.unit == "person"


def test_reporting_all_columns_costs_what_the_guarantee_says_and_no_less() -> None:
    model = LocalCategoricalNaiveBayes(
        features={"smokes": 2}, classes=2, epsilon=1, protocol="direct_encoding", legacy_all_columns=True
    )
    worst = worst_ratio(laws_of(model.design, (2,), 2))
    assert worst is not None
    assert model.design.guarantee.epsilon == 3
    assert 3 - 1e-8 <= float(exact.log_bounds(worst)[1]) <= 3 + 1e-20


@pytest.mark.parametrize("features", [1, 2, 7])
def test_all_columns_are_charged_for_two_answers_per_feature_and_the_class(features: int) -> None:
    model = LocalCategoricalNaiveBayes(
        features=dict.fromkeys("abcdefg"[:features], 3), classes=4, epsilon="1/2", legacy_all_columns=True
    )
    assert model.design.guarantee.epsilon == Fraction(2 * features + 1, 2)
    assert "costs 0.5" in model.design.guarantee.explain()
    assert len(model.report([0] * features, 1)) == 4 * features + 1


def test_the_public_coin_does_not_look_at_the_person() -> None:
    design = categorical(questions="single").design

    def question(label: int) -> dict[int, Fraction]:
        people = LabeledPeople((np.array([1]), np.array([2])), np.array([label]))
        return law_of(lambda draws: [len(rows) for rows in design.answer(people, draws)].index(1))

    assert question(0) == question(1) == {0: Fraction(1, 3), 1: Fraction(1, 3), 2: Fraction(1, 3)}


def test_one_report_per_person() -> None:
    model = categorical()
    assert len(model.randomize(ROWS, LABELS)) == 200
    assert len(model.report({"smokes": "yes", "age": "old"}, "ill")) == 1


@pytest.mark.parametrize(
    "model",
    [
        categorical(),
        categorical(10),
        categorical(legacy_all_columns=True),
        LocalGaussianNaiveBayes(bounds={"smokes": (0, 1), "age": (0, 9)}, classes=["well", "ill"], epsilon=1),
        LocalGaussianNaiveBayes(
            bounds={"smokes": (0, 1), "age": (0, 9)}, classes=["well", "ill"], epsilon=1, way="value"
        ),
        LocalGaussianNaiveBayes(
            bounds={"smokes": (0, 1), "age": (0, 9)}, classes=["well", "ill"], epsilon=1, way="vector"
        ),
    ],
    ids=["one feature", "joint", "all columns", "bit", "value", "vector"],
)
def test_json_gives_back_the_reports(model: Any) -> None:
    rows = ROWS if isinstance(model, LocalCategoricalNaiveBayes) else {"smokes": [0, 1] * 100, "age": [3, 4] * 100}
    reports = model.randomize(rows, LABELS)
    again = model.design.read(reports.to_json_lines())
    assert all((ours == theirs).all() for ours, theirs in zip(again.rows, reports.rows, strict=True))
    assert json.loads(json.dumps(model.design.to_dict()))["fingerprint"] == model.design.fingerprint
    single = model.design.read(reports.to_dicts()[0])
    assert len(single) == 1


def test_reports_of_devices_add_up() -> None:
    model = categorical()
    parts = [model.report({"smokes": "no", "age": "old"}, "well") for _ in range(30)]
    assert len(model.design.read(parts)) == 30
    assert len(parts[0] + parts[1]) == 2
    assert model.fit(parts).reports_ == 30


def test_seeded_reports_break_the_promise() -> None:
    model = categorical()
    reports = model.randomize(ROWS, LABELS, random_state=SeededRandomSource(1))
    assert SEEDED_RANDOMNESS in reports.guarantee.caveats
    assert not model.fit(reports).guarantee_.holds
    assert model.fit(model.randomize(ROWS, LABELS)).guarantee_.holds


def test_reports_of_another_design_are_refused() -> None:
    model = categorical()
    reports = model.randomize(ROWS, LABELS)
    for other in (
        categorical(2),
        categorical(protocol="optimized_unary_encoding"),
        categorical(legacy_all_columns=True),
    ):
        with pytest.raises(ForeignReportError, match="the very model"):
            other.fit(reports)
        with pytest.raises(ForeignReportError, match="the very model"):
            other.fit(reports.to_json_lines())
        with pytest.raises(ForeignReportError, match="the very model"):
            reports + other.randomize(ROWS, LABELS)


def test_malformed_reports_are_refused() -> None:
    model = categorical()
    good = model.randomize(ROWS, LABELS).to_dicts()[0]
    bad: list[Any] = [
        {**good, "question": 99},
        {**good, "question": True},
        {**good, "question": "0"},
        {**good, "report": "no"},
        {**good, "report": {**good["report"], "y": 10**6}},
        {key: value for key, value in good.items() if key != "report"},
        "{",
        "[" * 5000,
        "x" * (2**20 + 1),
        7,
    ]
    for item in bad:
        with pytest.raises(MalformedReportError):
            model.fit([item])
    with pytest.raises(MalformedReportError):
        model.fit(7)
    with pytest.raises(MalformedReportError, match="nothing beside it"):
        model.fit([{**good, "label": "somebody's class"}])


def test_nothing_is_learned_from_no_reports() -> None:
    with pytest.raises(TooFewReportsError, match="collect more"):
        categorical().fit([])
    with pytest.raises(TooFewReportsError, match="collect more"):
        categorical().fit("")


def test_representations_show_no_answers() -> None:
    model = categorical()
    reports = model.randomize(ROWS, LABELS)
    assert repr(reports) == "DesignReports(200 of Design(4 questions, epsilon = 1 per person))"
