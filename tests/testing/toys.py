"""A small honest mechanism, and ways to break it, to try the laws on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from cloister.accounting.events import DiscreteLaplaceEvent, Event
from cloister.core import validation
from cloister.core.guarantees import PureDP
from cloister.core.random import RandomState
from cloister.errors import ParameterError
from cloister.mechanisms.base import NoisyAnswer, open_source, private_integers, unwrap
from cloister.testing import samplers


@dataclass(frozen=True, kw_only=True)
class Toy:
    """Discrete Laplace noise on integers with sensitivity 1."""

    name: ClassVar[str] = "toy"
    epsilon: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))

    @property
    def scale(self) -> Fraction:
        return 1 / self.epsilon

    @property
    def guarantee(self) -> PureDP:
        return PureDP(epsilon=self.epsilon)

    @property
    def event(self) -> Event:
        return DiscreteLaplaceEvent(scale=self.scale, sensitivity=1)

    @property
    def standard_deviation(self) -> float:
        ratio = np.exp(-1 / float(self.scale))
        return float(np.sqrt(2 * ratio) / (1 - ratio))

    def margin(self, confidence: object = 0.95) -> float:
        return float(np.ceil(float(self.scale) * -np.log(1 - float(validation.check_confidence(confidence)))))

    def noise(self, steps: Any, random_state: Any) -> Any:
        return samplers.discrete_laplace(float(self.scale), steps.size, random_state=random_state).reshape(steps.shape)

    def release(self, value: Any, *, random_state: RandomState = None) -> NoisyAnswer:
        source, guarantee = open_source(random_state, self.guarantee)
        steps = private_integers(value)
        noisy = unwrap(np.asarray(steps + self.noise(steps, source)))
        return NoisyAnswer(value=noisy, guarantee=guarantee, mechanism=self, event=self.event)


class SharedNoise(Toy):
    def noise(self, steps: Any, random_state: Any) -> Any:
        return samplers.discrete_laplace(float(self.scale), 1, random_state=random_state)[0]


class NoNoise(Toy):
    def noise(self, steps: Any, random_state: Any) -> Any:
        return 0 * steps


class ValueDependent(Toy):
    def noise(self, steps: Any, random_state: Any) -> Any:
        wide = float(self.scale) * (1 + 2 * float(np.max(steps)))
        return samplers.discrete_laplace(wide, steps.size, random_state=random_state).reshape(steps.shape)


class NarrowMargin(Toy):
    def margin(self, confidence: object = 0.95) -> float:
        return 0.5 * super().margin(confidence)


class MoreNoise(Toy):
    @property
    def scale(self) -> Fraction:
        return Fraction(self.epsilon)


class UnderstatedGuarantee(Toy):
    @property
    def guarantee(self) -> PureDP:
        return PureDP(epsilon=self.epsilon / 2)


class ForgetfulRelease(Toy):
    def release(self, value: Any, *, random_state: RandomState = None) -> NoisyAnswer:
        answer = super().release(value, random_state=random_state)
        return NoisyAnswer(value=answer.value, guarantee=PureDP(epsilon=7), mechanism=self, event=self.event)


class UntaintedSeed(Toy):
    def release(self, value: Any, *, random_state: RandomState = None) -> NoisyAnswer:
        answer = super().release(value, random_state=random_state)
        return NoisyAnswer(value=answer.value, guarantee=self.guarantee, mechanism=self, event=self.event)


class IgnoredSeed(Toy):
    def noise(self, steps: Any, random_state: Any) -> Any:
        return super().noise(steps, None)


class SilentSeed(Toy):
    def release(self, value: Any, *, random_state: Any = None) -> NoisyAnswer:
        return super().release(value)


class SeededByDefault(Toy):
    def release(self, value: Any, *, random_state: Any = None) -> NoisyAnswer:
        from cloister.core.random import SeededRandomSource

        return super().release(value, random_state=SeededRandomSource(1))


class AnyEpsilon(Toy):
    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", Fraction(1))


class BareError(Toy):
    def release(self, value: Any, *, random_state: RandomState = None) -> NoisyAnswer:
        return super().release(int(value), random_state=random_state)


class QuotingError(Toy):
    def release(self, value: Any, *, random_state: RandomState = None) -> NoisyAnswer:
        if not isinstance(value, int):
            raise ParameterError(f"{value} is not a whole number.", fix="pass one.")
        return super().release(value, random_state=random_state)


@dataclass(frozen=True, slots=True, kw_only=True)
class TellingAnswer(NoisyAnswer):
    truth: Any = None


class ShownValue(Toy):
    def release(self, value: Any, *, random_state: RandomState = None) -> NoisyAnswer:
        answer = super().release(value, random_state=random_state)
        return TellingAnswer(
            value=answer.value, guarantee=answer.guarantee, mechanism=self, event=self.event, truth=value
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OddAnswer(NoisyAnswer):
    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, **NoisyAnswer.to_dict(self), "schema": "x"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LossyAnswer(NoisyAnswer):
    def to_dict(self) -> dict[str, Any]:
        return {**NoisyAnswer.to_dict(self), "guarantee": PureDP(epsilon=9).to_dict()}


class OddJson(Toy):
    answer: ClassVar[Any] = OddAnswer

    def release(self, value: Any, *, random_state: RandomState = None) -> NoisyAnswer:
        answer = super().release(value, random_state=random_state)
        made: NoisyAnswer = self.answer(
            value=answer.value, guarantee=answer.guarantee, mechanism=self, event=self.event
        )
        return made


class LossyJson(OddJson):
    answer: ClassVar[Any] = LossyAnswer


class ScalarOnly(Toy):
    def release(self, value: Any, *, random_state: RandomState = None) -> NoisyAnswer:
        return super().release(
            int(np.sum(value)) if isinstance(value, np.ndarray) else value, random_state=random_state
        )
