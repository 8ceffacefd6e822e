"""What an audit of a projection returns: figures, a verdict in plain words, and no guarantee."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.core import validation
from cloister.core.result import Result
from cloister.errors import UnsafeMechanismError
from cloister.learn.compressive.attempt import Attempt

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["CompressiveAudit", "Utility", "verdict_of"]

WEAK_BELOW, STRONG_FROM = 0.5, 0.9
"""Below the one, the best attacker is rid of half of the errors; from the other on, of a tenth at most."""

MEASURED = "This was measured against the attackers listed here. It is not a guarantee: others may find more."


@dataclass(frozen=True, slots=True, kw_only=True)
class Utility:
    """How well the utility task is learned from z, on the attacked rows, from 0 to 1.

    Attributes:
        accuracy: the share of rows that are classified rightly.
        f1: the F1 of the classes, weighted by their size.
        full: the accuracy of the same learner from the whole rows.
        chance: the share of the class that is the most common one among the public rows.
    """

    accuracy: float
    f1: float
    full: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressiveAudit(Result):
    """What attackers found, and how useful z is. Not differential privacy, and no promise of any kind.

    Attributes:
        method: the class of the projection.
        components: how many numbers are published per row.
        features: how many features a row has.
        rank: in how many directions the rows that the model was fitted on vary: compare components with this.
        rows: how many rows were attacked.
        utility: how useful z is, if there were utility labels.
        attempts: what each attacker achieved.
    """

    schema: ClassVar[str] = "cloister.compressive_audit/1"

    method: str
    components: int
    features: int
    rank: int
    rows: int
    utility: Utility | None
    attempts: tuple[Attempt, ...]

    @property
    def strongest(self) -> Attempt:
        """Return the attacker with the smallest normalized error, of those that count."""
        counted = [item for item in self.attempts if item.counted and item.normalized is not None]
        return min(counted, key=lambda item: item.normalized or 0.0)

    @property
    def minimum(self) -> float:
        """Return the smallest normalized error: 1 means that z tells nothing, 0 that it tells everything."""
        return self.strongest.normalized or 0.0

    @property
    def verdict(self) -> str:
        """Return "weak", "moderate" or "strong"."""
        return verdict_of(self.minimum)

    def normalized(self, name: str) -> float | None:
        """Return the normalized error of an attacker."""
        known = {item.name: item.normalized for item in self.attempts}
        return known[validation.check_choice(name, name="name", allowed=tuple(known))]

    def explain(self) -> str:
        """Return a few sentences for a data owner."""
        use = "" if self.utility is None else f" The utility task is right in {self.utility.accuracy:.0%} of rows."
        return (
            f"Protection is {self.verdict}: the best attacker ({self.strongest.name}) still makes {self.minimum:.0%} "
            f"of the errors of somebody who does not see z.{use} {MEASURED}"
        )

    def verify(self, *, at_least: float) -> None:
        """Do nothing if the smallest normalized error is large enough for a release, as its owner sees it.

        Raises:
            UnsafeMechanismError: if it is smaller.
        """
        limit = float(validation.check_probability(at_least, name="at_least"))
        if self.minimum < limit:
            raise UnsafeMechanismError(
                f"The best attacker ({self.strongest.name}) still makes {self.minimum:.0%} of the errors of somebody "
                f"who does not see z; the owner asks for {limit:.0%}.",
                fix="publish fewer components, use a larger rho_prime, or do not publish z.",
            )

    def __str__(self) -> str:
        use = "" if self.utility is None else f"utility {self.utility.accuracy:.3f}, "
        return (
            f"{self.verdict}: {use}smallest normalized error {self.minimum:.2f} ({self.strongest.name}); no guarantee"
        )

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        rows = [
            ("verdict", self.explain()),
            ("published", f"{self.components} numbers per row, of {self.rank} directions in which the rows vary"),
        ]
        if self.utility is not None:
            told = f"{self.utility.accuracy:.3f}; from the whole row {self.utility.full:.3f}"
            rows.append(("utility", f"{told}, by chance {self.utility.chance:.3f}"))
        rows += [(item.name, str(item)) for item in self.attempts]
        return (*rows, ("promise", self.guarantee.explain()))

    def plot(self) -> Figure:
        """Return a chart of the utility beside what each attacker still gets wrong."""
        from cloister.plotting import bars_with_errors

        bars = {} if self.utility is None else {"utility task right": self.utility.accuracy}
        counted = [item for item in self.attempts if item.counted and item.normalized is not None]
        bars |= {f"errors of {item.name}": item.normalized or 0.0 for item in counted}
        return bars_with_errors(
            list(bars),
            [100 * share for share in bars.values()],
            [None] * len(bars),
            title=f"Utility, and errors that attackers still make: {self.components} components",
            x="",
            y="%",
            subtitle=f"verdict: {self.verdict}; measured, not guaranteed",
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "components": self.components,
            "features": self.features,
            "rank": self.rank,
            "rows": self.rows,
            "utility": None if self.utility is None else asdict(self.utility),
            "attempts": [item.to_dict() for item in self.attempts],
            "minimum": self.minimum,
            "strongest": self.strongest.name,
            "verdict": self.verdict,
            "explanation": self.explain(),
        }


def verdict_of(minimum: float) -> str:
    """Return the verdict for a smallest normalized error."""
    if minimum < WEAK_BELOW:
        return "weak"
    return "strong" if minimum >= STRONG_FROM else "moderate"
