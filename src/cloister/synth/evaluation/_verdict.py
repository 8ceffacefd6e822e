"""What an evaluation says in words: how its figures stand, a summary, and what the words mean."""

from __future__ import annotations

from cloister.core.wordings import percent
from cloister.report import Status, Verdict
from cloister.synth.evaluation._utility import TrainingUtility
from cloister.synth.evaluation.quality import Evaluation, PrivacyEvidence

__all__ = ["GLOSSARY", "distance_status", "gap_status", "percent", "privacy_status", "summary_of", "verdict_of"]

_NEAR, _FAR = 0.05, 0.15
_LITTLE, _MUCH = 0.2, 0.5
_CLOSENESS = {
    Status.GOOD: "Close to the real table",
    Status.ATTENTION: "Like the real table in the large, not in detail",
    Status.BAD: "Far from the real table",
}

GLOSSARY = (
    (
        "Total variation",
        (
            "The largest difference between the two tables' answers to any yes-or-no question about some columns, as a "
            "share of rows: 0 for the same shares, 1 if no row of one could be in the other."
        ),
    ),
    (
        "Resampled",
        (
            "The same figure for as many rows drawn from the real table itself. Chance alone makes this difference, so "
            "no synthetic table can be expected to do better."
        ),
    ),
    (
        "Association",
        (
            "How far one column tells another, between 0 and 1: correlation for two numbers (its sign left out in the "
            "chart), Cramer's V for two names, correlation ratio for a name and a number."
        ),
    ),
    (
        "Propensity score (pMSE)",
        (
            "Whether a model can tell synthetic rows from real ones: 0 if it is at a loss, 0.25 if it always can. The "
            "ratio compares it with two samples of the same table: near 1 is as good as it gets."
        ),
    ),
    (
        "Train on synthetic, test on real",
        (
            "A model learns from synthetic rows alone and predicts real rows. The gap is the part lost of what the "
            "same model learns from real rows beyond the simplest guess: 0 nothing, 1 everything."
        ),
    ),
    ("Simplest guess", "Always the most frequent value, or the mean: what anybody can do without a model."),
    (
        "Holdout, or control",
        (
            "Real rows of the same kind that had no part in the synthetic table. What is found for rows of the data "
            "and not for these tells something about the people in the data."
        ),
    ),
    (
        "Adjusted Rand index",
        "Whether two ways to divide rows into clusters agree: 1 for the same division, 0 for unrelated ones.",
    ),
    (
        "Area (AUC)",
        "How often the right one of two rows gets the higher score: 0.5 by guessing, 1 if always.",
    ),
)


def distance_status(mean: float, resampled: float) -> Status:
    """Return how a mean total variation of pairs stands."""
    if mean <= max(_NEAR, 1.5 * resampled):
        return Status.GOOD
    return Status.ATTENTION if mean <= max(_FAR, 3 * resampled) else Status.BAD


def gap_status(gap: float | None) -> Status:
    """Return how much of what there is to learn is lost."""
    if gap is None:
        return Status.NEUTRAL
    return Status.GOOD if gap <= _LITTLE else Status.ATTENTION if gap <= _MUCH else Status.BAD


def privacy_status(found: PrivacyEvidence) -> Status:
    """Return how the evidence stands; without a control there is none."""
    if found.alarms:
        return Status.BAD
    return Status.NEUTRAL


def verdict_of(evaluation: Evaluation) -> Verdict:
    """Return the outcome in one line."""
    privacy = evaluation.privacy
    if privacy is not None and privacy.alarms:
        return Verdict(f"Do not release: {privacy.alarms[0]}", Status.BAD)
    parts, status = [], Status.NEUTRAL
    if evaluation.fidelity is not None:
        last = evaluation.fidelity.marginals[min(1, len(evaluation.fidelity.marginals) - 1)]
        status = distance_status(last.mean, last.resampled)
        parts.append(_CLOSENESS[status])
    if evaluation.training is not None:
        lost = gap_status(evaluation.training.gap)
        if lost in (Status.ATTENTION, Status.BAD):
            parts.append(f"models lose {percent(evaluation.training.gap or 0.0)} of what there is to learn")
            status = Status.ATTENTION if status in (Status.GOOD, Status.NEUTRAL) else status
    if privacy is not None:
        parts.append("nothing found against privacy" if privacy.has_control else "privacy not tested: no control")
    return Verdict("; ".join(parts) or "Measured", status)


def training_words(found: TrainingUtility) -> str:
    """Return what a model is worth that was trained on synthetic rows."""
    best = max(found.scores, key=lambda item: item.real)
    measure = "accuracy" if found.task == "classification" else "R2"
    return (
        f"{best.model}: {measure} {best.synthetic:.3f} after training on synthetic rows, {best.real:.3f} on real rows, "
        f"{best.baseline:.3f} by the simplest guess"
    )


def summary_of(evaluation: Evaluation) -> tuple[tuple[str, str], ...]:
    """Return a small table of (name, text) rows for a person."""
    rows = [("verdict", verdict_of(evaluation).text)]
    if (fidelity := evaluation.fidelity) is not None:
        named = {1: "columns", 2: "pairs of columns", 3: "triples of columns"}
        for item in fidelity.marginals:
            some = "" if item.compared == item.marginals else f", {item.compared:,} of {item.marginals:,}"
            rows.append(
                (
                    f"{named[item.ways]}{some}",
                    f"mean total variation {item.mean:.4f}, worst {item.worst:.4f}; resampled {item.resampled:.4f}",
                )
            )
        mean = fidelity.associations.mean
        if mean is not None:
            rows.append(("associations", f"off by {mean:.4f} on average"))
        rows.append(("random ranges", f"off by {percent(fidelity.ranges.mean)} of the rows on average"))
        rows += [
            (
                f"told apart by {item.model}",
                f"pMSE {item.pmse:.4f}"
                + ("" if item.ratio is None else f", {item.ratio:.2f} times that of two samples"),
            )
            for item in fidelity.propensity
        ]
    if evaluation.training is not None:
        rows.append((f'predicting "{evaluation.training.target}"', training_words(evaluation.training)))
    if evaluation.clusters is not None:
        found = evaluation.clusters
        rows.append(
            (
                "clusters",
                f"agree by {found.adjusted_rand:.2f}, of two halves of the real rows {found.control_adjusted_rand:.2f}",
            )
        )
    if evaluation.privacy is not None:
        rows += _privacy_rows(evaluation.privacy)
    if evaluation.promise is not None:
        rows.append(("promise", evaluation.promise.explain()))
    return (*rows, *(("note", note) for note in evaluation.notes), ("for whom", evaluation.guarantee.explain()))


def _privacy_rows(found: PrivacyEvidence) -> list[tuple[str, str]]:
    copies, nearness = found.copies, found.nearness
    beside = "no holdout to compare with"
    if copies.control is not None and copies.matched is not None:
        beside = (
            f"for equally many rows {percent(copies.matched)} of the data, {percent(copies.control)} of the holdout"
        )
    rows = [("copies of a real row", f"{percent(copies.share)}; {beside}")]
    if nearness.nearer is not None:
        rows.append(("nearer to real than to holdout rows", f"{percent(nearness.nearer)} (50% by chance)"))
    rows += [
        (
            f'guessing "{item.column}"',
            f"right for {percent(item.accuracy)} in the data, {percent(item.control)} of others",
        )
        for item in found.guessing
    ]
    if found.membership is not None:
        rows.append(("membership", str(found.membership)))
    return [*rows, *(("alarm", alarm) for alarm in found.alarms)]
