"""Membership: does a synthesizer's table tell whether somebody's row was in the data?

Canary rows are put in or left out of the data by independent coins, the synthesizer is fitted again and again, and the
attacker compares what each table shows of a canary with what tables of known composition show (see
`cloister.synth.evaluation.membership`). What differential privacy promises limits how well this can work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from cloister.attacks.details import HELD, AttackDetails, fact
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.base import ADVICE
from cloister.core import validation
from cloister.core.confidence import binomial_interval
from cloister.core.exact import Number
from cloister.core.wordings import percent
from cloister.synth.base import Progress, Synthesizer
from cloister.synth.evaluation.membership import Membership, membership

__all__ = ["SyntheticMembershipDetails", "synthetic_membership"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticMembershipDetails(AttackDetails):
    """How well membership is told; success is the share of rows that were in and are found, at few false alarms.

    Attributes:
        area: how often a row that was in looks more so than one that was not: 0.5 is guessing.
        ceiling: the success that the promise of the synthesizer allows; None if it promises nothing.
        refuted: whether the attack is above the ceiling by more than chance explains.
        evidence: the details.
    """

    schema: ClassVar[str] = "cloister.synthetic_membership_attack/1"

    area: float = field(metadata=fact("area under the curve", lambda area: f"{area:.4g} (0.5 is guessing)"))
    ceiling: float | None
    refuted: bool
    evidence: Membership = field(repr=False, metadata=HELD)

    def conclude(self, result: AttackResult, /) -> str:
        """Return how many rows are found, beside what the promise allows."""
        rates = (
            f"{percent(result.success)} of the rows that were in are found, with {percent(result.baseline)} false "
            "alarms"
        )
        if self.refuted and self.ceiling is not None:
            return f"Not private as promised: {rates}, where the promise allows {percent(self.ceiling)}."
        if not result.succeeded:
            return f"This attack found no more than guessing: {rates}. Others may find more."
        allowed = "" if self.ceiling is None else f" The promise allows {percent(self.ceiling)}."
        return f"The attack works: {rates}.{allowed}"

    def compare(self, result: AttackResult, /) -> dict[str, float]:
        """Return the success beside guessing and the most that the promise allows."""
        most = {} if self.ceiling is None else {"most that the promise allows": self.ceiling}
        return {"this attack": result.success, "guessing": result.baseline, **most}


def synthetic_membership(
    synthesizer: Synthesizer,
    table: Any,
    *,
    records: int = 200,
    fits: int = 16,
    confidence: Number = 0.95,
    progress: Progress | None = None,
    random_state: int = 0,
) -> AttackResult[SyntheticMembershipDetails]:
    """Return how well an attacker tells from a synthetic table whether a row was in the data.

    The synthesizer is fitted many times, and no ledger is charged: the outcome is for the custodian of the rows.

    Args:
        synthesizer: fitted or not; it is not changed.
        table: the rows, as for `fit`.
        records: how many rows are attacked, half of them the least usual ones.
        fits: how many times the synthesizer is fitted.
        confidence: of the interval of the success (Clopper-Pearson over rows and fits).
        progress: called now and then with the share that is done and what is being done.
        random_state: of the choice of rows; the noise of the fits is the synthesizer's own.

    Raises:
        DataError: if there are too few rows.
    """
    level = float(validation.check_confidence(confidence))
    found = membership(synthesizer, table, records=records, fits=fits, progress=progress, random_state=random_state)
    inside = found.trials[0]
    return AttackResult(
        attack="synthetic membership",
        assumption="knows a row, the synthesizer and tables that it made of similar data, and sees one synthetic table",
        success=found.true_positive_rate,
        baseline=found.false_positive_rate,
        interval=binomial_interval(round(found.true_positive_rate * inside), inside, confidence=level),
        confidence=level,
        trials=sum(found.trials),
        queries=found.fits,
        mitigation=ADVICE[:1],
        details=SyntheticMembershipDetails(
            area=found.area,
            ceiling=found.ceiling,
            refuted=found.refutes,
            evidence=found,
        ),
    )
