from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

import cloister as cl
from cloister.core.guarantees import NoGuarantee, guarantee_from_dict
from cloister.core.random import SeededRandomSource
from cloister.errors import (
    CloisterError,
    ParameterError,
    ParameterTypeError,
    PrivacyParameterWarning,
    SeededRandomnessWarning,
)
from cloister.learn.catalog import load_all
from cloister.learn.compressive._attackers import reconstruction_error
from cloister.learn.compressive._base import projections
from cloister.learn.compressive._scatter_ratios import between_scatter, total_scatter, within_scatter
from tests.learn.compressive import worked

ALL = [
    cl.learn.PrincipalComponents(n_components=1),
    cl.learn.DiscriminantComponents(rho=1),
    cl.learn.DiscriminantComponents(rho=1, rho_prime=0.5, n_components=1),
    cl.learn.LinearDiscriminants(rho=1),
    cl.learn.MultiDiscriminantRatio(rho=1),
    cl.learn.UtilityCostRatio(rho=1),
    cl.learn.RandomProjection(n_components=1),
    cl.learn.KernelPrincipalComponents(n_components=1),
    cl.learn.KernelDiscriminantComponents(rho=1),
]
EVERY = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
DIGITS = {5: (23.03, 33.55, 33.57), 9: (18.36, 32.63, 32.64), 20: (11.00, 27.87, 30.84), 40: (3.48, 24.76, 27.11)}


def fitted(model: Any) -> Any:
    return clone(model).fit(worked.X, worked.UTILITY, privacy=worked.PRIVACY)


@EVERY
def test_nothing_is_ever_promised(model: Any) -> None:
    guarantee = fitted(model).guarantee_
    assert isinstance(guarantee, NoGuarantee)
    assert not guarantee.holds
    assert "not differential privacy" in guarantee.explain()
    assert guarantee_from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    assert "ot differentially private" in (type(model).__doc__ or "")


@EVERY
def test_learned_names_are_there_after_a_fit(model: Any) -> None:
    found = fitted(model)
    assert all(hasattr(found, name) for name in type(model).learned)
    assert len(set(type(model).learned)) == len(type(model).learned)


def test_projections_are_not_among_the_private_estimators() -> None:
    known = {member for _, member in load_all().items()}
    assert len(projections) == 8
    assert not known & {member for _, member in projections.items()}


@EVERY
def test_a_projection_repeats_itself_and_can_be_cloned(model: Any) -> None:
    if isinstance(model, cl.learn.RandomProjection):
        model = cl.learn.RandomProjection(n_components=1, random_state=SeededRandomSource(1))
        again: Any = cl.learn.RandomProjection(n_components=1, random_state=SeededRandomSource(1))
    else:
        again = clone(model)
    one, other = (item.fit(worked.X, worked.UTILITY, privacy=worked.PRIVACY) for item in (model, again))
    assert one.fingerprint() == other.fingerprint()
    assert one.transform(worked.X).shape == (4, 1)
    assert one.get_feature_names_out().tolist() == [f"{type(model).__name__.lower()}0"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        cl.learn.PrincipalComponents(n_components=1),
        cl.learn.DiscriminantComponents(),
        cl.learn.LinearDiscriminants(),
        cl.learn.RandomProjection(n_components=1),
        cl.learn.KernelPrincipalComponents(n_components=1),
        cl.learn.KernelDiscriminantComponents(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_checks_of_scikit_learn(model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(model)


# The worked example --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "eigenvalue"),
    [
        (cl.learn.DiscriminantComponents(rho=1), 4 / 5),
        (cl.learn.LinearDiscriminants(rho=1), 4),
        (cl.learn.MultiDiscriminantRatio(rho=1), 4),
        (cl.learn.DiscriminantComponents(rho=1, rho_prime=0.5), 5.5),
        (cl.learn.UtilityCostRatio(rho=1, privacy_weights=1), 0.8),
    ],
    ids=["DCA", "LDA", "MDR", "DCA with rho'", "RUCA"],
)
def test_the_worked_example(model: Any, eigenvalue: float) -> None:
    found = fitted(model)
    assert found.mean_.tolist() == [1, 1]
    assert found.eigenvalues_ == pytest.approx([eigenvalue], abs=1e-12)
    assert found.projection_.ravel() == pytest.approx([1, 0], abs=1e-12)
    assert found.transform(worked.X).ravel() == pytest.approx([-1, -1, 1, 1], abs=1e-12)
    assert found.class_prior_.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("rho_prime", "second"), [(0.5, 1.1), (-0.5, 0.9)])
def test_the_noise_subspace_of_the_worked_example(rho_prime: float, second: float) -> None:
    model = cl.learn.DiscriminantComponents(n_components=2, rho=1, rho_prime=rho_prime)
    with pytest.warns(PrivacyParameterWarning, match="completely"):
        model.fit(worked.X, worked.UTILITY)
    assert model.eigenvalues_ == pytest.approx([5 + rho_prime, second], abs=1e-12)
    assert model.projection_ == pytest.approx(np.eye(2), abs=1e-12)


def test_one_component_of_the_worked_example_tells_the_utility_and_nothing_of_privacy() -> None:
    z = fitted(cl.learn.DiscriminantComponents(rho=1)).transform(worked.X)
    assert (SVC().fit(z, worked.UTILITY).predict(z) == worked.UTILITY).all()
    assert (SVC().fit(z, worked.PRIVACY).predict(z) == worked.PRIVACY).mean() == 0.5


# What the methods do -------------------------------------------------------------------------------------------------


def test_the_error_of_principal_components_never_rises_and_is_zero_at_the_rank() -> None:
    rows = worked.normal(40, 5) @ worked.normal(5, 8) + 7
    errors = []
    for count in range(1, 6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyParameterWarning)
            model = cl.learn.PrincipalComponents(n_components=count).fit(rows)
        errors.append(reconstruction_error(rows, model.inverse_transform(model.transform(rows))))
    assert model.rank_ == 5
    assert (np.diff(errors) <= 1e-12).all()
    assert errors[-1] < 1e-9
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)


def test_principal_components_agree_with_power_iteration_and_deflation() -> None:
    rows = worked.normal(50, 4) * [4, 3, 2, 1]
    model = cl.learn.PrincipalComponents(n_components=2).fit(rows)
    scatter = total_scatter(rows)
    for place in range(2):
        vector = np.ones(4)
        for _ in range(3000):
            vector = scatter @ vector
            vector /= np.linalg.norm(vector)
        value = vector @ scatter @ vector
        assert value == pytest.approx(model.eigenvalues_[place], rel=1e-6)
        assert abs(vector @ model.projection_[:, place]) == pytest.approx(1, abs=1e-5)
        scatter = scatter - value * np.outer(vector, vector)


def test_discriminants_for_either_denominator_are_the_same_directions_without_rho() -> None:
    codes = np.arange(60) % 3
    rows = worked.normal(60, 5) + 2 * np.eye(5)[codes]
    one = cl.learn.DiscriminantComponents(rho=0).fit(rows, codes)
    other = cl.learn.LinearDiscriminants(rho=0).fit(rows, codes)
    assert one.projection_ == pytest.approx(other.projection_, abs=1e-7)
    assert one.eigenvalues_ == pytest.approx(other.eigenvalues_ / (1 + other.eigenvalues_), abs=1e-9)


def _three_features() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    utility, privacy = np.arange(4000) % 2, np.arange(4000) // 2 % 2
    rows = worked.normal(4000, 3) * 0.5
    rows[:, 0] += 2 * utility
    rows[:, 1] += 6 * privacy
    return rows, utility, privacy


def test_the_ratio_finds_the_feature_that_carries_the_utility_only() -> None:
    rows, utility, privacy = _three_features()
    for model in (cl.learn.MultiDiscriminantRatio(), cl.learn.DiscriminantComponents()):
        model.fit(rows, utility, privacy=privacy)
        assert abs(model.projection_[0, 0]) > 0.99
    assert cl.learn.MultiDiscriminantRatio().fit(rows, utility, privacy=privacy).association_ == pytest.approx(0)
    assert abs(cl.learn.PrincipalComponents(n_components=1).fit(rows).projection_[1, 0]) > 0.99


def test_without_privacy_weights_the_cost_ratio_is_that_of_discriminant_components() -> None:
    rows, utility, privacy = _three_features()
    one = cl.learn.UtilityCostRatio(privacy_weights=0).fit(rows, utility, privacy=privacy)
    other = cl.learn.DiscriminantComponents().fit(rows, utility)
    assert np.abs(one.projection_ - other.projection_).max() < 1e-9
    assert one.eigenvalues_ == pytest.approx(other.eigenvalues_, abs=1e-9)


def test_large_privacy_weights_lead_to_the_discriminant_ratio() -> None:
    rows, utility, privacy = _three_features()
    rows[:, 0] += privacy
    one = cl.learn.UtilityCostRatio(privacy_weights=1e6, rho=1e4).fit(rows, utility, privacy=privacy)
    other = cl.learn.MultiDiscriminantRatio().fit(rows, utility, privacy=privacy)
    assert abs(one.projection_[:, 0] @ other.projection_[:, 0]) > 0.999


def test_several_labels_with_weights() -> None:
    rows, utility, privacy = _three_features()
    model = cl.learn.UtilityCostRatio(utility_weights=[1, 1], privacy_weights=[2.0], rho=1)
    model.fit(rows, np.column_stack([utility, privacy]), privacy={"both": utility * 2 + privacy})
    assert model.projection_.shape == (3, 2)
    assert model.association_ == pytest.approx(1)


@pytest.mark.parametrize(("rho_prime", "larger"), [(-1, True), (1, False)])
def test_rho_prime_orders_the_noise_by_its_variance(rho_prime: float, *, larger: bool) -> None:
    codes = np.arange(3000) % 2
    rows = worked.normal(3000, 3) * [1, 5, 0.2] + 3 * np.outer(codes, [1, 0, 0])
    model = cl.learn.DiscriminantComponents(n_components=2, rho=1, rho_prime=rho_prime).fit(rows, codes)
    assert np.abs(model.projection_).argmax(axis=0).tolist() == [0, 1 if larger else 2]
    scatter = within_scatter(rows, codes)[1 if larger else 2, 1 if larger else 2]
    assert model.eigenvalues_[1] == pytest.approx(1 + rho_prime / (scatter + 1), rel=1e-2)


@pytest.mark.parametrize(
    "model",
    [
        cl.learn.PrincipalComponents(n_components=3),
        cl.learn.DiscriminantComponents(rho=2),
        cl.learn.LinearDiscriminants(rho=2),
        cl.learn.MultiDiscriminantRatio(rho=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_with_more_features_than_rows_the_solution_is_that_of_the_whole_problem(model: Any) -> None:
    from cloister.learn.compressive._scatter_ratios import solve_eigenproblem

    rows, codes, hidden = worked.normal(12, 30), np.arange(12) % 3, np.arange(12) // 3 % 2
    found = model.fit(rows, codes, privacy=hidden)
    unit, between = np.eye(30), between_scatter(rows, codes)
    pairs = {
        "PrincipalComponents": (total_scatter(rows), unit),
        "DiscriminantComponents": (between, total_scatter(rows) + 2 * unit),
        "LinearDiscriminants": (between, within_scatter(rows, codes) + 2 * unit),
        "MultiDiscriminantRatio": (between, between_scatter(rows, hidden) + 2 * unit),
    }
    values, vectors = solve_eigenproblem(*pairs[type(model).__name__], count=len(found.eigenvalues_))
    assert found.rank_ == 11
    assert found.eigenvalues_ == pytest.approx(values, rel=1e-8)
    assert found.projection_ == pytest.approx(vectors / np.linalg.norm(vectors, axis=0), abs=1e-6)


def test_scaling_is_part_of_the_model() -> None:
    rows = worked.normal(50, 3) * [100, 1, 1]
    model = cl.learn.PrincipalComponents(n_components=2, scale="standard").fit(rows)
    assert model.scale_ == pytest.approx(rows.std(axis=0))
    assert model.transform(rows) == pytest.approx((rows - model.mean_) @ model.matrix_)
    constant = cl.learn.PrincipalComponents(n_components=1, scale="standard").fit(rows * [1, 1, 0])
    assert constant.scale_[2] == 1


def test_a_projection_works_in_a_pipeline_and_with_data_frames() -> None:
    import pandas as pd

    frame = pd.DataFrame(worked.normal(30, 3), columns=["a", "b", "c"])
    pipe = make_pipeline(StandardScaler(), cl.learn.DiscriminantComponents()).set_output(transform="pandas")
    z = pipe.fit_transform(frame, ["yes", "no"] * 15)
    assert list(z.columns) == ["discriminantcomponents0"]


# Digits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", DIGITS)
def test_reconstruction_of_digits_from_fitted_rows(count: int) -> None:
    X, y = worked.digits()
    models = [
        cl.learn.PrincipalComponents(n_components=count),
        cl.learn.DiscriminantComponents(n_components=count, rho=10, rho_prime=-1),
        cl.learn.DiscriminantComponents(n_components=count, rho=10, rho_prime=1),
    ]
    errors = [reconstruction_error(X, model.inverse_transform(model.fit_transform(X, y))) for model in models]
    assert errors == pytest.approx(DIGITS[count], abs=0.011)
    assert errors[0] < errors[1] <= errors[2]


def test_all_components_of_digits_give_everything_away() -> None:
    X, y = worked.digits()
    for model in (
        cl.learn.PrincipalComponents(n_components=64),
        cl.learn.DiscriminantComponents(n_components=64, rho=10, rho_prime=1),
    ):
        with pytest.warns(PrivacyParameterWarning, match="completely"):
            model.fit(X, y)
        assert model.rank_ == 61
        assert reconstruction_error(X, model.inverse_transform(model.transform(X))) < 1e-6


def test_a_component_in_which_all_rows_agree_publishes_no_noise_of_the_arithmetic() -> None:
    X, y = worked.digits()
    rows, _ = worked.halves(len(X))
    X = X[rows] @ np.linalg.qr(worked.normal(64, 64))[0]
    z = cl.learn.DiscriminantComponents(n_components=12, rho=10, rho_prime=1).fit_transform(X, y[rows])
    same = z.std(axis=0) < 1e-6
    assert same.sum() == 3
    assert (z[:, same] == 0).all()


# Kernels -------------------------------------------------------------------------------------------------------------


def test_a_linear_kernel_is_no_kernel() -> None:
    rows, codes = worked.normal(40, 3), np.arange(40) % 2
    rows[codes == 1] += 1
    one = cl.learn.KernelPrincipalComponents(n_components=2, kernel="linear").fit(rows)
    other = cl.learn.PrincipalComponents(n_components=2).fit(rows)
    fresh = worked.normal(5, 3)
    assert np.abs(one.transform(fresh)) == pytest.approx(np.abs(other.transform(fresh)), abs=1e-6)
    first = cl.learn.KernelDiscriminantComponents(kernel="linear", rho=1).fit(rows, codes)
    second = cl.learn.DiscriminantComponents(rho=1).fit(rows, codes)
    assert first.eigenvalues_ == pytest.approx(second.eigenvalues_, abs=1e-9)
    assert np.abs(first.transform(fresh)) == pytest.approx(np.abs(second.transform(fresh)), abs=1e-6)


def test_kernel_principal_components_agree_with_scikit_learn() -> None:
    from sklearn.decomposition import KernelPCA

    rows, fresh = worked.normal(40, 3), worked.normal(5, 3)
    ours = cl.learn.KernelPrincipalComponents(n_components=2, gamma=0.3).fit(rows)
    theirs = KernelPCA(n_components=2, kernel="rbf", gamma=0.3).fit(rows)
    assert np.abs(ours.transform(fresh)) == pytest.approx(np.abs(theirs.transform(fresh)), abs=1e-6)


def test_a_kernel_separates_rings_which_no_line_does() -> None:
    angle, codes = np.linspace(0, 6.28, 80), np.arange(80) % 2
    rows = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + 2 * codes)[:, None]
    z = cl.learn.KernelDiscriminantComponents(gamma=1, rho=0.1).fit(rows, codes).transform(rows).ravel()
    assert z[codes == 0].max() < z[codes == 1].min() or z[codes == 0].min() > z[codes == 1].max()


def test_a_kernel_model_says_that_it_holds_rows_unless_landmarks_are_public() -> None:
    rows, codes = worked.normal(30, 2), np.arange(30) % 2
    model = cl.learn.KernelDiscriminantComponents(rho=1).fit(rows, codes)
    assert "never publish it" in model.guarantee_.reason
    public = cl.learn.KernelDiscriminantComponents(rho=1, landmarks=rows[:5] + 1).fit(rows, codes)
    assert "never publish it" not in public.guarantee_.reason
    assert public.landmarks_.tolist() == (rows[:5] + 1).tolist()
    assert not hasattr(model, "inverse_transform")
    more = cl.learn.KernelDiscriminantComponents(rho=1, rho_prime=0.1, n_components=4).fit(rows, codes)
    assert more.transform(rows).shape == (30, 4)


# Random projection ---------------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (0.9, False), (1.1, False)])
def test_entries_of_a_random_projection_have_the_stated_variance(factor: float, *, holds: bool) -> None:
    drawn = cl.learn.RandomProjection(n_components=50).fit(np.zeros((2, 400))).projection_ * np.sqrt(50)
    squared = float((drawn**2).sum()) * factor**2
    assert bool(stats.chi2.ppf(5e-10, 20_000) < squared < stats.chi2.isf(5e-10, 20_000)) is holds


def test_a_random_projection_does_not_depend_on_the_rows() -> None:
    one, other = (
        cl.learn.RandomProjection(n_components=2, random_state=SeededRandomSource(4)).fit(worked.normal(9, 4))
        for _ in range(2)
    )
    assert one.fingerprint() == other.fingerprint()
    assert one.mean_.tolist() == [0] * 4
    shifted = cl.learn.RandomProjection(n_components=2, mean=[1, 2, 3, 4]).fit(worked.normal(9, 4))
    assert shifted.transform([[1, 2, 3, 4]]).tolist() == [[0, 0]]


def test_a_seed_warns_and_is_said() -> None:
    with pytest.warns(SeededRandomnessWarning):
        model = cl.learn.RandomProjection(n_components=1, random_state=1).fit(worked.X)
    assert "predictable" in model.guarantee_.explain()


def test_a_few_known_rows_give_a_secret_projection_away() -> None:
    rows = worked.normal(40, 6)
    model = cl.learn.RandomProjection(n_components=4).fit(rows)
    z = model.transform(rows)
    found = cl.learn.known_pairs_attack(rows[:10], z[:10], z[10:])
    error = reconstruction_error(rows[10:], found)
    assert error < reconstruction_error(rows[10:], np.broadcast_to(rows[:10].mean(axis=0), (30, 6)))
    assert model.transform(found) == pytest.approx(z[10:], abs=1e-9)
    with pytest.raises(ParameterError, match="in the same order"):
        cl.learn.known_pairs_attack(rows[:9], z[:10], z[10:])


# What is refused -----------------------------------------------------------------------------------------------------

BROKEN = np.array([[0.0, np.nan], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("model", "arguments", "problem"),
    [
        (cl.learn.PrincipalComponents(), {"X": BROKEN}, "NaN"),
        (cl.learn.PrincipalComponents(), {"X": [[0.0, np.inf], [1.0, 2.0]]}, "infinity"),
        (cl.learn.PrincipalComponents(), {"X": [["secret", "b"], ["c", "d"]]}, "not numbers"),
        (cl.learn.PrincipalComponents(), {"X": [[1.0, 2.0]]}, "minimum of 2"),
        (cl.learn.PrincipalComponents(), {"X": [1.0, 2.0]}, "Reshape"),
        (cl.learn.PrincipalComponents(n_components=3), {"X": worked.X}, "n_components=2 or fewer"),
        (cl.learn.PrincipalComponents(n_components=0), {"X": worked.X}, "at least 1"),
        (cl.learn.PrincipalComponents(n_components=1.5), {"X": worked.X}, "whole number"),
        (cl.learn.PrincipalComponents(n_components=1, scale="odd"), {"X": worked.X}, "use one of standard"),
        (cl.learn.PrincipalComponents(n_components=1), {"X": np.ones((2, 3))}, "All rows are the same"),
        (cl.learn.PrincipalComponents(n_components=1), {"X": np.ones((4, 3))}, "All rows are the same"),
        (cl.learn.KernelPrincipalComponents(landmarks=[["secret"]]), {"X": worked.X}, "not numbers"),
        (cl.learn.DiscriminantComponents(), {"X": worked.X}, "call fit\\(X, y\\)"),
        (cl.learn.DiscriminantComponents(), {"X": worked.X, "y": [0, 1]}, "in the same order"),
        (cl.learn.DiscriminantComponents(), {"X": worked.X, "y": [0, 0, 0, 0]}, "two classes or more"),
        (cl.learn.DiscriminantComponents(), {"X": worked.X, "y": [0, 1, np.nan, 1]}, "missing"),
        (cl.learn.DiscriminantComponents(), {"X": worked.X, "y": ["a", None, "b", "a"]}, "missing"),
        (cl.learn.DiscriminantComponents(n_components=2), {"X": worked.X, "y": worked.UTILITY}, "with rho_prime"),
        (
            cl.learn.DiscriminantComponents(n_components=3, rho_prime=1),
            {"X": worked.X, "y": worked.UTILITY},
            "no more than rows and features",
        ),
        (cl.learn.DiscriminantComponents(rho=-1), {"X": worked.X, "y": worked.UTILITY}, "not negative"),
        (cl.learn.DiscriminantComponents(rho_prime="x"), {"X": worked.X, "y": worked.UTILITY}, "rho_prime"),
        (cl.learn.LinearDiscriminants(rho=0), {"X": worked.X, "y": worked.UTILITY}, "larger rho"),
        (cl.learn.LinearDiscriminants(), {"X": worked.X, "y": np.eye(4)}, "UtilityCostRatio"),
        (cl.learn.MultiDiscriminantRatio(), {"X": worked.X, "y": worked.UTILITY}, "privacy=labels"),
        (cl.learn.UtilityCostRatio(), {"X": worked.X, "y": worked.UTILITY, "privacy": {}}, "at least one label"),
        (
            cl.learn.UtilityCostRatio(privacy_weights=[1, 2]),
            {"X": worked.X, "y": worked.UTILITY, "privacy": worked.PRIVACY},
            "one per label",
        ),
        (cl.learn.KernelPrincipalComponents(kernel="odd"), {"X": worked.X}, "use one of rbf"),
        (cl.learn.KernelPrincipalComponents(landmarks=[[1.0]]), {"X": worked.X}, "public rows like X"),
        (cl.learn.KernelPrincipalComponents(n_components=9), {"X": worked.X}, "landmarks span"),
        (cl.learn.RandomProjection(mean=[1.0]), {"X": worked.X}, "public row"),
        (cl.learn.RandomProjection(n_components=3), {"X": worked.X}, "no more than features"),
    ],
)
def test_odd_input_is_refused_with_a_fix(model: Any, arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(CloisterError, match=problem) as caught:
        clone(model).fit(**arguments)
    assert caught.value.fix
    assert "secret" not in str(caught.value)


def test_as_many_classes_as_features_keep_everything_and_that_is_said() -> None:
    with pytest.warns(PrivacyParameterWarning, match="completely"):
        cl.learn.DiscriminantComponents(rho=1).fit(worked.X, [0, 1, 2, 3])


def test_labels_of_two_types_are_refused() -> None:
    with pytest.raises(ParameterTypeError, match="one type"):
        cl.learn.DiscriminantComponents().fit(worked.X, np.array(["a", 1, "b", 2], dtype=object))


@pytest.mark.parametrize("z", [[[np.nan]], [[1.0, 2.0]]])
def test_only_z_of_the_model_can_be_turned_back(z: Any) -> None:
    with pytest.raises(ParameterError, match="what transform"):
        fitted(cl.learn.PrincipalComponents(n_components=1)).inverse_transform(z)


def test_sparse_rows_are_refused() -> None:
    from scipy import sparse

    with pytest.raises(ParameterTypeError, match="dense table"):
        cl.learn.PrincipalComponents().fit(sparse.csr_matrix(worked.X))


def test_a_column_of_labels_is_taken_as_labels() -> None:
    model = cl.learn.DiscriminantComponents(rho=1).fit(worked.X, worked.UTILITY[:, None])
    assert model.eigenvalues_ == pytest.approx([0.8])
