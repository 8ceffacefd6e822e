from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.naive_bayes import CategoricalNB

from cloister.accounting.budget import Budget
from cloister.accounting.events import DiscreteLaplaceEvent, GaussianEvent
from cloister.accounting.ledger import open_ledger
from cloister.core import postprocessing
from cloister.core.random import SystemRandomSource, integers_below
from cloister.errors import BudgetExceededError, CloisterError, DataWarning, OutsideDomainError
from cloister.learn import PrivateCategoricalNB
from cloister.learn.naive_bayes import class_counts, correct_counts, log_probabilities, shares
from cloister.mechanisms.step_noise import GaussianSteps, LaplaceSteps
from cloister.testing import SAMPLES, all_neighbors, audit, check_scale
from cloister.testing.distributions import discrete_gaussian, discrete_laplace
from cloister.testing.statistics import fit as fitted
from tests.learn.quiet_naive_bayes import exact_vector, without_noise

Numbers = NDArray[Any]


def model_of(**options: Any) -> PrivateCategoricalNB:
    settings = {"domain": [["a", "b"], 3], "classes": [0, 1], **options}
    return PrivateCategoricalNB(**settings)


def draw_codes(rows: int, sizes: tuple[int, ...]) -> Numbers:
    source = SystemRandomSource()
    return np.stack([integers_below(source, size, rows) for size in sizes], axis=1)


# Sensitivity ---------------------------------------------------------------------------------------------------------


def _small_rows() -> list[tuple[Any, ...]]:
    """Every row: a text (declared or not), a number (in two bins, outside or missing), and a class."""
    return [(text, number, label) for text in ("a", "b", "z") for number in (-5.0, 7.5, None) for label in (0, 1)]


def _vectors(adjacency: str) -> tuple[int, int]:
    """Return how far the vectors of all small neighbors are apart: in L1 and in squared L2."""
    vectors: dict[Any, Numbers] = {}

    def vector(rows: tuple[Any, ...]) -> Numbers:
        if rows not in vectors:
            model = PrivateCategoricalNB(
                domain={"x0": ["a", "b"]}, bounds={"x1": (0, 10)}, bins=2, classes=[0, 1], adjacency=adjacency
            )
            table = np.array([row[:2] for row in rows], dtype=object)
            vectors[rows] = exact_vector(model, table, [row[2] for row in rows])
        return vectors[rows]

    furthest = squared = 0
    options = {"min_rows": 1 if adjacency == "add_remove" else 2, "max_rows": 2}
    for left, right in all_neighbors(_small_rows(), adjacency=adjacency, **options):  # type: ignore[arg-type]
        change = vector(left) - vector(right)
        furthest = max(furthest, int(np.abs(change).sum()))
        squared = max(squared, int((change**2).sum()))
    return furthest, squared


@pytest.mark.filterwarnings("ignore::cloister.errors.DataWarning")
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_neighbors_differ_by_the_declared_sensitivity_and_no_more(adjacency: str) -> None:
    furthest, squared = _vectors(adjacency)
    rows = 2 if adjacency == "replace" else 1
    assert furthest == 2 * rows
    assert squared == 2 * rows
    model = model_of(epsilon="0.5", adjacency=adjacency).fit([["a", 1]], [0])
    event = model.steps_[0].event
    assert isinstance(event, DiscreteLaplaceEvent)
    # The privacy loss is the L1 distance over the scale: exactly epsilon.
    assert furthest / event.scale == Fraction(1, 2)


def test_m4_the_scale_grows_with_the_number_of_features() -> None:
    for features in (1, 3, 8):
        event = (
            PrivateCategoricalNB(domain=[2] * features, classes=[0, 1], epsilon="0.1")
            .fit(np.zeros((2, features), dtype=int), [0, 1])
            .steps_[0]
            .event
        )
        assert isinstance(event, DiscreteLaplaceEvent)
        assert (event.sensitivity, event.scale) == (features, features * 10)


def test_with_a_delta_the_smaller_noise_is_taken() -> None:
    few, many = (
        PrivateCategoricalNB(domain=[2] * features, classes=[0, 1], delta=1e-5)
        .fit(np.zeros((2, features), dtype=int), [0, 1])
        .steps_[0]
        .event
        for features in (2, 12)
    )
    assert isinstance(few, DiscreteLaplaceEvent)
    assert isinstance(many, GaussianEvent)
    assert 3.7**2 < many.squared_multiplier < 3.8**2  # analytic Gaussian at (1, 1e-5)


# Noise ---------------------------------------------------------------------------------------------------------------


def _noise_of(features: int, **options: Any) -> Numbers:
    """Return the noise on about 50,000 counts of one model."""
    size = -(-SAMPLES // (2 * features))
    model = PrivateCategoricalNB(domain=[size] * features, classes=[0, 1], correction="none", **options)
    X, y = draw_codes(20, (size,) * features), np.arange(20) % 2
    exactly = exact_vector(clone(model), X, y)
    return (model.fit(X, y).released_counts_ - exactly).ravel()[:SAMPLES]  # type: ignore[no-any-return]


@pytest.mark.statistical
@pytest.mark.parametrize(("adjacency", "scale"), [("add_remove", 8), ("replace", 16)])
def test_laplace_noise_has_its_scale(adjacency: str, scale: float) -> None:
    sample = _noise_of(4, epsilon="0.5", adjacency=adjacency)
    check_scale(lambda _: sample, discrete_laplace, scale=scale)
    assert fitted(sample, discrete_laplace(2)).p_value < 1e-9  # noise of 1 / epsilon on each count


@pytest.mark.statistical
def test_gaussian_noise_has_its_scale() -> None:
    sample = _noise_of(12, delta=1e-5)
    noise = PrivateCategoricalNB(delta=1e-5)._calibration().gaussian(Fraction(1), squared_sensitivity=12)
    assert noise.squared_sigma >= 12 * PrivateCategoricalNB(delta=1e-5)._calibration().squared_multiplier
    # The law is that of the finer lattice on which the noise is drawn.
    check_scale(lambda _: sample * noise.refinement, discrete_gaussian, scale=noise.deviation * noise.refinement)


@pytest.mark.statistical
def test_an_audit_refutes_half_the_noise_and_not_the_noise_itself() -> None:
    table = np.array([["a", 0]] * 3, dtype=object)
    larger, smaller = (exact_vector(model_of(), table[:rows], [0] * rows).ravel() for rows in (3, 2))
    noise = model_of()._calibration().laplace(Fraction(1), sensitivity=2)
    changed = np.flatnonzero(larger != smaller)

    def release(vector: Numbers, size: int, *, with_noise: LaplaceSteps = noise) -> Numbers:
        noisy = with_noise.add(np.tile(vector, (size, 1)), SystemRandomSource())
        return noisy[:, changed].sum(axis=1)  # type: ignore[no-any-return]

    audit(release, (larger, smaller), epsilon=1).verify()
    half = LaplaceSteps(1, Fraction(1))
    report = audit(lambda vector, size: release(vector, size, with_noise=half), (larger, smaller), epsilon=1)
    with pytest.raises(CloisterError):
        report.verify()


# Corrections ---------------------------------------------------------------------------------------------------------


def test_corrections_by_hand() -> None:
    noisy, noise = np.array([[60.0, -3.0], [0.5, 39.5]]), LaplaceSteps(1, Fraction(1, 5))
    assert (
        correct_counts(noisy, noise, "none").tolist()
        == correct_counts(noisy, noise, "ml").tolist()
        == [[60, 0], [0.5, 39.5]]
    )
    ratio = math.exp(-1 / 5)  # of the discrete Laplace law of scale 5, a little less spread than the continuous one
    variance = 2 * ratio / (1 - ratio) ** 2
    less = variance / 25
    assert correct_counts(noisy, noise, "empirical_bayes") == pytest.approx(
        np.array([[60 - less, 0], [0, 39.5 - less]])
    )
    exactly = postprocessing.laplace_posterior_mean(np.array([60.0, 0, 0.5, 39.5]), scale=5.0, prior=4 / 100)
    assert correct_counts(noisy, noise, "empirical_bayes_exact").ravel() == pytest.approx(exactly)
    factor = 1 - variance * 2 / (60**2 + 0.5**2 + 39.5**2)
    assert correct_counts(noisy, noise, "james_stein") == pytest.approx(factor * np.array([[60, 0], [0.5, 39.5]]))


def test_corrections_of_gaussian_noise_use_its_variance() -> None:
    noisy, noise = (
        np.array([[60.0, -3.0], [0.5, 39.5]]),
        GaussianSteps(Fraction(50), GaussianEvent.__new__(GaussianEvent)),
    )
    assert correct_counts(noisy, noise, "empirical_bayes") == pytest.approx(np.array([[58, 0], [0, 37.5]]))
    exactly = correct_counts(noisy, noise, "empirical_bayes_exact")
    assert exactly[0, 0] == pytest.approx(58, abs=1e-6)
    assert (exactly >= 0).all()


def test_ml_04_m5_james_stein_leaves_predictions_as_they_are() -> None:
    sizes = (4, 3, 5)
    X, y = draw_codes(300, sizes), np.arange(300) % 3
    with pytest.warns(UserWarning, match="nothing made with it is private|seed"):
        plain, shrunk = (
            PrivateCategoricalNB(
                domain=list(sizes), classes=[0, 1, 2], epsilon=0.05, correction=way, random_state=7
            ).fit(X, y)
            for way in ("none", "james_stein")
        )
    assert (plain.released_counts_ == shrunk.released_counts_).all()
    assert (shrunk.corrected_counts_ < plain.corrected_counts_).any()
    assert (plain.predict_log_proba(X) == shrunk.predict_log_proba(X)).all()
    assert (plain.predict(X) == shrunk.predict(X)).all()


def test_without_noise_it_is_scikit_learns_model() -> None:
    sizes = (4, 3, 5)
    X, y = draw_codes(500, sizes), np.arange(500) % 3
    with without_noise():
        ours = PrivateCategoricalNB(domain=list(sizes), classes=[0, 1, 2], correction="none").fit(X, y)
    theirs = CategoricalNB(min_categories=list(sizes)).fit(X, y)
    for mine, other in zip(ours.feature_log_prob_, theirs.feature_log_prob_, strict=True):
        assert mine == pytest.approx(other)
    for mine, other in zip(ours.category_count_, theirs.category_count_, strict=True):
        assert (mine == other).all()
    assert ours.class_count_ == pytest.approx(theirs.class_count_)
    assert ours.predict_log_proba(X) == pytest.approx(theirs.predict_log_proba(X))


@pytest.mark.statistical
@pytest.mark.parametrize("correction", ["empirical_bayes", "empirical_bayes_exact"])
def test_corrections_help_where_noise_is_large(correction: str) -> None:
    source, runs, noise = SystemRandomSource(), 2000, LaplaceSteps(8, Fraction(1, 4))
    if correction == "empirical_bayes":  # a few large counts among empty ones
        truth = np.tile(np.array([[0] * 25 + [1000] * 5] * 2), (runs, 1, 1))
    else:  # what the prior expects
        truth = np.abs(LaplaceSteps(1, Fraction(1, 40)).add(np.zeros((runs, 2, 30), dtype=np.int64), source))
    noisy = noise.add(truth, source).astype(np.float64)
    plain, better = (
        ((correct_counts(noisy, noise, way) - truth) ** 2).sum(axis=(1, 2)) for way in ("none", correction)
    )
    gain = plain - better
    assert gain.mean() > 6.2 * gain.std() / runs**0.5


def test_nothing_at_all_is_uniform() -> None:
    nothing, sizes = np.zeros((2, 5)), (2, 3)
    assert shares(class_counts(nothing, sizes)).tolist() == [0.5, 0.5]
    for alpha in (0.0, 1.0):
        found = np.exp(log_probabilities(nothing, sizes, alpha=alpha))
        assert found == pytest.approx(np.array([[1 / 2] * 2 + [1 / 3] * 3] * 2))


def test_many_models_at_once_are_those_one_by_one() -> None:
    sizes, noise = (2, 3), LaplaceSteps(2, Fraction(1, 3))
    noisy = noise.add(np.full((7, 3, 5), 10), SystemRandomSource()).astype(np.float64)
    for way in ("none", "empirical_bayes", "empirical_bayes_exact", "james_stein"):
        together = correct_counts(noisy, noise, way)
        for one, single in zip(together, noisy, strict=True):
            alone = correct_counts(single, noise, way)
            assert (one == alone).all()
        assert class_counts(together, sizes).shape == (7, 3)
        assert log_probabilities(together, sizes, alpha=1.0)[3] == pytest.approx(
            log_probabilities(together[3], sizes, alpha=1.0)
        )


# Predicting ----------------------------------------------------------------------------------------------------------


def test_unknown_values_are_taken_as_equally_likely() -> None:
    with without_noise():
        model = model_of(correction="none").fit(np.array([["a", 0], ["b", 2], ["b", 2]], dtype=object), [0, 1, 1])
    unknown = model.predict_proba(np.array([["z", 9], [None, None]], dtype=object))
    assert unknown == pytest.approx(np.array([model.class_prior_] * 2))


@pytest.mark.filterwarnings("ignore::cloister.errors.DataWarning")
def test_unknown_values_are_in_no_count() -> None:
    table = np.array([["a", 0], ["z", 1], [None, 2], ["b", 9]], dtype=object)
    assert exact_vector(model_of(), table, [0, 0, 1, 1]).tolist() == [[1, 0, 1, 1, 0], [0, 1, 0, 0, 1]]


def test_numbers_outside_of_the_edges_are_in_the_outer_bins_and_said() -> None:
    model = PrivateCategoricalNB(bins=[[0, 10, 20], 4], bounds={"x1": (0, 8)}, classes=[0, 1])
    with pytest.warns(DataWarning, match="clipped: 3"):
        vector = exact_vector(model, [[-1.0, 0], [0, 8], [10, 9], [21, 5]], [0, 0, 1, 1])
    assert vector.tolist() == [[2, 0, 1, 0, 0, 1], [0, 2, 0, 0, 1, 1]]
    assert model.encoding_.names[:2] == ("x0=[0, 10)", "x0=[10, 20)")


def test_it_learns() -> None:
    source = SystemRandomSource()
    y = integers_below(source, 2, 4000)
    X = np.where(integers_below(source, 4, 4000)[:, None] > 0, y[:, None], 1 - y[:, None])
    X = np.concatenate([X, integers_below(source, 3, 4000)[:, None]], axis=1)
    model = PrivateCategoricalNB(domain=[2, 3], classes=[0, 1], epsilon=1).fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.guarantee_.brief() == "epsilon = 1 per row"
    assert model.guarantee_.holds


# Paying and bad input ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::cloister.errors.DataWarning")
def test_a_fit_is_paid_for_each_time() -> None:
    ledger = open_ledger("memory:")
    ledger.open_account("clinic", budget=Budget(epsilon=2))
    model = model_of(ledger=ledger, dataset="clinic")
    for _ in range(2):
        model.fit([["a", 0]], [0])
    with pytest.raises(BudgetExceededError):
        model.fit([["a", 0]], [0])


@pytest.mark.parametrize(
    ("options", "X", "y", "fix"),
    [
        ({"domain": None}, [[0, 1]], [0], "domain="),
        ({"domain": [["a", "b"], 0]}, [["a", 1]], [0], "domain"),
        ({"domain": [["a", "b"]]}, [["a", 1]], [0], "for each column"),
        ({"domain": "ab"}, [["a", 1]], [0], "domain="),
        ({"domain": [[], 3]}, [["a", 1]], [0], "every category"),
        ({"classes": None}, [["a", 1]], [0], "classes="),
        ({"classes": [1]}, [["a", 1]], [1], "every class"),
        ({"correction": "magic"}, [["a", 1]], [0], "empirical_bayes"),
        ({"alpha": -1}, [["a", 1]], [0], "use alpha from 0"),
        ({"epsilon": 0}, [["a", 1]], [0], "epsilon"),
        ({"domain": [["a", "b"], None], "bins": [None, [3, 1]]}, [["a", 1]], [0], "the outer bins"),
        ({"domain": [["a", "b"], None], "bins": {"x1": [3]}}, [["a", 1]], [0], "the outer bins"),
        ({"domain": [["a", "b"], None], "bins": {"x1": ["low", "high"]}}, [["a", 1]], [0], "the outer bins"),
        ({"domain": [["a", "b"], None], "bins": {"x1": [0, np.inf]}}, [["a", 1]], [0], "the outer bins"),
        ({"domain": [["a", "b"], None], "bins": 0, "bounds": {"x1": (0, 1)}}, [["a", 1]], [0], "bins"),
        ({"domain": [["a", "b"], None], "bins": None, "bounds": {"x1": (0, 1)}}, [["a", 1]], [0], "bins=10"),
        ({"domain": [["a", "b"], None], "bins": "ten", "bounds": {"x1": (0, 1)}}, [["a", 1]], [0], "bins=10"),
        ({"domain": {"x0": ["a", "b"]}, "bounds": {"x1": (0, 1)}}, [["a", "b"]], [0], "mend the data"),
        ({}, [["a", 1]], None, "fit\\(X, y\\)"),
        ({}, [["a", 1]], [0, 1], "for each row"),
    ],
)
def test_bad_input_is_refused_with_a_fix(options: dict[str, Any], X: Any, y: Any, fix: str) -> None:
    ledger = open_ledger("memory:")
    ledger.open_account("clinic", budget=Budget(epsilon=2))
    with pytest.raises(CloisterError, match=fix):
        model_of(ledger=ledger, dataset="clinic", **options).fit(np.array(X, dtype=object), y)
    assert ledger.spent("clinic").epsilon == 0


def test_labels_outside_of_the_classes_are_refused() -> None:
    with pytest.raises(OutsideDomainError, match="classes=") as caught:
        model_of().fit(np.array([["a", 0]], dtype=object), [77])
    assert "77" not in str(caught.value)


def test_defaults_are_safe() -> None:
    model = model_of().fit(np.array([["a", 0]], dtype=object), [0])
    assert (model.random_state, model.correction) == (None, "empirical_bayes")
    assert model.guarantee_.holds
