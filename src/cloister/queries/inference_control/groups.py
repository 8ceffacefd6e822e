"""The rows of each group of a question, what control has to judge about them, and the numbers that it permits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from cloister.queries.inference_control.aggregates import Measure
from cloister.queries.inference_control.asking import Asked
from cloister.queries.inference_control.auditing import Mask
from cloister.queries.inference_control.controls import Controls
from cloister.queries.inference_control.deciding import Candidate
from cloister.queries.inference_control.history import COUNTS, PRESENCE
from cloister.queries.inference_control.snapshot import Snapshot
from cloister.queries.inference_control.treatment import Shown, shown

__all__ = ["Groups"]


class Groups:
    """The groups of a question in the order of their public keys; without keys there is one."""

    def __init__(self, snapshot: Snapshot, asked: Asked) -> None:
        self._asked = asked
        self._known, self._secret = snapshot.masks([asked.known, asked.confidential])
        self._places = [snapshot.places(key.group, key.type, key.values or ()) for key in asked.keys]
        self._values = [_values_of(snapshot, measure) for measure in asked.measures]

    def candidates(self) -> Iterator[list[Candidate]]:
        """Give, for each group, a candidate for each measure."""
        for known, asked in self._groups():
            yield [self._candidate(known, asked, place) for place in range(len(self._asked.measures))]

    def numbers(self, permitted: Sequence[Sequence[bool]], controls: Controls) -> list[list[Shown | None]]:
        """Return, for each group and measure, what is shown; None where that is not permitted."""
        return [
            [
                _treated(measure, measure.exact(asked & present, values), controls) if allowed else None
                for measure, allowed, (values, present) in zip(self._asked.measures, group, self._values, strict=True)
            ]
            for group, (_, asked) in zip(permitted, self._groups(), strict=True)
        ]

    def _candidate(self, known: Mask, asked: Mask, place: int) -> Candidate:
        measure = self._asked.measures[place]
        is_confidential = self._asked.is_confidential
        values = {"count": COUNTS, "present": PRESENCE}.get(measure.kind)
        if measure.number is not None:
            values = f"values of {measure.number.label}"
        return Candidate(
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


def _values_of(snapshot: Snapshot, measure: Measure) -> tuple[NDArray[np.int64], Mask]:
    if measure.number is not None:
        return snapshot.numbers(measure.number.steps)
    (present,) = snapshot.masks([measure.present])
    return np.zeros(snapshot.size, dtype=np.int64), present


def _treated(measure: Measure, number: Fraction | None, controls: Controls) -> Shown | None:
    if number is None:
        return None
    treatment = {"count": controls.counts, "present": controls.counts, "sum": controls.sums}.get(
        measure.kind, controls.means
    )
    return shown(number) if treatment is None else treatment.treat(number)
