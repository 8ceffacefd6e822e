"""The outcome of one attacker against a projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Attempt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one attacker achieved, beside what is achieved without z.

    Attributes:
        name: the attacker.
        assumption: what the attacker is assumed to know.
        measure: what is measured: "distance", "share right" or "similarity".
        value: what the attacker achieved.
        baseline: what is achieved without z.
        normalized: the errors that are left, as a share of those without z: 1 means that z tells nothing, 0 that it
            tells everything. None where that has no meaning.
        control: what the same attacker achieves with the whole row, where that is comparable.
        interval: a 95% confidence interval of a share.
        counted: whether it counts for the verdict.
    """

    name: str
    assumption: str
    measure: str
    value: float
    baseline: float
    normalized: float | None
    control: float | None = None
    interval: tuple[float, float] | None = None
    counted: bool = True

    @classmethod
    def of_shares(
        cls,
        *,
        name: str,
        assumption: str,
        success: float,
        baseline: float,
        control: float | None = None,
        interval: tuple[float, float] | None = None,
        counted: bool = True,
    ) -> Attempt:
        """Return the outcome of an attacker who guesses."""
        return cls(
            name=name,
            assumption=assumption,
            measure="share right",
            value=success,
            baseline=baseline,
            normalized=(1 - success) / (1 - baseline) if baseline < 1 else None,
            control=control,
            interval=interval,
            counted=counted,
        )

    def __str__(self) -> str:
        text = f"{self.measure} {self.value:.4g}, without z {self.baseline:.4g}"
        if self.control is not None:
            text += f", with the whole row {self.control:.4g}"
        if self.interval is not None:
            text += f" (95% interval {self.interval[0]:.3g} to {self.interval[1]:.3g})"
        return text if self.normalized is None else f"{text}: {self.normalized:.0%} of the errors are left"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "name": self.name,
            "assumption": self.assumption,
            "measure": self.measure,
            "value": self.value,
            "baseline": self.baseline,
            "normalized": self.normalized,
            "control": self.control,
            "interval": None if self.interval is None else list(self.interval),
            "counted": self.counted,
        }
