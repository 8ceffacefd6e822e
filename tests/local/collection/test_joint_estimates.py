from __future__ import annotations

import numpy as np
import pytest

from cloister.core.guarantees import LocalDP
from cloister.errors import ParameterError, UnknownColumnError
from cloister.local import FrequencyEstimate, SeveralAttributes, consistent_together, with_known_counts


def estimate(counts: list[float], *, people: int = 100, errors: list[float] | None = None) -> FrequencyEstimate:
    return FrequencyEstimate(
        domain=tuple("abcdef"[: len(counts)]),
        raw_counts=np.array(counts, dtype=float),
        raw_errors=np.array(errors or [5.0] * len(counts)),
        reports=people,
        protocol="direct_encoding",
        guarantee=LocalDP(epsilon=1),
    )


@pytest.mark.parametrize("method", ["norm_sub", "simplex", "weighted"])
def test_all_attributes_add_up_to_the_people(method: str) -> None:
    people = SeveralAttributes({"few": 3, "many": 40}, epsilon=1)
    table = {"few": np.arange(2000) % 3, "many": np.arange(2000) % 5}
    mended = consistent_together(people.estimate(people.randomize(table)), method=method)
    for each in mended.values():
        assert sum(each.counts.values()) == pytest.approx(2000)
        assert min(each.counts.values()) >= 0
        assert each.method == method
        assert each.guarantee == people.guarantee


def test_known_counts_are_kept_and_the_others_share_the_rest() -> None:
    found = with_known_counts(estimate([30, 60, -5, 20]), known={"a": 25, "c": 0})
    assert found.counts == {"a": 25, "b": 57.5, "c": 0, "d": 17.5}
    assert found.standard_errors == {"a": 0, "b": 5, "c": 0, "d": 5}


def test_weighted_lets_the_uncertain_give_way() -> None:
    raw = estimate([50, 30, 40], errors=[1, 2, 3])
    found = with_known_counts(raw, known={}, method="weighted").counts
    moved = raw.raw_counts - np.asarray(found)
    assert moved.sum() == pytest.approx(20)
    assert moved.tolist() == pytest.approx((20 * np.array([1, 4, 9]) / 14).tolist())


def test_nothing_known_is_the_usual_post_processing() -> None:
    raw = estimate([130, -20, 5])
    for method in ("norm_sub", "simplex"):
        assert with_known_counts(raw, known={}, method=method).counts == raw.consistent(method).counts


def test_everything_known_leaves_nothing_to_estimate() -> None:
    found = with_known_counts(estimate([30, 60]), known={"a": 40, "b": 60})
    assert found.counts == {"a": 40, "b": 60}


@pytest.mark.parametrize("known", [{"a": 101}, {"a": 60, "b": 41}, {"a": 1, "b": 1, "c": 1}])
def test_known_counts_that_do_not_fit_are_refused(known: dict[str, int]) -> None:
    with pytest.raises(ParameterError, match="between 0 and 100"):
        with_known_counts(estimate([30, 60, 10]), known=known)


def test_bad_input_is_refused() -> None:
    for known in ({"z": 1}, {"a": -1}, {"a": float("nan")}):
        with pytest.raises(ParameterError):
            with_known_counts(estimate([30, 60]), known=known)
    with pytest.raises(ParameterError, match="norm_sub, simplex, weighted"):
        with_known_counts(estimate([30, 60]), known={}, method="clip")
    with pytest.raises(ParameterError, match="one collection"):
        consistent_together({"a": estimate([1, 2]), "b": estimate([1, 2], people=7)})
    with pytest.raises(UnknownColumnError):
        consistent_together({"sex": estimate([1, 2])}, known={"sx": {"a": 1}})
    assert consistent_together({"sex": estimate([1, 99])}, known={"sex": {"a": 10}})["sex"].counts == {"a": 10, "b": 90}
