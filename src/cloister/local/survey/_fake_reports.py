"""Whether the reports of a survey look genuine, and how far fake ones could move its results.

Nobody can check a report against its sender, so that fake people can send what they like. Crude attacks show: reports
that the survey's devices hardly ever make. Fake people who follow the rules do not, and the bound says what they, and
cleverer ones, could do at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from cloister.core.validation import check_probability
from cloister.errors import MalformedReportError
from cloister.local._output_space import Integer, OutputSpace
from cloister.local.numeric.base import NumericProtocol
from cloister.local.poisoning import ReportCheck, check_reports, poisoning_bound
from cloister.local.protocol import Protocol
from cloister.local.reports import Reports

if TYPE_CHECKING:
    from cloister.local.survey.model import Survey

__all__ = ["FALSE_ALARM", "Movement", "check_all", "movement"]

FALSE_ALARM = Fraction(1, 10**6)
"""How often a survey whose reports are all genuine is suspected, at most, over all of its questions and levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """How far fake people could move the estimate of a question.

    Attributes:
        share: how many of those who answer are fake.
        up: by how much they can raise a share, or the mean, at most.
        down: by how much they can lower it.
    """

    share: float
    up: float
    down: float

    @property
    def most(self) -> float:
        """Return the larger of both."""
        return max(self.up, self.down)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"fake_share": self.share, "up": self.up, "down": self.down}


def check_all(reports: Mapping[tuple[str, str], Reports]) -> dict[tuple[str, str], ReportCheck]:
    """Return the check of all reports of each question and level that has any; all together keep `FALSE_ALARM`."""
    given = {place: kept for place, kept in reports.items() if len(kept)}
    return {
        place: check_reports(kept.protocol, kept, false_alarm=FALSE_ALARM / len(given)) for place, kept in given.items()
    }


def movement(survey: Survey, question: str, *, fake_share: object = "0.01") -> Movement:
    """Return how far fake people could move the raw estimate of a question, whichever of its levels they choose."""
    share = float(check_probability(fake_share, name="fake_share"))
    levels = [level for level in survey.levels_of(question).values() if level.epsilon is not None]
    reaches = [_reach(survey.protocol(question, level.name)) for level in levels]
    # Fake people choose the level at which they weigh most.
    return Movement(share=share, up=share * max(up for up, _ in reaches), down=share * max(down for _, down in reaches))


def _reach(protocol: Protocol) -> tuple[float, float]:
    """Return by how much one fake report counts more, and less, than a person can."""
    if not isinstance(protocol, NumericProtocol):
        bound = poisoning_bound(protocol, fake_users=1)
        return bound.up, bound.down
    readings = protocol.debias(Reports(protocol, protocol.output_space.parse(_extremes(protocol.output_space))))
    low, high = protocol.grid.ends
    return float(readings.max()) - low, high - float(readings.min())


def _extremes(space: OutputSpace) -> list[Any]:
    """Return the reports at the ends of an output space of integers, as JSON values."""
    # Beside the ends a 1 is tried: the hybrid's bit is 0 or 1 in a field that also holds many cells.
    ends = [sorted({field.low, min(1, field.high), field.high}) for field in space.fields if isinstance(field, Integer)]
    rows = [values[0] if len(values) == 1 else list(values) for values in product(*ends)]
    return [row for row in rows if _is_possible(space, row)]


def _is_possible(space: OutputSpace, row: Any) -> bool:
    try:
        space.parse([row])
    except MalformedReportError:
        return False
    return True
