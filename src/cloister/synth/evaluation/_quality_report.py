"""The report of an evaluation: one page that a custodian would rather look at than read. It is not for publication.

What it says about privacy is evidence beside its control, never a guarantee.
"""

from __future__ import annotations

from cloister.core.wordings import percent
from cloister.report import (
    Bars,
    Block,
    Cell,
    Chart,
    Check,
    Checklist,
    Facts,
    KeyFigure,
    Notice,
    NoticeKind,
    Panels,
    Report,
    ReportProvenance,
    Section,
    Series,
    Status,
    TableBlock,
    Text,
    escape_text,
)
from cloister.synth.evaluation._quality_charts import (
    MOST_SQUARES,
    association_charts,
    column_chart,
    distance_chart,
    membership_chart,
    pairs_chart,
)
from cloister.synth.evaluation._utility import Clusters, TrainingUtility
from cloister.synth.evaluation._verdict import (
    GLOSSARY,
    distance_status,
    gap_status,
    privacy_status,
    training_words,
    verdict_of,
)
from cloister.synth.evaluation.membership import Membership
from cloister.synth.evaluation.quality import Evaluation, Fidelity, PrivacyEvidence

__all__ = ["evidence_section", "report_of"]


def evidence_section(found: PrivacyEvidence) -> Section:
    """Return copies, distances, guesses and attacks, each beside its control."""
    blocks: list[Block] = [
        Notice(
            NoticeKind.DANGER if found.alarms else NoticeKind.INFO,
            " ".join(f"{alarm[0].upper()}{alarm[1:]}." for alarm in map(escape_text, found.alarms))
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
    blocks.append(_copies_block(found))
    blocks.append(Chart(distance_chart(found.nearness), caption=_nearness_words(found)))
    if found.guessing:
        blocks.append(_guessing_block(found))
    if found.membership is not None:
        blocks += _membership(found.membership)
    return Section("Evidence about privacy", blocks)


def _copies_block(found: PrivacyEvidence) -> Block:
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


def _guessing_block(found: PrivacyEvidence) -> Block:
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


MOST_PANELS = 24
"""How many columns are drawn; of more, those that differ most."""

_WAYS = {1: "one column", 2: "two columns", 3: "three columns"}
_KINDS = {
    "pearson": "two numbers (Pearson)",
    "cramers_v": "two names (Cramer's V)",
    "correlation_ratio": "a name and a number (correlation ratio)",
}


def report_of(evaluation: Evaluation, *, title: str) -> Report:
    """Return the page."""
    sections = [_promise(evaluation)]
    if evaluation.fidelity is not None:
        sections += [_columns(evaluation.fidelity), _together(evaluation.fidelity), _distances(evaluation.fidelity)]
    if evaluation.training is not None or evaluation.clusters is not None:
        sections.append(_useful(evaluation))
    if evaluation.privacy is not None:
        sections.append(evidence_section(evaluation.privacy))
    sections.append(Section("The words of this report", [Facts([(name, text) for name, text in GLOSSARY])]))
    return Report(
        title,
        subtitle=f"made with {evaluation.made_with}" if evaluation.made_with else "",
        summary=_summary(evaluation),
        verdict=verdict_of(evaluation),
        figures=_figures(evaluation),
        sections=sections,
        provenance=ReportProvenance(details=_details(evaluation)),
    )


def _summary(evaluation: Evaluation) -> str:
    told = f"{evaluation.synthetic_rows:,} synthetic rows beside {evaluation.rows:,} real ones"
    if evaluation.holdout_rows is not None:
        told += f", with {evaluation.holdout_rows:,} further real rows that had no part in them as a control"
    return (
        f"{told}. **For the custodian of the real rows only:** every figure and chart here was computed from protected "
        "rows as they are, and would have to be paid for before it is published."
    )


def _figures(evaluation: Evaluation) -> list[KeyFigure]:
    figures = []
    if (fidelity := evaluation.fidelity) is not None:
        item = fidelity.marginals[min(1, len(fidelity.marginals) - 1)]
        figures.append(
            KeyFigure(
                f"Distance, {_WAYS[item.ways]} at a time",
                f"{item.mean:.3f}",
                f"chance alone: {item.resampled:.3f}; worst {item.worst:.3f}",
                distance_status(item.mean, item.resampled),
            )
        )
        figures.append(KeyFigure("Error of a random count", percent(fidelity.ranges.mean), "of all rows, on average"))
    if (training := evaluation.training) is not None:
        best = max(training.scores, key=lambda item: item.real)
        figures.append(
            KeyFigure(
                "Accuracy, trained on it" if training.task == "classification" else "R2, trained on it",
                f"{best.synthetic:.3f}",
                f"{best.model}; trained on real rows {best.real:.3f}, simplest guess {best.baseline:.3f}",
                gap_status(best.gap),
            )
        )
    if (privacy := evaluation.privacy) is not None:
        figures.append(
            KeyFigure("Copies of a real row", percent(privacy.copies.share), _control(privacy), privacy_status(privacy))
        )
    return figures


def _control(found: PrivacyEvidence) -> str:
    copies = found.copies
    if copies.control is None or copies.matched is None:
        return "no holdout to compare with"
    return f"for equally many rows: {percent(copies.matched)} of the data, {percent(copies.control)} of the holdout"


def _promise(evaluation: Evaluation) -> Section:
    promise = evaluation.promise
    blocks: list[Block] = []
    if promise is None:
        blocks.append(
            Notice(
                NoticeKind.WARNING,
                "It was not said how the table was made, so nothing is promised here. That rows are made up protects "
                "nobody by itself: a good enough generator repeats the people it has seen.",
                title="No promise is known",
            )
        )
    else:
        kind = NoticeKind.PROMISE if promise.holds else NoticeKind.DANGER
        blocks.append(Notice(kind, escape_text(promise.explain()), title="" if promise.holds else "No promise"))
    blocks.append(
        Text(
            "A promise is about how the table was made and cannot be tested on the table. What is measured below is "
            "how useful the table is, and whether anything speaks against the promise."
        )
    )
    return Section("What is promised", blocks)


def _columns(fidelity: Fidelity) -> Section:
    ordered = sorted(fidelity.columns, key=lambda item: -item.total_variation)[:MOST_PANELS]
    left = len(fidelity.columns) - len(ordered)
    told = "Bars are real rows, orange lines and strokes are synthetic ones. The column that differs most comes first."
    if left:
        told += f" {left:,} further columns, which differ less, are not drawn."
    return Section("Column by column", [Text(told), Panels([Chart(column_chart(item)) for item in ordered])])


def _together(fidelity: Fidelity) -> Section:
    found = fidelity.associations
    blocks: list[Block] = []
    if len(fidelity.columns) > MOST_SQUARES:
        blocks.append(Text(f"The grids show the {MOST_SQUARES} columns that differ most."))
    blocks.append(Chart(pairs_chart(fidelity)))
    charts = association_charts(fidelity)
    if charts:
        blocks.append(Text("**How far one column tells another.** The two grids should look alike."))
        blocks.append(Panels([Chart(chart) for chart in charts]))
        rows = [[_KINDS[kind], f"{value:.4f}"] for kind, value in found.differences.items()]
        blocks.append(
            TableBlock(
                ["Association of", "Mean difference"],
                rows,
                align=["left", "right"],
                caption="Real less synthetic, without sign",
            )
        )
    return Section("Columns together", blocks)


def _distances(fidelity: Fidelity) -> Section:
    ranges = fidelity.ranges
    bars = Bars(
        [f"{_WAYS[item.ways]} at a time" for item in fidelity.marginals],
        [
            Series(
                "synthetic",
                [item.mean for item in fidelity.marginals],
                [f"{item.mean:.4f}" for item in fidelity.marginals],
            ),
            Series(
                "resampled",
                [item.resampled for item in fidelity.marginals],
                [f"{item.resampled:.4f}" for item in fidelity.marginals],
            ),
        ],
        caption="Mean total variation to the real table, beside that of as many rows drawn from the real table itself",
    )
    rows: list[list[Cell]] = [
        [
            _WAYS[item.ways],
            f"{item.compared:,}" + ("" if item.compared == item.marginals else f" drawn of {item.marginals:,}"),
            f"{item.mean:.4f}",
            f"{item.worst:.4f}",
            " x ".join(item.worst_columns),
        ]
        for item in fidelity.marginals
    ]
    blocks: list[Block] = [
        bars,
        TableBlock(
            ["Marginals of", "Compared", "Mean", "Worst", "Where"],
            rows,
            align=["left", "right", "right", "right", "left"],
        ),
        Text(
            f"{ranges.questions:,} random counts of two ranges are off by {percent(ranges.mean)} of all rows on average"
            f", {percent(ranges.median)} in the median and {percent(ranges.worst)} at worst."
        ),
    ]
    if fidelity.propensity:
        table: list[list[Cell]] = [
            [
                item.model,
                f"{item.pmse:.4f}",
                f"{item.null:.4f}",
                "not known" if item.ratio is None else f"{item.ratio:.2f}",
            ]
            for item in fidelity.propensity
        ]
        blocks.append(
            TableBlock(
                ["Model", "pMSE", "Two samples", "Ratio"],
                table,
                align=["left", "right", "right", "right"],
                caption=f"Telling {fidelity.propensity[0].rows:,} synthetic rows from as many real ones: "
                "0 at a loss, 0.25 always right",
            )
        )
    return Section("Distances in numbers", blocks)


def _useful(evaluation: Evaluation) -> Section:
    blocks: list[Block] = []
    if evaluation.training is not None:
        blocks += _training_blocks(evaluation.training)
    if evaluation.clusters is not None:
        blocks.append(_clusters_chart(evaluation.clusters))
    blocks += [Text(escape_text(note)) for note in evaluation.notes]
    return Section("What models learn from it", blocks)


def _training_blocks(found: TrainingUtility) -> list[Block]:
    names = [item.model for item in found.scores]
    measure = "accuracy" if found.task == "classification" else "R2, the share of variance explained"
    shown = {
        "real, on real": [item.real for item in found.scores],
        "synthetic, on real": [item.synthetic for item in found.scores],
        "real, on synthetic": [item.reverse for item in found.scores],
        "simplest guess": [item.baseline for item in found.scores],
    }
    bars = Bars(
        names,
        [
            Series(name, [max(0.0, value) for value in values], [f"{value:.3f}" for value in values])
            for name, values in shown.items()
        ],
        caption=f'Trained on, tested on: predicting "{found.target}" ({measure})',
        maximum=1.0,
    )
    rows: list[list[Cell]] = []
    for item in found.scores:
        extra = (
            (item.real_auc, item.synthetic_auc)
            if found.task == "classification"
            else (item.real_error, item.synthetic_error)
        )
        gap = "nothing to learn" if item.gap is None else percent(item.gap)
        rows.append([item.model, *("" if value is None else f"{value:.4g}" for value in extra), gap])
    what = "AUC" if found.task == "classification" else "Squared error"
    table = TableBlock(
        ["Model", f"{what}, real", f"{what}, synthetic", "Lost of what there is to learn"],
        rows,
        align=["left", "right", "right", "right"],
    )
    tau = found.order_kept
    order = (
        "" if tau is None else f" How alike models rank: Kendall's tau {tau:.2f} (1 is the same order, 0 unrelated)."
    )
    rows_told = (
        f"{found.trained[0]:,} real and {found.trained[1]:,} synthetic rows were trained on, {found.tested:,} real "
        "rows tested on"
    )
    caution = (
        "." if found.has_holdout else ", set aside from the real table: the synthetic rows were made from these too."
    )
    return [
        bars,
        table,
        Text(f"The best on real rows is {escape_text(training_words(found))}.{order} {rows_told}{caution}"),
    ]


def _clusters_chart(found: Clusters) -> Bars:
    return Bars(
        ["Adjusted Rand index", "Mutual information, normalized"],
        [
            Series(
                "real and synthetic",
                _clip_at_zero(found.adjusted_rand, found.mutual_information),
                _read(found.adjusted_rand, found.mutual_information),
            ),
            Series(
                "two halves of real",
                _clip_at_zero(found.control_adjusted_rand, found.control_mutual_information),
                _read(found.control_adjusted_rand, found.control_mutual_information),
            ),
        ],
        caption=f"Do {found.clusters} clusters of either table divide {found.tested:,} held-out real rows alike?",
        maximum=1.0,
    )


def _clip_at_zero(*values: float) -> list[float]:
    return [max(0.0, value) for value in values]


def _read(*values: float) -> list[str]:
    return [f"{value:.2f}" for value in values]


def _details(evaluation: Evaluation) -> list[tuple[str, Cell]]:
    return [
        ("Real rows", f"{evaluation.rows:,}"),
        ("Synthetic rows", f"{evaluation.synthetic_rows:,}"),
        ("Holdout rows", "none" if evaluation.holdout_rows is None else f"{evaluation.holdout_rows:,}"),
        ("For whom", "the custodian of the real rows; not for publication"),
    ]
