from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.core.random import random_source
from cloister.errors import LawViolatedError, ParameterError, StatisticalError, VerificationError
from cloister.mechanisms.sampling.discrete_noise import discrete_gaussian, discrete_laplace
from cloister.testing import MechanismLaws, SamplerLaws, distributions
from tests.testing import toys

pytestmark = pytest.mark.statistical


def laws_of(toy: type[toys.Toy], **options: Any) -> MechanismLaws:
    return MechanismLaws(
        factory=lambda epsilon: toy(epsilon=epsilon),
        vector_factory=lambda epsilon, _: toy(epsilon=epsilon),
        incomplete=(toy,),
        **options,
    )


@pytest.mark.parametrize("law", laws_of(toys.Toy), ids=str)
def test_an_honest_mechanism_keeps_every_law(law: Any) -> None:
    law.verify()


@pytest.mark.parametrize(
    ("toy", "name"),
    [
        (toys.SharedNoise, "vectors_get_independent_noise"),
        (toys.ScalarOnly, "vectors_get_independent_noise"),
        (toys.NoNoise, "default_randomness_is_secure"),
        (toys.NoNoise, "true_value_is_not_shown"),
        (toys.ValueDependent, "noise_does_not_depend_on_the_value"),
        (toys.ValueDependent, "margin_covers"),
        (toys.NarrowMargin, "margin_covers"),
        (toys.MoreNoise, "more_loss_never_more_noise"),
        (toys.MoreNoise, "event_agrees_with_guarantee"),
        (toys.UnderstatedGuarantee, "guarantee_states_the_parameter"),
        (toys.UnderstatedGuarantee, "event_agrees_with_guarantee"),
        (toys.ForgetfulRelease, "release_carries_guarantee_and_event"),
        (toys.UntaintedSeed, "seed_repeats_and_taints"),
        (toys.IgnoredSeed, "seed_repeats_and_taints"),
        (toys.SilentSeed, "seed_repeats_and_taints"),
        (toys.SeededByDefault, "default_randomness_is_secure"),
        (toys.AnyEpsilon, "refuses_bad_losses"),
        (toys.BareError, "refuses_bad_values"),
        (toys.QuotingError, "refuses_bad_values"),
        (toys.ShownValue, "true_value_is_not_shown"),
        (toys.OddJson, "answers_survive_json"),
        (toys.LossyJson, "answers_survive_json"),
    ],
)
def test_a_broken_mechanism_breaks_its_law(toy: type[toys.Toy], name: str) -> None:
    law = {law.name: law for law in laws_of(toy, value=3)}[name]
    with pytest.raises(VerificationError):
        law.verify()


def test_missing_parameters_that_have_a_default_are_found() -> None:
    laws = MechanismLaws(factory=lambda epsilon: toys.Toy(epsilon=epsilon), incomplete=(lambda: toys.Toy(epsilon=1),))
    with pytest.raises(LawViolatedError, match="refuse it"):
        laws.law_refuses_incomplete_parameters()


def test_all_laws_of_a_sampler_run_at_once() -> None:
    LAPLACE.verify()


def test_something_else_is_not_a_mechanism() -> None:
    laws = MechanismLaws(factory=lambda _: object())
    assert "margin_covers" not in laws
    assert "is_a_mechanism" in laws
    assert len(laws) == len(list(laws))
    with pytest.raises(LawViolatedError, match="give it guarantee, event, release"):
        laws.law_is_a_mechanism()


def test_laws_that_do_not_apply_are_left_out() -> None:
    laws = MechanismLaws(factory=lambda epsilon: toys.Toy(epsilon=epsilon), secret=None, shift=None)
    names = {law.name for law in laws}
    assert names.isdisjoint(
        {
            "true_value_is_not_shown",
            "noise_does_not_depend_on_the_value",
            "vectors_get_independent_noise",
            "refuses_incomplete_parameters",
        }
    )
    assert "margin_covers" in names
    with pytest.raises(ParameterError, match="give vector_factory="):
        laws.law_vectors_get_independent_noise()


LAPLACE = SamplerLaws(
    draw=lambda scale, source, size: discrete_laplace(scale).draw(source, size),
    distribution=distributions.discrete_laplace,
    scales=(Fraction(1, 2), Fraction(7, 3), Fraction(1000)),
)
GAUSSIAN = SamplerLaws(
    draw=lambda sigma, source, size: discrete_gaussian(sigma**2).draw(source, size),
    distribution=distributions.discrete_gaussian,
    scales=(Fraction(1, 2), Fraction(7, 3), Fraction(100)),
)


@pytest.mark.parametrize("law", [*LAPLACE, *GAUSSIAN], ids=str)
def test_the_exact_samplers_keep_every_law(law: Any) -> None:
    law.verify()


def _constant(_scale: Any, _source: Any, size: int) -> Any:
    return np.arange(size)


def _unseeded(scale: Any, _source: Any, size: int) -> Any:
    return discrete_laplace(scale).draw(random_source(), size)


def _wrong_scale(scale: Any, source: Any, size: int) -> Any:
    return discrete_laplace(scale * Fraction(9, 10)).draw(source, size)


def _repeating(scale: Any, source: Any, size: int) -> Any:
    return np.repeat(discrete_laplace(scale).draw(source, size), 2)[:size]


def _one_more(scale: Any, source: Any, size: int) -> Any:
    return discrete_laplace(scale).draw(source, size + 1)


@pytest.mark.parametrize(
    ("draw", "name", "error"),
    [
        (_constant, "repeats_with_its_source", LawViolatedError),
        (_unseeded, "repeats_with_its_source", LawViolatedError),
        (_wrong_scale, "follows_the_stated_law", StatisticalError),
        (_repeating, "successive_draws_are_independent", StatisticalError),
        (_one_more, "draws_as_many_as_asked", LawViolatedError),
    ],
)
def test_a_broken_sampler_breaks_its_law(draw: Any, name: str, error: type[Exception]) -> None:
    laws = SamplerLaws(draw=draw, distribution=distributions.discrete_laplace, scales=(Fraction(7, 3),))
    law = {law.name: law for law in laws}[name]
    with pytest.raises(error):
        law.verify()
