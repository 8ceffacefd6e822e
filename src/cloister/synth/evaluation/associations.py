"""How strongly columns go together, in both tables.

Two amounts: Pearson's correlation of the middles of their cells. Two names: Cramer's V. A name and an amount: the
correlation ratio, the square root of the share of the amount's variance that lies between the names. Rows that miss an
amount are left out of its associations; a missing name is a name. An association with a column that does not vary is 0.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.synth.evaluation.encoding import amounts
from cloister.synth.evaluation.tables import CodedRows, Floats, Tables

__all__ = ["Associations", "compare_associations", "correlation_ratio", "cramers_v", "pearson"]

KINDS = ("pearson", "cramers_v", "correlation_ratio")
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Associations:
    """The association of every pair of columns in both tables.

    Attributes:
        columns: their names.
        real: a square of numbers for the real rows, 1 on the diagonal. Protected.
        synthetic: the same for the synthetic rows.
        differences: the mean absolute difference per kind of association; kinds that do not occur are not there.
    """

    columns: tuple[str, ...]
    real: Floats
    synthetic: Floats
    differences: dict[str, float]

    @property
    def mean(self) -> float | None:
        """Return the mean absolute difference over all pairs; None if there are none."""
        above = np.triu_indices(len(self.columns), 1)
        return float(np.abs(self.real - self.synthetic)[above].mean()) if len(above[0]) else None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "columns": list(self.columns),
            "mean_difference": self.mean,
            "differences": self.differences,
            "real": self.real.tolist(),
            "synthetic": self.synthetic.tolist(),
        }


def compare_associations(tables: Tables) -> Associations:
    """Return the associations of all pairs of columns."""
    count = len(tables.names)
    real, synthetic = np.eye(count), np.eye(count)
    missed: dict[str, list[float]] = {}
    for first, second in itertools.combinations(range(count), 2):
        for rows, found in ((tables.real, real), (tables.synthetic, synthetic)):
            found[first, second] = found[second, first] = _association(tables, rows, first, second)
        kind = _kind(tables, first, second)
        missed.setdefault(kind, []).append(abs(real[first, second] - synthetic[first, second]))
    return Associations(
        columns=tables.names,
        real=real,
        synthetic=synthetic,
        differences={kind: float(np.mean(missed[kind])) for kind in KINDS if kind in missed},
    )


def pearson(table: Floats, rows: Floats, columns: Floats) -> float:
    """Return the correlation of a two-way table whose cells stand for amounts.

    >>> pearson(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    0.3333333333333333
    """
    weight = table.sum()
    if not weight:
        return 0.0
    one, two = table.sum(axis=1) / weight, table.sum(axis=0) / weight
    first, second = rows - one @ rows, columns - two @ columns
    spread = float(np.sqrt((one @ first**2) * (two @ second**2)))
    return float(first @ table @ second / weight / spread) if spread > _ROUNDING else 0.0


def cramers_v(table: Floats) -> float:
    """Return the association of a two-way table of names: 0 if independent, 1 if one name tells the other.

    >>> cramers_v(np.array([[3.0, 0.0], [0.0, 3.0]])), cramers_v(np.array([[2.0, 1.0], [1.0, 2.0]]))
    (1.0, 0.3333333333333333)
    """
    used = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    least = min(used.shape) - 1
    if least < 1:
        return 0.0
    shares = used / used.sum()
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    return float(np.sqrt(((shares - expected) ** 2 / expected).sum() / least))


def correlation_ratio(table: Floats, columns: Floats) -> float:
    """Return how far names, one per row of a two-way table, tell an amount, one per column.

    >>> correlation_ratio(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([0.0, 1.0, 2.0]))
    0.7071067811865476
    """
    weights = table.sum(axis=1)
    used, weights = table[weights > 0], weights[weights > 0]
    if not len(used):
        return 0.0
    shares = weights / weights.sum()
    means = used @ columns / weights
    mean = shares @ means
    spread = float(used.sum(axis=0) @ (columns - mean) ** 2 / weights.sum())
    return float(np.sqrt(min(1.0, shares @ (means - mean) ** 2 / spread))) if spread > _ROUNDING else 0.0


def _kind(tables: Tables, first: int, second: int) -> str:
    amounts_among = tables.numeric[first] + tables.numeric[second]
    return {0: "cramers_v", 1: "correlation_ratio", 2: "pearson"}[amounts_among]


def _association(tables: Tables, rows: CodedRows, first: int, second: int) -> float:
    kind = _kind(tables, first, second)
    if kind == "correlation_ratio" and tables.numeric[first]:
        first, second = second, first
    table = rows.shares([first, second])
    if kind == "cramers_v":
        return cramers_v(table)
    other = tables.domain.attributes[second]
    if kind == "correlation_ratio":
        return correlation_ratio(table[:, : other.present], amounts(other))
    one = tables.domain.attributes[first]
    return pearson(table[: one.present, : other.present], amounts(one), amounts(other))
