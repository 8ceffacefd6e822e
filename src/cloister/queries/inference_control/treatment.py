"""What is shown in place of an exact number: a rounded one, or the range that it is in (global recoding).

Both are deterministic: the same number is always shown the same way, so that repeating a question gains nothing. They
are no noise, and answers to different questions can still be combined to narrow a number down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from cloister.core import validation
from cloister.data.bins import Interval
from cloister.errors import ParameterError

__all__ = ["Ranges", "Rounded", "Shown", "Treatment", "shown", "treatment_from_dict"]

Shown: TypeAlias = "int | float | Interval"


@dataclass(frozen=True, slots=True)
class Rounded:
    """The nearest multiple of a number, halves upward.

    >>> Rounded(to=5).treat(Fraction(12)), Rounded(to=5).treat(Fraction(25, 2))
    (10, 15)
    """

    to: Fraction

    def __init__(self, *, to: object) -> None:
        object.__setattr__(self, "to", validation.check_positive(to, name="to"))

    def treat(self, number: Fraction) -> Shown:
        """Return what is shown for a number."""
        return shown(math.floor(number / self.to + Fraction(1, 2)) * self.to)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"kind": "rounded", "to": str(self.to)}


@dataclass(frozen=True, slots=True)
class Ranges:
    """The range of a fixed width that a number is in.

    >>> str(Ranges(width=10).treat(Fraction(26)))
    '[20, 30)'
    """

    width: Fraction

    def __init__(self, *, width: object) -> None:
        object.__setattr__(self, "width", validation.check_positive(width, name="width"))

    def treat(self, number: Fraction) -> Shown:
        """Return what is shown for a number."""
        low = math.floor(number / self.width) * self.width
        return Interval(shown(low), shown(low + self.width))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"kind": "ranges", "width": str(self.width)}


Treatment: TypeAlias = Rounded | Ranges


def shown(number: Fraction) -> int | float:
    """Return an exact number as people read it."""
    return int(number) if number.denominator == 1 else float(number)


def treatment_from_dict(data: object) -> Treatment | None:
    """Return what `to_dict` was made of; None stands for no treatment.

    Raises:
        ParameterError: if it is neither.
    """
    if data is None:
        return None
    match data:
        case Mapping() if data.get("kind") == "rounded" and set(data) == {"kind", "to"}:
            return Rounded(to=data["to"])
        case Mapping() if data.get("kind") == "ranges" and set(data) == {"kind", "width"}:
            return Ranges(width=data["width"])
    raise ParameterError(
        "A treatment of answers is not understood.", fix='write for example {"kind": "rounded", "to": "5"}.'
    )
