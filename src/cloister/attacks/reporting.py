"""What a report says about an attack: the outcome, who the attacker is, the numbers, and what helps."""

from __future__ import annotations

from cloister.attacks.result import AttackResult, percent
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
    escaped,
)

__all__ = ["report_of", "section_of"]

_HONEST = (
    "An attack that fails is no proof of safety: it says that this attacker, with this knowledge, found nothing. "
    "Only a guarantee says something about attackers who were not tried."
)


def section_of(result: AttackResult, *, level: int = 1, further: tuple[Block, ...] = ()) -> Section:
    """Return one section about an attack, with further blocks before the advice."""
    kind = NoticeKind.DANGER if result.succeeded else NoticeKind.INFO
    blocks: list[Block] = [
        Notice(kind, escaped(result.verdict), title="Outcome"),
        Text(f"**The attacker** {escaped(result.assumption)}."),
        _bars(result),
        Facts(_facts(result)),
        *further,
    ]
    if result.mitigation:
        blocks += [Text("**What helps**"), Bullets([escaped(advice) for advice in result.mitigation])]
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
