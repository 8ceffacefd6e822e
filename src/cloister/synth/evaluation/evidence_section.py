"""What a report says about privacy: evidence beside its control, never a guarantee."""

from __future__ import annotations

from cloister.report import (
    Bars,
    Block,
    Chart,
    Check,
    Checklist,
    Notice,
    NoticeKind,
    Section,
    Series,
    Status,
    escaped,
)
from cloister.synth.evaluation.charts import distance_chart, membership_chart
from cloister.synth.evaluation.membership import Membership
from cloister.synth.evaluation.result import PrivacyEvidence
from cloister.synth.evaluation.words import percent

__all__ = ["evidence_section"]


def evidence_section(found: PrivacyEvidence) -> Section:
    """Return copies, distances, guesses and attacks, each beside its control."""
    blocks: list[Block] = [
        Notice(
            NoticeKind.DANGER if found.alarms else NoticeKind.INFO,
            " ".join(f"{alarm[0].upper()}{alarm[1:]}." for alarm in map(escaped, found.alarms))
            + " Such a table should not be released."
            if found.alarms
            else "What follows can show that a table leaks. It can never show that one does not: only the promise "
            "protects. Do not drop synthetic rows because they equal real ones: the gaps would tell who is there.",
            title="Alarm" if found.alarms else "Evidence, not a guarantee",
        )
    ]
    if not found.has_control:
        blocks.append(
            Notice(
                NoticeKind.WARNING,
                "There was no holdout, so copies and distances have nothing to be compared with and say nothing. Set "
                "real rows aside before the fit and give them as `holdout`.",
            )
        )
    blocks.append(_copied(found))
    blocks.append(Chart(distance_chart(found.nearness), caption=_nearness_words(found)))
    if found.guessing:
        blocks.append(_guessed(found))
    if found.membership is not None:
        blocks += _membership(found.membership)
    return Section("Evidence about privacy", blocks)


def _copied(found: PrivacyEvidence) -> Block:
    copies = found.copies
    if copies.control is None or copies.control_met is None:
        return Bars(
            ["Synthetic rows that equal a real row", "Real rows that equal a synthetic row"],
            [Series("share", [copies.share, copies.met], [percent(copies.share), percent(copies.met)])],
            caption="Copies, value by value",
            percent=True,
        )
    first = copies.share if copies.matched is None else copies.matched
    return Bars(
        ["Synthetic rows that equal one of them", "Of them, those that equal a synthetic row"],
        [
            Series("rows of the data", [first, copies.met], [percent(first), percent(copies.met)]),
            Series(
                "holdout (control)",
                [copies.control, copies.control_met],
                [percent(copies.control), percent(copies.control_met)],
            ),
        ],
        caption="Copies, value by value, for equally many rows of the data and of the holdout",
        percent=True,
    )


def _nearness_words(found: PrivacyEvidence) -> str:
    near = found.nearness
    if near.nearer is None or near.area is None:
        return "Without a holdout there is nothing to compare these distances with."
    ratio = "" if near.ratio is None else f"; mean distances have the ratio {near.ratio:.3f} (1 by chance)"
    return (
        f"{percent(near.nearer)} of the synthetic rows are nearer to a row of the data than to any holdout row (50% by "
        f"chance){ratio}. A row of the data is nearer to the synthetic rows than a holdout row in "
        f"{percent(near.area)} of cases (50% by chance). Not evidence of differential privacy."
    )


def _guessed(found: PrivacyEvidence) -> Block:
    items = found.guessing
    return Bars(
        [item.column for item in items],
        [
            Series("people in the data", [item.accuracy for item in items], [percent(item.accuracy) for item in items]),
            Series("others (control)", [item.control for item in items], [percent(item.control) for item in items]),
            Series(
                "most frequent value", [item.baseline for item in items], [percent(item.baseline) for item in items]
            ),
        ],
        caption="How often the nearest synthetic row, by all other columns, has a person's hidden value",
        percent=True,
    )


def _membership(found: Membership) -> list[Block]:
    rate, false = percent(found.true_positive_rate), percent(found.false_positive_rate)
    allowed = (
        "nothing is promised" if found.ceiling is None else f"the promise allows at most {percent(found.ceiling)} there"
    )
    check = Check(
        f"An attacker with {found.fits:,} fits of their own finds {rate} of the rows that were in the data at {false} "
        f"false positives; {allowed}. The area under the curve is {found.area:.3f}.",
        Status.BAD if found.refutes else Status.GOOD if found.ceiling is not None else Status.NEUTRAL,
        "An attack below the line proves nothing; one above it proves a broken promise.",
    )
    return [Chart(membership_chart(found)), Checklist([check])]
