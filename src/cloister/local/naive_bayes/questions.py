"""The questions that a person may be asked about features and class, each told by a protocol of the whole epsilon."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.local.domain import Codes
from cloister.local.frequency.support import SupportProtocol
from cloister.local.naive_bayes.coding import JointCoding
from cloister.local.naive_bayes.people import People
from cloister.local.protocol import Protocol

__all__ = ["BitQuestion", "ClassQuestion", "JointQuestion", "Question"]


@dataclass(frozen=True, eq=False)
class Question(ABC):
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
    def codes(self, people: People) -> NDArray[Any]:
        """Return each person's true answer, as the protocol takes it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the question as JSON-ready values."""
        return {"name": self.name, "sides": self.sides, "protocol": self.protocol.to_dict()}


@dataclass(frozen=True, eq=False)
class JointQuestion(Question):
    """The joint code of some features and the class; of no feature: the class alone.

    Attributes:
        places: which features.
        coding: their joint code with the class.
    """

    protocol: SupportProtocol
    places: tuple[int, ...]
    coding: JointCoding

    def codes(self, people: People) -> Codes:
        """Return each person's joint code."""
        return self.coding.encode([people.features[place] for place in self.places], people.labels)


@dataclass(frozen=True, eq=False)
class BitQuestion(Question):
    """A feature of two values alone, or whether it differs from the class, of which there are two.

    Attributes:
        place: which feature.
        differs: whether the answer is 1 if feature and class differ, rather than for the feature's second value.
    """

    protocol: SupportProtocol
    place: int
    differs: bool

    def codes(self, people: People) -> Codes:
        """Return one bit for each person."""
        return people.features[self.place] ^ people.labels if self.differs else people.features[self.place]


@dataclass(frozen=True, eq=False)
class ClassQuestion(Question):
    """The value of a feature if the person is of one class, and "of another class" (code 0) otherwise.

    Attributes:
        place: which feature.
        label: which class.
    """

    protocol: SupportProtocol
    place: int
    label: int

    def codes(self, people: People) -> Codes:
        """Return 0 for people of other classes, else the value counted from 1."""
        return np.where(people.labels == self.label, people.features[self.place] + 1, 0)
