from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloister.core.random import SystemRandomSource, integers_below
from cloister.errors import (
    MissingBoundsError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
    UnknownColumnError,
)
from cloister.local import Bins, LocalCategoricalNaiveBayes
from cloister.local.naive_bayes._joint_tables import class_tables, feature_tables
from cloister.local.naive_bayes._model import NOTHING_TOLD
from tests.local.collection.spread import assert_scatters
from tests.support.thoroughness import audited

FEATURES = {"smokes": ["no", "yes"], "age": ["young", "medium", "old"]}
CLASSES = ["well", "ill"]
PEOPLE = 4000


def model(epsilon: object = 2, **options: Any) -> LocalCategoricalNaiveBayes:
    return LocalCategoricalNaiveBayes(features=FEATURES, classes=CLASSES, epsilon=epsilon, **options)


def people(count: int = PEOPLE) -> tuple[dict[str, list[str]], list[str]]:
    """Ill people smoke and are old more often."""
    source = SystemRandomSource()
    ill = integers_below(source, 10, count) < 4
    smokes = integers_below(source, 10, count) < np.where(ill, 8, 2)
    age = np.minimum(integers_below(source, 4, count), 2 - ill) + ill
    rows = {
        "smokes": np.array(FEATURES["smokes"])[smokes.astype(int)].tolist(),
        "age": np.array(FEATURES["age"])[age].tolist(),
    }
    return rows, np.array(CLASSES)[ill.astype(int)].tolist()


def direct_conditionals(rows: dict[str, list[str]], labels: list[str]) -> dict[str, np.ndarray[Any, Any]]:
    frame = pd.DataFrame({**rows, "class": labels})
    return {
        name: pd.crosstab(frame[name], frame["class"], normalize="columns").loc[values, CLASSES].to_numpy()
        for name, values in FEATURES.items()
    }


@pytest.mark.parametrize("estimator", ["posterior", "projected"])
@pytest.mark.parametrize("questions", ["auto", "single"])
def test_with_a_large_epsilon_the_probabilities_are_those_of_the_rows(estimator: str, questions: str) -> None:
    rows, labels = people(60_000)
    learned = model(20, estimator=estimator, questions=questions)
    learned.fit(learned.randomize(rows, labels))
    for name, wanted in direct_conditionals(rows, labels).items():
        assert learned.conditionals_[name] == pytest.approx(wanted, abs=0.05)
    assert learned.class_prior_ == pytest.approx([0.6, 0.4], abs=0.03)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("epsilon", "options"),
    audited(
        [(1, {"questions": "single"}), (5, {}), (1, {"legacy_all_columns": True})],
        but=[(1, {"questions": "single"}), (5, {})],
    ),
)
def test_tables_are_unbiased_and_scatter_as_their_variance_says(epsilon: int, options: dict[str, Any]) -> None:
    asked = LocalCategoricalNaiveBayes(features={"a": 2, "b": 2}, classes=2, epsilon=epsilon, **options)
    values, labels = np.array([0, 0, 1, 1] * 100), np.array([0, 1, 0, 1] * 100)
    rows = {"a": values, "b": values}
    deviations = []
    for _ in range(8000):
        reports = asked.randomize(rows, labels)
        table = feature_tables(reports, [2, 2], np.array([0.5, 0.5]))[1]
        support = table.low + table.gain / 4
        truly = support * (1 - support) - table.gain**2 * (1 / 4) * (3 / 4) * (len(reports.rows[-1]) == 400)
        deviations.append((table.shares[0, 0] - 0.25) / np.sqrt(truly / table.gain**2 / table.reports))
    assert_scatters(deviations, 1.0)


@pytest.mark.slow
@pytest.mark.statistical
def test_tables_from_bits_are_unbiased_and_scatter_as_their_variance_says() -> None:
    asked = LocalCategoricalNaiveBayes(features={"a": 2}, classes=2, epsilon=1)
    rows, labels = {"a": np.array([0, 0, 0, 1] * 100)}, np.array([0, 0, 1, 1] * 100)
    cells, variances = [], []
    for _ in range(8000):
        table = feature_tables(asked.randomize(rows, labels), [2], np.array([0.5, 0.5]))[0]
        cells.append(table.shares[0, 0] - 0.5)
        variances.append(table.variance)
    # Contrasts of the feature are 1/2 and of its agreement 1/2, whose squares, twice 1/4, are no part of the noise.
    told = asked.design.questions[1].protocol.likelihood_ratio
    gain = float((told - 1) / (told + 1))
    assert_scatters(cells, np.sqrt(np.mean(variances) * (1 - gain**2 / 4)))


def test_class_shares_come_from_every_report() -> None:
    learned = model(2)
    reports = learned.randomize(*people())
    assert sum(table.reports for table in class_tables(reports)) == PEOPLE
    alone = class_tables(reports, alone=True)
    assert [len(table.counts) for table in alone] == [1]
    assert alone[0].reports < PEOPLE / 2
    separate = model(2, pooled_prior=False).fit(reports).class_prior_
    assert separate != pytest.approx(learned.fit(reports).class_prior_, abs=1e-12)


def test_predictions_beat_the_larger_class() -> None:
    learned = model(2)
    learned.fit(learned.randomize(*people(20_000)))
    rows, labels = people(5000)
    assert learned.score(rows, labels) > 0.75
    probabilities = learned.predict_proba(rows)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(5000))
    assert (learned.predict(rows) == np.array(CLASSES)[probabilities.argmax(axis=1)]).all()
    assert (learned.predict(rows) == np.array(labels)).mean() == pytest.approx(learned.score(rows, labels))


def test_rows_may_be_frames_tables_mappings_or_arrays() -> None:
    learned = model(2)
    rows, labels = people(300)
    learned.fit(learned.randomize(rows, labels))
    frame = pd.DataFrame(rows)
    wanted = learned.predict(rows).tolist()
    for other in (frame, pa.table(rows), frame.to_numpy(), frame.to_numpy().tolist()):
        assert learned.predict(other).tolist() == wanted
        assert len(learned.randomize(other, labels)) == 300


def test_numbers_are_put_into_public_bins() -> None:
    learned = LocalCategoricalNaiveBayes(
        features={"age": Bins.equal_width((0, 100), count=4)}, classes=CLASSES, epsilon=4
    )
    ages = [20, 30, 60, 80] * 1000
    learned.fit(learned.randomize({"age": ages}, ["well", "well", "ill", "ill"] * 1000))
    assert learned.predict({"age": [10, 45, 55, 1000]}).tolist() == ["well", "well", "ill", "ill"]


def test_a_few_reports_are_enough_to_answer_something() -> None:
    learned = model(1)
    for _ in range(50):
        learned.fit(learned.report({"smokes": "yes", "age": "old"}, "ill"))
        assert learned.predict_proba({"smokes": ["no"], "age": ["old"]}).sum() == pytest.approx(1)


def test_all_columns_learn_well_but_cost_more() -> None:
    asked = model(1, legacy_all_columns=True)
    rows, labels = people(20_000)  # the score is 0.83 then, with a standard deviation of 0.005
    learned = asked.fit(asked.randomize(rows, labels))
    assert learned.reports_ == 20_000 * (2 * 2 + 1)
    assert learned.guarantee_.epsilon == 5
    assert learned.score(rows, labels) > 0.75


def test_values_and_labels_that_are_not_declared_are_refused_and_not_quoted() -> None:
    learned = model()
    good = {"smokes": "no", "age": "old"}
    for bad in ({"smokes": "secret"}, {"smokes": None}, {"age": float("nan")}):
        with pytest.raises(OutsideDomainError, match="no answer") as caught:
            learned.report({**good, **bad}, "well")
        assert "secret" not in str(caught.value)
    for label in ("secret", None):
        with pytest.raises(OutsideDomainError, match="classes=") as caught:
            learned.report(good, label)
        assert "secret" not in str(caught.value)
    learned.fit(learned.randomize(*people(100)))
    with pytest.raises(OutsideDomainError, match="no answer"):
        learned.predict({"smokes": ["secret"], "age": ["old"]})


def test_rows_of_the_wrong_form_are_refused() -> None:
    learned = model()
    with pytest.raises(UnknownColumnError, match='"age"'):
        learned.report({"smokes": "no"}, "well")
    with pytest.raises(ParameterError, match="one value per person"):
        learned.randomize({"smokes": ["no"], "age": ["old", "old"]}, ["well"])
    with pytest.raises(ParameterError, match="one label for each row"):
        learned.randomize({"smokes": ["no"], "age": ["old"]}, ["well", "ill"])
    with pytest.raises(ParameterTypeError, match="one value for each feature"):
        learned.randomize([["no"]], ["well"])
    for row in ("no", ["no"], 7):
        with pytest.raises(ParameterTypeError, match="values in this order"):
            learned.report(row, "well")


def test_parameters_are_checked() -> None:
    with pytest.raises(ParameterTypeError, match="features="):
        LocalCategoricalNaiveBayes(features={}, classes=2, epsilon=1).randomize([], [])
    with pytest.raises(MissingBoundsError, match="domain="):
        LocalCategoricalNaiveBayes(features={"a": None}, classes=2, epsilon=1).report([0], 0)
    undecided = model(estimator="best")
    with pytest.raises(ParameterError, match="use one of posterior, projected"):
        undecided.fit(undecided.randomize(*people(10)))
    with pytest.raises(ParameterError, match="epsilon"):
        model(0).randomize(*people(10))
    with pytest.raises(ParameterError, match="fit"):
        model().predict({"smokes": ["no"], "age": ["old"]})


def test_the_guarantee_says_what_is_public() -> None:
    explained = model(2).design.guarantee.explain()
    assert "epsilon = 2" in explained
    assert "not read from the people who are asked" in explained


@pytest.mark.parametrize("values", [["only"], 1, [], ["a", "a"]])
def test_a_feature_that_cannot_be_asked_is_named_when_the_model_is_made(values: Any) -> None:
    with pytest.raises(ParameterError, match='Feature "smokes"'):
        LocalCategoricalNaiveBayes(features={"age": 3, "smokes": values}, classes=CLASSES, epsilon=1)
    with pytest.raises(MissingBoundsError, match='Feature "smokes"'):
        LocalCategoricalNaiveBayes(features={"smokes": None}, classes=CLASSES, epsilon=1)
    with pytest.raises(ParameterError, match="epsilon"):
        model(-1)


def test_rows_in_place_of_reports_are_told_apart() -> None:
    rows, labels = people(10)
    learner = model()
    for given in ((rows, labels), (pd.DataFrame(rows), labels), (pd.DataFrame(rows),), (np.zeros((3, 2)),)):
        with pytest.raises(ParameterTypeError, match="fit takes reports") as caught:
            learner.fit(*given)
        assert "randomize" in caught.value.fix


def test_a_model_shows_its_promise_before_and_after() -> None:
    learner = model()
    assert repr(learner) == ("LocalCategoricalNaiveBayes(2 features; well, ill; epsilon = 2 per person; not fitted)")
    assert learner.guarantee == learner.design.guarantee
    learner.fit(learner.randomize(*people(1000)))
    assert learner.guarantee == learner.guarantee_
    assert repr(learner).endswith("learned from 1,000 reports)")


@pytest.mark.statistical
def test_a_model_that_tells_nothing_says_so_and_another_does_not() -> None:
    rows, labels = people(20_000)
    learner = model()
    assert learner.fit(learner.randomize(rows, labels)).notes_ == ()
    # Every combination is as frequent in both classes, so that a fit tells something by chance in one of 100 cases.
    combinations = [
        (smokes, age, label) for smokes in FEATURES["smokes"] for age in FEATURES["age"] for label in CLASSES
    ]
    *columns, labels = (list(column) for column in zip(*combinations * 1600, strict=True))
    rows = dict(zip(FEATURES, columns, strict=True))
    unrelated = [learner.fit(learner.randomize(rows, labels)).notes_ for _ in range(8)]
    assert (NOTHING_TOLD,) in unrelated
