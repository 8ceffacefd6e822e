"""Robustness: what attacks on the integrity of a model show, its accuracy against the attacker's strength.

This is about whether a model can be misled, not about what it tells of people, and reports keep the two apart.
Differential privacy bounds what can be inferred; against a few poisoned rows it gives a weak bound, against changed
inputs none. All of these attacks take rows of numbers, and give accuracies with intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.models._victim import Labeled, as_matrix, read_labeled
from cloister.core import exact
from cloister.core.confidence import binomial_interval
from cloister.core.wordings import percent
from cloister.errors import ParameterError
from cloister.report import (
    Block,
    Bullets,
    Chart,
    Notice,
    NoticeKind,
    Report,
    Section,
    Status,
    TableBlock,
    Text,
    Verdict,
    escape_text,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cloister.plotting import Figure

__all__ = ["RobustnessPoint", "RobustnessResult", "common_share", "measure_accuracy", "read_numbers", "read_strengths"]


APART = "This is about robustness: whether the model can be misled. It says nothing about privacy."
HONEST = (
    "An attack that fails is no proof of robustness: it says that this attacker, with this strength, did no more harm. "
    + APART
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessPoint:
    """The accuracy at one strength of the attacker, with a confidence interval."""

    strength: float
    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessResult:
    """The accuracy of a model against the strength of an attacker.

    Attributes:
        attack: the name of the attack.
        assumption: what the attacker is assumed to know and to be able to do.
        measure: what the strength is.
        curves: by name, the accuracy at each strength; the first curve is the attack, others are for comparison.
        baseline: the accuracy of always answering the most common class.
        confidence: of the intervals.
        trials: how many records the accuracy was measured on.
        queries: how many answers of the model the attacker saw.
        mitigation: what helps against this attack.
    """

    schema: ClassVar[str] = "cloister.robustness/1"

    attack: str
    assumption: str
    measure: str
    curves: Mapping[str, tuple[RobustnessPoint, ...]]
    baseline: float
    confidence: float
    trials: int
    queries: int
    mitigation: tuple[str, ...] = ()

    @property
    def points(self) -> tuple[RobustnessPoint, ...]:
        """Return the curve of the attack."""
        return next(iter(self.curves.values()))

    @property
    def clean_accuracy(self) -> float:
        """Return the accuracy without an attack."""
        return self.points[0].accuracy

    @property
    def worst_accuracy(self) -> float:
        """Return the lowest accuracy under the attack."""
        return min(point.accuracy for point in self.points)

    @property
    def succeeded(self) -> bool:
        """Return whether the accuracy falls, at the stated confidence."""
        return min(point.interval[1] for point in self.points) < self.points[0].interval[0]

    def accuracy_at(self, strength: float, *, curve: str | None = None) -> float:
        """Return the accuracy at the largest measured strength that is not above the given one."""
        points = self.points if curve is None else self.curves[curve]
        return [point for point in points if point.strength <= strength][-1].accuracy

    @property
    def verdict(self) -> str:
        """Return one or two sentences for a custodian."""
        last = self.points[-1]
        rates = (
            f"accuracy goes from {percent(self.clean_accuracy)} to {percent(last.accuracy)} "
            f"at {self.measure} {last.strength:g}; always answering the most common class gets {percent(self.baseline)}"
        )
        if self.succeeded:
            return f"The model can be misled: {rates}."
        return f"This attack did no certain harm: {rates}. Others may do more."

    def __str__(self) -> str:
        return f"{self.attack}: accuracy {percent(self.clean_accuracy)}, under attack {percent(self.worst_accuracy)}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        rows = [("verdict", self.verdict), ("attacker", self.assumption), ("concerns", APART)]
        for name, points in self.curves.items():
            rows += [(f"{name}, {self.measure} {point.strength:g}", _format_point(point)) for point in points]
        return (*rows, *(("what helps", advice) for advice in self.mitigation))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker."""
        return {
            "schema": self.schema,
            "attack": self.attack,
            "assumption": self.assumption,
            "measure": self.measure,
            "curves": {
                name: [
                    {"strength": point.strength, "accuracy": point.accuracy, "interval": list(point.interval)}
                    for point in points
                ]
                for name, points in self.curves.items()
            },
            "baseline": self.baseline,
            "confidence": self.confidence,
            "trials": self.trials,
            "queries": self.queries,
            "verdict": self.verdict,
            "mitigation": list(self.mitigation),
        }

    def plot(self) -> Figure:
        """Return a chart of the accuracy against the attacker's strength."""
        from cloister.plotting import lines

        series = {
            name: [(point.strength, 100 * point.accuracy) for point in points] for name, points in self.curves.items()
        }
        ends = self.points[0].strength, self.points[-1].strength
        series["most common class"] = [(end, 100 * self.baseline) for end in ends]
        bands = {
            name: [(point.strength, 100 * point.interval[0], 100 * point.interval[1]) for point in points]
            for name, points in self.curves.items()
        }
        return lines(
            series,
            bands=bands,
            title=f"Accuracy under attack: {self.attack}",
            x=self.measure,
            y="accuracy, %",
            subtitle=f"{self.trials:,} records; {percent(self.confidence)} confidence",
        )

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says, in a section of its own beside those about privacy."""
        kind = NoticeKind.DANGER if self.succeeded else NoticeKind.INFO
        strengths = [point.strength for point in self.points]
        rows = [
            [f"{strength:g}", *(_format_point(points[place]) for points in self.curves.values())]
            for place, strength in enumerate(strengths)
        ]
        blocks: list[Block] = [
            Notice(kind, escape_text(self.verdict), title="Outcome"),
            Text(f"{APART} **The attacker** {escape_text(self.assumption)}."),
            Chart(self.plot(), caption="Accuracy against the attacker's strength."),
            TableBlock([self.measure, *self.curves], rows, caption="Accuracy, with its confidence interval."),
        ]
        if self.mitigation:
            blocks += [Text("**What helps**"), Bullets([escape_text(advice) for advice in self.mitigation])]
        return (Section(f"Robustness: {self.attack}", blocks, level=level),)

    def report(self, path: str | Path | None = None, *, title: str = "") -> Report:
        """Return a report of this attack; with a path that ends in .html, .md or .json it is written there as well."""
        status = Status.BAD if self.succeeded else Status.ATTENTION
        report = Report(
            title or f"Robustness: {self.attack}",
            verdict=Verdict(self.verdict, status),
            summary=HONEST,
            sections=self.sections(),
        )
        if path is not None:
            report.write(path)
        return report


def _format_point(point: RobustnessPoint) -> str:
    low, high = map(percent, point.interval)
    return f"{percent(point.accuracy)} ({low} to {high})"


def read_numbers(rows: Any, *, target: str | None, what: str) -> Labeled:
    """Return rows of numbers with labels."""
    found = read_labeled(rows, target=target, what=what)
    return Labeled(as_matrix(found.features, what=what), found.labels)


def read_strengths(values: Sequence[object], *, name: str, most: float = np.inf) -> list[float]:
    """Return the strengths of an attacker in order, from 0 on."""
    numbers = sorted({0.0, *(float(exact.number(value, name=f"each of {name}")) for value in values)})
    if numbers[0] < 0 or numbers[-1] > most:
        limit = "" if most == np.inf else f" and at most {most:g}"
        raise ParameterError(f"Some of {name} are out of range.", fix=f"give {name} that are at least 0{limit}.")
    if len(numbers) < 2:
        raise ParameterError(f"There are no {name} above 0.", fix=f"list a few {name}, such as 0.05 and 0.1.")
    return numbers


def measure_accuracy(strength: float, right: NDArray[np.bool_], *, confidence: float) -> RobustnessPoint:
    """Return the accuracy at a strength, by which records are answered rightly."""
    hits = int(right.sum())
    return RobustnessPoint(
        strength=strength,
        accuracy=hits / len(right),
        interval=binomial_interval(hits, len(right), confidence=confidence),
    )


def common_share(labels: NDArray[Any]) -> float:
    """Return the share of the most common label."""
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))
