"""What devices and collector agree on before anything is asked, and the reports that come of it.

Privacy: claim epsilon-LDP for everything that a person sends. The coin that chooses the question knows nothing of the
person, and given the coin the report is one of a protocol with that epsilon. A design that asks one person everything
costs the sum over all answers that can differ between two people, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from cloister.core.digests import digest_of
from cloister.core.guarantees import Caveat, LocalDP
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.errors import ForeignReportError
from cloister.local._output_space import Payload, more_than_a_report, report_error
from cloister.local.draws import Draws, SourceDraws
from cloister.local.naive_bayes._questions import FeatureQuestion
from cloister.local.naive_bayes.features import LabeledPeople
from cloister.local.reports import MOST_BYTES, Reports, json_lines, read_reports

__all__ = ["DesignReports", "QuestionDesign"]

_D = TypeVar("_D", bound=Draws)
_REPORT = "cloister.naive_bayes_report/1"
_PARTS = frozenset({"schema", "design", "question", "report"})


@dataclass(frozen=True, eq=False)
class QuestionDesign:
    """The questions, how one is chosen, and what a person pays.

    Attributes:
        questions: all of them, in order.
        guarantee: what everything that a person sends promises them.
        facts: what else is public, as JSON-ready values: features, classes, bounds.
        asks_all: whether one person answers every question, rather than the one that the public coin chose.
    """

    questions: tuple[FeatureQuestion, ...]
    guarantee: LocalDP
    facts: Mapping[str, Any]
    asks_all: bool = False

    def ask(self, people: LabeledPeople, *, single: bool, random_state: RandomState = None) -> DesignReports:
        """Return the reports of people, on their devices: first the coin, then the answer to its question."""
        source = random_source(random_state)
        draws = SourceDraws(source)
        tell = _perturb_answers if single else _perturb_many_answers
        return DesignReports(self, self._rows(people, draws, tell), caveats_of(source))

    def answer(self, people: LabeledPeople, draws: Draws) -> tuple[Payload, ...]:
        """Return the rows of reports to each question, in the order of draws that one device has."""
        return self._rows(people, draws, _perturb_answers)

    def read(self, source: Any) -> DesignReports:  # reports in any form
        """Return reports in any form, each one checked.

        Args:
            source: `DesignReports` or several of them, JSON lines, or one or many JSON-ready dictionaries.

        Raises:
            ForeignReportError: if one was made for another design.
            MalformedReportError: if one is not what a device of this design can send.
        """
        if isinstance(source, DesignReports):
            return self._check_reports(source)
        if isinstance(source, str):
            source = [_parse_json(line) for line in source.splitlines() if line.strip()]
        items: list[Any] = [source] if isinstance(source, Mapping) else list(_iterable(source))
        made = [item for item in items if isinstance(item, DesignReports)]
        if made and len(made) == len(items):
            return _join_reports(self, [self._check_reports(item) for item in made])
        return self._parse([_parse_json(item) if isinstance(item, str) else item for item in items])

    @cached_property
    def fingerprint(self) -> str:
        """Return the hash of the public record: two designs are the same when their fingerprints are."""
        return digest_of(self._record())

    def to_dict(self) -> dict[str, Any]:
        """Return the public record that devices get."""
        return {**self._record(), "fingerprint": self.fingerprint}

    def __repr__(self) -> str:
        return f"Design({len(self.questions)} questions, {self.guarantee.brief()})"

    def _rows(
        self, people: LabeledPeople, draws: _D, tell: Callable[[FeatureQuestion, LabeledPeople, _D], Payload]
    ) -> tuple[Payload, ...]:
        if self.asks_all:
            return tuple(tell(question, people, draws) for question in self.questions)
        # The coin is tossed before anybody's features are looked at, so that the question tells nothing.
        chosen = self._toss(len(people), draws)
        asked = [np.flatnonzero(chosen == place) for place in range(len(self.questions))]
        return tuple(
            tell(question, people.some(found), draws) if found.size else _nobody(question)
            for question, found in zip(self.questions, asked, strict=True)
        )

    def _toss(self, people: int, draws: Draws) -> np.ndarray[Any, np.dtype[np.int64]]:
        # One uniform draw among as many sides as all questions have together: whole numbers, and exact.
        sides = np.repeat(np.arange(len(self.questions)), [question.sides for question in self.questions])
        return np.asarray(sides[draws.below(len(sides), people)], dtype=np.int64)

    def _record(self) -> dict[str, Any]:
        return {
            "schema": "cloister.naive_bayes_design/1",
            "asks_all": self.asks_all,
            **self.facts,
            "questions": [question.to_dict() for question in self.questions],
        }

    def _check_reports(self, reports: DesignReports) -> DesignReports:
        if reports.design.fingerprint != self.fingerprint:
            raise _foreign()
        for question, rows in zip(self.questions, reports.rows, strict=True):
            # Rows are checked even in an object of our own, as anybody can make one.
            question.protocol.output_space.check(rows)
        return reports

    def _parse(self, items: list[Any]) -> DesignReports:  # JSON values
        sorted_: list[list[Any]] = [[] for _ in self.questions]
        for item in items:
            sorted_[self._place(item)].append(item["report"])
        rows = [
            read_reports(question.protocol, found).payload
            for question, found in zip(self.questions, sorted_, strict=True)
        ]
        return DesignReports(self, tuple(rows))

    def _place(self, item: object) -> int:
        if not isinstance(item, Mapping) or not isinstance(item.get("report"), Mapping):
            raise report_error()
        if item.get("schema") != _REPORT or item.get("design") != self.fingerprint:
            raise _foreign()
        if item.keys() - _PARTS:
            raise more_than_a_report()
        place = item.get("question")
        # True would pass for the second question.
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(self.questions):
            raise report_error()
        return place


@dataclass(frozen=True, eq=False, repr=False)
class DesignReports:
    """Reports to the questions of a design.

    Attributes:
        design: what they were made for.
        rows: the reports to each question.
        caveats: what breaks their promise, such as predictable randomness.
    """

    design: QuestionDesign
    rows: tuple[Payload, ...]
    caveats: tuple[Caveat, ...] = ()

    def __len__(self) -> int:
        return sum(len(rows) for rows in self.rows)

    def __add__(self, other: DesignReports) -> DesignReports:
        if other.design.fingerprint != self.design.fingerprint:
            raise _foreign()
        return _join_reports(self.design, [self, other])

    def __repr__(self) -> str:
        return f"DesignReports({len(self)} of {self.design!r})"

    def of(self, place: int) -> Reports:
        """Return the reports to one question."""
        return Reports(self.design.questions[place].protocol, self.rows[place], self.caveats)

    @property
    def guarantee(self) -> LocalDP:
        """Return what these reports promise to each sender."""
        return self.design.guarantee.with_caveat(*self.caveats)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each report as JSON-ready values."""
        return [
            {"schema": _REPORT, "design": self.design.fingerprint, "question": place, "report": report}
            for place in range(len(self.rows))
            for report in self.of(place).to_dicts()
        ]

    def to_json_lines(self) -> str:
        """Return one line of JSON for each report."""
        return json_lines(self.to_dicts())


def _perturb_answers(question: FeatureQuestion, people: LabeledPeople, draws: Draws) -> Payload:
    return question.protocol.perturb(question.codes(people), draws)


def _perturb_many_answers(question: FeatureQuestion, people: LabeledPeople, draws: SourceDraws) -> Payload:
    return question.protocol.perturb_many(question.codes(people), draws)


def _nobody(question: FeatureQuestion) -> Payload:
    return np.empty(0, dtype=question.protocol.output_space.dtype)


def _join_reports(design: QuestionDesign, parts: list[DesignReports]) -> DesignReports:
    rows = tuple(np.concatenate(found) for found in zip(*(part.rows for part in parts), strict=True))
    return DesignReports(design, rows, tuple(dict.fromkeys(caveat for part in parts for caveat in part.caveats)))


def _iterable(source: Any) -> Iterator[Any]:  # whatever holds reports
    if not isinstance(source, Iterable):
        raise report_error()
    return iter(source)


def _parse_json(text: str) -> Any:  # a JSON value
    if len(text) > MOST_BYTES:
        raise report_error()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise report_error() from None


def _foreign() -> ForeignReportError:
    return ForeignReportError(
        "A report was made for another design: other features, classes, questions or epsilon.",
        fix="fit with the very model (or its record) that the devices used.",
    )
