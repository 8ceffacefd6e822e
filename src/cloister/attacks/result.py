"""What every attack reports: how often it succeeded, how often guessing would have, and how sure both are.

An attack is a test that a custodian runs on data of their own. A failed one is no proof of safety: it says that this
attack, with this knowledge, found nothing. A report's section about an attack has the outcome, who the attacker is, the
numbers, those that only this kind of attack has, and what helps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.core.wordings import percent
from cloister.report import (
    Bars,
    Block,
    Bullets,
    Facts,
    Notice,
    NoticeKind,
    Report,
    Section,
    Series,
    Status,
    Text,
    Verdict,
    escape_text,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cloister.plotting import Figure

__all__ = ["AttackResult", "report_of", "section_of", "section_with_own_facts"]


_UNDECIDED = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """The outcome of an attack, beside what guessing achieves.

    Attributes:
        attack: the name of the attack.
        assumption: what the attacker is assumed to know and to be able to do.
        success: the share of trials in which the attacker was right.
        baseline: the share that the best guess without the attacked release gets right.
        interval: a confidence interval of the success.
        confidence: the confidence of the interval.
        trials: how many trials there were.
        queries: how many questions the attacker asked, or outputs the attacker saw.
        control: the success of the same attacker with less to go on, where such a comparison exists.
        control_interval: a confidence interval of the control, where it was sampled.
        mitigation: what helps against this attack.
        worst: the most exposed records, by their position in the custodian's table, with the attacker's score; for the
            custodian only, and in no report.
    """

    schema: ClassVar[str] = "cloister.attack/1"

    attack: str
    assumption: str
    success: float
    baseline: float
    interval: tuple[float, float]
    confidence: float
    trials: int
    queries: int
    control: float | None = None
    control_interval: tuple[float, float] | None = None
    mitigation: tuple[str, ...] = ()
    worst: tuple[tuple[int, float], ...] = field(default=(), repr=False)

    @property
    def advantage(self) -> float:
        """Return the success beyond the baseline: 0 is no better than guessing."""
        return self.success - self.baseline

    @property
    def excess(self) -> float:
        """Return the success beyond both the baseline and the control: what the release itself gave away."""
        return self.success - max(self.baseline, self.control or 0)

    @property
    def succeeded(self) -> bool:
        """Return whether the attacker is, at the stated confidence, better than guessing and than the control."""
        compared = self.control_interval[1] if self.control_interval else self.control
        return self.interval[0] > max(self.baseline, compared or 0)

    @property
    def verdict(self) -> str:
        """Return one sentence for a custodian."""
        rates = f"right in {percent(self.success)} of cases, guessing in {percent(self.baseline)}."
        if self.succeeded:
            return f"The attack works: {rates}{self._remark()}"
        if self.interval[1] > max(self.baseline, self.control or 0) + _UNDECIDED:
            few = f"There were too few cases to tell ({self.trials:,} trials)."
            return f"This attack was {rates}{self._remark()} {few} Others may find more."
        return f"This attack found no more than guessing: {rates}{self._remark()} Others may find more."

    def _remark(self) -> str:
        """Return what else a custodian should know, with a space before it."""
        return ""

    def __str__(self) -> str:
        low, high = map(percent, self.interval)
        return (
            f"{self.attack}: success {percent(self.success)} ({percent(self.confidence)} interval {low} to {high}), "
            f"baseline {percent(self.baseline)}"
        )

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        low, high = map(percent, self.interval)
        rows = [
            ("verdict", self.verdict),
            ("attacker", self.assumption),
            ("success", f"{percent(self.success)}, between {low} and {high} ({percent(self.confidence)} confidence)"),
            ("baseline", percent(self.baseline)),
            ("advantage", f"{100 * self.advantage:+.1f} points"),
            ("cost", f"{self.trials:,} trials, {self.queries:,} answers seen"),
        ]
        if self.control is not None:
            rows.append(("control", percent(self.control)))
        return (*rows, *(("what helps", advice) for advice in self.mitigation))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; never what was learned about anybody."""
        return {
            "schema": self.schema,
            "attack": self.attack,
            "assumption": self.assumption,
            "success": self.success,
            "baseline": self.baseline,
            "advantage": self.advantage,
            "interval": list(self.interval),
            "confidence": self.confidence,
            "control": self.control,
            "control_interval": None if self.control_interval is None else list(self.control_interval),
            "trials": self.trials,
            "queries": self.queries,
            "verdict": self.verdict,
            "mitigation": list(self.mitigation),
        }

    def plot(self) -> Figure:
        """Return a chart of the success beside what it is compared with."""
        from cloister.plotting import bars_with_errors

        low, high = self.interval
        bars = self.comparisons()
        width = max(self.success - low, high - self.success)
        return bars_with_errors(
            list(bars),
            [100 * share for share in bars.values()],
            [100 * width, *[None] * (len(bars) - 1)],
            title=f"How often an attacker is right: {self.attack}",
            x="attacker",
            y="right, % of cases",
            subtitle=f"{self.trials:,} trials; {percent(self.confidence)} confidence",
        )

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says about this attack; further kinds of attacks add blocks or parts of their own."""
        return (section_of(self, level=level),)

    def report(self, path: str | Path | None = None, *, title: str = "") -> Report:
        """Return a report of this attack; with a path that ends in .html, .md or .json it is written there as well."""
        report = report_of(self, title=title or f"Attack: {self.attack}")
        if path is not None:
            report.write(path)
        return report

    def comparisons(self) -> dict[str, float]:
        """Return the success and what a chart or report shows beside it."""
        control = {} if self.control is None else {"control": self.control}
        return {"this attack": self.success, "guessing": self.baseline, **control}


_HONEST = (
    "An attack that fails is no proof of safety: it says that this attacker, with this knowledge, found nothing. "
    "Only a guarantee says something about attackers who were not tried."
)


def section_of(result: AttackResult, *, level: int = 1, further: tuple[Block, ...] = ()) -> Section:
    """Return one section about an attack, with further blocks before the advice."""
    kind = NoticeKind.DANGER if result.succeeded else NoticeKind.INFO
    blocks: list[Block] = [
        Notice(kind, escape_text(result.verdict), title="Outcome"),
        Text(f"**The attacker** {escape_text(result.assumption)}."),
        _bars(result),
        Facts(_facts(result)),
        *further,
    ]
    if result.mitigation:
        blocks += [Text("**What helps**"), Bullets([escape_text(advice) for advice in result.mitigation])]
    return Section(f"Attack: {result.attack}", blocks, level=level)


def report_of(result: AttackResult, *, title: str) -> Report:
    """Return a report of one attack."""
    status = Status.BAD if result.succeeded else Status.ATTENTION
    return Report(title, verdict=Verdict(result.verdict, status), summary=_HONEST, sections=result.sections())


def _bars(result: AttackResult) -> Bars:
    shares = result.comparisons()
    return Bars(
        list(shares),
        [Series("right", list(shares.values()))],
        caption="How often the attacker is right, beside those who know less.",
        percent=True,
    )


def _facts(result: AttackResult) -> list[tuple[str, str]]:
    low, high = result.interval
    return [
        ("success", f"{percent(low)} to {percent(high)} at {percent(result.confidence)} confidence"),
        ("beyond guessing", f"{100 * result.advantage:+.1f} points"),
        ("trials", f"{result.trials:,}"),
        ("answers or outputs seen", f"{result.queries:,}"),
    ]


def section_with_own_facts(result: AttackResult, *, level: int = 1) -> Section:
    """Return one section about an attack, with what its summary has beyond that of every attack."""
    common = len(AttackResult.summary(result))
    rows = result.summary()[common:]
    return section_of(result, level=level, further=(Facts(rows),) if rows else ())
