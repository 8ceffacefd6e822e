"""What a fit would cost and how exact it would be, before anything is paid or any row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloister.accounting.events import Event
from cloister.core.guarantees import Guarantee
from cloister.synth.expectation import Expectation

if TYPE_CHECKING:
    from cloister.data.table import Table
    from cloister.synth.base import Synthesizer

__all__ = ["Preview", "preview_of"]

_ADVICE = (
    "Groups of rows that are much larger than the noise keep their size; smaller ones drown in it. Estimation from "
    "several measurements usually does better."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A fit that was not made.

    Attributes:
        guarantee: what it would promise, and cost.
        event: what it would be for accountants; None where nothing is private.
        columns: the columns of the synthetic table.
        expectations: how exact what is measured would be.
    """

    guarantee: Guarantee
    event: Event | None
    columns: tuple[str, ...]
    expectations: tuple[Expectation, ...]

    def summary(self) -> list[tuple[str, str]]:
        """Return how exact the measured counts would be, one row for each."""
        return [(item.what, _noise(item)) for item in self.expectations]

    def explain(self) -> str:
        """Return in plain words how exact a fit would be."""
        if not self.expectations:
            return "How exact the rows will be is not known beforehand."
        lines = [f"- {what}: {noise}" for what, noise in self.summary()]
        return "\n".join(["Rows are drawn from counts with noise. How far each count may be off:", *lines, _ADVICE])

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.synthesis_preview/1",
            "guarantee": self.guarantee.to_dict(),
            "columns": list(self.columns),
            "expected": [item.to_dict() for item in self.expectations],
        }


def preview_of(synthesizer: Synthesizer, table: Table) -> Preview:
    """Return what a fit would cost and how exact it would be, from public facts."""
    facts = synthesizer.declared(table)
    guarantee, event = synthesizer._promise(facts)  # noqa: SLF001  # the synthesizer's own preview
    expectations = synthesizer._expectations(facts)  # noqa: SLF001
    return Preview(guarantee=guarantee, event=event, columns=facts.order, expectations=expectations)


def _noise(item: Expectation) -> str:
    shown = f"{item.margin:,.0f}" if item.margin >= 10 else f"{item.margin:.2g}"
    return f"± {shown} rows (95%) on each of {item.cells:,} counts"
