"""The joint code of feature values and a class: one number that keeps which value belongs to which class.

A feature value ``a`` in 1 .. n and a class ``v`` in 1 .. k have the code ``(a - 1) k + v`` in 1 .. n k (Yilmaz,
Al-Rubaie and Chang 2019). Arrays count from 0: `JointCoding` codes several features at once, the class last, and for a
single feature its codes are those above less one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.core.validation import check_count
from cloister.errors import ParameterError
from cloister.local.domain import Codes

__all__ = ["JointCoding", "joint_code", "split_code"]


def joint_code(value: int, label: int, *, classes: int) -> int:
    """Return the code of a value and a class, all counted from 1.

    >>> joint_code(2, 2, classes=2)
    4
    """
    place = check_count(value, name="value", at_least=1)
    if check_count(label, name="label", at_least=1) > check_count(classes, name="classes", at_least=1):
        raise ParameterError("There is no such class.", fix=f"use a label in 1 .. {classes}.")
    return (place - 1) * classes + label


def split_code(code: int, *, classes: int) -> tuple[int, int]:
    """Return the value and the class of a code, all counted from 1.

    >>> split_code(4, classes=2)
    (2, 2)
    """
    value, label = divmod(
        check_count(code, name="code", at_least=1) - 1, check_count(classes, name="classes", at_least=1)
    )
    return value + 1, label + 1


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
