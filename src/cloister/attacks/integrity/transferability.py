"""Transferability: whether inputs that mislead one model mislead another as well.

An attacker who cannot ask a model trains one of their own, on other data or of another kind, and misleads that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.attacks.integrity.evasion import NORMS, Space, misleading_rows, slopes_of
from cloister.attacks.integrity.robustness import APART, HONEST, read_numbers
from cloister.attacks.models._victim import Victim
from cloister.core import validation
from cloister.core.wordings import format_points, percent
from cloister.errors import ParameterError
from cloister.report import Report, Section, Status, TableBlock, Text, Verdict, escape_text

if TYPE_CHECKING:
    from pathlib import Path

    from cloister.plotting import Figure

__all__ = ["TransferResult", "transferability"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResult:
    """The accuracy of each model on inputs that were made to mislead each other one.

    Attributes:
        models: their names.
        budget: how far inputs were changed.
        clean: the accuracy of each model on unchanged inputs.
        accuracy: by the model that inputs were made for, then by the model that was tried.
        trials: how many inputs there were.
    """

    schema: ClassVar[str] = "cloister.transferability/1"

    models: tuple[str, ...]
    budget: float
    clean: tuple[float, ...]
    accuracy: tuple[tuple[float, ...], ...]
    trials: int

    @property
    def verdict(self) -> str:
        """Return one sentence for a custodian."""
        drops = [
            (self.clean[tried] - self.accuracy[made][tried], made, tried)
            for made in range(len(self.models))
            for tried in range(len(self.models))
            if made != tried
        ]
        drop, made, tried = max(drops)
        cost = format_points(max(drop, 0), digits=2)
        return (
            f"Inputs made to mislead {self.models[made]} cost {self.models[tried]} {cost} points of "
            "accuracy, the most of all pairs: keeping a model secret protects it no more than that."
        )

    def __str__(self) -> str:
        return f"transferability: {self.verdict}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        rows = [("verdict", self.verdict), ("concerns", APART)]
        rows += [(f"{name}, unchanged", percent(share)) for name, share in zip(self.models, self.clean, strict=True)]
        for made, line in zip(self.models, self.accuracy, strict=True):
            shares = zip(self.models, line, strict=True)
            rows += [(f"{tried}, inputs made for {made}", percent(share)) for tried, share in shares]
        return (*rows, ("cost", f"{self.trials:,} records, changed by up to {self.budget:g}"))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker."""
        return {
            "schema": self.schema,
            "models": list(self.models),
            "budget": self.budget,
            "clean": list(self.clean),
            "accuracy": [list(line) for line in self.accuracy],
            "trials": self.trials,
            "verdict": self.verdict,
        }

    def plot(self) -> Figure:
        """Return a grid of the accuracies."""
        from cloister.plotting import heatmap

        return heatmap(
            list(self.models),
            list(self.models),
            [[100 * share for share in line] for line in self.accuracy],
            title="Accuracy on inputs made to mislead another model, %",
            x="model that is tried",
            y="model that inputs were made for",
        )

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says, in a section of its own beside those about privacy."""
        rows = [["unchanged", *map(percent, self.clean)]]
        rows += [[name, *map(percent, line)] for name, line in zip(self.models, self.accuracy, strict=True)]
        table = TableBlock(["inputs made for", *self.models], rows, caption="Accuracy of each model.")
        return (Section("Robustness: transferability", [Text(escape_text(self.verdict)), table], level=level),)

    def report(self, path: str | Path | None = None, *, title: str = "Robustness: transferability") -> Report:
        """Return a report; with a path that ends in .html, .md or .json it is written there as well."""
        verdict = Verdict(self.verdict, Status.ATTENTION)
        report = Report(title, verdict=verdict, summary=HONEST, sections=self.sections())
        if path is not None:
            report.write(path)
        return report


def transferability(
    models: Mapping[str, Any],
    test: Any,
    *,
    bounds: object,
    budget: object,
    norm: str = "largest",
    steps: int = 10,
    target: str | None = None,
) -> TransferResult:
    """Mislead each model, and try the misleading inputs on all of them.

    Args:
        models: fitted classifiers with ``predict_proba``, by name; two or more.
        test: rows that they have not seen: a pair (features, labels), or a table with ``target``.
        bounds: public bounds (low, high) of all features.
        budget: how far an input may be changed.
        norm: "largest" limits the change of every feature, "euclidean" the length of the change.
        steps: how many steps are taken.
        target: the column of labels, where a table is given.

    Raises:
        ParameterError: if there are fewer than two models, or rows and settings do not belong together.
    """
    validation.check_choice(norm, name="norm", allowed=NORMS)
    limit = float(validation.check_positive(budget, name="budget"))
    count = validation.check_count(steps, name="steps", at_least=1)
    low, high = (float(end) for end in validation.check_bounds(bounds))
    if not isinstance(models, Mapping) or len(models) < 2:  # type: ignore[redundant-expr]  # callers may not check
        raise ParameterError("There are no two models to compare.", fix='give models={"ours": ..., "theirs": ...}.')
    rows = read_numbers(test, target=target, what="test")
    victims = [Victim(model) for model in models.values()]
    space, accuracy = Space(low, high, norm), []
    for made in victims:
        places = made.positions(rows.labels, made.confidences(rows.features[:1]).shape[1])
        slopes = slopes_of(made, rows.features, width=high - low)
        points = misleading_rows(slopes, rows.features, places, toward=False, budget=limit, space=space, steps=count)
        accuracy.append(tuple(float(np.mean(tried.predictions(points) == rows.labels)) for tried in victims))
    return TransferResult(
        models=tuple(str(name) for name in models),
        budget=limit,
        clean=tuple(float(np.mean(victim.predictions(rows.features) == rows.labels)) for victim in victims),
        accuracy=tuple(accuracy),
        trials=len(rows),
    )
