"""What membership inference found, in words for a custodian and as a curve for everybody else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.attacks.models.curves import dp_advantage, dp_rate
from cloister.attacks.reporting import section_of
from cloister.attacks.result import AttackResult, percent
from cloister.report import Chart, Facts

if TYPE_CHECKING:
    from cloister.plotting import Figure
    from cloister.report import Section

__all__ = ["MembershipResult"]

_GRID = tuple(10 ** (step / 10 - 4) for step in range(41))


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipResult(AttackResult):
    """How well an attacker tells who was in the training data.

    Success is the mean of the shares of members and of others that are called rightly, by thresholds that were chosen
    on one half of the records and used on the other, so that it is not flattered by the choice.

    Attributes:
        kind: how records were scored.
        members: how many records of the training data were tried.
        non_members: how many others.
        auc: the area under the ROC curve, 0.5 for guessing: how often a member scores higher than another record.
        auc_interval: a confidence interval of it.
        rate_at_1_percent: the share of members found when 1 % of the others are accused wrongly.
        rate_at_01_percent: the share of members found when 0.1 % of the others are.
        largest_gap: the largest difference of both shares over all thresholds, in hindsight.
        epsilon_lower: what epsilon is at least at the stated confidence, counting records as independent.
        claim: the (epsilon, delta) that the model promises, if it does.
        curve: points (share of others accused, share of members found).
        scores: the attacker's scores of the members, then of the others; custodian only.
        risks: for each member the share of others who look as much like members: low is exposed. Custodian only.
    """

    schema: ClassVar[str] = "cloister.membership/1"

    kind: str
    members: int
    non_members: int
    auc: float
    auc_interval: tuple[float, float]
    rate_at_1_percent: float
    rate_at_01_percent: float
    largest_gap: float
    epsilon_lower: float
    claim: tuple[float, float] | None = None
    curve: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    scores: tuple[float, ...] = field(default=(), repr=False)
    risks: tuple[float, ...] = field(default=(), repr=False)

    @property
    def keeps_promise(self) -> bool | None:
        """Return whether what was seen is within what the model promises; None if it promises nothing."""
        return None if self.claim is None else self.epsilon_lower <= self.claim[0]

    @property
    def largest_allowed_gap(self) -> float | None:
        """Return the largest difference of both shares that the promise allows; None without one."""
        return None if self.claim is None else dp_advantage(epsilon=self.claim[0], delta=self.claim[1])

    def _remark(self) -> str:
        share = percent(self.rate_at_1_percent)
        found = f" Accusing one other person in a hundred wrongly, it finds {share} of the members."
        if self.claim is None:
            return found
        told = f"at least epsilon = {self.epsilon_lower:.2g} was seen"
        if self.keeps_promise:
            return f"{found} The model promises {self._promised()}; {told}, which is within it."
        return f"{found} The model promises {self._promised()}, but {told}: do not release it before this is explained."

    def _promised(self) -> str:
        epsilon, delta = self.claim or (0.0, 0.0)
        return f"epsilon = {epsilon:.4g}" + (f", delta = {delta:.2g}" if delta else "")

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (*AttackResult.summary(self), *self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        low, high = self.auc_interval
        return [
            ("area under the curve", f"{self.auc:.3f}, between {low:.3f} and {high:.3f}; 0.5 is guessing"),
            ("members found at 1% false alarms", percent(self.rate_at_1_percent)),
            ("members found at 0.1% false alarms", percent(self.rate_at_01_percent)),
            ("largest gap", f"{100 * self.largest_gap:.1f} points{self._allowed()}"),
            ("epsilon is at least", f"{self.epsilon_lower:.3g}{self._claimed()}"),
        ]

    def _allowed(self) -> str:
        most = self.largest_allowed_gap
        return "" if most is None else f"; the promise allows {100 * most:.1f}"

    def _claimed(self) -> str:
        return "" if self.claim is None else f"; promised is {self.claim[0]:.4g}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; no record's score is among them."""
        return {
            **AttackResult.to_dict(self),
            "kind": self.kind,
            "members": self.members,
            "non_members": self.non_members,
            "auc": self.auc,
            "auc_interval": list(self.auc_interval),
            "rate_at_1_percent": self.rate_at_1_percent,
            "rate_at_01_percent": self.rate_at_01_percent,
            "largest_gap": self.largest_gap,
            "epsilon_lower": self.epsilon_lower,
            "claim": None if self.claim is None else {"epsilon": self.claim[0], "delta": self.claim[1]},
            "curve": [list(point) for point in self.curve],
        }

    def plot(self) -> Figure:
        """Return the ROC curve beside guessing and, where the model promises privacy, the most that this allows."""
        from cloister.plotting import lines

        series = {
            "this attack": [(100 * x, 100 * y) for x, y in self.curve if x >= _GRID[0]],
            "guessing": [(100 * x, 100 * x) for x in _GRID],
        }
        if self.claim is not None:
            epsilon, delta = self.claim
            series[f"most that {self._promised()} allows"] = [
                (100 * x, 100 * dp_rate(x, epsilon=epsilon, delta=delta)) for x in _GRID
            ]
        return lines(
            series,
            title="Who was in the training data",
            x="others accused wrongly, %",
            y="members found, %",
            log_x=True,
            subtitle=f"{self.members:,} members, {self.non_members:,} others; area under the curve {self.auc:.3f}",
        )

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says: the outcome, the curve and its figures."""
        further = (Chart(self.plot(), caption="Members found against others accused."), Facts(self._facts()))
        return (section_of(self, level=level, further=further),)
