"""The report of a release: what is promised and against whom, what is not, the risk before and after, what was lost.

The figures are about the protected data, in aggregates: the report is for those who answer for the release, and may be
published where the custodian agrees.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cloister.anonymize._report_words import facts_in_words, glossary, model_name
from cloister.anonymize.algorithms._base import ALGORITHMS
from cloister.anonymize.assessment import Assessment, assess
from cloister.anonymize.pitfalls import silence
from cloister.anonymize.regions import Values
from cloister.core.guarantees import Guarantee
from cloister.core.guarantees.syntactic import CLOSING
from cloister.core.wordings import percent
from cloister.plotting import bars_with_errors
from cloister.report import (
    Bars,
    Block,
    Bullets,
    Cell,
    Chart,
    Check,
    Checklist,
    Code,
    Facts,
    KeyFigure,
    Notice,
    NoticeKind,
    Report,
    ReportProvenance,
    Section,
    Series,
    Status,
    TableBlock,
    Text,
    Verdict,
    escape_text,
)

if TYPE_CHECKING:
    from cloister.anonymize.release import Release
    from cloister.anonymize.utility.measures import ReleaseUtility

__all__ = ["report_of", "report_of_risk"]

_SHOWN_AS = {
    Values.HIERARCHY: "names from the hierarchies",
    Values.SETS: "sets of values and closed intervals",
    Values.CENTERS: "central values of the class (not true of any single row)",
}
_ROUNDING = 1e-9
_EDGES = (1, 2, 3, 5, 10, 20, 50, 100, 1000)


def report_of(release: Release, *, title: str = "Release of a protected table") -> Report:
    """Return the report of a release; it measures the table before and after."""
    after = release.assessment
    before = assess(release.original_with_roles, k=after.risk.reidentification.k)
    return Report(
        title,
        subtitle=release.guarantee.brief(),
        summary=_summary(release, before, after),
        verdict=_verdict(release),
        figures=_figures(release, before, after),
        sections=[
            _promise_section(release),
            _not_protected(release),
            _risk(before, after),
            _lost(release, after),
            _classes(release),
            _columns(release),
            _reproduce(release),
            _words(release),
        ],
        provenance=ReportProvenance(details=_details(release)),
    )


def report_of_risk(found: Assessment, *, title: str = "Risk of a table") -> Report:
    """Return the report of what a table gives away as it is."""
    now = found.risk.reidentification
    status = Status.GOOD if now.smallest >= now.k else Status.BAD
    verdict = (
        f"The smallest class has {now.smallest:,} rows; {percent(now.below_k)} of the rows are in classes below {now.k}"
    )
    bars = Bars(
        ["Highest risk of a row", "Average risk of a row", f"Rows above {percent(now.threshold)}", "Unique rows"],
        [Series("risk", [now.prosecutor_max, now.prosecutor_average, now.at_risk, now.unique_share])],
        caption="The risk that somebody who knows the quasi-identifiers picks a person's row out",
        percent=True,
    )
    facts: list[tuple[str, Cell]] = list(found.summary())
    notice = Notice(
        NoticeKind.WARNING,
        "The figures are exact and about the people in the table. They are for its custodian, not for publication.",
    )
    return Report(
        title,
        summary=str(found),
        verdict=Verdict(verdict, status),
        sections=[Section("Risk", [bars]), Section("Everything measured", [notice, Facts(facts)])],
    )


def _summary(release: Release, before: Assessment, after: Assessment) -> str:
    was, now = before.risk.reidentification, after.risk.reidentification
    silent = silence(release.silent_columns)
    return (
        f"{escape_text(silent)}{' ' if silent else ''}"
        f"{int(release.classes.rows.sum()):,} rows are released in {now.classes:,} classes of rows that look alike. "
        f"Somebody who knows a person's {escape_text(_join_names(release.roles.quasi))} could pick that person's row "
        f"out with a probability of at most **{percent(now.prosecutor_max)}**; in the original table it was "
        f"{percent(was.prosecutor_max)}, and {percent(was.unique_share)} of its {before.risk.units} were unique."
        f"{' ' if release.choice else ''}{escape_text(release.choice)}"
    )


def _verdict(release: Release) -> Verdict:
    if not release.guarantee.holds:
        return Verdict("The promise does not hold", Status.BAD)
    count = len(release.checks)
    models = {1: "The model holds", 2: "Both models hold"}.get(count, f"All {count} models hold")
    text = f"{models} for every one of {release.partition.size:,} classes"
    covered = {check.attribute for check in release.checks}
    bare = [name for name in release.roles.sensitive if name not in covered]
    silent = release.silent_columns
    if bare:
        text += f", but none protects {_join_names(bare)}"
    if silent:
        text = f"{_join_names(silent)} {'says' if len(silent) == 1 else 'say'} nothing any more. {text}"
    return Verdict(text, Status.ATTENTION if bare or silent else Status.GOOD)


def _figures(release: Release, before: Assessment, after: Assessment) -> list[KeyFigure]:
    was, now = before.risk.reidentification, after.risk.reidentification
    lost = release.ncp
    out = release.suppressed / release.partition.cells.total
    return [
        KeyFigure("Smallest class", now.smallest, f"before: {was.smallest:,}", Status.GOOD),
        KeyFigure(
            "Highest risk", percent(now.prosecutor_max), f"before: {percent(was.prosecutor_max)}", _risk_status(now)
        ),
        KeyFigure("Detail lost", percent(lost), "mean over rows and quasi-identifiers (NCP)", _loss_status(lost)),
        KeyFigure(
            "Rows left out",
            percent(out),
            f"{release.suppressed:,} rows; at most {percent(float(release.suppression_limit))} allowed",
            Status.NEUTRAL,
        ),
    ]


def _risk_status(now: object) -> Status:
    return Status.GOOD if getattr(now, "prosecutor_max", 1.0) <= 0.2 else Status.ATTENTION


def _loss_status(lost: float) -> Status:
    return Status.GOOD if lost <= 0.3 else Status.ATTENTION


def _promise_section(release: Release) -> Section:
    blocks: list[Block] = [
        Notice(NoticeKind.PROMISE, escape_text(_plain_promise(check.model))) for check in release.checks
    ]
    known = Text(
        f"**Against whom.** An attacker who {_membership(release)}, and knows any or all of these columns about them "
        f"from elsewhere: {escape_text(_join_names(release.roles.quasi))}. The attacker may know how the table was "
        "made. Every class was checked after the table was made, by code that did not make it."
    )
    rows: list[list[Cell]] = [
        [model_name(check.model), check.model.brief(), f"{_measure_worst(release, place):.4g}"]
        for place, check in enumerate(release.checks)
    ]
    table = TableBlock(
        ["Model", "Asked for", "Attained by the weakest class"],
        rows,
        caption="What was asked for and what was attained",
    )
    return Section("What is promised, and against whom", [*blocks, known, table])


def _plain_promise(model: Guarantee) -> str:
    """Return the promise alone: that it is not differential privacy, and what it assumes, is said once for all."""
    return model.explain().split(CLOSING)[0]


def _membership(release: Release) -> str:
    """Return what the attacker knows of who is in the table: k-map and delta-presence only hold if that is nothing."""
    if any(check.needs_population for check in release.checks):
        return "knows the population, but not who of it is in the table"
    return "knows that a person is in the table"


def _measure_worst(release: Release, place: int) -> float:
    check = release.checks[place]
    attained = check.measure(release.classes)
    return float(attained.min() if check.more_is_safer else attained.max())


def _not_protected(release: Release) -> Section:
    blocks: list[Block] = [
        Notice(
            NoticeKind.WARNING,
            "This is anonymization of a table, not differential privacy: it does not protect against an attacker who "
            "knows more columns than those named above, or who combines this table with others.",
        ),
        Bullets([f"**{escape_text(pitfall.sentence)}** {escape_text(pitfall.advice)}" for pitfall in release.pitfalls]),
    ]
    return Section("What is not protected", blocks)


def _risk(before: Assessment, after: Assessment) -> Section:
    was, now = before.risk.reidentification, after.risk.reidentification
    names = ["Highest risk of a row", "Average risk of a row", f"Rows above {percent(now.threshold)}", "Unique rows"]
    first = [was.prosecutor_max, was.prosecutor_average, was.at_risk, was.unique_share]
    second = [now.prosecutor_max, now.prosecutor_average, now.at_risk, now.unique_share]
    bars = Bars(
        names,
        [Series("before", first), Series("after", second)],
        caption="The risk that somebody who knows the quasi-identifiers picks a person's row out",
        percent=True,
    )
    blocks: list[Block] = [bars, _attacks(before, after)]
    if after.risk.disclosure:
        blocks.append(_disclosure(before, after))
    return Section("Risk before and after", blocks)


def _attacks(before: Assessment, after: Assessment) -> TableBlock:
    was, now = before.risk.reidentification, after.risk.reidentification
    rows = [
        ["Prosecutor: knows the person is in the table", percent(was.prosecutor_max), percent(now.prosecutor_max)],
        ["Marketer: matches everybody, and is right about this share", percent(was.marketer), percent(now.marketer)],
        ["Smallest class, in rows", f"{was.smallest:,}", f"{now.smallest:,}"],
        ["Classes", f"{was.classes:,}", f"{now.classes:,}"],
    ]
    everything = before.risk.models.k_all_columns, after.risk.models.k_all_columns
    if everything[1] is not None:
        rows.append(
            ["Smallest class if all other columns that are not sensitive are known too", *map(_count, everything)]
        )
    return TableBlock(["Attacker or measure", "Before", "After"], rows, align=["left", "right", "right"])


def _count(number: int | None) -> str:
    return "not counted" if number is None else f"{number:,}"


def _disclosure(before: Assessment, after: Assessment) -> TableBlock:
    rows = []
    for was, now in zip(before.risk.disclosure, after.risk.disclosure, strict=True):
        rows.append(
            [
                now.attribute,
                percent(was.homogeneous),
                percent(now.homogeneous),
                percent(now.prior),
                percent(now.posterior_average),
                percent(now.posterior_max),
            ]
        )
    return TableBlock(
        ["Sensitive column", "Certain before", "Certain after", "Guess: no table", "With the table", "Worst class"],
        rows,
        align=["left", "right", "right", "right", "right", "right"],
        caption="What a class tells about its rows: the share of rows whose value is certain before and after, and how "
        "often the best guess is right: without the table, with it on average, and in the class that tells most",
    )


def _lost(release: Release, after: Assessment) -> Section:
    ordered = sorted(release.column_losses.items(), key=lambda item: -item[1])
    columns = Bars(
        [name for name, _ in ordered],
        [Series("detail lost", [loss for _, loss in ordered])],
        caption="Detail lost per column: 0% keeps every value, 100% says nothing (NCP); rows left out count as lost",
        percent=True,
    )
    facts: list[tuple[str, str]] = [("Mean loss of precision (NCP)", f"{release.ncp:.4f}")]
    if after.utility is not None:
        facts += _measures(after.utility)
    return Section("What was lost", [columns, Facts(facts)])


def _measures(utility: ReleaseUtility) -> list[tuple[str, str]]:
    losses, queries = utility.losses, utility.queries
    return [
        ("Precision: 1 where no level of a hierarchy was climbed", f"{losses.precision:.3f}"),
        ("Variety of values that is no longer told (entropy)", percent(losses.entropy)),
        ("Discernibility: the sum of squared class sizes", f"{losses.discernibility:,}"),
        ("Average class size over the smallest (C_avg)", f"{losses.average_class:.2f}"),
        ("Random count questions", f"off by {percent(queries.median)} (median), {percent(queries.mean)} (mean)"),
    ]


def _classes(release: Release) -> Section:
    sizes = release.classes.rows
    edges = [edge for edge in _EDGES if edge <= sizes.max()]
    names = [f"{low}" if high == low + 1 else f"{low}-{high - 1}" for low, high in itertools.pairwise(edges)]
    names.append(f"{edges[-1]}+")
    place = np.searchsorted(edges, sizes, side="right") - 1
    rows = np.bincount(place, weights=sizes, minlength=len(edges))
    figure = bars_with_errors(
        names,
        [float(count) for count in rows],
        [None] * len(names),
        title="Rows by the size of their class",
        x="rows in the class",
        y="rows",
    )
    text = Text(
        f"{release.partition.size:,} classes; the smallest has {int(sizes.min()):,} rows, the median "
        f"{int(np.median(sizes)):,}, the largest {int(sizes.max()):,}."
    )
    return Section("Classes", [text, Chart(figure)])


def _columns(release: Release) -> Section:
    roles = release.roles
    words = {
        **dict.fromkeys(roles.identifiers, "identifier: not released"),
        **{name: f"quasi-identifier: {_describe_column(release, name)}" for name in roles.quasi},
        **dict.fromkeys(roles.sensitive, "sensitive: released as it is"),
        **dict.fromkeys(roles.insensitive, "insensitive: released as it is"),
    }
    names = list(roles.schema)
    rows = [[name, words[name], f"{release.column_losses[name]:.3f}" if name in roles.quasi else ""] for name in names]
    confirmed = Check(
        "The roles were stated by a person",
        Status.ATTENTION if any(roles.schema[name].guessed for name in names) else Status.GOOD,
    )
    return Section("Columns", [TableBlock(["Column", "Role and treatment", "Loss"], rows), Checklist([confirmed])])


def _describe_column(release: Release, name: str) -> str:
    loss = release.column_losses[name]
    left_out = release.suppressed / release.partition.cells.total
    if loss <= left_out + _ROUNDING and release.regions.values is not Values.CENTERS:
        return "released exactly"
    return "not told at all" if loss >= 1 else f"shown as {_SHOWN_AS[release.regions.values]}"


def _words(release: Release) -> Section:
    return Section("The words of this report", [Facts(glossary(check.model for check in release.checks))])


def _reproduce(release: Release) -> Section:
    about = (
        f"Algorithm: **{release.algorithm}** ({ALGORITHMS[release.algorithm].describe})."
        if release.algorithm in ALGORITHMS
        else f"Algorithm: **{release.algorithm}**."
    )
    blocks: list[Block] = [
        Text(about + " The same table, schema and recipe give the same classes again."),
        Code(release.recipe.to_yaml(), "yaml", "The recipe"),
        Code(
            "import cloister as cl\n\n"
            'table = cl.open_table("data.csv", schema="schema.yaml")\n'
            'release = cl.anonymize.Recipe.read("recipe.yaml").run(table, anonymizer=cl.anonymize).release',
            "python",
            "How to make it again",
        ),
    ]
    if release.notes:
        blocks.insert(1, Bullets([escape_text(note) for note in release.notes]))
    return Section("How it was made", blocks)


def _details(release: Release) -> list[tuple[str, str]]:
    chosen = [("Choice", release.choice)] if release.choice else []
    return [("Algorithm", release.algorithm), *chosen, *facts_in_words(release.facts)]


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names)
