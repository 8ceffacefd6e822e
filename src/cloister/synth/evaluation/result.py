"""The outcome of an evaluation. It holds figures of protected rows: it is for their custodian, not for publication."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.core.guarantees import Guarantee
from cloister.core.result import Result
from cloister.synth.evaluation.associations import Associations
from cloister.synth.evaluation.clusters import Clusters
from cloister.synth.evaluation.copies import Copies
from cloister.synth.evaluation.marginals import ColumnDistance, MarginalDistances
from cloister.synth.evaluation.membership import Membership
from cloister.synth.evaluation.nearest import Guessing, Nearness
from cloister.synth.evaluation.propensity import Propensity
from cloister.synth.evaluation.ranges import RangeErrors
from cloister.synth.evaluation.tables import Floats
from cloister.synth.evaluation.training import Training

if TYPE_CHECKING:
    from cloister.plotting import Figure
    from cloister.report import Report

__all__ = ["Evaluation", "Fidelity", "PrivacyEvidence"]

ALARM = 4.0
"""By how many standard deviations rows of the data must be met more often than others to raise an alarm."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fidelity:
    """How alike the tables are.

    Attributes:
        columns: one by one.
        marginals: the total variation of one, two and three columns at a time, as far as there are so many.
        pairs: the total variation of every pair, and of every column on the diagonal. Protected.
        associations: how strongly columns go together.
        ranges: random questions of two ranges.
        propensity: whether models can tell the tables apart; empty if that was not asked for.
    """

    columns: tuple[ColumnDistance, ...]
    marginals: tuple[MarginalDistances, ...]
    pairs: Floats
    associations: Associations
    ranges: RangeErrors
    propensity: tuple[Propensity, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "marginals": [item.to_dict() for item in self.marginals],
            "columns": [item.to_dict() for item in self.columns],
            "pairs": self.pairs.tolist(),
            "associations": self.associations.to_dict(),
            "ranges": self.ranges.to_dict(),
            "propensity": [item.to_dict() for item in self.propensity],
        }


@dataclass(frozen=True, kw_only=True)
class PrivacyEvidence:
    """What could be found against the privacy of the rows: evidence, never a guarantee.

    Attributes:
        copies: synthetic rows that equal real ones.
        nearness: synthetic rows that are near real ones: not evidence of differential privacy.
        guessing: what nearest rows tell about sensitive columns.
        membership: the outcome of an attack with shadow fits, if there was one.
    """

    copies: Copies
    nearness: Nearness
    guessing: tuple[Guessing, ...] = ()
    membership: Membership | None = None

    @property
    def has_control(self) -> bool:
        """Return whether rows that had no part in the synthetic table were there to compare with."""
        return self.copies.control is not None

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return what was found, in words."""
        found = []
        if (self.copies.score or 0.0) > ALARM:
            found.append("rows of the data are copied more often than rows that were not in the data")
        if (self.nearness.score or 0.0) > ALARM:
            found.append("synthetic rows are nearer to rows of the data than to rows that were not in the data")
        found += [
            f'the synthetic table tells more about the "{item.column}" of people in the data than of others'
            for item in self.guessing
            if item.score > ALARM
        ]
        if self.membership is not None and self.membership.refutes:
            found.append("an attack finds out who was in the data more often than the promise allows")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "evidence_only": True,
            "has_control": self.has_control,
            "alarms": list(self.alarms),
            "copies": self.copies.to_dict(),
            "nearness": self.nearness.to_dict(),
            "guessing": [item.to_dict() for item in self.guessing],
            "membership": None if self.membership is None else self.membership.to_dict(),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation(Result):
    """How good a synthetic table is, and what speaks against its privacy.

    Attributes:
        rows: of the real table. Protected.
        synthetic_rows: of the synthetic table.
        holdout_rows: of the holdout; None if there was none.
        fidelity: how alike the tables are; None if that was not asked for.
        training: what models are worth that were trained on synthetic rows; None without a target.
        clusters: whether synthetic rows form the same clusters; None if that was not asked for or cannot be told.
        privacy: what was found against the privacy of the rows; None if that was not asked for.
        promise: what is promised about the synthetic table; None if that was not said.
        made_with: the kind of synthesizer, where that is known.
        notes: what was left out, and why.
    """

    schema: ClassVar[str] = "cloister.synthetic_evaluation/1"

    rows: int
    synthetic_rows: int
    holdout_rows: int | None
    fidelity: Fidelity | None
    training: Training | None
    clusters: Clusters | None
    privacy: PrivacyEvidence | None
    promise: Guarantee | None = None
    made_with: str = ""
    notes: tuple[str, ...] = ()
    guarantee: Guarantee

    def __repr__(self) -> str:
        return f"Evaluation({self})"

    def __str__(self) -> str:
        parts = []
        if self.fidelity is not None:
            named = {1: "columns", 2: "pairs", 3: "triples"}
            parts.append(
                "mean total variation "
                + ", ".join(f"{item.mean:.3f} of {named[item.ways]}" for item in self.fidelity.marginals)
            )
        if self.training is not None:
            best = max(self.training.scores, key=lambda item: item.real)
            measure = "accuracy" if self.training.task == "classification" else "R2"
            parts.append(
                f"{measure} of {best.model} trained on synthetic rows {best.synthetic:.3f} "
                f"(on real rows {best.real:.3f}, simplest guess {best.baseline:.3f})"
            )
        if self.privacy is not None:
            alarms = self.privacy.alarms
            quiet = "nothing found against privacy" if self.privacy.has_control else "no control for privacy"
            parts.append(f"{len(alarms)} alarm{'s' * (len(alarms) != 1)} about privacy" if alarms else quiet)
        return "; ".join(parts)

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        from cloister.synth.evaluation.words import summary_of

        return summary_of(self)

    def plot(self) -> Figure:
        """Return the total variation of every pair of columns as a heat map; for the custodian, as all else here.

        Raises:
            ParameterError: if fidelity was not measured.
        """
        from cloister.errors import ParameterError
        from cloister.synth.evaluation.charts import pairs_chart

        if self.fidelity is None:
            raise ParameterError("There is nothing to draw.", fix='evaluate with "fidelity" among parts.')
        return pairs_chart(self.fidelity)

    def report(self, path: str | Path | None = None, *, title: str = "A synthetic table beside the real one") -> Report:
        """Return a page with everything; with a path, it is written there as well. It is not for publication."""
        from cloister.synth.evaluation.reporting import report_of

        report = report_of(self, title=title)
        if path is not None:
            report.write(path)
        return report

    def _fields(self) -> dict[str, Any]:
        def plain(part: Any) -> Any:
            return None if part is None else part.to_dict()

        return {
            "mode": "custodian",
            "rows": self.rows,
            "synthetic_rows": self.synthetic_rows,
            "holdout_rows": self.holdout_rows,
            "fidelity": plain(self.fidelity),
            "training": plain(self.training),
            "clusters": plain(self.clusters),
            "privacy": plain(self.privacy),
            "promise": plain(self.promise),
            "made_with": self.made_with,
            "notes": list(self.notes),
        }
