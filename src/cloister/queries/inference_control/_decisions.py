"""Decisions: which questions may be answered, given what was answered before.

A decision uses which rows a question is about, never a sum or a mean. It has two parts. The first looks only at
columns that the asker may know: the asker could foresee it, so that its refusals tell nothing about confidential
values. The second looks at conditions on confidential columns and at missing values. Its refusals do tell something:
that too few rows are in a public class (see `_cut_points`), or have a value. They therefore count as answers: the rows
that may be meant are recorded and audited as if a sum over them had been told. No decision depends on where in its
class a value is. Everything that is refused is recorded as such.

There is one audit of the rows that questions may be about, for all columns together, and one for each column of the
rows that really contribute a value. The latter begins when the two first differ: before, it would find nothing else.

The groups of a question are judged one after the other: of each there are its rows, what control has to judge about
them, and the numbers that it permits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from cloister.queries.inference_control._controlled_query import ControlledMeasure, ControlledQuery
from cloister.queries.inference_control._linear_audit import Audit, Mask
from cloister.queries.inference_control._snapshot import Snapshot
from cloister.queries.inference_control.controls import Controls, Shown, overlap_permits, size_permits, to_number
from cloister.queries.inference_control.history import ASKED, COUNTS, KNOWN, PRESENCE, REFUSED, AnsweredSet

__all__ = ["AnswerCandidate", "Decider", "Groups", "replay"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerCandidate:
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


def replay(sets: Sequence[AnsweredSet], audits: Mapping[str, Audit], *, rows: int) -> dict[str, Audit]:
    """Return audits continued by answered sets of their kinds."""
    found = dict(audits)
    for item in sets:
        members = item.mask(rows)
        for kind in sorted(item.kinds & found.keys()):
            found[kind] = found[kind].record_set(members)
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

    def refusal(self, candidate: AnswerCandidate) -> str | None:
        """Return the control that refuses a number, or None, in which case it counts as answered."""
        foreseen = self._foreseeable_refusal(candidate)
        if foreseen is not None:
            # The asker could foresee this refusal, which therefore tells nothing: only the attempt is
            # remembered.
            self._record(AnsweredSet.of(candidate.known, REFUSED))
            return foreseen
        if candidate.values is not None:
            hidden = self._hidden_refusal(candidate, candidate.values)
            if hidden is not None:
                # This refusal depended on hidden values: it is audited as if a sum over the rows that may be
                # meant had been told.
                self._record(AnsweredSet.of(candidate.known, KNOWN))
                self._record(AnsweredSet.of(candidate.asked, REFUSED))
                return hidden
        for item in candidate.sets():
            self._record(item)
        return None

    def _foreseeable_refusal(self, candidate: AnswerCandidate) -> str | None:
        size, least = int(candidate.known.sum()), self._controls.min_size
        if least is not None:
            largest = self._rows if candidate.is_confidential else self._rows - least
            # A confidential condition parts the known rows into two sets, both of which need the fewest rows;
            # below twice as many no answer could be permitted anyway.
            if not (2 * least if candidate.is_confidential else least) <= size <= largest:
                return "size"
        if not candidate.is_confidential and not self._overlap_permits(candidate.asked):
            return "overlap"
        return None if candidate.values is None or self._audit_permits(KNOWN, candidate.known) else "audit"

    def _hidden_refusal(self, candidate: AnswerCandidate, values: str) -> str | None:
        least = self._controls.min_size
        among = int(candidate.known.sum()) if candidate.is_confidential else self._rows
        asked, contributing = int(candidate.asked.sum()), int(candidate.contributing.sum())
        if least is not None and not size_permits(asked=asked, among=among, contributing=contributing, min_size=least):
            return "size"
        if candidate.is_confidential and not self._overlap_permits(candidate.asked):
            return "overlap"
        # As long as the rows with a value were always those that are known, the audit of all columns has judged
        # the same sets.
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
            self.audits |= replay(self.sets, {kind: empty}, rows=self._rows)
        # The sets of one number are permitted together or not at all; a half-made step must not stay in the
        # audit.
        after: Audit | None = self.audits[kind]
        for members in sets:
            after = None if after is None else after.permit_set(members)
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


class Groups:
    """The groups of a question in the order of their public keys; without keys there is one."""

    def __init__(self, snapshot: Snapshot, asked: ControlledQuery) -> None:
        self._asked = asked
        self._known, self._secret = snapshot.masks([asked.known, asked.confidential])
        self._places = [snapshot.places(key.group, key.type, key.values or ()) for key in asked.keys]
        self._values = [_values_of(snapshot, measure) for measure in asked.measures]

    def candidates(self) -> Iterator[list[AnswerCandidate]]:
        """Give, for each group, a candidate for each measure."""
        for known, asked in self._groups():
            yield [self._candidate(known, asked, place) for place in range(len(self._asked.measures))]

    def numbers(self, permitted: Sequence[Sequence[bool]], controls: Controls) -> list[list[Shown | None]]:
        """Return, for each group and measure, what is shown; None where that is not permitted."""
        return [
            [
                _treat(measure, measure.exact(asked & present, values), controls) if allowed else None
                for measure, allowed, (values, present) in zip(self._asked.measures, group, self._values, strict=True)
            ]
            for group, (_, asked) in zip(permitted, self._groups(), strict=True)
        ]

    def _candidate(self, known: Mask, asked: Mask, place: int) -> AnswerCandidate:
        measure = self._asked.measures[place]
        is_confidential = self._asked.is_confidential
        values = {"count": COUNTS, "present": PRESENCE}.get(measure.kind)
        if measure.number is not None:
            values = f"values of {measure.number.label}"
        return AnswerCandidate(
            known=known,
            asked=asked,
            contributing=asked & self._values[place][1],
            is_confidential=is_confidential,
            values=values if is_confidential or measure.kind != "count" else None,
        )

    def _groups(self) -> Iterator[tuple[Mask, Mask]]:
        """Give, for each group, the rows that known columns put there, and those that all columns do."""
        domains = [range(len(key.values or ())) for key in self._asked.keys]
        for group in product(*domains):
            known, secret = self._known, self._secret
            for value, places, is_secret in zip(group, self._places, self._asked.confidential_keys, strict=True):
                if is_secret:
                    secret = secret & (places == value)
                else:
                    known = known & (places == value)
            yield known, known & secret


def _values_of(snapshot: Snapshot, measure: ControlledMeasure) -> tuple[NDArray[np.int64], Mask]:
    if measure.number is not None:
        return snapshot.numbers(measure.number.steps)
    (present,) = snapshot.masks([measure.present])
    return np.zeros(snapshot.size, dtype=np.int64), present


def _treat(measure: ControlledMeasure, number: Fraction | None, controls: Controls) -> Shown | None:
    if number is None:
        return None
    treatment = {"count": controls.counts, "present": controls.counts, "sum": controls.sums}.get(
        measure.kind, controls.means
    )
    return to_number(number) if treatment is None else treatment.treat(number)
