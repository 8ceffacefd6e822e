"""The charts of an evaluation. They show protected rows: they are for their custodian."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloister.core.guarantees import ApproxDP
from cloister.plotting import Figure, heatmap, histogram_of_samples, lines, small_shares
from cloister.synth._domain import DomainAttribute
from cloister.synth.evaluation._coded_tables import Floats
from cloister.synth.evaluation._fidelity import ColumnDistance
from cloister.synth.evaluation._proximity import RowNearness
from cloister.synth.evaluation.membership import Membership, ceiling
from cloister.synth.evaluation.quality import Fidelity

__all__ = ["association_charts", "column_chart", "distance_chart", "membership_chart", "pairs_chart", "share_chart"]

MOST_CELLS = 10
"""How many names of a column a small chart shows; the rest is one bar."""

MOST_SQUARES = 40
"""Up to how many columns are shown in a grid."""


def column_chart(column: ColumnDistance) -> Figure:
    """Return both distributions of a column, small."""
    return share_chart(
        column.name,
        column.labels,
        column.real,
        column.synthetic,
        ordered=column.is_ordered,
        subtitle=f"total variation {column.total_variation:.3f}",
    )


def share_chart(
    name: str,
    labels: Sequence[str],
    shares: Sequence[float],
    others: Sequence[float] | None = None,
    *,
    ordered: bool,
    subtitle: str = "",
    names: tuple[str, str] = ("real", "synthetic"),
) -> Figure:
    """Return the shares of a column's cells, the rare names of many taken together."""
    cells, first = list(labels), list(shares)
    second = None if others is None else list(others)
    largest = [max(pair) for pair in zip(first, second or first, strict=True)]
    if cells[-1] == "missing" and not largest[-1]:
        cells, first, largest = cells[:-1], first[:-1], largest[:-1]
        second = None if second is None else second[:-1]
    if ordered:
        cells = [_start(label) for label in cells]
    elif len(cells) > MOST_CELLS:
        order = sorted(range(len(cells)), key=lambda place: -largest[place])
        kept = sorted(order[: MOST_CELLS - 1])
        rest = [place for place in range(len(cells)) if place not in kept]
        cells = [*(cells[place] for place in kept), f"{len(rest)} others"]
        first = [*(first[place] for place in kept), sum(first[place] for place in rest)]
        if second is not None:
            second = [*(second[place] for place in kept), sum(second[place] for place in rest)]
    return small_shares(_distinct(cells), first, second, title=name, names=names, subtitle=subtitle, ordered=ordered)


def is_ordered(attribute: DomainAttribute) -> bool:
    """Return whether a column's cells are drawn in their order, for charts that know no schema."""
    return attribute.is_binned or all(isinstance(item, int | float) for item in attribute.values)


def pairs_chart(fidelity: Fidelity) -> Figure:
    """Return the total variation of every pair of columns, and of every column on the diagonal."""
    names, found = _fewer([item.name for item in fidelity.columns], fidelity.pairs)
    return heatmap(
        names,
        names,
        [[round(float(value), 3) for value in row] for row in found],
        title="How far apart each pair of columns is",
        subtitle="total variation: 0 the same, 1 nothing in common; single columns on the diagonal",
        x="",
        y="",
        legend="distance",
        side=440,
    )


def association_charts(fidelity: Fidelity) -> list[Figure]:
    """Return how strongly columns go together in the real and in the synthetic table, in the same colors."""
    found = fidelity.associations
    charts = []
    for title, square in (("real", found.real), ("synthetic", found.synthetic)):
        names, shown = _fewer(list(found.columns), square)
        strength = np.abs(shown)
        np.fill_diagonal(strength, np.nan)
        values = [[None if np.isnan(value) else round(float(value), 3) for value in row] for row in strength]
        if any(value is not None for row in values for value in row):
            charts.append(
                heatmap(names, names, values, title=title, x="", y="", legend="strength", side=230, darkest=1.0)
            )
    return charts


def distance_chart(nearness: RowNearness) -> Figure:
    """Return the distances from synthetic rows to the nearest real row, beside those to the nearest holdout row."""
    samples: dict[str, Sequence[float]] = {"real row": nearness.distances}
    if nearness.control_distances:
        samples["holdout row"] = nearness.control_distances
    return histogram_of_samples(
        samples,
        title="How far the nearest row is from a synthetic one",
        x="distance: 0 equal cells, 1 nothing in common",
        y="share of synthetic rows",
        subtitle="distances alone are not evidence of differential privacy",
        bins=30,
    )


def membership_chart(found: Membership) -> Figure:
    """Return the rates of an attack beside guessing and what the promise allows."""
    places = [0.0, *np.geomspace(0.001, 1.0, 60).tolist()]
    series = {"this attack": list(found.curve), "guessing": [(0.0, 0.0), (1.0, 1.0)]}
    if found.ceiling is not None:
        allowed = [(place, ceiling(found.promise, place)) for place in places]
        series["ceiling"] = [(x, y) for x, y in allowed if y is not None]
    extra = " and delta" if isinstance(found.promise, ApproxDP) else ""
    return lines(
        series,
        title="Finding out who was in the data",
        subtitle=f"{found.records:,} rows, {found.fits:,} fits; no attack gets above the ceiling of epsilon{extra}"
        if found.ceiling is not None
        else f"{found.records:,} rows, {found.fits:,} fits; nothing is promised",
        x="false positive rate",
        y="true positive rate",
    )


def _fewer(names: list[str], square: Floats) -> tuple[list[str], Floats]:
    """Return the columns that a grid has room for: those that differ most."""
    if len(names) <= MOST_SQUARES:
        return names, square
    kept = sorted(np.argsort(-square.sum(axis=1))[:MOST_SQUARES].tolist())
    return [names[place] for place in kept], square[np.ix_(kept, kept)]


def _start(label: str) -> str:
    """Return the lower end of a bin, or the label itself."""
    return label[1:].split(",", maxsplit=1)[0] if label.startswith("[") and "," in label else label


def _distinct(labels: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found
