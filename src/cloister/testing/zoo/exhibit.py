"""An exhibit of the bug zoo: a broken mechanism, its corrected twin, and the check that tells them apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from cloister.attacks.auditing.exact_check import ExactReport, check_exactly
from cloister.attacks.auditing.features import Feature
from cloister.attacks.auditing.statistical_check import AuditReport
from cloister.core.guarantees import ApproxDP, Guarantee, LocalDP, PureDP
from cloister.errors import InternalError, VerificationError
from cloister.testing.audit import audit

__all__ = ["Exhibit", "Way"]

CONFIDENCE = 1 - 1e-9


class Way(StrEnum):
    """How an exhibit is examined."""

    EXACT = "exact"
    DENSITIES = "densities"
    STATISTICAL = "statistical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A broken mechanism and its corrected twin.

    Both are functions of a dataset: exact ones return {output: probability}, statistical ones take a size as well and
    return that many outputs.
    """

    name: str
    reference: str
    flaw: str
    claimed: Guarantee
    way: Way
    neighbors: tuple[tuple[Any, Any], ...]
    broken: Callable[..., Any]
    corrected: Callable[..., Any]
    features: Mapping[str, Feature] | None = None
    samples: int = 50_000

    def __str__(self) -> str:
        return f"{self.name} ({self.reference}): {self.flaw}"

    @property
    def claim(self) -> tuple[Fraction, Fraction]:
        """Return the claimed (epsilon, delta)."""
        match self.claimed:
            case PureDP(epsilon=epsilon) | LocalDP(epsilon=epsilon):
                return epsilon, Fraction(0)
            case ApproxDP(epsilon=epsilon, delta=delta):
                return epsilon, delta
        raise InternalError(f"an exhibit claims {self.claimed.kind}")

    def examine(self, mechanism: Callable[..., Any]) -> ExactReport | AuditReport:
        """Return the report of this exhibit's check on a mechanism: the broken one, the corrected one or another."""
        epsilon, delta = self.claim
        if self.way is Way.STATISTICAL:
            return audit(
                mechanism,
                list(self.neighbors),
                epsilon=epsilon,
                delta=delta,
                samples=self.samples,
                confidence=CONFIDENCE,
                features=self.features,
            )
        densities = self.way is Way.DENSITIES
        return check_exactly(mechanism, self.neighbors, epsilon=epsilon, delta=delta, densities=densities)

    def verify(self) -> None:
        """Raise unless the broken mechanism is refuted and its corrected twin is not.

        Raises:
            VerificationError: if the check is blind, or refutes what is right.
        """
        report = self.examine(self.broken)
        if not report.refuted:
            raise VerificationError(f"The check does not see that {self}", fix="sharpen the check: " + str(report))
        self.examine(self.corrected).verify()
