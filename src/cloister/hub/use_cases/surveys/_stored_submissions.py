"""What the hub's database keeps of submissions to a survey: single reports, and apart from them digests of used ids.

Reports lie under random keys and are written in the order of these keys, digests in their own order: neither says who
came when, which reports came together, or which id came with them. All is written in the transaction of one session.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from cloister.core.random import SystemRandomSource
from cloister.hub.store.models import HubSurvey, SurveyReport, SurveyUsedId
from cloister.hub.use_cases.surveys.catalogue import checker_of, open_document
from cloister.hub.use_cases.surveys.invitations import digest_for_survey
from cloister.local.survey.submission_checks import Place

_KEY_BYTES = 16
_KEY_DIGITS = 2 * _KEY_BYTES
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class StoredSubmissions:
    """The store of submissions to one survey, inside of one transaction."""

    session: Session
    survey: HubSurvey

    def used(self, ids: Collection[str]) -> set[str]:
        """Return those of the ids that were used before."""
        by_digest = {self._digest(one): one for one in ids}
        found: set[str] = set()
        digests = sorted(by_digest)
        for start in range(0, len(digests), _AT_ONCE):
            part = digests[start : start + _AT_ONCE]
            known = select(SurveyUsedId.digest).where(
                SurveyUsedId.survey_id == self.survey.id, SurveyUsedId.digest.in_(part)
            )
            found.update(by_digest[digest] for digest in self.session.scalars(known))
        return found

    def use(self, ids: Collection[str]) -> None:
        """Keep digests of ids, in the order of the digests, which says nothing about who came when."""
        rows = [{"survey_id": self.survey.id, "digest": digest} for digest in sorted(map(self._digest, ids))]
        if rows:
            self.session.execute(insert(SurveyUsedId), rows)

    def keep(self, reports: Mapping[Place, NDArray[Any]]) -> None:
        """Keep single reports under random keys, in the order of the keys: those of one person do not lie together."""
        asked = open_document(self.survey.document)
        values = [
            (place, value)
            for place, rows in reports.items()
            for value in asked.protocol(*place).output_space.shown(rows)
        ]
        keys = SystemRandomSource().random_bytes(_KEY_BYTES * len(values)).hex()
        rows = [
            {
                "survey_id": self.survey.id,
                "key": keys[number * _KEY_DIGITS : (number + 1) * _KEY_DIGITS],
                "question": question,
                "level": level,
                "value": json.dumps(value, separators=(",", ":")),
            }
            for number, ((question, level), value) in enumerate(values)
        ]
        if rows:
            self.session.execute(insert(SurveyReport), sorted(rows, key=lambda row: row["key"]))

    def count(self, days: Mapping[str, int]) -> None:
        """Count submissions where the survey is kept, whoever counts at the same time, and look at no other row."""
        # All state the day of the survey's terms, so that only their number is kept. An expression for the database:
        self.survey.submissions = HubSurvey.submissions + sum(days.values())
        self.session.flush()

    def days(self) -> Mapping[str, int]:
        """Return how many submissions were counted, of no day."""
        return {"": self.survey.submissions}

    def bags(self) -> dict[Place, NDArray[Any]]:
        """Return all reports by question and level; equal ones are counted by the database."""
        columns = SurveyReport.question, SurveyReport.level, SurveyReport.value
        # Sorted by what they say: the order in which they came must not reach the estimates.
        rows = self.session.execute(
            select(*columns, func.count())
            .where(SurveyReport.survey_id == self.survey.id)
            .group_by(*columns)
            .order_by(*columns)
        )
        said: dict[Place, list[tuple[Any, int]]] = {}
        for name, level, value, times in rows:
            said.setdefault((name, level), []).append((json.loads(value), times))
        checker, bags = checker_of(self.survey.document), {}
        for place in checker.places:
            counted = said.get(place, [])
            parsed = checker.rows(place, [value for value, _ in counted])
            bags[place] = np.repeat(parsed, [times for _, times in counted])
        return bags

    def _digest(self, identifier: str) -> str:
        return digest_for_survey(self.survey.id, f"id {identifier}")
