"""The collector's side: submissions come in, and only bags of reports stay.

A submission is checked and taken whole or not at all. What is kept is a bag of reports for each question and level, in
an order that says nothing, and apart from them the hashes of used ids. Nothing connects the two, nor the reports of one
person with each other. Days are only counted.

At rest are one file of reports without ids, and one of used ids without reports. Both are sorted, so that neither tells
in which order people came, and nothing connects a line of one with a line of the other. Keep them in different places,
with different readers, where that is possible.

Not promised: whoever receives a submission sees its id and its reports side by side at that moment, and an observer of
the network sees who sends. Levels, and questions left out, are visible.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cloister.core.atomic_files import write_text
from cloister.core.wordings import format_count
from cloister.data.text_files import read_text
from cloister.errors import (
    CloisterError,
    DataError,
    DuplicateReportError,
    ForeignReportError,
    ParameterError,
)
from cloister.local._output_space import Payload
from cloister.local.reports import Reports
from cloister.local.survey.intake import Intake, SubmissionIntake, off_and_answered
from cloister.local.survey.levels import OFF
from cloister.local.survey.model import Survey
from cloister.local.survey.results import SurveyResult
from cloister.local.survey.submission_checks import Checker, Place
from cloister.local.survey.submissions import Submission, is_day, is_id

__all__ = [
    "REPORTS",
    "USED",
    "Collector",
    "damage_error",
    "prepare",
    "read_bags",
    "read_used",
    "write_bags",
    "write_used",
]


REPORTS = "reports.json"
USED = "used-ids.json"
_BAGS_SCHEMA = "cloister.collected_reports/1"
_USED_SCHEMA = "cloister.used_ids/1"


def prepare(folder: str | Path, *, overwrite: bool) -> None:
    """Make the folder if need be, and refuse it if a file is in the way."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f'The folder "{folder}" cannot be made: {error.strerror}.', fix="choose a folder that you may write to."
        ) from None
    taken = [name for name in (USED, REPORTS) if not overwrite and (Path(folder) / name).exists()]
    if taken:
        raise DataError(
            f'There is a file "{taken[0]}" in "{folder}" already.', fix="choose another folder, or say overwrite=True."
        )


def write_bags(
    folder: str | Path,
    survey: Survey,
    bags: Mapping[tuple[str, str], Reports],
    days: Mapping[str, int],
    *,
    overwrite: bool,
) -> None:
    """Write the reports of each question and level, and how many submissions came on which day."""
    packed = [
        {"question": question, "level": level, "reports": base64.b64encode(reports.to_bytes()).decode()}
        for (question, level), reports in sorted(bags.items())
    ]
    _write(folder, REPORTS, survey, {"days": dict(sorted(days.items())), "bags": packed}, overwrite=overwrite)


def read_bags(folder: str | Path, survey: Survey) -> tuple[dict[tuple[str, str], Payload], Counter[str]]:
    """Return the rows of each question and level, each checked anew, and the days."""
    values = _read(folder, REPORTS, survey)
    try:
        read = [
            (
                (bag["question"], bag["level"]),
                survey.protocol(bag["question"], bag["level"]).read(base64.b64decode(bag["reports"], validate=True)),
            )
            for bag in values["bags"]
        ]
        days = {day: _count(day, count) for day, count in values["days"].items()}
    except (CloisterError, KeyError, TypeError, AttributeError, ValueError, binascii.Error):
        raise damage_error(REPORTS) from None
    bags = {place: reports.payload for place, reports in read}
    if len(bags) < len(read):
        raise damage_error(REPORTS)
    return bags, Counter(days)


def _count(day: object, count: object) -> int:
    if not is_day(day) or type(count) is not int or not 1 <= count < 2**53:
        raise ValueError
    return count


def write_used(folder: str | Path, survey: Survey, used: Collection[str], *, overwrite: bool) -> None:
    """Write the hashes of used ids."""
    _write(folder, USED, survey, {"used": sorted(used)}, overwrite=overwrite)


def read_used(folder: str | Path, survey: Survey) -> set[str]:
    """Return the hashes of used ids."""
    used = _read(folder, USED, survey).get("used")
    if not isinstance(used, list) or not all(isinstance(digest, str) for digest in used):
        raise damage_error(USED)
    return set(used)


def _write(folder: str | Path, name: str, survey: Survey, values: Mapping[str, Any], *, overwrite: bool) -> None:
    document = {"schema": _schema(name), "survey": survey.id, "fingerprint": survey.fingerprint, **values}
    write_text(Path(folder) / name, json.dumps(document, indent=1) + "\n", overwrite=overwrite)


def _read(folder: str | Path, name: str, survey: Survey) -> dict[str, Any]:
    text = read_text(Path(folder) / name, what="collection")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise damage_error(name) from None
    head = {"schema": _schema(name), "survey": survey.id, "fingerprint": survey.fingerprint}
    if not isinstance(values, dict) or any(values.get(key) != value for key, value in head.items()):
        raise DataError(
            f"{name} is of another survey, or of another version of this one.",
            fix="use the survey as it was published when the reports were collected.",
        )
    return values


def _schema(name: str) -> str:
    return _BAGS_SCHEMA if name == REPORTS else _USED_SCHEMA


def damage_error(name: str) -> DataError:
    """Return the error for a file that does not hold what was written."""
    return DataError(f"{name} is damaged.", fix="take it from a backup.")


_LOOSE = 4096


class _MemoryStore:
    """Keeps the parts of submissions in memory: hashes of used ids, and rows of reports that are sorted when read."""

    def __init__(self, survey: Survey, places: Iterable[Place]) -> None:
        self.counted: Counter[str] = Counter()
        self.digests: set[str] = set()
        self.rows = {place: [np.empty(0, survey.protocol(*place).output_space.dtype)] for place in places}

    def used(self, ids: Collection[str]) -> set[str]:
        return {one for one in ids if _digest(one) in self.digests}

    def use(self, ids: Collection[str]) -> None:
        self.digests.update(map(_digest, ids))

    def keep(self, reports: Mapping[Place, Payload]) -> None:
        for place, rows in reports.items():
            bag = self.rows[place]
            bag.append(rows)
            # One small array for each submission takes far more memory than the reports in it.
            if len(bag) > _LOOSE:
                bag[:] = [np.concatenate(bag)]

    def count(self, days: Mapping[str, int]) -> None:
        self.counted.update(days)

    def days(self) -> Counter[str]:
        return self.counted

    def bag(self, place: Place) -> Payload:
        return _sort_rows(np.concatenate(self.rows[place]))

    def bags(self) -> dict[Place, Payload]:
        return {place: self.bag(place) for place in self.rows}


class Collector:
    """Takes submissions to one survey.

    Args:
        survey: what was asked.
        admitted: the ids of invited people (`token_id` of their tokens); None admits everybody.

    >>> from cloister.local.survey import Collector, SurveyQuestion, Survey
    >>> question = SurveyQuestion(id="married", kind="yes_no", text="Are you married?")
    >>> survey = Survey(id="demo", title="Demo", collector="Example Institute", questions=[question])
    >>> collector = Collector(survey)
    >>> collector.add(survey.answer({"married": "yes"}))
    >>> collector
    Collector('demo', 1 submission)
    """

    def __init__(self, survey: Survey, *, admitted: Iterable[str] | None = None) -> None:
        self.survey = survey
        self.refused: Counter[str] = Counter()
        self._admitted = None if admitted is None else frozenset(map(_digest, _check_ids(admitted)))
        checker = Checker(survey)
        self._store = _MemoryStore(survey, checker.places)
        self._intake = SubmissionIntake(checker, self._store, admit=self._admit)

    @property
    def days(self) -> Counter[str]:
        """Return how many submissions came on which day."""
        return self._store.counted

    def __len__(self) -> int:
        return self.days.total()

    def __repr__(self) -> str:
        return f"Collector({self.survey.id!r}, {format_count(len(self), 'submission')})"

    def add(self, submission: Any) -> None:  # a Submission, its JSON, or its values
        """Take one submission, whole or not at all.

        Raises:
            MalformedReportError: if it is truncated, oversized, of another form or outside of the output space, answers
                a question twice, or leaves out one that must be answered.
            ForeignReportError: if it is for another survey, question, level, protocol or version, or was not invited.
            DuplicateReportError: if its id was used before.
        """
        if not self._intake.take(submission):
            raise DuplicateReportError(
                "A submission came twice: its one-time id was used before.", fix="count the first one only."
            )

    def add_lines(self, lines: Iterable[str | bytes]) -> Intake:
        """Take submissions, one line of JSON each; those that are refused are counted, and nothing stops."""
        intake, rest = Intake(), iter(lines)
        while batch := list(islice(rest, _LOOSE)):
            intake.update(self._intake.take_many(line for line in batch if line.strip()))
        self.refused.update(intake.reasons())
        return intake

    def counts(self, question: str) -> dict[str, int]:
        """Return how many people answered a question at each level, and under "off" how many did not."""
        levels = [level for level in self.survey.levels_of(question) if level != OFF]
        return off_and_answered(
            {level: sum(map(len, self._store.rows[question, level])) for level in levels}, len(self)
        )

    def reports(self, question: str, level: str) -> Reports:
        """Return the reports of a question and level, in an order that does not say who came when."""
        return Reports(self.survey.protocol(question, level), self._store.bag((question, level)))

    def estimate(self) -> SurveyResult:
        """Return what everybody together answered, question by question.

        Raises:
            TooFewReportsError: if there is no submission.
        """
        return self._intake.estimate(refused=self.refused)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write what is kept into two files of a folder: reports, and apart from them the hashes of used ids.

        The ids are written first: should the second file fail, no submission can come in twice.
        """
        bags = {place: self.reports(*place) for place in self._store.rows}
        prepare(folder, overwrite=overwrite)
        write_used(folder, self.survey, self._store.digests, overwrite=overwrite)
        write_bags(folder, self.survey, bags, self.days, overwrite=overwrite)

    @classmethod
    def load(cls, survey: Survey, folder: str | Path, *, admitted: Iterable[str] | None = None) -> Collector:
        """Return the collector of what `save` wrote.

        Raises:
            DataError: if the files are not there, damaged, or of another survey.
        """
        made = cls(survey, admitted=admitted)
        store = made._store
        bags, days = read_bags(folder, survey)
        store.digests = read_used(folder, survey)
        if bags.keys() != store.rows.keys():
            raise damage_error(REPORTS)
        store.keep(bags)
        store.count(days)
        fits = all(made.counts(question.id)[OFF] >= 0 for question in survey.questions)
        # More submissions than used ids, or more answers than people, cannot have been written by `save`.
        if len(store.digests) < len(made) or not fits:
            raise damage_error(REPORTS)
        return made

    def _admit(self, submission: Submission) -> None:
        if self._admitted is not None and _digest(submission.id) not in self._admitted:
            raise ForeignReportError("A submission was not invited.", fix="use the token of the invitation.")


def _check_ids(admitted: Iterable[str]) -> list[str]:
    found = [] if isinstance(admitted, str) else list(admitted)
    if not found or not all(is_id(one) for one in found):
        raise ParameterError(
            "What is admitted are not ids of invited people.",
            fix="give a list of token_id(token), one for each token that was handed out.",
        )
    return found


def _digest(identifier: str) -> str:
    # A label of its own, so that the digest is not the one that another list keeps of the same id.
    return hashlib.sha256(b"cloister.used/1\n" + identifier.encode()).hexdigest()


def _sort_rows(rows: Payload) -> Payload:
    """Return rows in the order of their bytes."""
    columns = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.dtype.itemsize)
    return rows[np.lexsort(columns.T[::-1])]
