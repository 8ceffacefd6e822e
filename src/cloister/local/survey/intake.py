"""The intake of submissions: each is checked, counted once and taken apart, wherever its parts are kept.

The library's `Collector` and the hub take submissions by the same steps, and differ in their `SubmissionStore` alone:
memory and files, or a database. Everything of a submission is read before its id is used up, so that whoever is refused
may send again, and nothing is kept by halves. Ids and reports go to the store in different calls, each with nothing of
the other, so that a store has nothing to connect them by.

Not promised: what a store does with the moments at which it is called. Each store says how it forgets their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.errors import DuplicateReportError, ForeignReportError, MalformedReportError, ReportError
from cloister.local._output_space import Payload
from cloister.local.reports import Reports
from cloister.local.survey.levels import OFF
from cloister.local.survey.results import SurveyResult, estimate_survey
from cloister.local.survey.submission_checks import Checker, Place
from cloister.local.survey.submissions import Submission, parse

__all__ = ["FOREIGN", "Intake", "SubmissionIntake", "SubmissionStore", "off_and_answered"]

Numbers: TypeAlias = NDArray[np.int64]

FOREIGN = "for another survey, question, level or version"
_REASONS: dict[type[ReportError], str] = {
    DuplicateReportError: "the same id came twice",
    ForeignReportError: FOREIGN,
    MalformedReportError: "not something that this survey's devices make",
}


class SubmissionStore(Protocol):
    """Where the parts of submissions are kept: used ids, and apart from them bags of reports."""

    def used(self, ids: Collection[str]) -> set[str]:
        """Return those of the ids that were used before."""

    def use(self, ids: Collection[str]) -> None:
        """Remember that ids are used, in no form that leads to reports."""

    def keep(self, reports: Mapping[Place, Payload]) -> None:
        """Keep reports of questions and levels, each by itself."""

    def count(self, days: Mapping[str, int]) -> None:
        """Count submissions by the day that they state."""

    def days(self) -> Mapping[str, int]:
        """Return how many submissions were counted, by day."""

    def bags(self) -> Mapping[Place, Payload]:
        """Return all reports by question and level, in an order that says nothing about who came when."""


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


def _admit_everybody(_submission: Submission) -> None:
    """Ask for no invitation."""


class SubmissionIntake:
    """Takes submissions to one survey into a store.

    Args:
        checker: what submissions to the survey look like.
        store: where their parts are kept.
        admit: uses up what admits the sender of a submission, or raises; asked only where the id is new.
    """

    def __init__(
        self, checker: Checker, store: SubmissionStore, *, admit: Callable[[Submission], None] = _admit_everybody
    ) -> None:
        self.checker, self.store, self._admit = checker, store, admit

    def take(self, submission: Any) -> bool:  # a Submission, its JSON, or its values
        """Take one submission whole and return True, or return False if its id was used before.

        Raises:
            MalformedReportError: if it is truncated, oversized, of another form or outside of the output space, answers
                a question twice, or leaves out one that must be answered.
            ForeignReportError: if it is for another survey, question, level, protocol or version.
        """
        found = parse(submission)
        values = self.checker.check(found)
        rows = {place: self.checker.rows(place, [value]) for place, value in values.items()}
        # A device that got no answer sends again: that is counted once, and its invitation is not asked for again.
        if self.store.used([found.id]):
            return False
        self._admit(found)
        self._keep([found.id], rows, {found.day: 1})
        return True

    def take_many(self, submissions: Iterable[Any]) -> Intake:  # each in any of the forms that `take` knows
        """Take submissions together, so that reports of one question and level are checked and kept at once.

        Those that are refused are counted by reason, and nothing stops.
        """
        outcomes, opened = self._open(submissions)
        bags, is_wrong = self._bags([values for _, values in opened])
        used = self.store.used([found.id for found, _ in opened])
        is_taken = np.zeros(len(opened), dtype=bool)
        for number, (found, _) in enumerate(opened):
            outcome = self._decide(found, used, is_wrong=bool(is_wrong[number]))
            outcomes[outcome] += 1
            is_taken[number] = outcome == "accepted"
        taken = [found for (found, _), kept in zip(opened, is_taken, strict=True) if kept]
        rows = {place: kept[is_taken[people]] for place, (people, kept) in bags.items()}
        self._keep([found.id for found in taken], rows, Counter(found.day for found in taken))
        return outcomes

    def estimate(self, *, refused: Mapping[str, int] | None = None) -> SurveyResult:
        """Return what everybody together answered, question by question.

        Args:
            refused: how many submissions were refused for which reason, for the result.

        Raises:
            TooFewReportsError: if there is no submission.
        """
        survey, bags, days = self.checker.survey, self.store.bags(), self.store.days()
        answered: dict[str, dict[str, int]] = {}
        for question, level in self.checker.places:
            answered.setdefault(question, {})[level] = len(bags[question, level])
        return estimate_survey(
            survey,
            reports={place: Reports(survey.protocol(*place), bags[place]) for place in self.checker.places},
            counts={name: off_and_answered(levels, sum(days.values())) for name, levels in answered.items()},
            days=days,
            refused=refused or {},
        )

    def _keep(self, ids: Collection[str], rows: Mapping[Place, Payload], days: Mapping[str, int]) -> None:
        # Ids come first: should the rest fail in a store without transactions, no submission can come in twice.
        self.store.use(ids)
        self.store.keep(rows)
        self.store.count(days)

    def _open(self, submissions: Iterable[Any]) -> tuple[Intake, list[tuple[Submission, dict[Place, Any]]]]:
        outcomes, opened = Intake(), []
        for one in submissions:
            try:
                found = parse(one)
                opened.append((found, self.checker.check(found)))
            except ReportError as error:
                outcomes[_reason(error)] += 1
        return outcomes, opened

    def _bags(
        self, opened: Sequence[Mapping[Place, Any]]
    ) -> tuple[dict[Place, tuple[Numbers, Payload]], NDArray[np.bool_]]:
        """Return who reported which rows for each question and level, and which submissions hold an impossible one."""
        said: dict[Place, tuple[list[int], list[Any]]] = {place: ([], []) for place in self.checker.places}
        for number, values in enumerate(opened):
            for place, value in values.items():
                people, told = said[place]
                people.append(number)
                told.append(value)
        bags, is_wrong = {}, np.zeros(len(opened), dtype=bool)
        for place, (people, told) in said.items():
            rows, wrong = self.checker.many(place, told)
            senders = np.array(people, dtype=np.int64)
            is_wrong[senders[wrong]] = True
            bags[place] = np.delete(senders, wrong), rows
        return bags, is_wrong

    def _decide(self, found: Submission, used: set[str], *, is_wrong: bool) -> str:
        """Return what becomes of a submission, and add its id to the used ones if it is accepted."""
        # What no device can have made does not use up an id: somebody else may have sent it in that name.
        if is_wrong:
            return _REASONS[MalformedReportError]
        if found.id in used:
            return _REASONS[DuplicateReportError]
        try:
            self._admit(found)
        except ReportError as error:
            return _reason(error)
        used.add(found.id)
        return "accepted"


def off_and_answered(levels: Mapping[str, int], people: int) -> dict[str, int]:
    """Return how many people answered a question at each level, and under "off" how many did not."""
    return {OFF: people - sum(levels.values()), **levels}


def _reason(error: ReportError) -> str:
    return _REASONS.get(type(error), "unusable")
