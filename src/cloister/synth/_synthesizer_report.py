"""What a fitted synthesizer reports about itself: only what may be published with its rows.

Nothing here looks at protected rows: it is the promise, its price, what was measured and with how much noise, and the
model that rows are drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cloister.accounting.events import Event, PureEvent, ZeroConcentratedEvent
from cloister.core.guarantees import ApproxDP, PureDP
from cloister.core.wordings import percent
from cloister.report import (
    Bars,
    Block,
    Cell,
    Chart,
    KeyFigure,
    Notice,
    NoticeKind,
    Panels,
    Report,
    ReportProvenance,
    Section,
    Series,
    Status,
    TableBlock,
    Text,
    Verdict,
    escape_text,
)
from cloister.synth.base import Synthesizer
from cloister.synth.evaluation._quality_charts import is_ordered, share_chart
from cloister.synth.expectation import Expectation

__all__ = ["report_of"]

MOST_STEPS = 60
MOST_PANELS = 24


def report_of(synthesizer: Synthesizer, *, title: str) -> Report:
    """Return the promise, the price, the measurements and the model of a fitted synthesizer."""
    expected = synthesizer.expectations
    sections = [
        Section("What is promised", _promise(synthesizer)),
        Section("What was measured", _measurement_blocks(synthesizer)),
    ]
    if expected:
        sections.append(Section("How exact that is", _exactness(expected, synthesizer.rows_)))
    drawn = _model_blocks(synthesizer)
    if drawn:
        sections.append(Section("What rows are drawn from", drawn))
    sections.append(Section("Columns", _columns(synthesizer)))
    return Report(
        title=title,
        subtitle=f"made with {type(synthesizer).__name__}",
        summary=_summary(synthesizer),
        verdict=_verdict(synthesizer),
        figures=_figures(synthesizer, expected),
        sections=sections,
        provenance=ReportProvenance(details=[("Dataset", synthesizer.provenance_.dataset or "not named")]),
    )


def _verdict(synthesizer: Synthesizer) -> Verdict:
    guarantee = synthesizer.guarantee_
    if guarantee.holds:
        return Verdict(f"Protected: {guarantee.brief()}", Status.GOOD)
    return Verdict("Nothing holds that would protect anybody", Status.BAD)


def _summary(synthesizer: Synthesizer) -> str:
    if not synthesizer.guarantee_.holds:
        return (
            "The model was made without a promise that holds, so neither its rows nor this page are protected: whoever "
            "publishes them publishes something about the people in the data."
        )
    return (
        f"About {synthesizer.rows_:,.0f} rows were modeled in {len(synthesizer.fitted_facts.domain.names)} columns. "
        "Rows are drawn from the model, as many and as often as wanted, at no further cost. Everything here may "
        "be published with them: it was computed from the model, not from the protected rows."
    )


def _figures(synthesizer: Synthesizer, expected: Sequence[Expectation]) -> list[KeyFigure]:
    guarantee, figures = synthesizer.guarantee_, []
    if isinstance(guarantee, PureDP | ApproxDP):
        delta = f"delta {float(guarantee.delta):.2g}" if isinstance(guarantee, ApproxDP) else "pure: no delta"
        figures.append(KeyFigure("Epsilon", f"{float(guarantee.epsilon):.4g}", f"{delta}, per {guarantee.unit}"))
    figures.append(KeyFigure("Steps paid for", len(synthesizer.steps_), "measurements and private choices"))
    if expected:
        worst = max(item.margin for item in expected)
        figures.append(KeyFigure("Noise on a count", f"± {worst:,.0f}", "95% of the time, at most"))
    return figures


def _promise(synthesizer: Synthesizer) -> list[Block]:
    guarantee = synthesizer.guarantee_
    return [
        Notice(NoticeKind.PROMISE if guarantee.holds else NoticeKind.DANGER, escape_text(guarantee.explain())),
        Notice(
            NoticeKind.INFO,
            "Rows are made up. One can equal a real row by chance, which tells nothing about that person beyond the "
            "promise. What the promise does not cover, such as what is true of everybody, the rows may show.",
        ),
    ]


def _measurement_blocks(synthesizer: Synthesizer) -> list[Block]:
    if not synthesizer.steps_:
        return [Text("Nothing was measured with noise, and nothing was charged to a budget.")]
    blocks: list[Block] = [
        Text("Each step was paid for from the same budget; rows are drawn from these steps alone, as often as wanted.")
    ]
    alike: dict[str, list[float]] = {}
    for step in synthesizer.steps_:
        alike.setdefault(step.label, []).append(_price(step.event) or 0.0)
    amounts = {label: math.fsum(prices) for label, prices in alike.items()}
    total = math.fsum(amounts.values())
    rows: list[list[Cell]] = [
        [
            label if len(prices) == 1 else f"{label}, {len(prices)} times",
            percent(amounts[label] / total) if amounts[label] else "",
        ]
        for label, prices in list(alike.items())[:MOST_STEPS]
    ]
    left = len(alike) - len(rows)
    blocks.append(
        TableBlock(
            columns=["step", "share of the price"],
            rows=rows,
            align=["left", "right"],
            caption=f"The first {MOST_STEPS} of {len(alike):,} steps" if left else "",
        )
    )
    return blocks


def _price(event: Event) -> float | None:
    """Return what a step costs, in the unit that its kind is added up in."""
    if isinstance(event, PureEvent):
        return float(event.epsilon)
    if isinstance(event, ZeroConcentratedEvent):
        return float(event.rho)
    values: dict[str, Any] = event.to_dict()
    if "squared_sigma" in values:
        return float(event.squared_sensitivity / (2 * event.squared_sigma))  # type: ignore[attr-defined]  # Gaussian
    if "scale" in values:
        return float(event.sensitivity / event.scale)  # type: ignore[attr-defined]  # Laplace
    return None


def _exactness(expected: Sequence[Expectation], rows: float) -> list[Block]:
    shown = sorted(expected, key=lambda item: -item.error(round(rows)))[:MOST_PANELS]
    errors = [item.error(round(rows)) for item in shown]
    return [
        Bars(
            [item.what for item in shown],
            [Series("distance", errors, [f"{error:.4f}" for error in errors])],
            caption="Expected total variation from noise alone, for about as many rows: 0 exact, 1 only noise",
            maximum=max(0.1, *errors),
        ),
        Text(
            "This is how exact single measurements are by the noise alone, known before anything was paid. Estimation "
            "from all of them together does better; what was not measured can be further off."
        ),
    ]


def _model_blocks(synthesizer: Synthesizer) -> list[Block]:
    """Return the distribution of each column in the model, where a synthesizer has one over the declared cells."""
    marginal = getattr(synthesizer, "marginal", None)
    if marginal is None:
        return []
    attributes = synthesizer.fitted_facts.domain.attributes
    charts = []
    for item in attributes[:MOST_PANELS]:
        counts = marginal([item.name])
        shares = (counts / max(float(counts.sum()), 1e-12)).tolist()
        names = ("in the model", "")
        charts.append(Chart(share_chart(item.name, item.labels, shares, ordered=is_ordered(item), names=names)))
    left = len(attributes) - len(charts)
    told = "The share of rows in each cell, as the model has it after noise."
    return [Text(told + (f" {left:,} further columns are not drawn." if left else "")), Panels(charts)]


def _columns(synthesizer: Synthesizer) -> list[Block]:
    return [
        TableBlock(
            columns=["column", "cells", "missing values"],
            rows=[
                [item.name, f"{item.present:,}", "never" if item.complete else "possible"]
                for item in synthesizer.fitted_facts.domain.attributes
            ],
            align=["left", "right", "left"],
        )
    ]
