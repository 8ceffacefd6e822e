"""Levels: how much of an answer a respondent gives away, chosen question by question, and what is told about that.

A level has a name and an epsilon; "off" has none and means that the question is not answered. The level of a report is
visible to the collector. It must not depend on the answer, or it tells about it: show the levels before the question,
or preselect one.

A `Statement` says how much the collector can learn from a report, in words and in numbers. A report with epsilon is
bounded evidence: whatever somebody believed about the sender's answer before, the odds of any two answers change by at
most the factor exp(epsilon). That is all that is promised. Who takes part, which level they chose and what everybody
together answered is not hidden, and no sentence here says that an answer is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.core import exact, wordings
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.validation import check_epsilon, check_probability
from cloister.core.wordings import a_or_an, format_count, percent
from cloister.errors import CloisterError, ParameterError, ParameterTypeError
from cloister.local.collection.levels import LEVELS
from cloister.local.protocol import LARGEST_EPSILON, SMALLEST_EPSILON, check_local_epsilon

__all__ = [
    "DEFAULT_LEVELS",
    "LEVELS_ARE_VISIBLE",
    "OFF",
    "Statement",
    "SurveyLevel",
    "check_name",
    "format_factor",
    "middle_level",
    "odds_factor",
    "read_levels",
    "took_part",
    "total_statement",
]


LEVELS_ARE_VISIBLE = (
    "The collector sees which level you chose, and whether you answered. Choose before you think of your answer: if "
    "the choice depends on the answer, the choice itself tells about it."
)
"""What to show beside a choice of levels."""

_NOT_ANSWERED = (
    "You do not answer this question. The collector sees that you did not, and nothing about your answer is sent."
)
_NOTHING = "You answer no question. The collector sees that you took part, and nothing about your answers is sent."
_MOST = 10**15
_EXAMPLE_PRIORS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class Statement:
    """What one report, or several together, can tell about their sender.

    Attributes:
        epsilon: the loss; 0 where nothing is answered.
        several: whether it is about all answers of a person together.

    >>> print(Statement(Fraction(1)))
    Whatever you answer, the collector's odds about your true answer can change by at most a factor 2.72.
    """

    epsilon: Fraction
    several: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, allow_zero=True))

    @property
    def factor(self) -> float:
        """Return by how much odds can change, at most."""
        return odds_factor(self.epsilon)

    def posterior(self, prior: object) -> tuple[float, float]:
        """Return the least and the most that somebody can believe after the report, who believed ``prior`` before.

        >>> least, most = Statement(Fraction(1)).posterior(0.1)
        >>> print(f"{least:.3f} to {most:.3f}")
        0.039 to 0.232
        """
        before = check_probability(prior, name="prior")
        factor = exact.exp_bounds(self.epsilon)[1]
        low, high = before / (before + factor * (1 - before)), factor * before / (factor * before + 1 - before)
        # Rounded outwards, as both are bounds: what somebody may believe lies between, whatever the rounding.
        return exact.float_below(low), exact.float_above(high)

    def example(self, prior: object = "0.1") -> str:
        """Return an example of what the collector may believe afterwards.

        >>> print(Statement(Fraction(1)).example())
        Somebody who gave your true answer a chance of 10% before may give it between 3.9% and 24% afterwards.
        """
        least, most = self.posterior(prior)
        # Both are bounds of what somebody may believe, so that each is rounded away from the other.
        low, high = percent(least, digits=2, rounding="down"), percent(most, digits=2, rounding="up")
        before = percent(check_probability(prior, name="prior"), digits=2)
        return (
            f"Somebody who gave your true answer a chance of {before} before may give it between {low} and {high} "
            "afterwards."
        )

    def __str__(self) -> str:
        if self.epsilon == 0:
            return _NOTHING if self.several else _NOT_ANSWERED
        what = "all your true answers together" if self.several else "your true answer"
        return (
            f"Whatever you answer, the collector's odds about {what} can change by at most a factor "
            f"{format_factor(self.factor)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, with the beliefs that three prior ones can become."""
        beliefs = [{"before": float(prior), "after": list(self.posterior(prior))} for prior in _EXAMPLE_PRIORS]
        return {"statement": str(self), "odds_factor": min(self.factor, 1e300), "beliefs": beliefs}


def total_statement(epsilons: Iterable[Fraction]) -> Statement:
    """Return the statement about several answers of one person: their epsilons add up."""
    return Statement(sum(epsilons, Fraction(0)), several=True)


def odds_factor(epsilon: Fraction) -> float:
    """Return exp(epsilon), rounded up, or infinity where that is beyond any number of use."""
    return exact.float_above(exact.exp_bounds(epsilon)[1]) if epsilon < 700 else math.inf


def format_factor(factor: float) -> str:
    """Return a factor with three digits, rounded up, since it is a bound.

    >>> format_factor(1.2840), format_factor(54.598), format_factor(22026.5)
    ('1.29', '54.6', '22,100')
    """
    return "above a million billions" if factor >= _MOST else wordings.format_factor(factor)


def took_part(people: int) -> str:
    """Return the sentence that says how many people took part.

    >>> took_part(1), took_part(2000)
    ('1 person took part.', '2,000 people took part.')
    """
    return f"{format_count(people, 'person', 'people')} took part."


OFF = "off"
"""The level of those who do not answer."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MOST_LEVELS = 8


@dataclass(frozen=True, slots=True)
class SurveyLevel:
    """A choice of the respondent.

    Attributes:
        name: small letters, digits, hyphens and underscores.
        epsilon: what an answer costs at this level; None for "off".
    """

    name: str
    epsilon: Fraction | None

    def __init__(self, name: str, epsilon: Number | None) -> None:
        construct(self, name=name, epsilon=epsilon)

    def __post_init__(self) -> None:
        check_name(self.name, what="level")
        if (self.name == OFF) != (self.epsilon is None):
            raise ParameterError(
                f'The level "{OFF}" alone has no epsilon: it means that the question is not answered.',
                fix=f"write for example {OFF}: null, medium: 1.",
            )
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", _epsilon(self.name, self.epsilon))

    @property
    def loss(self) -> Fraction:
        """Return what an answer costs: 0 where none is given."""
        return Fraction(0) if self.epsilon is None else self.epsilon


def _epsilon(name: str, value: object) -> Fraction:
    try:
        return check_local_epsilon(value)
    except CloisterError:
        least = format(float(SMALLEST_EPSILON), "f")
        raise ParameterError(
            f'The epsilon of level "{name}" is not a number from {least} to {LARGEST_EPSILON}.',
            fix=f"write for example {name}: 1; smaller protects more, above 10 a report is practically the truth.",
        ) from None


def read_levels(values: Any) -> tuple[SurveyLevel, ...]:  # a mapping from a file, or levels
    """Return levels from a mapping of names to epsilons, or as they are.

    >>> print(*(level.name for level in read_levels({"off": None, "strict": "1/2"})))
    off strict
    """
    if isinstance(values, Mapping):
        values = tuple(SurveyLevel(name, epsilon) for name, epsilon in values.items())
    if not isinstance(values, tuple) or not all(isinstance(level, SurveyLevel) for level in values):
        raise ParameterTypeError("levels are not a mapping.", fix="write for example levels: {off: null, medium: 1}.")
    names = [level.name for level in values]
    if len(set(names)) != len(names) or not any(level.epsilon for level in values) or len(values) > _MOST_LEVELS:
        raise ParameterError(
            "levels repeat, or none lets anybody answer, or there are too many to choose from.",
            fix=f"write up to {_MOST_LEVELS}, for example levels: {{off: null, medium: 1}}.",
        )
    return values


def middle_level(levels: tuple[SurveyLevel, ...]) -> SurveyLevel:
    """Return the level to preselect where none is named: the middle one, the more private of two."""
    answering = sorted((level for level in levels if level.epsilon is not None), key=lambda level: level.loss)
    return answering[(len(answering) - 1) // 2]


def check_name(name: object, *, what: str, where: str = "") -> str:
    """Return a name for machines: small letters, digits, hyphens and underscores."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParameterError(
            f'{where}"{str(name)[:40]}" cannot be the name of {a_or_an(what)}.',
            fix='write up to 64 small letters, digits, hyphens and underscores, for example "age" or "spring-2026".',
        )
    return name


DEFAULT_LEVELS = tuple(SurveyLevel(name, epsilon) for name, epsilon in LEVELS.epsilons.items())
"""Not answering, and three levels of protection: low, medium and high."""
