from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.core.guarantees import NoGuarantee
from cloister.core.random import SeededRandomSource, permutation
from cloister.errors import CloisterError, DataError, ParameterError, UnsafeMechanismError
from cloister.learn.compressive._attackers import (
    RECONSTRUCTIONS,
    Attempt,
    known_row_attempt,
    reconstruct_rows,
    reconstruction_error,
    structural_similarity,
)
from cloister.learn.compressive.projection_audit import CompressiveAudit, verdict_of
from tests.learn.compressive import worked

X, Y = worked.digits()
A, B = worked.halves(len(X))
HELD_OUT = {
    ("PCA", 9, 0): (18.7, 18.7),
    ("DCA", 9, 1): (32.4, 22.5),
    ("DCA", 20, -1): (27.3, 13.8),
    ("DCA", 20, 1): (31.2, 22.5),
}
LINEAR = ("pseudo_inverse", "ridge")


def digits_model(kind: str = "DCA", count: int = 9, rho_prime: float = 1) -> Any:
    if kind == "PCA":
        return cl.learn.PrincipalComponents(n_components=count).fit(X[A])
    return cl.learn.DiscriminantComponents(n_components=count, rho=10, rho_prime=rho_prime).fit(X[A], Y[A])


def audit(model: Any, **options: Any) -> CompressiveAudit:
    settings = {"private": X[B], "public": X[A], "attacks": LINEAR, "random_state": SeededRandomSource(2), **options}
    return cl.learn.compressive_audit(model, **settings)


def small(**options: Any) -> CompressiveAudit:
    rows = worked.normal(60, 3) + np.outer(np.arange(60) % 2, [2, 0, 0])
    model = options.pop("model", cl.learn.PrincipalComponents(n_components=2)).fit(rows[:30], np.arange(30) % 2)
    return cl.learn.compressive_audit(model, **{"private": rows[30:], "public": rows[:30], **options})


# Digits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "expected"), HELD_OUT.items(), ids=str)
def test_a_learned_reconstruction_of_held_out_digits_is_much_better(
    setting: tuple[str, int, float], expected: tuple[float, float]
) -> None:
    found = audit(digits_model(*setting))
    plain, learned = found.attempts[:2]
    assert (plain.name, learned.name) == LINEAR
    assert plain.baseline == pytest.approx(34.56, abs=0.4)
    assert (plain.value, learned.value) == pytest.approx(expected, abs=0.7)


@pytest.mark.parametrize("seed", range(3))
def test_components_along_which_all_rows_agree_do_not_disturb_attackers(seed: int) -> None:
    first, second = np.split(permutation(SeededRandomSource(seed), len(X)), [len(X) // 2])
    model = cl.learn.DiscriminantComponents(n_components=20, rho=10, rho_prime=1).fit(X[first], Y[first])
    found = cl.learn.compressive_audit(model, private=X[second], public=X[first], attacks=["ridge"])
    assert found.minimum == pytest.approx(0.64, abs=0.03)


def test_the_acceptance_scenario() -> None:
    model = digits_model(count=9, rho_prime=1)
    z = model.transform(X[B])
    found = audit(model, utility=(Y[B], Y[A]), released=z)
    assert found.utility is not None
    assert found.utility.accuracy >= 0.94
    assert found.normalized("pseudo_inverse") == pytest.approx(0.94, abs=0.025)
    assert found.normalized("ridge") == pytest.approx(0.65, abs=0.02)
    assert found.minimum == found.normalized("ridge")
    assert found.verdict == "moderate"
    weaker = audit(digits_model(count=40, rho_prime=-1))
    assert (weaker.normalized("ridge") or 1) < 0.2
    assert weaker.verdict == "weak"
    registry = cl.learn.ProjectionRegistry(on_repeat="warn")
    registry.register(model, X[B], name="first")
    with pytest.warns(UserWarning, match="two projections of the same records"):
        registry.register(digits_model(count=40, rho_prime=-1), X[B], name="second")


def test_a_curved_rule_finds_more_than_a_linear_one() -> None:
    found = audit(digits_model(), attacks=RECONSTRUCTIONS)
    assert found.strongest.name == "kernel_ridge"
    assert found.minimum == pytest.approx(0.55, abs=0.03)
    assert found.verdict == "moderate"


def test_every_attacker_on_digits() -> None:
    found = audit(
        digits_model(),
        attacks=RECONSTRUCTIONS,
        utility=(Y[B], Y[A]),
        privacy=(Y[B] % 2, Y[A] % 2),
        identity=(Y[B], Y[A]),
        image_shape=(8, 8),
        units="standard",
    )
    shares = {item.name: item for item in found.attempts}
    attribute = shares["attribute"]
    assert attribute.value > 0.9 > 0.6 > attribute.baseline
    assert attribute.interval is not None
    assert attribute.interval[0] < attribute.value < attribute.interval[1]
    assert (attribute.control or 0) > 0.95
    assert shares["re-identification"].value > 0.9
    assert shares["known row"].value == 1
    assert not shares["known row"].counted
    assert shares["structural similarity"].value > shares["structural similarity"].baseline
    assert shares["signal to noise"].value > shares["signal to noise"].baseline
    assert found.verdict == "weak"
    assert found.strongest.name in {"attribute", "attribute, classes alike", "re-identification"}


# Rows in their order -------------------------------------------------------------------------------------------------


def test_errors_are_computed_by_row_and_permuting_rows_changes_them() -> None:
    model = digits_model("PCA", 20)
    estimates = model.inverse_transform(model.transform(X[B]))
    right = reconstruction_error(X[B], estimates)
    assert right == pytest.approx(
        np.mean([np.linalg.norm(X[row] - found) for row, found in zip(B, estimates, strict=True)])
    )
    assert reconstruction_error(X[B], estimates[::-1]) > 2 * right


def test_held_out_errors_of_principal_components_fall_with_their_number() -> None:
    errors = [audit(digits_model("PCA", count), attacks=LINEAR[:1]).minimum for count in (5, 14, 30, 50)]
    assert (np.diff(errors) < 0).all()


def test_a_release_in_another_order_is_refused() -> None:
    model = digits_model()
    with pytest.raises(DataError, match="the same order"):
        audit(model, released=model.transform(X[B])[::-1])


# The result ----------------------------------------------------------------------------------------------------------


def test_an_audit_promises_nothing_and_says_so() -> None:
    found = small(utility=(np.arange(30) % 2, np.arange(30) % 2))
    assert isinstance(found.guarantee, NoGuarantee)
    assert "not differential privacy" in found.guarantee.explain()
    assert "not a guarantee" in found.explain()
    assert "no guarantee" in str(found)
    rows = dict(found.summary())
    assert rows["published"].startswith("2 numbers per row, of 3 directions")
    assert "by chance" in rows["utility"]
    values = json.loads(json.dumps(found.to_dict()))
    assert values["schema"] == "cloister.compressive_audit/1"
    assert values["guarantee"]["holds"] is False
    assert values["minimum"] == found.minimum
    assert "errors of ridge" in str(found.plot().to_table())
    assert "utility" not in dict(small().summary())
    assert small().to_dict()["utility"] is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.rows = 3  # type: ignore[misc]


def test_an_owner_can_ask_for_a_smallest_error() -> None:
    found = small()
    found.verify(at_least=found.minimum / 2)
    with pytest.raises(UnsafeMechanismError, match="fewer components"):
        found.verify(at_least=1)


@pytest.mark.parametrize(
    ("minimum", "verdict"), [(0.49, "weak"), (0.5, "moderate"), (0.89, "moderate"), (0.9, "strong")]
)
def test_verdicts(minimum: float, verdict: str) -> None:
    assert verdict_of(minimum) == verdict


def test_an_unknown_attacker_is_refused() -> None:
    with pytest.raises(ParameterError, match="use one of pseudo_inverse"):
        small().normalized("odd")


def test_a_kernel_projection_is_attacked_by_learning_only() -> None:
    found = small(model=cl.learn.KernelPrincipalComponents(n_components=2))
    assert [item.name for item in found.attempts][:2] == ["ridge", "kernel_ridge"]
    model = cl.learn.KernelPrincipalComponents(n_components=2).fit(worked.X)
    with pytest.raises(ParameterError, match="kernel_ridge"):
        reconstruct_rows(model, worked.X, public=worked.X, attack="pseudo_inverse", source=SeededRandomSource(1))


def test_a_random_projection_is_turned_back_towards_the_mean_of_similar_rows() -> None:
    rows = worked.normal(200, 8) + 100
    model = cl.learn.RandomProjection(n_components=4).fit(rows)
    found = cl.learn.compressive_audit(model, private=rows[:100], public=rows[100:])
    assert (found.normalized("pseudo_inverse") or 2) <= 1.05


def test_a_label_that_similar_rows_do_not_vary_in_is_guessed_as_it_is() -> None:
    found = small(privacy=(np.arange(30) % 2, np.zeros(30, dtype=int)))
    assert {item.name: item.value for item in found.attempts}["attribute"] == 0.5


def test_equal_releases_are_not_told_apart() -> None:
    found = known_row_attempt(np.array([[1.0], [1.0], [2.0], [3.0]]), SeededRandomSource(1))
    assert found.value == pytest.approx(3 / 4)
    assert "without z" in str(found)


def test_a_certain_guess_has_no_normalized_error() -> None:
    found = Attempt.of_shares(name="a", assumption="b", success=1.0, baseline=1.0)
    assert found.normalized is None
    assert "errors are left" not in str(found)
    whole = Attempt.of_shares(name="a", assumption="b", success=0.5, baseline=0.2, control=0.9, interval=(0.4, 0.6))
    assert str(whole) == (
        "share right 0.5, without z 0.2, with the whole row 0.9 (95% interval 0.4 to 0.6): 62.5% of the errors are left"
    )


def test_similarity_of_an_image_with_itself_is_one() -> None:
    images = np.abs(worked.normal(3, 64))
    assert structural_similarity(images, images, shape=(8, 8), span=1.0) == pytest.approx(1)
    assert structural_similarity(images, images[::-1], shape=(8, 8), span=1.0) < 0.9


# What is refused -----------------------------------------------------------------------------------------------------

HALF = np.arange(30) % 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"utility": HALF}, "is not a pair"),
        ({"utility": (HALF, HALF[:5])}, "order of their rows"),
        ({"utility": (HALF, HALF * 0)}, "several classes"),
        ({"privacy": (HALF * 0, HALF * 0)}, "one class"),
        ({"private": [["secret"] * 3] * 5}, "not numbers"),
        ({"private": [[1.0, 2.0]] * 5}, "columns that the model"),
        ({"public": [[1.0, np.nan, 2.0]] * 5}, "columns that the model"),
        ({"attacks": ()}, "some of pseudo_inverse"),
        ({"attacks": "ridge"}, "some of pseudo_inverse"),
        ({"attacks": ("odd",)}, "use one of pseudo_inverse"),
        ({"units": "odd"}, "use one of raw"),
        ({"image_shape": (2, 2)}, "height, width"),
    ],
)
def test_odd_input_is_refused_with_a_fix(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(CloisterError, match=problem) as caught:
        small(**options)
    assert "secret" not in str(caught.value)


def test_attackers_may_not_be_taught_on_the_attacked_rows() -> None:
    rows = worked.normal(20, 3)
    with pytest.raises(ParameterError, match="split the rows"):
        small(private=rows, public=rows)


def test_rows_that_are_all_the_mean_are_refused() -> None:
    similar = np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]] * 3)
    with pytest.raises(ParameterError, match="rows that differ"):
        small(private=np.ones((2, 3)), public=similar)


def test_a_projection_must_be_fitted() -> None:
    with pytest.raises(ParameterError, match="model.fit"):
        cl.learn.compressive_audit(cl.learn.PrincipalComponents(), private=worked.X, public=worked.X)


def test_rows_and_estimates_must_be_as_many() -> None:
    with pytest.raises(ParameterError, match="one estimate per row"):
        reconstruction_error(worked.X, worked.X[:2])
