"""Deciding: which questions may be answered, given what was answered before.

A decision uses which rows a question is about, never a sum or a mean. It has two parts. The first looks only at columns
that the asker may know: the asker could foresee it, so that its refusals tell nothing about confidential values. The
second looks at conditions on confidential columns and at missing values. Its refusals do tell something: that too few
rows are in a public class (see `cut_points`), or have a value. They therefore count as answers: the rows that may be
meant are recorded and audited as if a sum over them had been told. No decision depends on where in its class a value
is. Everything that is refused is recorded as such.

There is one audit of the rows that questions may be about, for all columns together, and one for each column of the
rows that really contribute a value. The latter begins when the two first differ: before, it would find nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cloister.queries.inference_control.auditing import Audit, Mask
from cloister.queries.inference_control.controls import Controls
from cloister.queries.inference_control.history import ASKED, COUNTS, KNOWN, REFUSED, AnsweredSet
from cloister.queries.inference_control.overlap import overlap_permits
from cloister.queries.inference_control.size import size_permits

__all__ = ["Candidate", "Decider", "replayed"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """One number that is asked for.

    Attributes:
        known: the rows that meet the conditions on columns that the asker may know.
        asked: those of them that meet the conditions on confidential columns, too.
        contributing: those of them with a value.
        is_confidential: whether there are conditions on confidential columns.
        values: a name for the confidential values that the number depends on; None if there are none.
    """

    known: Mask = field(repr=False)
    asked: Mask = field(repr=False)
    contributing: Mask = field(repr=False)
    is_confidential: bool
    values: str | None

    @property
    def audited(self) -> tuple[Mask, ...]:
        """Return the sets over which values are told; how many rows may be meant is told without being asked."""
        return (self.known, self.contributing) if self.values == COUNTS else (self.contributing,)

    def sets(self) -> list[AnsweredSet]:
        """Return what has to be recorded when the number is told."""
        if self.values is None:
            return [AnsweredSet.of(self.asked, ASKED)]
        parts = [(self.known, KNOWN), (self.asked, ASKED)]
        parts += [(members, self.values) for members in self.audited]
        found: dict[bytes, AnsweredSet] = {}
        for members, kind in parts:
            item = AnsweredSet.of(members, kind)
            known = found.get(item.members, item)
            found[item.members] = AnsweredSet(item.members, known.kinds | item.kinds)
        return list(found.values())


def replayed(sets: Sequence[AnsweredSet], audits: Mapping[str, Audit], *, rows: int) -> dict[str, Audit]:
    """Return audits continued by answered sets of their kinds."""
    found = dict(audits)
    for item in sets:
        members = item.mask(rows)
        for kind in sorted(item.kinds & found.keys()):
            found[kind] = found[kind].recorded(members)
    return found


class Decider:
    """Judges the numbers of one question in order; what it permits and what it refuses, it remembers."""

    def __init__(
        self, controls: Controls, sets: Sequence[AnsweredSet], audits: Mapping[str, Audit], *, rows: int
    ) -> None:
        self._controls = controls
        self._rows = rows
        self._asked: list[Mask] = []
        self._kinds: dict[bytes, frozenset[str]] = {}
        self._apart: set[str] = set()
        self.audits = dict(audits)
        self.sets: list[AnsweredSet] = []
        for item in sets:
            self._record(item)

    def refusal(self, candidate: Candidate) -> str | None:
        """Return the control that refuses a number, or None, in which case it counts as answered."""
        foreseen = self._foreseeable_refusal(candidate)
        if foreseen is not None:
            self._record(AnsweredSet.of(candidate.known, REFUSED))
            return foreseen
        if candidate.values is not None:
            hidden = self._hidden_refusal(candidate, candidate.values)
            if hidden is not None:
                self._record(AnsweredSet.of(candidate.known, KNOWN))
                self._record(AnsweredSet.of(candidate.asked, REFUSED))
                return hidden
        for item in candidate.sets():
            self._record(item)
        return None

    def _foreseeable_refusal(self, candidate: Candidate) -> str | None:
        size, least = int(candidate.known.sum()), self._controls.min_size
        if least is not None:
            largest = self._rows if candidate.is_confidential else self._rows - least
            if not (2 * least if candidate.is_confidential else least) <= size <= largest:
                return "size"
        if not candidate.is_confidential and not self._overlap_permits(candidate.asked):
            return "overlap"
        return None if candidate.values is None or self._audit_permits(KNOWN, candidate.known) else "audit"

    def _hidden_refusal(self, candidate: Candidate, values: str) -> str | None:
        least = self._controls.min_size
        among = int(candidate.known.sum()) if candidate.is_confidential else self._rows
        asked, contributing = int(candidate.asked.sum()), int(candidate.contributing.sum())
        if least is not None and not size_permits(asked=asked, among=among, contributing=contributing, min_size=least):
            return "size"
        if candidate.is_confidential and not self._overlap_permits(candidate.asked):
            return "overlap"
        if values not in self._apart and np.array_equal(candidate.contributing, candidate.known):
            return None
        return None if self._audit_permits(values, *candidate.audited) else "audit"

    def _overlap_permits(self, asked: Mask) -> bool:
        most = self._controls.max_overlap
        return most is None or overlap_permits(asked, self._asked, max_overlap=most)

    def _audit_permits(self, kind: str, *sets: Mask) -> bool:
        if not self._controls.audit:
            return True
        if kind not in self.audits:
            empty = Audit.of(self._rows, pairs=self._controls.pairs)
            self.audits |= replayed(self.sets, {kind: empty}, rows=self._rows)
        after: Audit | None = self.audits[kind]
        for members in sets:
            after = None if after is None else after.permitted(members)
        if after is not None:
            self.audits[kind] = after
        return after is not None

    def _has(self, item: AnsweredSet) -> bool:
        return item.kinds <= self._kinds.get(item.members, frozenset())

    def _record(self, item: AnsweredSet) -> None:
        if self._has(item):
            return
        before = self._kinds.get(item.members, frozenset())
        self._kinds[item.members] = before | item.kinds
        if KNOWN not in before | item.kinds:
            self._apart |= item.kinds - {ASKED, REFUSED}
        self.sets.append(item)
        if ASKED in item.kinds - before and self._controls.max_overlap is not None:
            self._asked.append(item.mask(self._rows))
