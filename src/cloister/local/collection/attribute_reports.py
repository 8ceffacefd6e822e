"""Reports of several attributes: the rows of every attribute in memory, one JSON object for each person outside.

A person's object names the collection and holds what was reported for each attribute, or for the one that was asked.
Readers refuse everything that no device with the collection can have made, and never repeat it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.guarantees import Caveat
from cloister.local.collection.wire import items_of
from cloister.local.output_space import Payload, malformed, more_than_a_report
from cloister.local.reports import Reports, foreign

if TYPE_CHECKING:
    from cloister.local.collection.attributes import SeveralAttributes

__all__ = ["AttributeReports", "read_attribute_reports"]

SCHEMA = "cloister.answers/1"
_PARTS = frozenset({"schema", "collection", "answers"})


@dataclass(frozen=True, eq=False, repr=False)
class AttributeReports:
    """What people sent about several attributes.

    Attributes:
        collection: what it was made with.
        rows: the reports of each attribute.
        asked: the place of each person's attribute, where each reported only one.
        caveats: what breaks the promise, such as predictable randomness.
    """

    collection: SeveralAttributes
    rows: Mapping[str, Payload]
    asked: NDArray[np.int64] | None = None
    caveats: tuple[Caveat, ...] = ()

    def __len__(self) -> int:
        """Return the number of people."""
        return len(next(iter(self.rows.values()))) if self.asked is None else len(self.asked)

    def __add__(self, other: AttributeReports) -> AttributeReports:
        if other.collection != self.collection:
            raise foreign()
        asked = None
        if self.asked is not None and other.asked is not None:
            asked = np.concatenate([self.asked, other.asked])
        rows = {name: np.concatenate([rows, other.rows[name]]) for name, rows in self.rows.items()}
        return replace(self, rows=rows, asked=asked, caveats=tuple(dict.fromkeys(self.caveats + other.caveats)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} of {self.collection!r})"

    def of(self, name: str) -> Reports:
        """Return the reports of one attribute."""
        return Reports(self.collection.protocols[name], self.rows[name], self.caveats)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one JSON-ready object for each person, in order."""
        head = {"schema": SCHEMA, "collection": self.collection.fingerprint}
        people: list[dict[str, Any]] = [{**head, "answers": {}} for _ in range(len(self))]
        for place, (name, rows) in enumerate(self.rows.items()):
            show = self.collection.protocols[name].output_space.show
            who = np.arange(len(self)) if self.asked is None else np.flatnonzero(self.asked == place)
            for person, row in zip(who.tolist(), rows, strict=True):
                people[person]["answers"][name] = show(row)
        return people

    def to_json_lines(self) -> str:
        """Return one line of JSON for each person."""
        return "".join(json.dumps(person, ensure_ascii=False) + "\n" for person in self.to_dicts())


def read_attribute_reports(collection: SeveralAttributes, source: Any) -> AttributeReports:  # whatever holds reports
    """Return reports in any form as reports of a collection, each one checked.

    Args:
        collection: what they must have been made with.
        source: `AttributeReports`, or one or many of them, of JSON text and of JSON-ready dictionaries.

    Raises:
        ForeignReportError: if one is of another collection.
        MalformedReportError: if one is not what this collection makes.
    """
    if isinstance(source, AttributeReports):
        return _checked(collection, source)
    items = items_of(source)
    if items and all(isinstance(item, AttributeReports) for item in items):
        return _joined([_checked(collection, item) for item in items])
    return _parsed(collection, [_answers(collection, item) for item in items])


def _checked(collection: SeveralAttributes, reports: AttributeReports) -> AttributeReports:
    if reports.collection != collection:
        raise foreign()
    for name, protocol in collection.protocols.items():
        protocol.output_space.check(reports.rows[name])
    return reports


def _joined(items: list[AttributeReports]) -> AttributeReports:
    first = items[0]
    rows = {name: np.concatenate([item.rows[name] for item in items]) for name in first.rows}
    asked = None if first.asked is None else np.concatenate([item.asked for item in items if item.asked is not None])
    caveats = tuple(dict.fromkeys(caveat for item in items for caveat in item.caveats))
    return replace(first, rows=rows, asked=asked, caveats=caveats)


def _answers(collection: SeveralAttributes, item: object) -> Mapping[str, object]:
    if not isinstance(item, Mapping):
        raise malformed()
    if item.get("schema") != SCHEMA or item.get("collection") != collection.fingerprint:
        raise foreign()
    if item.keys() - _PARTS:
        raise more_than_a_report()
    answers = item.get("answers")
    if not isinstance(answers, Mapping) or not _fits(collection, answers):
        raise malformed()
    return answers


def _fits(collection: SeveralAttributes, answers: Mapping[str, object]) -> bool:
    if collection.reports_one:
        return len(answers) == 1 and answers.keys() <= collection.protocols.keys()
    return answers.keys() == collection.protocols.keys()


def _parsed(collection: SeveralAttributes, people: list[Mapping[str, object]]) -> AttributeReports:
    rows = {
        name: protocol.output_space.parse([answers[name] for answers in people if name in answers])
        for name, protocol in collection.protocols.items()
    }
    asked = None
    if collection.reports_one:
        places = {name: place for place, name in enumerate(collection.protocols)}
        asked = np.array([places[next(iter(answers))] for answers in people], dtype=np.int64)
    return AttributeReports(collection, rows, asked)
