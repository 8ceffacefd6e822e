"""What each attack of the gate found, and what follows from all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.result import AttackResult
from cloister.report import (
    Block,
    Bullets,
    Check,
    Checklist,
    Facts,
    Notice,
    NoticeKind,
    Report,
    Section,
    Status,
    Text,
    Verdict,
    escape_text,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cloister.plotting import Figure

__all__ = ["GateFinding", "GateResult", "Stand"]


class Stand(StrEnum):
    """How a release stands in one attack."""

    HELD = "held"
    BROKEN = "broken"
    TOLD = "told"
    NOT_RUN = "not run"

    @property
    def status(self) -> Status:
        """Return the traffic light."""
        return _STATUS[self]


_STATUS = {
    Stand.HELD: Status.GOOD,
    Stand.BROKEN: Status.BAD,
    Stand.TOLD: Status.NEUTRAL,
    Stand.NOT_RUN: Status.ATTENTION,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFinding:
    """One attack of the gate.

    Attributes:
        attack: its name.
        stand: whether the release held, was broken, whether this is only told, or whether it was not run.
        reason: one sentence for a custodian.
        result: what the attack returned; None if it was not run.
        is_needed: whether the release may not be published without it.
    """

    attack: str
    stand: Stand
    reason: str
    result: AttackResult | None = field(default=None, repr=False)
    is_needed: bool = True

    @property
    def blocks(self) -> bool:
        """Return whether this speaks against publishing."""
        return self.stand is Stand.BROKEN or (self.stand is Stand.NOT_RUN and self.is_needed)

    def sections(self) -> tuple[Section, ...]:
        """Return what a report says about the attack, under the name that it has here."""
        if self.result is None:
            return ()
        first, *others = self.result.sections(level=2)
        return (replace(first, title=f"Attack: {self.attack}", anchor=""), *others)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; never what was learned about anybody."""
        return {
            "attack": self.attack,
            "stand": str(self.stand),
            "reason": self.reason,
            "is_needed": self.is_needed,
            "result": None if self.result is None else self.result.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Publish, or do not, with reasons.

    Attributes:
        kind: what kind of release it is.
        promise: what the release promises, in a sentence.
        findings: what each attack found.
        policy: the limits.
        seconds: how long it took.
        base: the report of the release itself, which the gate's sections are added to.
    """

    schema: ClassVar[str] = "cloister.gate/1"

    kind: str
    promise: str
    findings: tuple[GateFinding, ...]
    policy: GatePolicy
    seconds: float
    base: Report | None = field(default=None, repr=False)

    @property
    def publish(self) -> bool:
        """Return whether nothing that was tried speaks against publishing."""
        return not any(finding.blocks for finding in self.findings)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return what speaks against publishing."""
        return tuple(finding.reason for finding in self.findings if finding.blocks)

    @property
    def verdict(self) -> str:
        """Return the decision in a few sentences."""
        if not self.publish:
            return f"Do not publish. {' '.join(self.reasons)}"
        tried = ", ".join(finding.attack for finding in self.findings if finding.stand is Stand.HELD)
        return (
            f"Nothing that was tried speaks against publishing. Held: {tried}. Other attackers may know or find more."
        )

    @property
    def headline(self) -> str:
        """Return the decision in a few words."""
        against = sum(finding.blocks for finding in self.findings)
        if self.publish:
            return f"Nothing that was tried speaks against publishing ({len(self.findings)} checks)"
        return f"Do not publish: {against} of {len(self.findings)} checks speak against it"

    @property
    def advice(self) -> tuple[str, ...]:
        """Return what helps against the attacks that worked."""
        found = [finding.result for finding in self.findings if finding.stand is Stand.BROKEN and finding.result]
        return tuple(dict.fromkeys(advice for result in found for advice in result.mitigation))

    def __str__(self) -> str:
        return self.verdict

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        decision = "nothing that was tried speaks against publishing" if self.publish else "do not publish"
        rows = [(finding.attack, f"{finding.stand}: {finding.reason}") for finding in self.findings]
        helps = [("what helps", advice) for advice in self.advice]
        return (("decision", decision), ("release", self.kind), ("guarantee", self.promise), *rows, *helps)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; never what was learned about anybody."""
        return {
            "schema": self.schema,
            "publish": self.publish,
            "kind": self.kind,
            "promise": self.promise,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "findings": [finding.to_dict() for finding in self.findings],
            "policy": self.policy.to_dict(),
            "seconds": self.seconds,
        }

    def plot(self) -> Figure:
        """Return a chart of how often each attack is right, beside guessing or the control."""
        from cloister.plotting import grouped_bars_with_errors

        bars = [
            (finding.attack, who, 100 * share)
            for finding in self.findings
            if finding.result is not None
            for who, share in finding.result.comparisons().items()
        ]
        attacks, who, shares = zip(*bars, strict=True) if bars else ((), (), ())
        return grouped_bars_with_errors(
            attacks, who, shares, title="What attackers achieve", x="attack", y="right, % of cases", legend="attacker"
        )

    def sections(self) -> tuple[Section, ...]:
        """Return the decision, the checklist, the limits, and each attack by itself."""
        kind = NoticeKind.INFO if self.publish else NoticeKind.DANGER
        checks = [
            Check(escape_text(finding.attack), finding.stand.status, note=escape_text(finding.reason))
            for finding in self.findings
        ]
        limits = [(_LIMITS[name], value) for name, value in self.policy.to_dict().items()]
        overview = Section(
            "The gate",
            [
                Notice(NoticeKind.WARNING, _FOR_CUSTODIANS, title="For the custodian only"),
                Notice(kind, escape_text(self.headline), title="Decision"),
                Checklist(checks),
                *self._advice_blocks(),
                Text(_HONEST),
                Facts(limits),
            ],
        )
        return (overview, *(section for finding in self.findings for section in finding.sections()))

    def _advice_blocks(self) -> tuple[Block, ...]:
        if not self.advice:
            return ()
        return (Text("**What helps**"), Bullets([escape_text(item) for item in self.advice]))

    def report(self, path: str | Path | None = None, *, title: str = "") -> Report:
        """Return the report of the release with the gate's sections; with a path it is written there as well."""
        status = Status.ATTENTION if self.publish else Status.BAD
        base = self.base or Report(f"The gate: {self.kind}", summary=escape_text(self.promise))
        report = replace(
            base, title=title or base.title, verdict=Verdict(self.headline, status), sections=base.sections
        ).with_sections(*self.sections())
        if path is not None:
            report.write(path)
        return report


_FOR_CUSTODIANS = (
    "These figures are exact and about the people in the data. This page is not covered by what the release promises: "
    "do not pass it on with the release."
)
_HONEST = (
    "These attacks were run by the custodian on the real data. That they fail is no proof of safety: it says which "
    "attackers were tried, and with what knowledge. The limits below were set beforehand; they are conventions."
)
_LIMITS = {
    "max_match": "largest chance of a match",
    "max_certain": "largest share of certain values",
    "max_belief": "largest belief in a value",
    "max_excess": "largest share beyond guessing",
    "max_residual": "largest share beyond others",
    "max_epsilon": "largest epsilon that counts",
    "max_delta": "largest delta that counts",
    "confidence": "confidence",
    "time_limit": "time limit in seconds",
}
