"""What model extraction achieved: how often the copy agrees, by the number of questions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.attacks.reporting import section_of
from cloister.attacks.result import AttackResult, percent
from cloister.report import TableBlock

if TYPE_CHECKING:
    from cloister.plotting import Figure
    from cloister.report import Section

__all__ = ["ExtractionResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult(AttackResult):
    """Success is how often the copy says the same as the model; for numbers, within 1 % of their range.

    Attributes:
        method: "equations" or "distillation".
        decimals: to how many digits confidences were rounded.
        fidelity: (questions asked, share of equal answers), for more and more questions.
        coefficient_error: the largest error of a coefficient, where the model is linear and shows them.
        copy: the last copy, a function from rows to answers; custodian only.
    """

    schema: ClassVar[str] = "cloister.extraction/1"

    method: str
    decimals: int | None
    fidelity: tuple[tuple[int, float], ...]
    coefficient_error: float | None
    copy: Any = field(repr=False)

    @property
    def verdict(self) -> str:
        """Return a few sentences for a custodian."""
        count, share = self.fidelity[-1]
        rates = f"after {count:,} questions a copy gives the same answer in {percent(share)} of cases"
        constant = f"a constant answer in {percent(self.baseline)}"
        if not self.succeeded:
            return f"The model was not copied: {rates}, {constant}. Others may do better."
        exact = self.coefficient_error is not None and self.coefficient_error < 1e-6
        return f"The model can be copied: {rates}, {constant}." + (" Its coefficients are known exactly." * exact)

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        steps = [(f"after {count:,} questions", percent(share)) for count, share in self.fidelity]
        error = [] if self.coefficient_error is None else [("coefficient error", f"{self.coefficient_error:.2g}")]
        return (*AttackResult.summary(self), *steps, *error)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; the copy is not among them."""
        return {
            **AttackResult.to_dict(self),
            "method": self.method,
            "decimals": self.decimals,
            "fidelity": [{"queries": count, "agreement": share} for count, share in self.fidelity],
            "coefficient_error": self.coefficient_error,
        }

    def plot(self) -> Figure:
        """Return a chart of the agreement against the number of questions."""
        from cloister.plotting import lines

        counts = [count for count, _ in self.fidelity]
        ends = (min(counts), max(counts)) if len(set(counts)) > 1 else (counts[0], counts[0] + 1)
        return lines(
            {
                "copy": [(count, 100 * share) for count, share in self.fidelity],
                "constant answer": [(end, 100 * self.baseline) for end in ends],
            },
            title="How well a model is copied",
            x="questions asked",
            y="same answers, %",
            log_x=True,
            subtitle=self.method if self.decimals is None else f"{self.method}, rounded to {self.decimals} digits",
        )

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says: the outcome, and the agreement by questions."""
        rows = [[f"{count:,}", percent(share)] for count, share in self.fidelity]
        table = TableBlock(["questions", "same answers"], rows, caption="How well the copy agrees.")
        return (section_of(self, level=level, further=(table,)),)
