"""The collector's side: submissions come in, and only bags of reports stay.

A submission is checked and taken whole or not at all. What is kept is a bag of reports for each question and level, in
an order that says nothing, and apart from them the hashes of used ids. Nothing connects the two, nor the reports of one
person with each other. Days are only counted.

Not promised: whoever receives a submission sees its id and its reports side by side at that moment, and an observer of
the network sees who sends. Levels, and questions left out, are visible.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.errors import (
    DuplicateReportError,
    ForeignReportError,
    MalformedReportError,
    ParameterError,
    ReportError,
)
from cloister.local.output_space import Payload, malformed
from cloister.local.reports import Reports
from cloister.local.survey import keeping
from cloister.local.survey.checking import Checker, Place
from cloister.local.survey.levels import OFF
from cloister.local.survey.model import Survey
from cloister.local.survey.results import SurveyResult, estimate_survey
from cloister.local.survey.submissions import Submission, is_id, parse

__all__ = ["FOREIGN", "Collector", "Intake"]

Numbers: TypeAlias = NDArray[np.int64]

FOREIGN = "for another survey, question, level or version"
_LOOSE = 4096
_REASONS: dict[type[ReportError], str] = {
    DuplicateReportError: "the same id came twice",
    ForeignReportError: FOREIGN,
    MalformedReportError: "not something that this survey's devices make",
}


class Intake(Counter[str]):
    """How many submissions were accepted, and how many were refused for which reason."""

    @property
    def accepted(self) -> int:
        """Return how many were taken."""
        return self["accepted"]

    @property
    def refused(self) -> int:
        """Return how many were not."""
        return self.total() - self.accepted

    def reasons(self) -> dict[str, int]:
        """Return how many were refused for which reason."""
        return {reason: count for reason, count in sorted(self.items()) if reason != "accepted" and count}


class Collector:
    """Takes submissions to one survey.

    Args:
        survey: what was asked.
        admitted: the ids of invited people (`token_id` of their tokens); None admits everybody.

    >>> from cloister.local.survey import Collector, Question, Survey
    >>> question = Question(id="married", kind="yes_no", text="Are you married?")
    >>> survey = Survey(id="demo", title="Demo", collector="Example Institute", questions=[question])
    >>> collector = Collector(survey)
    >>> collector.add(survey.answer({"married": "yes"}))
    >>> collector
    Collector('demo', 1 submission)
    """

    def __init__(self, survey: Survey, *, admitted: Iterable[str] | None = None) -> None:
        self.survey = survey
        self.days: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._checker = Checker(survey)
        self._admitted = None if admitted is None else frozenset(map(_digest, _checked_ids(admitted)))
        self._used: set[str] = set()
        self._rows: dict[Place, list[Payload]] = {place: [] for place in self._checker.places}

    def __len__(self) -> int:
        return self.days.total()

    def __repr__(self) -> str:
        return f"Collector({self.survey.id!r}, {len(self)} submission{'' if len(self) == 1 else 's'})"

    def add(self, submission: Any) -> None:  # a Submission, its JSON, or its values
        """Take one submission, whole or not at all.

        Raises:
            MalformedReportError: if it is truncated, oversized, of another form or outside of the output space, answers
                a question twice, or leaves out one that must be answered.
            ForeignReportError: if it is for another survey, question, level, protocol or version, or was not invited.
            DuplicateReportError: if its id was used before.
        """
        found = parse(submission)
        values = self._checker.check(found)
        rows = {place: self._checker.rows(place, [value]) for place, value in values.items()}
        self._use(_digest(found.id))
        for place, row in rows.items():
            self._keep(place, row)
        self.days[found.day] += 1

    def add_lines(self, lines: Iterable[str | bytes]) -> Intake:
        """Take submissions, one line of JSON each; those that are refused are counted, and nothing stops."""
        intake, rest = Intake(), iter(lines)
        while batch := list(islice(rest, _LOOSE)):
            intake.update(self._take(batch))
        self.refused.update(intake.reasons())
        return intake

    def counts(self, question: str) -> dict[str, int]:
        """Return how many people answered a question at each level, and under "off" how many did not."""
        found = {
            level: sum(map(len, self._rows[question, level]))
            for level in self.survey.levels_of(question)
            if level != OFF
        }
        return {OFF: len(self) - sum(found.values()), **found}

    def reports(self, question: str, level: str) -> Reports:
        """Return the reports of a question and level, in an order that does not say who came when."""
        protocol = self.survey.protocol(question, level)
        rows = np.concatenate([np.empty(0, protocol.output_space.dtype), *self._rows[question, level]])
        return Reports(protocol, _ordered(rows))

    def estimate(self) -> SurveyResult:
        """Return what everybody together answered, question by question.

        Raises:
            TooFewReportsError: if there is no submission.
        """
        reports = {place: self.reports(*place) for place in self._checker.places}
        counts = {question.id: self.counts(question.id) for question in self.survey.questions}
        return estimate_survey(self.survey, reports=reports, counts=counts, days=self.days, refused=self.refused)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write what is kept into two files of a folder: reports, and apart from them the hashes of used ids.

        The ids are written first: should the second file fail, no submission can come in twice.
        """
        bags = {place: self.reports(*place) for place in self._checker.places}
        keeping.prepare(folder, overwrite=overwrite)
        keeping.write_used(folder, self.survey, self._used, overwrite=overwrite)
        keeping.write_bags(folder, self.survey, bags, self.days, overwrite=overwrite)

    @classmethod
    def load(cls, survey: Survey, folder: str | Path, *, admitted: Iterable[str] | None = None) -> Collector:
        """Return the collector of what `save` wrote.

        Raises:
            DataError: if the files are not there, damaged, or of another survey.
        """
        made = cls(survey, admitted=admitted)
        bags, made.days = keeping.read_bags(folder, survey)
        made._used = keeping.read_used(folder, survey)
        made._rows |= {place: [rows] for place, rows in bags.items()}
        fits = all(made.counts(question.id)[OFF] >= 0 for question in survey.questions)
        if bags.keys() != set(made._checker.places) or len(made._used) < len(made) or not fits:
            raise keeping.damaged(keeping.REPORTS)
        return made

    def _take(self, lines: Iterable[str | bytes]) -> Counter[str]:
        """Take submissions together, so that reports of one question and level are checked at once."""
        outcomes: Counter[str] = Counter()
        opened: list[tuple[Submission, dict[Place, Any]]] = []
        for line in lines:
            if line.strip():
                try:
                    found = parse(line)
                    opened.append((found, self._checker.check(found)))
                except ReportError as error:
                    outcomes[_reason(error)] += 1
        bags, is_wrong = self._bags([values for _, values in opened])
        is_taken = np.zeros(len(opened), dtype=bool)
        for number, (found, _) in enumerate(opened):
            outcome = _reason(malformed()) if is_wrong[number] else self._admit(found)
            outcomes[outcome] += 1
            is_taken[number] = outcome == "accepted"
        for place, (people, rows) in bags.items():
            self._keep(place, rows[is_taken[people]])
        return outcomes

    def _bags(self, opened: list[dict[Place, Any]]) -> tuple[dict[Place, tuple[Numbers, Payload]], NDArray[np.bool_]]:
        """Return who reported which rows for each question and level, and which submissions hold an impossible one."""
        said: dict[Place, tuple[list[int], list[Any]]] = {place: ([], []) for place in self._checker.places}
        for number, values in enumerate(opened):
            for place, value in values.items():
                people, told = said[place]
                people.append(number)
                told.append(value)
        bags, is_wrong = {}, np.zeros(len(opened), dtype=bool)
        for place, (people, told) in said.items():
            rows, wrong = self._checker.many(place, told)
            senders = np.array(people, dtype=np.int64)
            is_wrong[senders[wrong]] = True
            bags[place] = np.delete(senders, wrong), rows
        return bags, is_wrong

    def _admit(self, found: Submission) -> str:
        try:
            self._use(_digest(found.id))
        except ReportError as error:
            return _reason(error)
        self.days[found.day] += 1
        return "accepted"

    def _keep(self, place: Place, rows: Payload) -> None:
        bag = self._rows[place]
        bag.append(rows)
        if len(bag) > _LOOSE:
            bag[:] = [np.concatenate(bag)]

    def _use(self, digest: str) -> None:
        if self._admitted is not None and digest not in self._admitted:
            raise ForeignReportError("A submission was not invited.", fix="use the token of the invitation.")
        if digest in self._used:
            raise DuplicateReportError(
                "A submission came twice: its one-time id was used before.", fix="count the first one only."
            )
        self._used.add(digest)


def _checked_ids(admitted: Iterable[str]) -> list[str]:
    found = [] if isinstance(admitted, str) else list(admitted)
    if not found or not all(is_id(one) for one in found):
        raise ParameterError(
            "What is admitted are not ids of invited people.",
            fix="give a list of token_id(token), one for each token that was handed out.",
        )
    return found


def _reason(error: ReportError) -> str:
    return _REASONS.get(type(error), "unusable")


def _digest(identifier: str) -> str:
    return hashlib.sha256(b"cloister.used/1\n" + identifier.encode()).hexdigest()


def _ordered(rows: Payload) -> Payload:
    """Return rows in the order of their bytes."""
    columns = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.dtype.itemsize)
    return rows[np.lexsort(columns.T[::-1])]
