"""What every attack reports: how often it succeeded, how often guessing would have, and how sure both are.

An attack is a test that a custodian runs on data of their own. A failed one is no proof of safety: it says that this
attack, with this knowledge, found nothing. There is one kind of result; what only one attack knows is in its details
(`cloister.attacks.details`), and is rendered here: as rows of a summary, as JSON, and as a section of a report, which
has the outcome, who the attacker is, the numbers, those that only this attack has, and what helps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic

from cloister.attacks.details import AttackDetails, Row, labeled_facts, write_value, written_facts
from cloister.core.wordings import format_points, percent
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

    from typing_extensions import TypeVar

    from cloister.plotting import Figure

    # A result of one attack is a result: whoever takes any of them need not say of which details.
    DetailsT_co = TypeVar("DetailsT_co", bound=AttackDetails, default=AttackDetails, covariant=True)
else:
    from typing import TypeVar

    DetailsT_co = TypeVar("DetailsT_co", bound=AttackDetails, covariant=True)

__all__ = ["AttackResult"]


_UNDECIDED = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult(Generic[DetailsT_co]):
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
        details: what only this attack knows. Its facts can be read from the result as well.
    """

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
    details: DetailsT_co = field(default_factory=AttackDetails)  # type: ignore[assignment]  # most have some

    def __getattr__(self, name: str) -> Any:
        """Return a fact of the details, such as ``result.epsilon_lower`` of an audit."""
        # Copies ask for special names before there are details.
        if name.startswith("_") or name == "details":
            raise AttributeError(name)
        return getattr(self.details, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(stated.name for stated in fields(self.details))})

    @property
    def schema(self) -> str:
        """Return the marker that the JSON of this result starts with."""
        return self.details.schema

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
        own = self.details.judge(self)
        compared = self.control_interval[1] if self.control_interval else self.control
        return self.interval[0] > max(self.baseline, compared or 0) if own is None else own

    @property
    def verdict(self) -> str:
        """Return a few sentences for a custodian."""
        own = self.details.conclude(self)
        return self._usual_verdict() if own is None else own

    def _usual_verdict(self) -> str:
        rates = f"right in {percent(self.success)} of cases, guessing in {percent(self.baseline)}."
        remark = self.details.remark(self)
        if self.succeeded:
            return f"The attack works: {rates}{remark}"
        if self.interval[1] > max(self.baseline, self.control or 0) + _UNDECIDED:
            few = f"There were too few cases to tell ({self.trials:,} trials)."
            return f"This attack was {rates}{remark} {few} Others may find more."
        return f"This attack found no more than guessing: {rates}{remark} Others may find more."

    def __str__(self) -> str:
        low, high = map(percent, self.interval)
        return self.details.headline(self) or (
            f"{self.attack}: success {percent(self.success)} ({percent(self.confidence)} interval {low} to {high}), "
            f"baseline {percent(self.baseline)}"
        )

    def summary(self) -> tuple[Row, ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            ("verdict", self.verdict),
            ("attacker", self.assumption),
            *self._figures(),
            *(("what helps", advice) for advice in self.mitigation),
            *_own_rows(self),
            *self.details.confide(self),
        )

    def _figures(self) -> list[Row]:
        low, high = map(percent, self.interval)
        if gap := self.details.explain_gap():
            return [("success", gap)]
        rows = [
            ("success", f"{percent(self.success)}, between {low} and {high} ({percent(self.confidence)} confidence)"),
            ("baseline", percent(self.baseline)),
            ("advantage", f"{format_points(self.advantage, signed=True)} points"),
            ("cost", f"{self.trials:,} trials, {self.queries:,} answers seen"),
        ]
        return rows if self.control is None else [*rows, ("control", percent(self.control))]

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
            **written_facts(self.details),
            **{name: write_value(getattr(self, name)) for name in self.details.further},
        }

    def plot(self) -> Figure:
        """Return the chart of this attack, or one of its success beside what it is compared with."""
        return self.details.draw(self) or _bar_chart(self)

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says about this attack."""
        return (_section(self, level=level),)

    def report(self, path: str | Path | None = None, *, title: str = "") -> Report:
        """Return a report of this attack; with a path that ends in .html, .md or .json it is written there as well."""
        status = Status.BAD if self.succeeded else Status.ATTENTION
        report = Report(
            title or f"Attack: {self.attack}",
            verdict=Verdict(self.verdict, status),
            summary=_HONEST,
            sections=self.sections(),
        )
        if path is not None:
            report.write(path)
        return report

    def comparisons(self) -> dict[str, float]:
        """Return the success and what a chart or report shows beside it; nothing where nothing could be compared."""
        if self.details.explain_gap():
            return {}
        control = {} if self.control is None else {"control": self.control}
        usual = {"this attack": self.success, "guessing": self.baseline, **control}
        own = self.details.compare(self)
        return usual if own is None else own

    def verify(self) -> None:
        """Raise if the claim that this attack tests is not confirmed or refuted; a silent return proves nothing.

        Raises:
            PrivacyRefutedError: with the numbers, if the claim is refuted.
            ParameterError: if this attack tests no claim.
        """
        refutation = self.details.refute(self)
        if refutation is not None:
            raise refutation


_HONEST = (
    "An attack that fails is no proof of safety: it says that this attacker, with this knowledge, found nothing. "
    "Only a guarantee says something about attackers who were not tried."
)


def _own_rows(result: AttackResult) -> list[Row]:
    """Return what the details tell a person, in the summary and in the report alike."""
    return [*labeled_facts(result.details), *result.details.tell(result)]


def _section(result: AttackResult, *, level: int) -> Section:
    kind = NoticeKind.DANGER if result.succeeded else NoticeKind.INFO
    own = _own_rows(result)
    blocks: list[Block] = [
        Notice(kind, escape_text(result.verdict), title="Outcome"),
        Text(f"**The attacker** {escape_text(result.assumption)}."),
        *_measured_blocks(result),
        *result.details.illustrate(result),
        *([Facts(own)] if own else []),
    ]
    if result.mitigation:
        blocks += [Text("**What helps**"), Bullets([escape_text(advice) for advice in result.mitigation])]
    return Section(f"Attack: {result.attack}", blocks, level=level)


def _measured_blocks(result: AttackResult) -> list[Block]:
    """Return the bars and the numbers; cells of facts are shown as they are, so nothing in them is escaped."""
    if gap := result.details.explain_gap():
        return [Facts([("success", gap)])]
    low, high = result.interval
    shares = result.comparisons()
    bars = Bars(
        list(shares),
        [Series("right", list(shares.values()))],
        caption="How often the attacker is right, beside those who know less.",
        percent=True,
    )
    facts = [
        ("success", f"{percent(low)} to {percent(high)} at {percent(result.confidence)} confidence"),
        ("beyond guessing", f"{format_points(result.advantage, signed=True)} points"),
        ("trials", f"{result.trials:,}"),
        ("answers or outputs seen", f"{result.queries:,}"),
    ]
    return [bars, Facts(facts)]


def _bar_chart(result: AttackResult) -> Figure:
    from cloister.plotting import bars_with_errors

    low, high = result.interval
    bars = result.comparisons()
    width = max(result.success - low, high - result.success)
    return bars_with_errors(
        list(bars),
        [100 * share for share in bars.values()],
        [100 * width, *[None] * (len(bars) - 1)],
        title=f"How often an attacker is right: {result.attack}",
        x="attacker",
        y="right, % of cases",
        subtitle=f"{result.trials:,} trials; {percent(result.confidence)} confidence",
    )
