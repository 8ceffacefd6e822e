"""How good a synthetic table is, compared with the real one: fidelity, utility, and evidence about privacy.

Everything here is computed from protected rows as they are. It is for their custodian; `evaluate_privately` pays for
figures that may be published.

The outcome holds figures of protected rows: it is for their custodian, not for publication. Passing it on is a
release of its own that promises nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.core.guarantees import Guarantee, NoGuarantee
from cloister.core.lazy_imports import need_learning
from cloister.core.random import SeededRandomSource
from cloister.core.result import Result
from cloister.core.validation import check_choice, check_count
from cloister.errors import DataError, ParameterError, ParameterTypeError
from cloister.synth.base import Progress, Synthesizer, no_progress
from cloister.synth.evaluation._coded_tables import Floats, Tables, read_tables
from cloister.synth.evaluation._fidelity import (
    Associations,
    ColumnDistance,
    MarginalDistances,
    RangeErrors,
    column_distances,
    compare_associations,
    marginal_distances,
    pair_distances,
    range_errors,
)
from cloister.synth.evaluation._models import NEEDS_LEARNING
from cloister.synth.evaluation._propensity import Propensity, measure_propensity
from cloister.synth.evaluation._proximity import (
    Guessing,
    RowCopies,
    RowNearness,
    find_copies,
    measure_guessing,
    measure_nearness,
)
from cloister.synth.evaluation._utility import Clusters, TrainingUtility, measure_clusters, measure_training
from cloister.synth.evaluation.membership import Membership

if TYPE_CHECKING:
    from cloister.plotting import Figure
    from cloister.report import Report

__all__ = ["PARTS", "Evaluation", "Fidelity", "PrivacyEvidence", "evaluate"]


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

    copies: RowCopies
    nearness: RowNearness
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
    training: TrainingUtility | None
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
        from cloister.synth.evaluation._verdict import summary_of

        return summary_of(self)

    def plot(self) -> Figure:
        """Return the total variation of every pair of columns as a heat map; for the custodian, as all else here.

        Raises:
            ParameterError: if fidelity was not measured.
        """
        from cloister.errors import ParameterError
        from cloister.synth.evaluation._quality_charts import pairs_chart

        if self.fidelity is None:
            raise ParameterError("There is nothing to draw.", fix='evaluate with "fidelity" among parts.')
        return pairs_chart(self.fidelity)

    def report(self, path: str | Path | None = None, *, title: str = "A synthetic table beside the real one") -> Report:
        """Return a page with everything; with a path, it is written there as well. It is not for publication."""
        from cloister.synth.evaluation._quality_report import report_of

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


PARTS = ("fidelity", "propensity", "training", "clusters", "privacy")
"""What can be measured; all but the first and the last need scikit-learn."""

_LEARNED = ("propensity", "training", "clusters")
_REASON = "it was computed from protected rows as they are; it is for their custodian and not for publication"
_PROPENSITY_ROWS = 4_000


def evaluate(
    real: Any,
    synthetic: Any,
    *,
    holdout: Any = None,
    target: str | None = None,
    task: str | None = None,
    schema: Any = None,
    columns: Sequence[str] | None = None,
    bins: Any = None,
    promise: Any = None,
    membership: Membership | None = None,
    models: Sequence[str] = (),
    clusters: int = 2,
    parts: Sequence[str] = PARTS,
    most_rows: int = 10_000,
    progress: Progress | None = None,
    random_state: int = 0,
) -> Evaluation:
    """Compare a synthetic table, of whatever origin, with the real one.

    Tables are compared on the cells that the schema declares, so that figures of different synthetic tables can be
    compared: categories as they are, numbers in public bins. Values inside a bin are not compared.

    Args:
        real: the rows that the synthetic ones were made from: a `cloister.Table` with a confirmed schema, or what
            `cloister.open_table` takes.
        synthetic: the synthetic rows, likewise; a schema is not needed.
        holdout: real rows of the same kind that had no part in the synthetic ones. Without them, copies and distances
            have nothing to be compared with.
        target: a column that models should predict; without it, none are trained.
        task: "classification" or "regression"; without it, what suits the target.
        schema: what is publicly known of the columns; the real table's own by default.
        columns: which columns; without it, all that the schema describes but identifiers.
        bins: into how many bins numbers, dates and times are cut, or at which edges: for all, or by column.
        promise: the fitted synthesizer, or the guarantee of the synthetic table, for the report.
        membership: what `cloister.synth.membership` found, for the report.
        models: which models are trained, such as "logistic regression"; without it, all.
        clusters: into how many clusters rows are divided.
        parts: what is measured: "fidelity", "propensity", "training", "clusters" and "privacy".
        most_rows: how many rows of each table models learn from at most.
        progress: called now and then with the share that is done and what is being done.
        random_state: of random questions and splits; the same gives the same figures again.

    Raises:
        MissingBoundsError: if the cells of a column are not declared.
        ParameterError: if the tables cannot be compared.
        DataError: if a table is empty, or too small to train and test on.
        MissingExtraError: if models are asked for and scikit-learn is not installed.
    """
    chosen = _parts(parts)
    if any(part in chosen for part in _LEARNED):
        need_learning(NEEDS_LEARNING)
    check_count(clusters, name="clusters", at_least=2)
    check_count(most_rows, name="most_rows", at_least=10)
    promised, made_with = _promise(promise)
    if membership is not None and not isinstance(membership, Membership):
        raise ParameterTypeError("membership is not an outcome.", fix="give what cl.synth.membership(...) returned.")
    tell = progress or no_progress
    tell(0.0, "reading")
    tables = read_tables(real, synthetic, holdout=holdout, schema=schema, columns=columns, bins=bins)
    if target is not None:
        tables.domain.positions([target])
    work = _Work(tables, check_count(random_state, name="random_state"), most_rows)
    tell(0.1, "comparing marginals")
    fidelity = work.fidelity(with_models="propensity" in chosen) if "fidelity" in chosen else None
    tell(0.4, "training")
    training = work.training(target, task, models) if target is not None and "training" in chosen else None
    found, notes = work.clusters(clusters) if "clusters" in chosen else (None, ())
    tell(0.8, "looking for copies")
    privacy = work.privacy(target, membership) if "privacy" in chosen else None
    tell(1.0, "done")
    return Evaluation(
        rows=tables.real.total,
        synthetic_rows=tables.synthetic.total,
        holdout_rows=None if tables.holdout is None else tables.holdout.total,
        fidelity=fidelity,
        training=training,
        clusters=found,
        privacy=privacy,
        promise=promised,
        made_with=made_with,
        notes=notes,
        guarantee=NoGuarantee(reason=_REASON),
    )


class _Work:
    """The parts of an evaluation, each with random choices of its own, so that leaving one out changes no other."""

    def __init__(self, tables: Tables, seed: int, most: int) -> None:
        self._tables, self._seed, self._most = tables, seed, most

    def fidelity(self, *, with_models: bool) -> Fidelity:
        tables = self._tables
        ways = range(1, min(3, len(tables.names)) + 1)
        rows = min(self._most, _PROPENSITY_ROWS)
        return Fidelity(
            columns=column_distances(tables),
            marginals=tuple(marginal_distances(tables, many, self._source(many)) for many in ways),
            pairs=pair_distances(tables),
            associations=compare_associations(tables),
            ranges=range_errors(tables, self._source(4)),
            propensity=measure_propensity(tables, self._source(5), most=rows) if with_models else (),
        )

    def training(self, target: str, task: str | None, models: Sequence[str]) -> TrainingUtility:
        if isinstance(models, str):
            raise ParameterTypeError("models is not a list.", fix=f'write models=["{models}"].')
        return measure_training(
            self._tables, target, self._source(6), task=task, models=models, most=self._most, seed=self._seed
        )

    def clusters(self, count: int) -> tuple[Clusters | None, tuple[str, ...]]:
        source = self._source(7)
        try:
            return measure_clusters(self._tables, source, clusters=count, most=self._most, seed=self._seed), ()
        except DataError as error:
            return None, (f"No clusters: {error.args[0].splitlines()[0]}",)

    def privacy(self, target: str | None, found: Membership | None) -> PrivacyEvidence:
        return PrivacyEvidence(
            copies=find_copies(self._tables),
            nearness=measure_nearness(self._tables, self._source(8)),
            guessing=measure_guessing(self._tables, self._source(9), target=target),
            membership=found,
        )

    def _source(self, part: int) -> SeededRandomSource:
        return SeededRandomSource(16 * self._seed + part)


def _parts(parts: Sequence[str]) -> tuple[str, ...]:
    listed = (parts,) if isinstance(parts, str) else tuple(parts)
    if not listed:
        raise ParameterError("There is nothing to measure.", fix=f"name some of {', '.join(PARTS)}.")
    return tuple(check_choice(part, name="parts", allowed=PARTS) for part in listed)


def _promise(promise: Any) -> tuple[Guarantee | None, str]:
    if promise is None or isinstance(promise, Guarantee):
        return promise, ""
    if isinstance(promise, Synthesizer):
        _ = promise.fitted_facts  # or says that it has not been fitted
        return promise.guarantee_, type(promise).__name__
    raise ParameterTypeError(
        "promise is neither a synthesizer nor a guarantee.", fix="give the fitted synthesizer, or leave it out."
    )
