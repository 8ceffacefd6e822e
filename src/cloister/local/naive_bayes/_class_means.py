"""Protocols for a class and a number together: reports from which the mean of the number in every class follows.

A number v is in -1 .. 1 and on steps of 1/2**16. What a report estimates without bias is for each class c the product
``P(c) E[v | c]``; dividing by the class's share gives the mean in the class. Three ways to tell it:

- `ClassVector` (Yilmaz, Al-Rubaie and Chang 2019): a vector with v at the place of the own class and 0 elsewhere, and
  Laplace noise of scale 2 / epsilon on *every* entry, which hides the class as well as the number.
- `ClassAndValue`: the class by direct encoding with epsilon / 2, and v by the piecewise protocol with epsilon / 2; the
  sums by reported class are solved for the true ones.
- `ClassAndBit`: v is rounded at random to one of its ends, and the end is told together with the class, as one of 2 k
  values, with the whole epsilon.

`best_protocol` compares their variances: the bit is best up to about epsilon 4, the value from
4.5 or a little more, depending on the number of classes.

Privacy: claim epsilon-LDP for class and number together. Two vectors are at most 2 apart in L1, and discrete Laplace
noise of scale 2 / epsilon per entry is drawn exactly on the steps. The two parts of `ClassAndValue` have ratios
exp(epsilon / 2) and draws of their own. `ClassAndBit` looks at v only to round it, before a protocol of ratio
exp(epsilon).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.validation import check_count
from cloister.errors import InternalError
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Integer, Integers, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Codes, Domain
from cloister.local.draws import Draws, SourceDraws
from cloister.local.estimates import enough
from cloister.local.frequency.randomized_response import DirectEncoding
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.support import SupportProtocol
from cloister.local.naive_bayes._joint_tables import Floats, JointTable
from cloister.local.naive_bayes.features import finite_numbers
from cloister.local.numeric.piecewise import Piecewise
from cloister.local.protocol import Protocol
from cloister.local.reports import Reports
from cloister.mechanisms.sampling.discrete_noise import discrete_laplace

__all__ = [
    "STEPS",
    "ClassAndBit",
    "ClassAndValue",
    "ClassMeanProtocol",
    "ClassProducts",
    "ClassVector",
    "best_protocol",
    "class_mean_protocols",
]

STEPS = 2**16
"""How many steps there are between 0 and 1."""

_SCALES = 40
_TYPICAL_SQUARE = 0.2


@dataclass(frozen=True, eq=False)
class ClassProducts:
    """What reports say about a number in each class.

    Attributes:
        products: the unbiased estimate of P(c) E[v | c] for each class c.
        variances: of each of them.
        shares: a table of the classes alone, None if the reports do not tell.
        reports: how many there are.
    """

    products: Floats
    variances: Floats
    shares: JointTable | None
    reports: int


class ClassMeanProtocol(Protocol):
    """A protocol for a class and a number in -1 .. 1; codes are rows of (class, step)."""

    def __init__(self, *, classes: int, epsilon: Number, steps: int = STEPS) -> None:
        super().__init__(epsilon=epsilon)
        self.classes = check_count(classes, name="classes", at_least=2)
        self.steps = check_count(steps, name="steps", at_least=1)

    def encode(self, values: Any) -> tuple[NDArray[Any], bool]:  # one pair or many
        """Return (class, step) for pairs of a class's place and a number in -1 .. 1."""
        pairs = finite_numbers(values)
        single, pairs = pairs.ndim == 1, pairs.reshape(-1, 2)
        labels = Domain.of(self.classes).codes(pairs[:, 0].astype(np.int64))
        return self.code(labels, pairs[:, 1]), single

    def code(self, labels: Codes, numbers: Floats) -> Codes:
        """Return rows of (class, step) for numbers, clamped to -1 .. 1."""
        # Rounding is part of the device: a number between two steps would show more than its step.
        steps = np.rint(np.clip(numbers, -1, 1) * self.steps).astype(np.int64)
        return np.stack([labels, steps], axis=1)

    def estimate(self, reports: Any) -> ClassProducts:  # whatever holds reports
        """Return what the reports say about the number in each class."""
        found = self.read(reports)
        enough(len(found))
        return self.products(found.payload)

    @abstractmethod
    def products(self, payload: Payload) -> ClassProducts:
        """Return what checked reports say."""

    @classmethod
    @abstractmethod
    def typical_variance(cls, classes: int, epsilon: Fraction) -> float:
        """Return the variance of a product times the number of reports, for equal classes and E[v**2] = 1/5."""

    def _domain_record(self) -> dict[str, Any]:
        return {"classes": self.classes}

    def _domain_words(self) -> str:
        return f"{self.classes} classes"


class ClassVector(ClassMeanProtocol):
    """Laplace noise on every entry of a vector that is zero but for the own class."""

    name = "class_vector"

    def __init__(self, *, classes: int, epsilon: Number, steps: int = STEPS) -> None:
        super().__init__(classes=classes, epsilon=epsilon, steps=steps)
        self.scale = 2 * self.steps / self.epsilon
        self._reach = self.steps + math.ceil(_SCALES * self.scale)
        self.output_space = OutputSpace((Integers("y", self.classes, -self._reach, self._reach),))
        self._check_epsilon()

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return exp(epsilon), which has no exact form: rounded up beyond the thirtieth digit."""
        return exact.exp_bounds(2 * self.steps / self.scale)[1]

    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return vectors with noise, folded into a range of 40 scales beyond the ends."""
        if not isinstance(draws, SourceDraws):
            raise InternalError("Laplace noise needs a random source")
        noisy = discrete_laplace(self.scale).draw(draws.source, len(codes) * self.classes)
        noisy = noisy.reshape(len(codes), self.classes)
        # The own entry gets its number and all others zero: which of them is which, the noise hides.
        noisy[np.arange(len(codes)), codes[:, 0]] += codes[:, 1]
        return self.output_space.rows(y=np.clip(noisy, -self._reach, self._reach))

    def products(self, payload: Payload) -> ClassProducts:
        """Return the mean of each entry."""
        entries = payload["y"] / self.steps
        # A handful of equal reports is no sign of certainty: the noise alone has this variance.
        least = 8 / float(self.epsilon) ** 2
        variances = np.maximum(entries.var(axis=0), least) / len(entries)
        return ClassProducts(entries.mean(axis=0), variances, None, len(entries))

    @classmethod
    def typical_variance(cls, classes: int, epsilon: Fraction) -> float:
        """Return the variance of the noise, and of the entry itself."""
        return 8 / float(epsilon) ** 2 + _TYPICAL_SQUARE / classes

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return self.classes * math.log(math.tanh(1 / (2 * float(self.scale))))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        yield partial(plausibility.noise, scale=float(self.scale), ends=(-self.steps, self.steps))

    def _params(self) -> dict[str, Any]:
        return {"steps": self.steps, "scale": exact.text(self.scale)}


class ClassAndValue(ClassMeanProtocol):
    """The class by direct encoding and the number by the piecewise protocol, half of epsilon each."""

    name = "class_and_value"

    def __init__(self, *, classes: int, epsilon: Number, steps: int = STEPS) -> None:
        super().__init__(classes=classes, epsilon=epsilon, steps=steps)
        self.label = DirectEncoding(domain=self.classes, epsilon=self.epsilon / 2)
        self.number = Piecewise(bounds=(-1, 1), epsilon=self.epsilon / 2, steps=2 * self.steps)
        number = self.number.output_space.fields[0]
        if not isinstance(number, Integer):
            raise InternalError("a report of the piecewise protocol is not one integer")
        self.output_space = OutputSpace((Integer("label", 0, self.classes - 1), number))
        self._check_epsilon()

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the product of the two ratios."""
        return self.label.likelihood_ratio * self.number.likelihood_ratio

    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return reports: the draws of the class, then those of the number."""
        labels = self.label.perturb(codes[:, 0], draws)["y"]
        numbers = self.number.perturb(codes[:, 1] + self.steps, draws)["y"]
        return self.output_space.rows(label=labels, y=numbers)

    def products(self, payload: Payload) -> ClassProducts:
        """Return the sums by reported class, solved for the true classes."""
        p, q = map(float, self.label.probabilities)
        rows = self.number.output_space.rows(y=payload["y"])
        values = self.number.debias(Reports(self.number, rows))
        # A report of the class counts for it by 1 - q and against the others by q, so that lies cancel on average.
        told = (payload["label"][:, None] == np.arange(self.classes)) - q
        each = told * values[:, None] / (p - q)
        labels = np.bincount(payload["label"], minlength=self.classes)[None, :]
        shares = JointTable(labels, len(payload), q, p - q)
        return ClassProducts(each.mean(axis=0), each.var(axis=0) / len(payload), shares, len(payload))

    @classmethod
    def typical_variance(cls, classes: int, epsilon: Fraction) -> float:
        """Return the second moment of a solved report."""
        growth = math.exp(float(epsilon) / 2)
        # Each part has half of epsilon, and the piecewise protocol works with half of that again.
        p, q, s = growth / (growth + classes - 1), 1 / (growth + classes - 1), math.exp(float(epsilon) / 4)
        noise = (s + 3) / (3 * (s - 1) ** 2) + _TYPICAL_SQUARE * s / (s - 1)
        own = p * (1 - q) ** 2 + (1 - p) * q**2
        other = q * (1 - q) ** 2 + (1 - q) * q**2
        return noise * (own + (classes - 1) * other) / (classes * (p - q) ** 2)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return self.label.likeliest_report + self.number.likeliest_report

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        p, q = map(float, self.label.probabilities)
        low, high = np.full(self.classes, q), np.full(self.classes, p)
        yield partial(plausibility.symbols, low=low, high=high, field="label")
        yield from self.number.plausibility_tests()

    def _params(self) -> dict[str, Any]:
        return {"label": self.label.to_dict(), "number": self.number.to_dict()}


class ClassAndBit(ClassMeanProtocol):
    """The number, rounded at random to one of its ends, told together with the class."""

    name = "class_and_bit"

    def __init__(self, *, classes: int, epsilon: Number, steps: int = STEPS) -> None:
        super().__init__(classes=classes, epsilon=epsilon, steps=steps)
        self.joint = _joint(self.classes, self.epsilon)
        self.output_space = self.joint.output_space
        self._check_epsilon()

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return that of the joint report."""
        return self.joint.likelihood_ratio

    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return reports: one draw that rounds the number, then those of the joint report."""
        # A uniform step is below the number with probability (1 + v) / 2: rounding without bias, in integers.
        upper = draws.below(2 * self.steps, len(codes)) < codes[:, 1] + self.steps
        return self.joint.perturb(upper * self.classes + codes[:, 0], draws)

    def products(self, payload: Payload) -> ClassProducts:
        """Return for each class how much more often its upper end is supported than its lower."""
        p, q = map(float, self.joint.probabilities)
        counts, reports = self.joint.support_counts(payload).reshape(2, self.classes), len(payload)
        table = JointTable(counts, reports, q, p - q)
        # A direct report supports one of the two ends only, so that the two counts never come from the same report.
        if isinstance(self.joint, DirectEncoding):
            support = counts.sum(axis=0) / reports
            variances = support / ((p - q) ** 2 * reports)
            shares = JointTable(counts.sum(axis=0, keepdims=True), reports, 2 * q, p - q)
        else:
            variances, shares = (
                np.full(self.classes, self.typical_variance(self.classes, self.epsilon) / reports),
                table,
            )
        return ClassProducts(table.shares[1] - table.shares[0], variances, shares, reports)

    @classmethod
    def typical_variance(cls, classes: int, epsilon: Fraction) -> float:
        """Return the variance of the difference of two cells, which are negatively correlated."""
        joint, cells = _joint(classes, epsilon), 2 * classes
        p, q = map(float, joint.probabilities)
        support = q + (p - q) / cells
        return 2 * support * (1 - support) * cells / ((cells - 1) * (p - q) ** 2)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return self.joint.likeliest_report

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        yield from self.joint.plausibility_tests()

    def _params(self) -> dict[str, Any]:
        return {"steps": self.steps, "joint": self.joint.to_dict()}


class_mean_protocols: dict[str, type[ClassMeanProtocol]] = {
    "vector": ClassVector,
    "value": ClassAndValue,
    "bit": ClassAndBit,
}
"""The ways to tell a class and a number together, by name."""


def best_protocol(classes: int, epsilon: Fraction) -> str:
    """Return the way with the smallest variance for equal classes and numbers of typical size."""
    return min(class_mean_protocols, key=lambda name: class_mean_protocols[name].typical_variance(classes, epsilon))


def _joint(classes: int, epsilon: Fraction) -> SupportProtocol:
    subset = SubsetSelection(domain=2 * classes, epsilon=epsilon)
    # A set of one value is a direct report, with a report that is shorter.
    return subset if subset.size > 1 else DirectEncoding(domain=2 * classes, epsilon=epsilon)
