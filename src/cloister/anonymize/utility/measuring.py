"""Everything that is measured about the utility of a release, from counts of both tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloister.anonymize.cells import Cells
from cloister.anonymize.comparison import Comparison
from cloister.anonymize.risk.linkage import LinkageRate, measure_linkage
from cloister.anonymize.utility.distributions import association_difference, marginal_distances
from cloister.anonymize.utility.learning import Learning, measure_learning
from cloister.anonymize.utility.losses import Losses, measure_losses
from cloister.anonymize.utility.microaggregation import SquaredError, measure_squares
from cloister.anonymize.utility.queries import QueryErrors, measure_queries

__all__ = ["Utility", "measure_utility"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Utility:
    """What a release is still good for.

    Attributes:
        losses: how much less the labels say.
        marginals: the total variation distance of each column's shares.
        associations: the mean change of the association of two columns, or None for a single column.
        queries: the errors of count questions.
        squares: the squared error of each column of numbers, where rows can be matched with their originals.
        linkage: how often the nearest released row is the right one, where rows can be matched with their originals.
        learning: how well a column is predicted after training on the release, if that was asked for.
    """

    losses: Losses
    marginals: dict[str, float]
    associations: float | None
    queries: QueryErrors
    squares: tuple[SquaredError, ...] = ()
    linkage: LinkageRate | None = None
    learning: Learning | None = None

    def __str__(self) -> str:
        return f"loss {self.losses.ncp:.4f}, count questions off by {100 * self.queries.median:.3g}% (median)"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        losses = self.losses
        worst = max(losses.by_column, key=losses.by_column.__getitem__)
        rows = [
            ("loss (NCP)", f"{losses.ncp:.4f}; most in {worst} ({losses.by_column[worst]:.3g})"),
            ("suppressed", f"{100 * losses.suppressed:.3g}% of the rows"),
            ("precision", f"{losses.precision:.3g}"),
            ("untold entropy", f"{100 * losses.entropy:.3g}%"),
            ("discernibility", f"{losses.discernibility:,}; average class {losses.average_class:.3g} times k"),
            (
                "count questions",
                f"off by {100 * self.queries.median:.3g}% (median), {100 * self.queries.mean:.3g}% (mean)",
            ),
            ("shares of values", f"off by {100 * max(self.marginals.values()):.3g} points at most"),
        ]
        if self.linkage is not None:
            rows.append(("record linkage", str(self.linkage)))
        if self.learning is not None:
            rows.append(("learning", str(self.learning)))
        return tuple(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "losses": self.losses.to_dict(),
            "marginals": dict(self.marginals),
            "associations": self.associations,
            "queries": self.queries.to_dict(),
            "squares": [item.to_dict() for item in self.squares],
            "linkage": None if self.linkage is None else self.linkage.to_dict(),
            "learning": None if self.learning is None else self.learning.to_dict(),
        }


def measure_utility(comparison: Comparison, *, k: int, targets: Cells | None = None) -> Utility:
    """Measure the utility of a release.

    Args:
        comparison: the tables.
        k: what the average class size is divided by.
        targets: the original counted with a column to be learned as its only sensitive one.
    """
    return Utility(
        losses=measure_losses(comparison, k=k),
        marginals=marginal_distances(comparison),
        associations=association_difference(comparison),
        queries=measure_queries(comparison),
        squares=measure_squares(comparison),
        linkage=measure_linkage(comparison),
        learning=None if targets is None else measure_learning(comparison, targets),
    )
