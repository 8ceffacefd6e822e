"""A rehearsal: made-up people answer for real, so that estimates can be seen beside the truth.

The true answers are drawn from the distribution that the survey file states under ``pretend``, the reports are made as
a respondent's device makes them, and the collector reads them as it would read anybody's. Only the truth is known here,
because nobody gave it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.validation import check_count
from cloister.local.estimates import ByValue
from cloister.local.reports import Reports, header
from cloister.local.survey.kinds.base import uniform
from cloister.local.survey.levels import OFF
from cloister.local.survey.model import Survey
from cloister.local.survey.questions import SurveyQuestion
from cloister.local.survey.sample_size import Mix, check_mix, read_mix
from cloister.local.survey.submissions import Submission, parse

__all__ = ["Simulation", "simulate"]

_AT_ONCE = 4096
_ID_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Bag:
    """The reports of a question at a level, and the numbers of their senders in rising order."""

    question: str
    level: str
    people: NDArray[np.int64]
    reports: Reports


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """Made-up people and their submissions.

    Attributes:
        survey: what they were asked.
        truth: for each question the true shares, or the true mean under "mean", among those who answered it.
    """

    survey: Survey
    truth: Mapping[str, ByValue]
    _ids: tuple[str, ...] = field(repr=False)
    _day: str = field(repr=False)
    _bags: tuple[_Bag, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def submissions(self) -> tuple[Submission, ...]:
        """Return what their devices sent."""
        return tuple(map(parse, self.lines()))

    def lines(self) -> Iterator[str]:
        """Return one line of JSON for each submission."""
        for start in range(0, len(self), _AT_ONCE):
            ids = self._ids[start : start + _AT_ONCE]
            for identifier, reports in zip(ids, self._write_reports(start, len(ids)), strict=True):
                made = Submission(
                    survey=self.survey.id,
                    fingerprint=self.survey.fingerprint,
                    id=identifier,
                    day=self._day,
                    reports=(),
                )
                yield f"{made.to_json().removesuffix('[]}')}[{', '.join(reports)}]}}"

    def _write_reports(self, start: int, count: int) -> list[list[str]]:
        """Return the JSON of the reports of so many people, for each of them."""
        found: list[list[str]] = [[] for _ in range(count)]
        for bag in self._bags:
            first, last = np.searchsorted(bag.people, [start, start + count])
            place = {"survey": self.survey.id, "question": bag.question, "level": bag.level}
            head = json.dumps(place | header(bag.reports.protocol), ensure_ascii=False).removesuffix("}")
            values = bag.reports.protocol.output_space.shown(bag.reports.payload[first:last])
            for person, value in zip((bag.people[first:last] - start).tolist(), values, strict=True):
                found[person].append(f'{head}, "y": {json.dumps(value)}}}')
        return found


def simulate(
    survey: Survey,
    *,
    respondents: int,
    mix: Mix | None = None,
    day: object = None,
    random_state: RandomState = None,
) -> Simulation:
    """Return the submissions of made-up people.

    Args:
        survey: what is asked.
        respondents: how many people.
        mix: the share of people who choose each level, for all their questions; by default everybody keeps what is
            preselected. A question without a person's level is answered at its preselected one.
        day: the date of all submissions; today's by default.
        random_state: for tests only.
    """
    count = check_count(respondents, name="respondents", at_least=1)
    source = random_source(random_state)
    wanted = _draw_levels(survey, count, mix, source)
    bags: list[_Bag] = []
    truth = {}
    for question in survey.questions:
        answers = question.rules.draw(question, count, source)
        levels = _levels(survey, question, wanted)
        answering = _pick_answers(answers, np.flatnonzero(levels != OFF))
        truth[question.id] = question.rules.truth(question, answering) if answering else ByValue()
        for level in sorted(set(levels.tolist()) - {OFF}):
            people = np.flatnonzero(levels == level)
            made = survey.protocol(question.id, level).randomize(
                question.encode_answers(_pick_answers(answers, people)), random_state=source
            )
            bags.append(_Bag(question=question.id, level=level, people=people, reports=made))
    return Simulation(
        survey=survey, truth=truth, _ids=_ids(count, source), _day=survey.stated_day(day), _bags=tuple(bags)
    )


def _ids(count: int, source: RandomSource) -> tuple[str, ...]:
    digits = source.random_bytes(_ID_BYTES * count).hex()
    return tuple(digits[start : start + 2 * _ID_BYTES] for start in range(0, len(digits), 2 * _ID_BYTES))


def _draw_levels(survey: Survey, count: int, mix: Mix | None, source: RandomSource) -> NDArray[Any]:
    """Return the level that each person would take everywhere; an empty text keeps what is preselected."""
    if mix is None:
        return np.full(count, "", dtype=object)
    shares = read_mix(mix)
    check_mix(survey, shares)
    edges = np.cumsum(list(shares.values()))[:-1]
    return np.array(list(shares), dtype=object)[np.searchsorted(edges, uniform(source, count), side="right")]


def _levels(survey: Survey, question: SurveyQuestion, wanted: NDArray[Any]) -> NDArray[Any]:
    known = list(survey.levels_of(question.id))
    return np.where(np.isin(wanted, known), wanted, survey.default_of(question.id).name)


def _pick_answers(answers: list[Any], people: NDArray[np.int64]) -> list[Any]:
    return [answers[person] for person in people.tolist()]
