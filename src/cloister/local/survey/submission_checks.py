"""Checks of a submission: is it one that this survey's devices can have made?

Each report must name a question and level of the survey, carry exactly the header of that level's protocol, and hold a
value of its output space. A plain answer fits none of these. What a report says is never repeated in an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from cloister.errors import ForeignReportError, MalformedReportError
from cloister.local._output_space import OutputSpace, Payload
from cloister.local.reports import header
from cloister.local.survey.levels import OFF
from cloister.local.survey.model import Survey
from cloister.local.survey.submissions import Submission, submission_error

__all__ = ["Checker", "Place"]

Place: TypeAlias = tuple[str, str]
"""A question and a level."""


class Checker:
    """Knows what reports of a survey look like.

    Attributes:
        survey: what was asked.
        fingerprint: its hash, which every submission must carry.
        places: all pairs of a question and a level at which it is answered.
    """

    def __init__(self, survey: Survey) -> None:
        self.survey, self.fingerprint = survey, survey.fingerprint
        self._expected: dict[Place, tuple[dict[str, Any], OutputSpace]] = {}
        self._needed: set[str] = set()
        for question in survey.questions:
            levels = survey.levels_of(question.id)
            self._needed |= {question.id} if OFF not in levels else set()
            for level in (name for name in levels if name != OFF):
                protocol = survey.protocol(question.id, level)
                place = {"survey": survey.id, "question": question.id, "level": level}
                self._expected[question.id, level] = (place | header(protocol), protocol.output_space)

    @property
    def places(self) -> tuple[Place, ...]:
        """Return all pairs of a question and a level at which it is answered."""
        return tuple(self._expected)

    def check(self, submission: Submission) -> dict[Place, Any]:
        """Return what each report says, not yet checked, under its question and level.

        Raises:
            MalformedReportError: if a report has parts missing or added, a question is answered twice, or one that must
                be answered is not.
            ForeignReportError: if something is for another survey, question, level, protocol or version.
        """
        if (submission.survey, submission.fingerprint) != (self.survey.id, self.fingerprint):
            raise ForeignReportError(
                "A submission is for another survey, or for another version of this one.",
                fix="collect each survey, exactly as it was published, by itself.",
            )
        # A day of its own would be a mark by which a submission could be recognized later.
        if self.survey.terms is not None and submission.day != self.survey.terms.day:
            raise ForeignReportError(
                "A submission says on which day it was made.",
                fix="state the day of the survey's terms, as its page does.",
            )
        found = dict(map(self._open, submission.reports))
        questions = {question for question, _ in found}
        # Counted by question, since one answered at two levels was answered twice as well.
        if len(questions) < len(submission.reports):
            raise submission_error("answers a question twice")
        if not self._needed <= questions:
            raise submission_error("leaves out a question that must be answered")
        return found

    def rows(self, place: Place, values: Sequence[Any]) -> Payload:
        """Return what reports of a question and level say, as rows of the output space.

        Raises:
            MalformedReportError: if something is outside of it.
        """
        return self._expected[place][1].parse(values)

    def many(self, place: Place, values: Sequence[Any]) -> tuple[Payload, list[int]]:
        """Return the rows of those values that are in the output space, and the places of the others."""
        try:
            return self.rows(place, values), []
        except MalformedReportError:
            fits = [self._fits(place, value) for value in values]
        kept = [value for value, fit in zip(values, fits, strict=True) if fit]
        return self.rows(place, kept), [number for number, fit in enumerate(fits) if not fit]

    def _fits(self, place: Place, value: Any) -> bool:
        try:
            self.rows(place, [value])
        except MalformedReportError:
            return False
        return True

    def _open(self, report: Mapping[str, Any]) -> tuple[Place, Any]:
        place = (str(report.get("question")), str(report.get("level")))
        if place not in self._expected:
            raise _foreign()
        head, value = self._expected[place][0], report.get("y")
        # True and 1.0 are equal to 1, and no device writes them.
        if {**head, "y": value} == report and type(report["version"]) is int:
            return place, value
        if "y" not in report or report.keys() != {*head, "y"}:
            raise submission_error("has a report with parts missing or added")
        raise _foreign()


def _foreign() -> ForeignReportError:
    return ForeignReportError(
        "A report is for a question, level, protocol or version that this survey does not have.",
        fix="have the respondent's device take the survey anew, as it is published.",
    )
