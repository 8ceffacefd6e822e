"""Can a model tell synthetic rows from real ones? The propensity score mean squared error, pMSE.

A model learns to tell equally many real and synthetic rows apart and is asked about the same rows: the mean of
(p - 1/2)**2 is 0 where it is at a loss and 1/4 where it is always sure and right. A model that may learn much finds
differences between any two samples, so the figure is compared with its mean after the labels were dealt out at random,
which is what two samples of one population give: a ratio near 1 is as good as it gets (Snoke, Raab, Nowok, Dibben and
Slavkovic 2018).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cloister.core.random import RandomSource, permutation
from cloister.synth.evaluation._coded_tables import Features, Floats, Tables
from cloister.synth.evaluation._models import discriminators, learn_quietly

__all__ = ["Propensity", "measure_propensity"]

_DEALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Propensity:
    """How well one kind of model tells the tables apart.

    Attributes:
        model: "logistic regression" or "tree".
        pmse: the mean of (p - 1/2)**2.
        null: its mean where there is nothing to tell.
        rows: how many rows of each table it learned from.
    """

    model: str
    pmse: float
    null: float
    rows: int

    @property
    def ratio(self) -> float | None:
        """Return the pMSE over what it is where there is nothing to tell; None if that is zero."""
        return self.pmse / self.null if self.null > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self) | {"ratio": self.ratio}


@learn_quietly()
def measure_propensity(tables: Tables, source: RandomSource, *, most: int) -> tuple[Propensity, ...]:
    """Return how well models tell the tables apart, from at most so many rows of each.

    Raises:
        MissingExtraError: if scikit-learn is not installed.
    """
    models = discriminators()
    rows = min(tables.real.total, tables.synthetic.total, most)
    features = Features(tables, tuple(range(len(tables.names))))
    parts = [features.of(table.some(rows, source)) for table in (tables.real, tables.synthetic)]
    shown, labels = np.vstack(parts), np.repeat([0, 1], rows)
    found = []
    for name, make in models.items():
        null = [_pmse(make(), shown, labels[permutation(source, 2 * rows)]) for _ in range(_DEALS)]
        found.append(Propensity(model=name, pmse=_pmse(make(), shown, labels), null=float(np.mean(null)), rows=rows))
    return tuple(found)


def _pmse(model: Any, shown: Floats, labels: Any) -> float:
    chances = model.fit(shown, labels).predict_proba(shown)[:, 1]
    return float(np.mean((chances - 0.5) ** 2))
