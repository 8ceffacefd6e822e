"""Laws: what every member of a family must do. A new member is tested by naming how to make it.

    laws = MechanismLaws(factory=lambda epsilon: MyMechanism(sensitivity=1, epsilon=epsilon))

    @pytest.mark.parametrize("law", laws, ids=str)
    def test_my_mechanism(law):
        law.verify()

Each law raises `LawViolatedError` (or a `StatisticalError`) with a sentence. Laws that need something a mechanism does
not have, such as a margin of error, are left out.

`covers` asks whether a guarantee admits what an event loses: a second, independent way to the numbers of a mechanism.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from cloister.accounting.conversions import gaussian_delta
from cloister.accounting.events import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ZeroConcentratedEvent,
    event_from_dict,
)
from cloister.core import exact
from cloister.core.guarantees import (
    SEEDED_RANDOMNESS,
    ApproxDP,
    Guarantee,
    PureDP,
    ZeroConcentratedDP,
    guarantee_from_dict,
)
from cloister.core.random import RandomSource, SeededRandomSource, random_source
from cloister.errors import CloisterError, LawViolatedError, ParameterError, SeededRandomnessWarning
from cloister.mechanisms.base import AdditiveNoise
from cloister.testing.distributions import Distribution
from cloister.testing.statistics import FALSE_ALARM, SAMPLES, check_independent, check_same_distribution, check_scale

__all__ = ["Law", "Laws", "MechanismLaws", "SamplerLaws", "covers", "law_violation", "must_refuse"]


_TOLERANCE = 1 + 1e-9


def covers(guarantee: Guarantee, event: Event) -> bool:
    """Return whether a guarantee admits what an event loses; False for pairs that are not known to agree.

    Pure losses and rho are compared exactly; deltas are computed in floating point, with a relative slack of 1e-9.
    """
    match guarantee:
        case PureDP(epsilon=epsilon):
            pure = _pure_epsilon(event)
            return pure is not None and pure <= epsilon
        case ApproxDP(epsilon=epsilon, delta=delta):
            return _delta(event, epsilon) <= float(delta) * _TOLERANCE
        case ZeroConcentratedDP(rho=rho, delta=delta):
            lost = _rho(event)
            return lost is not None and lost[0] <= rho and lost[1] <= delta
    return False


def _pure_epsilon(event: Event) -> Fraction | None:
    match event:
        case PureEvent(epsilon=epsilon):
            return epsilon
        case DiscreteLaplaceEvent():
            return event.epsilon
        case LaplaceEvent(noise_multiplier=multiplier):
            return 1 / multiplier
    return None


def _rho(event: Event) -> tuple[Fraction, Fraction] | None:
    match event:
        case ZeroConcentratedEvent(rho=rho, delta=delta):
            return rho, delta
        case GaussianEvent(squared_multiplier=square):
            return 1 / (2 * square), Fraction(0)
        case DiscreteGaussianEvent(squared_sigma=sigma, squared_sensitivity=sensitivity):
            return sensitivity / (2 * sigma), Fraction(0)
    pure = _pure_epsilon(event)
    return None if pure is None else (pure**2 / 2, Fraction(0))


def _delta(event: Event, epsilon: Fraction) -> float:
    """Return the delta of an event at an epsilon, 1 where it is not known."""
    match event:
        case PureEvent() | LaplaceEvent() | DiscreteLaplaceEvent():
            return _pure_delta(event, epsilon)
        case ApproxEvent(epsilon=lost, delta=delta):
            return float(delta) if lost <= epsilon else 1.0
        case GaussianEvent(squared_multiplier=square):
            return gaussian_delta(1 / math.sqrt(square), float(epsilon))
    return 1.0


def _pure_delta(event: PureEvent | LaplaceEvent | DiscreteLaplaceEvent, epsilon: Fraction) -> float:
    match event:
        case PureEvent(epsilon=lost):
            # Any pure mechanism is dominated by randomized response of its epsilon (Kairouz, Oh and Viswanath 2015).
            delta = -math.expm1(float(epsilon - lost)) / (1 + math.exp(-float(lost)))
        case LaplaceEvent(noise_multiplier=multiplier):
            delta = -math.expm1(float(epsilon - 1 / multiplier) / 2)
        case _:
            delta = _discrete_laplace_delta(float(event.scale), event.sensitivity, float(epsilon))
    return max(delta, 0.0)


def _discrete_laplace_delta(scale: float, sensitivity: int, epsilon: float) -> float:
    """Return the hockey-stick divergence of discrete Laplace noise and the same noise ``sensitivity`` steps away.

    The privacy loss is constant outside the two centers: below the first it is at its highest, above the second lowest.
    """
    ratio = math.exp(-1 / scale)
    between = np.arange(0, sensitivity + 1)
    mass = (1 - ratio) / (1 + ratio)
    here, there = ratio**between, math.exp(epsilon) * ratio ** (sensitivity - between)
    below = ratio / (1 - ratio) * max(0.0, 1 - math.exp(epsilon - sensitivity / scale))
    return mass * (float(np.maximum(here - there, 0).sum()) + below)


_BAD_LOSSES = (0, -1, math.nan, math.inf, -math.inf, True, "much", None)
_BAD_VALUES = (math.nan, math.inf, "secret-4711", None)
_SEED = 4711
_SEEDS = 20
_FEW = 40
_ROUNDING = Fraction(1, 10**12)


@dataclass(frozen=True, slots=True)
class Law:
    """One law for one member."""

    name: str
    check: Callable[[], None]

    def __str__(self) -> str:
        return self.name

    def verify(self) -> None:
        """Raise unless the law holds."""
        self.check()


class Laws(Collection[Law]):
    """Lists the methods named ``law_...`` as laws, less those that do not apply."""

    def __iter__(self) -> Iterator[Law]:
        for name in dir(self):
            if name.startswith("law_") and self._applies(name):
                yield Law(name.removeprefix("law_"), getattr(self, name))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return any(name in (law, law.name) for law in self)

    def _applies(self, name: str) -> bool:  # noqa: ARG002  # members decide
        return True

    def verify(self) -> None:
        """Raise at the first law that does not hold."""
        for law in self:
            law.verify()


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismLaws(Laws):
    """The laws of mechanisms.

    Attributes:
        factory: makes the mechanism from a privacy loss.
        value: a private value that it takes.
        parameter: the name of the loss in the guarantee, "epsilon" or "rho".
        losses: small to large; the noise must not grow along them.
        vector_factory: makes the same mechanism for a number of coordinates, if it takes vectors.
        secret: a private value with telling digits, which must not be seen from outside; None to leave that law out.
        shift: how far the value moves in the law of equivariance; None for noise that depends on the value.
        bad_values: values that must be refused.
        incomplete: ways to make the mechanism that must be refused, such as without a sensitivity.
        samples: how many releases the statistical laws draw.
    """

    factory: Callable[[Any], Any]
    value: Any = 0
    parameter: str = "epsilon"
    losses: tuple[Any, ...] = (Fraction(1, 10), 1, 3)
    vector_factory: Callable[[Any, int], Any] | None = None
    secret: Any = 8_128_003
    shift: Any = 5
    bad_values: tuple[Any, ...] = _BAD_VALUES
    incomplete: tuple[Callable[[], Any], ...] = ()
    samples: int = 1_000

    def law_is_a_mechanism(self) -> None:
        """It has a guarantee, an event and a release."""
        missing = [part for part in ("guarantee", "event", "release") if not hasattr(self._mechanism(), part)]
        if missing:
            raise law_violation("It is not a mechanism", f"give it {', '.join(missing)}.")

    def law_release_carries_guarantee_and_event(self) -> None:
        """A release has the guarantee and the event of its mechanism."""
        mechanism = self._mechanism()
        answer = mechanism.release(self.value)
        if answer.guarantee != mechanism.guarantee or answer.event != mechanism.event:
            raise law_violation("A release does not carry its mechanism's guarantee and event", "pass both on.")

    def law_guarantee_states_the_parameter(self) -> None:
        """The guarantee says the loss that was asked for: never more, nor less by more than rounding."""
        for loss in self.losses:
            asked, stated = exact.number(loss), getattr(self.factory(loss).guarantee, self.parameter)
            if not asked * (1 - _ROUNDING) <= stated <= asked:
                raise law_violation(f"The guarantee does not state the {self.parameter} asked for", "state it exactly.")

    def law_event_agrees_with_guarantee(self) -> None:
        """The event never loses more than the guarantee admits."""
        for loss in self.losses:
            mechanism = self.factory(loss)
            if not covers(mechanism.guarantee, mechanism.event):
                raise law_violation("The event loses more than the guarantee admits", "calibrate both from one number.")

    def law_more_loss_never_more_noise(self) -> None:
        """Standard deviation and margin do not grow with the loss."""
        members = [self.factory(loss) for loss in self.losses]
        for sizes in ([item.standard_deviation for item in members], [item.margin(0.95) for item in members]):
            if sorted(sizes, reverse=True) != sizes:
                raise law_violation("The noise grows with the privacy loss", "divide by the loss, not by its inverse.")

    def law_margin_covers(self) -> None:
        """The margin of error covers the noise as often as it says (a test with a false-alarm rate of 1e-9)."""
        mechanism = self._mechanism()
        errors = np.abs(self._draw(mechanism, self.value) - np.asarray(self.value, dtype=np.float64))
        for confidence in (0.5, 0.95):
            hits = int((errors <= mechanism.margin(confidence) * (1 + 1e-12)).sum())
            if special.bdtr(hits, len(errors), confidence) < FALSE_ALARM:
                raise law_violation(
                    f"The margin at confidence {confidence} covers {hits} of {len(errors)} errors only", "widen it."
                )

    def law_noise_does_not_depend_on_the_value(self) -> None:
        """Shifting the value shifts the answer and changes nothing else."""
        mechanism = self._mechanism()
        shifted = self._draw(mechanism, self.value + self.shift) - self.shift
        check_same_distribution(self._draw(mechanism, self.value), shifted, what="The noise at two values does")

    def law_seed_repeats_and_taints(self) -> None:
        """A seed gives the same answer again, warns, and breaks the guarantee."""
        mechanism = self.factory(self.losses[0])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            first, second = (
                [mechanism.release(self.value, random_state=seed) for seed in range(_SEEDS)] for _ in range(2)
            )
        if not any(issubclass(item.category, SeededRandomnessWarning) for item in caught):
            raise law_violation("A seed gives no warning", "use random_source(random_state).")
        if any(item.guarantee.holds or SEEDED_RANDOMNESS not in item.guarantee.caveats for item in first):
            raise law_violation("A seed does not break the guarantee", "add caveats_of(source) to the guarantee.")
        if list(map(_dump_answer, first)) != list(map(_dump_answer, second)):
            raise law_violation("A seed does not give the same answer again", "draw from random_state alone.")

    def law_default_randomness_is_secure(self) -> None:
        """Without a random_state the guarantee holds and answers differ."""
        mechanism = self.factory(self.losses[0])
        answers = [mechanism.release(self.value) for _ in range(_FEW)]
        if not all(answer.guarantee.holds for answer in answers):
            raise law_violation("The default randomness breaks the guarantee", "use the operating system's by default.")
        if len({_dump_answer(answer) for answer in answers}) == 1:
            raise law_violation(f"{_FEW} releases are all alike", "draw fresh noise for every release.")

    def law_refuses_bad_losses(self) -> None:
        """A loss that is not a positive number is refused with a fix."""
        for loss in _BAD_LOSSES:
            must_refuse(partial(self.factory, loss), f"{self.parameter}={loss!r}")

    def law_refuses_incomplete_parameters(self) -> None:
        """What only the caller can know has no default."""
        for make in self.incomplete:
            must_refuse(make, "an incomplete set of parameters", also=(TypeError,))

    def law_refuses_bad_values(self) -> None:
        """Values that are not usable are refused, and the message does not quote them."""
        mechanism = self._mechanism()
        for value in self.bad_values:
            error = must_refuse(partial(mechanism.release, value), f"the value {value!r}")
            if isinstance(value, str) and value in str(error):
                raise law_violation("An error quotes a private value", "say what is wrong without the value.")

    def law_answers_survive_json(self) -> None:
        """to_dict is JSON with a version marker; guarantee and event can be read back from it."""
        answer = self._mechanism().release(self.value)
        values = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
        if values != answer.to_dict() or next(iter(values)) != "schema":
            raise law_violation("to_dict is not plain JSON that starts with a schema", "build on Result.to_dict.")
        read = guarantee_from_dict(values["guarantee"]), event_from_dict(values["event"])
        if read != (answer.guarantee, answer.event):
            raise law_violation("The guarantee or the event cannot be read back", "use their to_dict.")

    def law_true_value_is_not_shown(self) -> None:
        """Neither the mechanism nor its answers show the true value, except by the luck of the noise."""
        mechanism = self.factory(self.losses[0])
        answers = [mechanism.release(self.secret) for _ in range(20)]
        digits = str(self.secret)
        shown = [
            any(digits in text.replace(",", "") for text in (repr(item), str(item), json.dumps(item.to_dict())))
            for item in answers
        ]
        if all(shown) or digits in repr(mechanism):
            raise law_violation("The true value shows from outside", "keep it out of fields, repr and to_dict.")

    def law_vectors_get_independent_noise(self) -> None:
        """Every coordinate has a draw of its own, and the answer has the shape of the value."""
        if self.vector_factory is None:
            raise ParameterError("Vectors need a way to make the mechanism for them.", fix="give vector_factory=.")
        # All are drawn in one release; with fewer, hardly more than one value would be frequent enough for a bin.
        value = np.zeros(3 * max(self.samples, 1_000), dtype=np.asarray(self.value).dtype)
        noise = np.asarray(self.vector_factory(1, len(value)).release(value).value, dtype=np.float64)
        if noise.shape != value.shape:
            raise law_violation("The answer to a vector has another shape", "release one number per coordinate.")
        check_independent(noise.reshape(-1, 3))

    def _applies(self, name: str) -> bool:
        additive = isinstance(self._mechanism(), AdditiveNoise)
        needs = {
            "law_more_loss_never_more_noise": additive,
            "law_margin_covers": additive,
            "law_noise_does_not_depend_on_the_value": additive and self.shift is not None,
            "law_true_value_is_not_shown": self.secret is not None,
            "law_refuses_incomplete_parameters": bool(self.incomplete),
            "law_vectors_get_independent_noise": self.vector_factory is not None,
        }
        return needs.get(name, True)

    def _mechanism(self) -> Any:
        return self.factory(self.losses[len(self.losses) // 2])

    def _draw(self, mechanism: Any, value: Any) -> Any:
        return np.array([mechanism.release(value).value for _ in range(self.samples)], dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerLaws(Laws):
    """The laws of noise samplers.

    Attributes:
        draw: ``draw(scale, source, size)`` returns that many draws at a scale.
        distribution: returns the law at a scale.
        scales: the scales to try, small and large.
        samples: how many draws each statistical law takes.
    """

    draw: Callable[[Any, RandomSource, int], Any]
    distribution: Callable[[float], Distribution]
    scales: tuple[Any, ...]
    samples: int = SAMPLES

    def law_follows_the_stated_law(self) -> None:
        """The right scale passes, and scales 10% off are refuted."""
        for scale in self.scales:
            check_scale(
                partial(self.draw, scale, random_source()),
                self.distribution,
                scale=float(scale),
                size=self.samples,
                what=f"The sampler at scale {float(scale):g}",
            )

    def law_successive_draws_are_independent(self) -> None:
        """A draw says nothing about the next two."""
        for scale in self.scales:
            draws = np.asarray(self.draw(scale, random_source(), 3 * (self.samples // 3)), dtype=np.float64)
            check_independent(draws.reshape(-1, 3), what="The sequence of draws")

    def law_repeats_with_its_source(self) -> None:
        """The same source gives the same draws; the operating system's gives others."""
        scale = self.scales[-1]
        first, second = (np.asarray(self.draw(scale, SeededRandomSource(_SEED), 200)) for _ in range(2))
        if not np.array_equal(first, second):
            raise law_violation("The same source gives other draws", "take all randomness from the source.")
        if np.array_equal(first, np.asarray(self.draw(scale, random_source(), 200))):
            raise law_violation("Another source gives the same draws", "take all randomness from the source.")

    def law_draws_as_many_as_asked(self) -> None:
        """Any size works, also none."""
        for size in (0, 1, 7):
            if np.asarray(self.draw(self.scales[0], random_source(), size)).shape != (size,):
                raise law_violation(
                    f"Asked for {size} draws it gives another number", "return an array of that length."
                )


def law_violation(problem: str, fix: str) -> LawViolatedError:
    """Return the error of a law that does not hold."""
    return LawViolatedError(f"{problem}.", fix=fix)


def must_refuse(
    call: Callable[[], Any], what: str, *, also: tuple[type[Exception], ...] = ()
) -> CloisterError | Exception:
    """Return the error with which a call is refused, or raise that it is not refused properly."""
    try:
        call()
    except CloisterError as error:
        return error
    except also as error:
        return error
    except Exception as error:
        name = type(error).__name__
        raise law_violation(f"{what} gives a bare {name}", "raise a CloisterError with a fix.") from error
    raise law_violation(f"{what} is accepted", "refuse it with a CloisterError.")


def _dump_answer(answer: Any) -> str:
    """Return all that an answer says, as text that can be compared."""
    return json.dumps(answer.to_dict(), sort_keys=True)
