"""Planning: how many respondents a wanted margin takes, and what margin a number of respondents gives.

The variance of one respondent's part of an estimated share f is ``noise(f) + f (1 - f)``: the protocol's, and that of
drawing respondents from a larger group. A margin w at 95% takes ``n = z**2 V / w**2`` of them. Two cases are planned:
an answer that hardly anybody gives, and the share for which V is largest. With several levels, weighed as people choose
them, V is their mean (stratified estimates).

Margins are half-widths: percentage points for shares, and for a mean percent of the range between its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.validation import check_count, check_positive, check_probability
from cloister.errors import ParameterError, did_you_mean
from cloister.local.estimates import z_of
from cloister.local.frequency.support import FrequencyProtocol
from cloister.local.survey.levels import OFF, Statement

if TYPE_CHECKING:
    from cloister.local.survey.model import Survey
    from cloister.local.survey.questions import SurveyQuestion

__all__ = [
    "AnswerVariance",
    "Mix",
    "PlanRow",
    "SurveyPlan",
    "margin_for",
    "plan_survey",
    "respondents_for",
    "share_variance",
]

Mix = Mapping[str, object]
"""The share of people who choose each level."""

MIXED = "as mixed"
LEAST_MARGIN = Fraction(1, 10**6)


def respondents_for(variance: float, margin: float, *, confidence: Number = 0.95) -> int:
    """Return how many respondents bring a half-width down to a margin.

    >>> respondents_for(3.6827, 0.02)
    35368
    """
    return max(1, math.ceil(z_of(confidence) ** 2 * variance / float(check_positive(margin, name="margin")) ** 2))


def margin_for(variance: float, respondents: int, *, confidence: Number = 0.95) -> float:
    """Return the half-width that a number of respondents gives.

    >>> round(margin_for(3.6827, 35368), 4)
    0.02
    """
    return z_of(confidence) * math.sqrt(variance / check_count(respondents, name="respondents", at_least=1))


def share_variance(protocol: FrequencyProtocol, share: object) -> float:
    """Return the variance of one respondent's part of an estimated share: noise, and the draw of respondents.

    Args:
        protocol: what the devices do.
        share: how many people give the answer; ``"worst"`` for the share with the largest variance.
    """
    low, high = protocol.variance(0), protocol.variance(1)
    if share == "worst":
        # Noise that is linear in the share, plus the parabola of the draw, is largest here.
        share = min(max((1 + high - low) / 2, 0.0), 1.0)
    given = float(check_probability(share, name="share"))
    return protocol.variance(given) + given * (1 - given)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerVariance:
    """How far one respondent's part of an estimate spreads.

    Attributes:
        usual: the variance for an answer that hardly anybody gives.
        worst: the variance for the share with the largest one.
        scale: how many units of the question a margin of 1 is: 100 points for shares, the range for a mean.
        unit: what margins are in.
    """

    usual: float
    worst: float
    scale: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """The plan of one question at one level, or at a mix of levels.

    Attributes:
        question: its id.
        level: its name, or "as mixed".
        protocol: what the devices do.
        epsilon: what an answer costs; None for a mix.
        usual: the variance for an answer that hardly anybody gives; for yes_no and for a mean the same as ``worst``.
        worst: the variance for the share with the largest one.
        scale: how many units of the question a margin of 1 is: 100 points for shares, the range for a mean.
        unit: what margins are in.
        preselected: whether this is what people get who change nothing.
    """

    question: str
    level: str
    protocol: str
    epsilon: Fraction | None
    usual: float
    worst: float
    scale: float
    unit: str
    preselected: bool = False

    def respondents(self, margin: object, *, worst: bool = False) -> int:
        """Return how many people must take part for a margin in percent."""
        wanted = float(check_positive(margin, name="margin")) / 100
        return respondents_for(self.worst if worst else self.usual, wanted)

    def margin(self, respondents: int, *, worst: bool = False) -> float:
        """Return the margin in percent that a number of people gives."""
        return 100 * margin_for(self.worst if worst else self.usual, respondents)

    def in_units(self, margin: float) -> str:
        """Return a margin in percent in the words of the question."""
        written = f"{margin / 100 * self.scale:.3g}"
        unit = self.unit.removesuffix("s") if written == "1" else self.unit
        return f"± {written} {unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyPlan:
    """The plan of a survey: a row for each question and level.

    Attributes:
        rows: the plan.
        respondents: how many people take part, if that is given.
        margin: the margin that is wanted in percent, if that is given.
        mix: what people are expected to choose, if that is given.
        lacking: for each question that the mix does not fit, the levels of the mix that it does not have. Such a
            question is planned at its preselected level.
    """

    rows: tuple[PlanRow, ...]
    respondents: int | None
    margin: float | None
    mix: Mapping[str, float] | None
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def expected(self) -> tuple[PlanRow, ...]:
        """Return the row of each question that people are expected to choose: the mix, or what is preselected."""
        chosen = {row.question: row for row in self.rows if row.preselected}
        return tuple((chosen | {row.question: row for row in self.rows if row.level == MIXED}).values())

    @property
    def hardest(self) -> PlanRow:
        """Return the expected row that takes the most people for the same margin, whatever they answer."""
        return max(self.expected, key=lambda row: row.worst)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.survey_plan/1",
            "respondents": self.respondents,
            "margin": self.margin,
            "mix": None if self.mix is None else dict(self.mix),
            "lacking": {question: list(levels) for question, levels in self.lacking.items()},
            "rows": [self._row(row) for row in self.rows],
        }

    def _row(self, row: PlanRow) -> dict[str, Any]:
        values: dict[str, Any] = {
            "question": row.question,
            "level": row.level,
            "protocol": row.protocol,
            "epsilon": None if row.epsilon is None else exact.text(row.epsilon),
            "odds_factor": None if row.epsilon is None else Statement(row.epsilon).factor,
            "preselected": row.preselected,
            "variance": row.usual,
            "worst_variance": row.worst,
        }
        if self.margin is not None:
            needed = {"respondents": row.respondents(self.margin), "worst": row.respondents(self.margin, worst=True)}
            return values | {"respondents": needed["respondents"], "worst_respondents": needed["worst"]}
        margins = [row.margin(self.respondents or 1, worst=worst) for worst in (False, True)]
        units = [margin / 100 * row.scale for margin in margins]
        return values | {"margin": margins[0], "worst_margin": margins[1], "in_units": units, "unit": row.unit}


def plan_survey(
    survey: Survey, *, respondents: int | None = None, margin: object = None, mix: Mix | None = None
) -> SurveyPlan:
    """Return what a number of respondents gives, or what a margin takes.

    Args:
        survey: what will be asked.
        respondents: how many people take part.
        margin: the half-width that is wanted: percentage points, or percent of a number's range.
        mix: the share of people who choose each level, adding up to 1; adds a row for each question.
    """
    if (respondents is None) == (margin is None):
        raise ParameterError("Plan for respondents or for a margin.", fix="give respondents=2000, or margin=2.")
    wanted = None if margin is None else _check_margin(margin)
    people = None if respondents is None else check_count(respondents, name="respondents", at_least=1)
    shares = None if mix is None else read_mix(mix)
    if shares is not None:
        check_mix(survey, shares)
    rows = [row for question in survey.questions for row in _rows(survey, question, shares)]
    lacking = {question.id: _lacking(survey, question, shares or {}) for question in survey.questions}
    return SurveyPlan(
        rows=tuple(rows),
        respondents=people,
        margin=wanted,
        mix=shares,
        lacking={question: levels for question, levels in lacking.items() if levels},
    )


def _check_margin(margin: object) -> float:
    wanted = check_positive(margin, name="margin")
    if not LEAST_MARGIN <= wanted <= 100:
        raise ParameterError(
            f"A margin lies between {float(LEAST_MARGIN):f} and 100 percent.", fix="write for example margin=2."
        )
    return float(wanted)


def read_mix(mix: Mix) -> dict[str, float]:
    """Return the shares of a mix of levels.

    Raises:
        ParameterError: if they do not add up to 1.
    """
    shares = {str(name): check_probability(share, name="each share") for name, share in mix.items()}
    if sum(shares.values()) != 1:
        raise ParameterError(
            "The shares of the levels do not add up to 1.", fix="write for example low=0.3,medium=0.7."
        )
    return {name: float(share) for name, share in shares.items()}


def check_mix(survey: Survey, mix: Mapping[str, float]) -> None:
    """Refuse levels that no question has, and a mix in which nobody answers."""
    known = {name for question in survey.questions for name in survey.levels_of(question.id)}
    for name in mix:
        if name not in known:
            raise ParameterError(
                f'No question has the level "{name[:40]}".{did_you_mean(name, known)}',
                fix=f"use {', '.join(sorted(known))}.",
            )
    if not any(share for name, share in mix.items() if name != OFF):
        raise ParameterError("In this mix nobody answers.", fix="give some of the people another level than off.")


def _rows(survey: Survey, question: SurveyQuestion, mix: Mapping[str, float] | None) -> list[PlanRow]:
    rows = [_row(survey, question, name) for name in survey.levels_of(question.id) if name != OFF]
    if mix is None or _lacking(survey, question, mix):
        return rows
    return [*rows, _mix_rows(question, rows, mix)]


def _lacking(survey: Survey, question: SurveyQuestion, mix: Mapping[str, float]) -> tuple[str, ...]:
    levels = survey.levels_of(question.id)
    return tuple(name for name in mix if name not in levels)


def _row(survey: Survey, question: SurveyQuestion, level: str) -> PlanRow:
    protocol = survey.protocol(question.id, level)
    found = question.rules.variance(question, protocol)
    return PlanRow(
        question=question.id,
        level=level,
        protocol=protocol.name,
        epsilon=protocol.epsilon,
        usual=found.usual,
        worst=found.worst,
        scale=found.scale,
        unit=found.unit,
        preselected=level == survey.default_of(question.id).name,
    )


def _mix_rows(question: SurveyQuestion, rows: list[PlanRow], mix: Mapping[str, float]) -> PlanRow:
    """Return the row of a mix: the mean variance of those who answer, more people for those who do not."""
    answering = sum(share for name, share in mix.items() if name != OFF)
    # Only those who answer are averaged, and for each of them so many more people have to take part.
    weights = [mix.get(row.level, 0.0) / answering**2 for row in rows]
    return PlanRow(
        question=question.id,
        level=MIXED,
        protocol=", ".join(dict.fromkeys(row.protocol for row in rows if mix.get(row.level))),
        epsilon=None,
        usual=sum(weight * row.usual for weight, row in zip(weights, rows, strict=True)),
        worst=sum(weight * row.worst for weight, row in zip(weights, rows, strict=True)),
        scale=rows[0].scale,
        unit=rows[0].unit,
    )
