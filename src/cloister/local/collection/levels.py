"""Privacy levels that people choose for themselves, question by question.

Each level has its own epsilon, hence its own protocol; a report says its level, and the collector undoes each level's
noise by itself. "Off" is no answer: it is counted, as a stratum of its own, and not guessed.

The level is not protected. Whoever chooses a stronger one because of their answer shows that, beyond any epsilon: let
people choose levels before they see the question, or offer one default for each kind of question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.guarantees import Caveat, LocalDP
from cloister.core.random import RandomState, random_source
from cloister.core.validation import check_choice
from cloister.errors import OutsideDomainError, ParameterError, ParameterTypeError
from cloister.local._output_space import report_error
from cloister.local.collection._question_protocols import protocol_by_size, protocol_for
from cloister.local.collection.stratification import LeveledEstimate, combine
from cloister.local.domain import Answers, Domain
from cloister.local.estimates import FrequencyEstimate, MeanEstimate, enough
from cloister.local.protocol import FOLLOWED, Protocol, check_local_epsilon
from cloister.local.reports import SCHEMA, Reports, foreign, items_of, json_lines

__all__ = ["LEVELS", "LEVEL_IS_VISIBLE", "LeveledQuestion", "LeveledReports", "PrivacyLevels"]

_Estimate = TypeVar("_Estimate", bound=FrequencyEstimate | MeanEstimate)

LEVEL_IS_VISIBLE = Caveat(
    "level_is_visible",
    "the chosen level is visible: whoever lets it depend on the answer shows more than epsilon allows",
    breaks=False,
)
"""What every estimate with chosen levels says."""


@dataclass(frozen=True, slots=True)
class PrivacyLevels:
    """Named levels, each with its epsilon; None is no answer.

    >>> levels = PrivacyLevels({"off": None, "low": 4, "high": 0.25})
    >>> levels.total({"age": "low", "income": "high", "health": "off"})
    Fraction(17, 4)
    """

    epsilons: Mapping[str, Fraction | None]

    def __init__(self, levels: object) -> None:
        if not isinstance(levels, Mapping) or not all(isinstance(name, str) and name for name in levels):
            raise ParameterTypeError("The levels are not named.", fix='write {"off": None, "low": 4, "high": 0.25}.')
        found = {name: None if epsilon is None else check_local_epsilon(epsilon) for name, epsilon in levels.items()}
        if not any(found.values()):
            raise ParameterError(
                "There is no level with an answer.", fix='write {"off": None, "low": 4, "high": 0.25}.'
            )
        object.__setattr__(self, "epsilons", found)

    def epsilon(self, level: object) -> Fraction | None:
        """Return the epsilon of a level, None for no answer."""
        return self.epsilons[check_choice(level, name="level", allowed=self.epsilons)]

    def total(self, chosen: Mapping[str, str], *, method: str = "all") -> Fraction:
        """Return what a person pays in all for the levels chosen for each question.

        Args:
            chosen: the level for each question.
            method: ``"all"`` if every question is answered, ``"sample_one"`` if a public coin picks one of them.
        """
        # The levels of questions that were not answered cost nothing: nothing about them leaves the device.
        paid = [self.epsilon(level) or Fraction(0) for level in chosen.values()]
        if check_choice(method, name="method", allowed=("all", "sample_one")) == "all":
            return sum(paid, start=Fraction(0))
        return max(paid, default=Fraction(0))


LEVELS = PrivacyLevels({"off": None, "low": 4, "medium": 1, "high": Fraction(1, 4)})
"""The default levels."""


@dataclass(frozen=True, eq=False, repr=False)
class LeveledReports:
    """Reports by level, and how many people gave no answer."""

    question: LeveledQuestion[Any]  # shares, or a mean
    parts: Mapping[str, Reports]
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of people, those without an answer included."""
        return sum(map(len, self.parts.values())) + sum(self.skipped.values())

    def __add__(self, other: LeveledReports) -> LeveledReports:
        # Levels of the same name may stand for different epsilons.
        if other.question.protocols != self.question.protocols:
            raise foreign()
        both = dict(self.parts)
        for level, reports in other.parts.items():
            both[level] = both[level] + reports if level in both else reports
        names = {*self.skipped, *other.skipped}
        counts = {name: self.skipped.get(name, 0) + other.skipped.get(name, 0) for name in names}
        return LeveledReports(self.question, both, counts)

    def __repr__(self) -> str:
        counts = {level: len(reports) for level, reports in self.parts.items()} | dict(self.skipped)
        return f"{type(self).__name__}({', '.join(f'{level} {count}' for level, count in counts.items())})"

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each report as JSON-ready values, level by level."""
        answers = [{**report, "level": level} for level, part in self.parts.items() for report in part.to_dicts()]
        missing = [{"schema": SCHEMA, "level": level} for level, count in self.skipped.items() for _ in range(count)]
        return answers + missing

    def to_json_lines(self) -> str:
        """Return one line of JSON for each report."""
        return json_lines(self.to_dicts())


class LeveledQuestion(Generic[_Estimate]):
    """One question that each person answers at a level of their own.

    Attributes:
        levels: the levels to choose from.
        protocols: the protocol of each level that has an answer.

    >>> question = LeveledQuestion(["no", "yes"])
    >>> reports = question.randomize(["no", "yes", None] * 1000, levels=["low", "high", "off"] * 1000)
    >>> estimate = question.estimate(reports)
    >>> estimate.answered, estimate.skipped
    (2000, 1000)
    """

    @overload
    def __init__(
        self: LeveledQuestion[FrequencyEstimate],
        question: Answers,
        *,
        levels: PrivacyLevels | Mapping[str, Number | None] = LEVELS,
        protocol: Callable[..., Protocol] = protocol_by_size,
    ) -> None: ...
    @overload
    def __init__(
        self: LeveledQuestion[Any],
        question: Callable[..., Protocol],
        *,
        levels: PrivacyLevels | Mapping[str, Number | None] = LEVELS,
    ) -> None: ...
    def __init__(
        self,
        question: object,
        *,
        levels: PrivacyLevels | Mapping[str, Number | None] = LEVELS,
        protocol: Callable[..., Protocol] = protocol_by_size,
    ) -> None:
        """Agree on what is asked, and at which levels.

        Args:
            question: a public domain, or what makes a protocol when called with ``epsilon=``.
            levels: the epsilon of each level, None for no answer.
            protocol: the class for a domain; by default the recommended one for each level.
        """
        self.levels = levels if isinstance(levels, PrivacyLevels) else PrivacyLevels(levels)
        self.protocols = {
            level: protocol_for(question, epsilon=epsilon, kind=protocol)
            for level, epsilon in self.levels.epsilons.items()
            if epsilon is not None
        }

    def at(self, level: str) -> Protocol:
        """Return the protocol of a level.

        Raises:
            ParameterError: if the level is not known, or is no answer.
        """
        return self.protocols[check_choice(level, name="level", allowed=self.protocols)]

    def randomize(self, values: Any, *, levels: Any, random_state: RandomState = None) -> LeveledReports:
        """Return the reports of people's values at their levels; values at a level without answer are not looked at.

        Args:
            values: one value or many.
            levels: the level of the one person; a level for each, or one for all.
            random_state: for tests only.
        """
        source = random_source(random_state)
        if isinstance(levels, str) and _is_one(values):
            return self._one(values, levels, source)
        column = _column(values)
        chosen = self._codes(levels, len(column))
        parts, skipped = {}, {}
        for place, level in enumerate(self.levels.epsilons):
            rows = np.flatnonzero(chosen == place)
            # Only the number of such people is kept; their values are never encoded, and so cannot raise an error
            # either.
            if level not in self.protocols:
                skipped[level] = len(rows)
            elif rows.size:
                parts[level] = self.protocols[level].randomize(_take_rows(column, rows), random_state=source)
        return LeveledReports(self, parts, skipped)

    def read(self, source: Any) -> LeveledReports:  # whatever holds reports
        """Return reports in any form, each one checked against the protocol of its level.

        Raises:
            ForeignReportError: if one is of another protocol than that of its level.
            MalformedReportError: if one has no known level or is not what its protocol makes.
        """
        if isinstance(source, LeveledReports):
            parts = {level: self.at(level).read(part) for level, part in source.parts.items()}
            return LeveledReports(self, parts, source.skipped)
        items = items_of(source)
        if items and all(isinstance(item, LeveledReports) for item in items):
            first, *others = (self.read(item) for item in items)
            return sum(others, start=first)
        return self._sort_by_level(items)

    def estimate(self, reports: Any) -> LeveledEstimate[_Estimate]:  # whatever holds reports
        """Return the stratified and the pooled estimate, and whether the levels differ.

        Raises:
            TooFewReportsError: if nobody answered.
        """
        found = self.read(reports)
        enough(sum(map(len, found.parts.values())))
        strata = {
            level: self.protocols[level].estimate(found.parts[level])
            for level in self.protocols
            if level in found.parts
        }
        if not all(isinstance(each, FrequencyEstimate | MeanEstimate) for each in strata.values()):
            raise ParameterTypeError(
                "Only shares and single means of different levels can be put together.",
                fix='estimate each level by itself: question.at("low").estimate(question.read(reports).parts["low"]).',
            )
        caveats = dict.fromkeys(caveat for part in found.parts.values() for caveat in part.caveats)
        # The promise to all of them together is that of whoever chose the weakest level.
        highest = max(self.protocols[level].epsilon for level in strata)
        return combine(
            strata,
            protocols=self.protocols,
            guarantee=LocalDP(epsilon=highest, assumptions=(FOLLOWED,), caveats=(*caveats, LEVEL_IS_VISIBLE)),
            skipped=sum(found.skipped.values()),
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {float(value):g}" for name, value in self.levels.epsilons.items() if value)
        return f"{type(self).__name__}({shown})"

    def _one(self, value: Any, level: str, source: Any) -> LeveledReports:  # one value; a random source
        if self.levels.epsilon(level) is None:
            return LeveledReports(self, {}, {level: 1})
        return LeveledReports(self, {level: self.at(level).randomize(value, random_state=source)})

    def _codes(self, levels: Any, people: int) -> NDArray[np.int64]:
        names = Domain.of(list(self.levels.epsilons), at_least=1)
        try:
            chosen = names.codes([levels] * people if isinstance(levels, str) else levels)
        except OutsideDomainError:
            raise ParameterError(
                "Somebody's level is not one of the declared levels.",
                fix=f"use one of {', '.join(self.levels.epsilons)}.",
            ) from None
        if len(chosen) != people:
            raise ParameterError("There are not as many levels as values.", fix="give one level for each value.")
        return chosen

    def _sort_by_level(self, items: list[Any]) -> LeveledReports:
        grouped: dict[str, list[Any]] = {}
        for item in items:
            level = item.get("level") if isinstance(item, Mapping) else None
            if not isinstance(level, str) or level not in self.levels.epsilons:
                raise report_error()
            grouped.setdefault(level, []).append(item)
        for level in grouped.keys() - self.protocols.keys():
            # A report without an answer must be nothing but that: anything beside it would be unprotected.
            if any(item != {"schema": SCHEMA, "level": level} for item in grouped[level]):
                raise report_error()
        parts = {level: self.protocols[level].read(grouped[level]) for level in self.protocols if level in grouped}
        return LeveledReports(self, parts, {level: len(grouped[level]) for level in grouped if level not in parts})


def _is_one(values: Any) -> bool:  # one value or many
    return values is None or isinstance(values, str | bytes) or np.ndim(values) == 0


def _column(values: Any) -> Any:  # something that `_take_rows` takes rows of
    """Return values as an array that keeps their types and lets missing ones be."""
    if isinstance(values, pa.Array | pa.ChunkedArray | np.ma.MaskedArray):
        return values
    array = np.asarray(values)
    if array.dtype.kind in "USM" and not isinstance(values, np.ndarray):
        # As text of one width, NumPy would turn a missing value into the word None.
        array = np.empty(len(values), dtype=object)
        array[:] = list(values)
    return array


def _take_rows(column: Any, rows: NDArray[np.int64]) -> Any:  # see `_column`
    return column.take(pa.array(rows)) if isinstance(column, pa.Array | pa.ChunkedArray) else column[rows]
