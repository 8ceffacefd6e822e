"""The questions that a person may be asked about features and class, and which of them are: a public choice.

Each is told by a protocol of the whole epsilon. Most are about a joint code, one number that keeps which value belongs
to which class: a feature value ``a`` in 1 .. n and a class ``v`` in 1 .. k have the code ``(a - 1) k + v`` in 1 .. n k
(Yilmaz, Al-Rubaie and Chang 2019). Arrays count from 0: `JointCoding` codes several features at once, the class last,
and for a single feature its codes are those above less one.

Which are asked follows from the sizes of the features, the number of classes and epsilon. A public coin chooses a
person's question, before the person looks at anything. In the published design it has one side for the class alone and
one for each feature together with the class.

At a large epsilon a report can carry several features: direct encoding of d codes tells a true one with weight
``a = (e - 1) / (e + d - 1)``, e = exp(epsilon), so that s features together are learned as well as from ``s a**2``
times as many people each. The plan weighs that by the expected squared error of all tables. Where features share
questions, every report tells the class well, and the class alone is not asked.

At a small epsilon and with two classes, a feature of two values is not told together with the class. The four joint
codes hold three contrasts, one of which is the class, the same for all features. So one in four of the people who are
asked about the feature tells it alone, and three in four whether it differs from the class: one bit with the whole
epsilon. Each of the two contrasts then has variance ``((e + 1) / (e - 1))**2`` per report, rather than
``((e + 3) / (e - 1))**2``. The class, which no other report tells, counts as two features. One in four is best if an
error in how the feature goes with the class weighs nine times as much as one in its own share.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.errors import ParameterError
from cloister.local.domain import Codes
from cloister.local.frequency.randomized_response import DirectEncoding
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.support import SupportProtocol
from cloister.local.naive_bayes.features import LabeledPeople
from cloister.local.protocol import Protocol, protocols
from cloister.local.recommendation import recommend

__all__ = [
    "BitQuestion",
    "ClassQuestion",
    "FeatureQuestion",
    "JointCoding",
    "JointQuestion",
    "QuestionPlan",
    "best_support_protocol",
]


@dataclass(frozen=True, slots=True)
class JointCoding:
    """Codes 0 .. size-1 of the values of some features (perhaps none) and a class.

    >>> JointCoding((3,), 2).encode([np.array([0, 1, 2])], np.array([0, 1, 1]))
    array([0, 3, 5])
    """

    sizes: tuple[int, ...]
    classes: int

    @property
    def size(self) -> int:
        """Return the number of codes."""
        return math.prod(self.sizes) * self.classes

    def encode(self, values: Sequence[Codes], labels: Codes) -> Codes:
        """Return the code of each person's values and class, all counted from 0."""
        code = np.zeros(len(labels), dtype=np.int64)
        for size, column in zip(self.sizes, values, strict=True):
            code = code * size + column
        return np.asarray(code * self.classes + labels)

    def decode(self, codes: Codes) -> tuple[list[Codes], Codes]:
        """Return the values of each feature, and the class."""
        rest, labels = np.divmod(codes, self.classes)
        values: list[Codes] = []
        for size in reversed(self.sizes):
            rest, column = np.divmod(rest, size)
            values.insert(0, column)
        return values, labels

    def table(self, counts: NDArray[np.int64], place: int) -> NDArray[np.int64]:
        """Return what was counted for each code, added up by the values of one feature (rows) and the class."""
        spread = counts.reshape(*self.sizes, self.classes)
        others = tuple(axis for axis in range(len(self.sizes)) if axis != place)
        return np.asarray(spread.sum(axis=others))


@dataclass(frozen=True, eq=False)
class FeatureQuestion(ABC):
    """One question of a design.

    Attributes:
        name: what it asks, for people.
        protocol: how a device tells its answer.
        sides: on how many sides of the public coin it is.
    """

    name: str
    protocol: Protocol
    sides: int

    @abstractmethod
    def codes(self, people: LabeledPeople) -> NDArray[Any]:
        """Return each person's true answer, as the protocol takes it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the question as JSON-ready values."""
        return {"name": self.name, "sides": self.sides, "protocol": self.protocol.to_dict()}


@dataclass(frozen=True, eq=False)
class JointQuestion(FeatureQuestion):
    """The joint code of some features and the class; of no feature: the class alone.

    Attributes:
        places: which features.
        coding: their joint code with the class.
    """

    protocol: SupportProtocol
    places: tuple[int, ...]
    coding: JointCoding

    def codes(self, people: LabeledPeople) -> Codes:
        """Return each person's joint code."""
        return self.coding.encode([people.features[place] for place in self.places], people.labels)


@dataclass(frozen=True, eq=False)
class BitQuestion(FeatureQuestion):
    """A feature of two values alone, or whether it differs from the class, of which there are two.

    Attributes:
        place: which feature.
        differs: whether the answer is 1 if feature and class differ, rather than for the feature's second value.
    """

    protocol: SupportProtocol
    place: int
    differs: bool

    def codes(self, people: LabeledPeople) -> Codes:
        """Return one bit for each person."""
        return people.features[self.place] ^ people.labels if self.differs else people.features[self.place]


@dataclass(frozen=True, eq=False)
class ClassQuestion(FeatureQuestion):
    """The value of a feature if the person is of one class, and "of another class" (code 0) otherwise.

    Attributes:
        place: which feature.
        label: which class.
    """

    protocol: SupportProtocol
    place: int
    label: int

    def codes(self, people: LabeledPeople) -> Codes:
        """Return 0 for people of other classes, else the value counted from 1."""
        return np.where(people.labels == self.label, people.features[self.place] + 1, 0)


_MOST_SUBSET_VALUES = 64
_MOST_JOINT_CODES = 2**13
_FEATURE_SIDES, _DIFFERENCE_SIDES, _CLASS_SIDES = 1, 3, 8
_WEIGHT = 9


@dataclass(frozen=True, kw_only=True)
class QuestionPlan:
    """What is public about the features, and the questions that follow.

    Attributes:
        names: the features.
        sizes: how many values each has.
        classes: how many classes there are.
        epsilon: what a report may cost.
        protocol: the registered name of a protocol for all questions, or ``"auto"``.
    """

    names: Sequence[str]
    sizes: Sequence[int]
    classes: int
    epsilon: Fraction
    protocol: str = "auto"

    def single(self) -> tuple[FeatureQuestion, ...]:
        """Return the class alone, and the class with each feature."""
        return tuple(self._joint(block, 1) for block in [(), *self._features()])

    def best(self) -> tuple[FeatureQuestion, ...]:
        """Return the most exact questions; those of `single` for a protocol that is not direct encoding."""
        kind = self._kind()
        # The error of shared questions is worked out for direct encoding alone.
        if kind not in (None, DirectEncoding):
            return self.single()
        # Public sizes and epsilon decide, so that devices and collector come to the same questions by themselves.
        blocks = _best_blocks(self.sizes, self.classes, self.epsilon)
        if any(len(block) > 1 for block in blocks):
            return tuple(self._joint(block, len(block)) for block in blocks)
        if kind is None and self.classes == 2 and 2 in self.sizes and _bits_are_better(self.epsilon):
            return self._bits()
        return self.single()

    def all_columns(self) -> tuple[FeatureQuestion, ...]:
        """Return the class, and every feature once for every class: questions that one person answers all."""
        questions: list[FeatureQuestion] = [self._joint((), 1)]
        for place, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            # One protocol for all classes: the additional code is for people of another class, who answer as well.
            shared = self._open(size + 1)
            questions += [
                ClassQuestion(f"{name} in class {label}", shared, 1, place, label) for label in range(self.classes)
            ]
        return tuple(questions)

    def _bits(self) -> tuple[FeatureQuestion, ...]:
        told = DirectEncoding(domain=2, epsilon=self.epsilon)
        questions: list[FeatureQuestion] = [self._joint((), _CLASS_SIDES)]
        for place, name in enumerate(self.names):
            if self.sizes[place] == 2:
                questions += [
                    BitQuestion(name, told, _FEATURE_SIDES, place, differs=False),
                    BitQuestion(f"whether class and {name} differ", told, _DIFFERENCE_SIDES, place, differs=True),
                ]
            else:
                questions.append(self._joint((place,), _FEATURE_SIDES + _DIFFERENCE_SIDES))
        return tuple(questions)

    def _joint(self, block: tuple[int, ...], sides: int) -> JointQuestion:
        coding = JointCoding(tuple(self.sizes[place] for place in block), self.classes)
        title = " and ".join(["class", *(self.names[place] for place in block)])
        if len(block) > 1:
            return JointQuestion(title, DirectEncoding(domain=coding.size, epsilon=self.epsilon), sides, block, coding)
        return JointQuestion(title, self._open(coding.size), sides, block, coding)

    def _features(self) -> list[tuple[int, ...]]:
        return [(place,) for place in range(len(self.sizes))]

    def _kind(self) -> type[SupportProtocol] | None:
        """Return the class of the named protocol, None for the best one."""
        if self.protocol == "auto":
            return None
        kind = protocols.get(self.protocol)
        if not issubclass(kind, SupportProtocol):
            raise ParameterError(
                f'Reports of "{self.protocol}" do not support values of a domain.',
                fix='use protocol="auto" or "direct_encoding".',
            )
        return kind

    def _open(self, size: int) -> SupportProtocol:
        kind = self._kind()
        if kind is None:
            return best_support_protocol(size, self.epsilon)
        return kind(domain=size, epsilon=self.epsilon)


def _bits_are_better(epsilon: Fraction) -> bool:
    """Return whether bits have the smaller weighted variance, against direct encoding of four joint codes."""
    growth = float(exact.exp_bounds(epsilon)[0])
    sides = _FEATURE_SIDES + _DIFFERENCE_SIDES
    # A question that gets one side of four has a quarter of the people, and four times the variance.
    bits = (growth + 1) ** 2 * (sides / _FEATURE_SIDES + _WEIGHT * sides / _DIFFERENCE_SIDES)
    return bits < (growth + 3) ** 2 * (1 + _WEIGHT)


@lru_cache(maxsize=256)
def best_support_protocol(size: int, epsilon: Fraction) -> SupportProtocol:
    """Return subset selection for few values (direct encoding where its sets have one value), else as recommended."""
    if size <= _MOST_SUBSET_VALUES:
        subset = SubsetSelection(domain=size, epsilon=epsilon)
        # Sets of one value are direct reports, which are shorter.
        return subset if subset.size > 1 else DirectEncoding(domain=size, epsilon=epsilon)
    kind = recommend(size, epsilon).protocol
    chosen = kind if issubclass(kind, SupportProtocol) else DirectEncoding
    return chosen(domain=size, epsilon=epsilon)


def _best_blocks(sizes: Sequence[int], classes: int, epsilon: Fraction) -> list[tuple[int, ...]]:
    """Return the features in blocks, for the number of blocks with the smallest expected error."""
    # From many small blocks to one large one: of equally good divisions the first, with the fewest codes, is taken.
    divisions = [_blocks(sizes, count) for count in range(len(sizes), 0, -1)]
    possible = [
        division
        for division in divisions
        if all(len(block) == 1 or _codes(block, sizes, classes) <= _MOST_JOINT_CODES for block in division)
    ]
    return min(possible, key=lambda division: sum(_error(block, sizes, classes, epsilon) for block in division))


def _blocks(sizes: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Return so many blocks: largest features first, each into the block with the fewest codes."""
    blocks: list[tuple[int, list[int]]] = [(1, []) for _ in range(count)]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        codes, block = blocks[0]
        # The heap keeps the block with the fewest codes in front.
        heapq.heapreplace(blocks, (codes * sizes[place], [*block, place]))
    return sorted(tuple(sorted(block)) for _, block in blocks)


def _codes(block: Sequence[int], sizes: Sequence[int], classes: int) -> int:
    return math.prod(sizes[place] for place in block) * classes


def _error(block: Sequence[int], sizes: Sequence[int], classes: int, epsilon: Fraction) -> float:
    """Return the squared error of all cells of the block's tables, times the people per side of the coin."""
    cells = [sizes[place] * classes for place in block]
    if len(block) == 1:
        p, q = map(float, best_support_protocol(cells[0], epsilon).probabilities)
        support = q + (p - q) / cells[0]
        return cells[0] * support * (1 - support) / (p - q) ** 2
    growth = float(exact.exp_bounds(epsilon)[0])
    weight = (growth - 1) / (growth + _codes(block, sizes, classes) - 1)
    # Every report tells all features of its block, and a larger block gets as many more sides of the coin.
    return sum(1 - 1 / count for count in cells) / (weight**2 * len(block))
