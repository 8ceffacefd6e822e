"""Comparing a synthetic table with the real one: fidelity, utility, and evidence about privacy.

Everything here is computed from protected rows as they are. It is for their custodian; `evaluate_privately` pays for
figures that may be published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloister.core.guarantees import Guarantee, NoGuarantee
from cloister.core.random import SeededRandomSource
from cloister.core.validation import check_choice, check_count
from cloister.errors import DataError, ParameterError, ParameterTypeError
from cloister.synth.base import Progress, Synthesizer, no_progress
from cloister.synth.evaluation.associations import compare_associations
from cloister.synth.evaluation.clusters import Clusters, measure_clusters
from cloister.synth.evaluation.copies import find_copies
from cloister.synth.evaluation.marginals import column_distances, marginal_distances, pair_distances
from cloister.synth.evaluation.membership import Membership
from cloister.synth.evaluation.models import need_learning
from cloister.synth.evaluation.nearest import measure_guessing, measure_nearness
from cloister.synth.evaluation.propensity import measure_propensity
from cloister.synth.evaluation.ranges import range_errors
from cloister.synth.evaluation.result import Evaluation, Fidelity, PrivacyEvidence
from cloister.synth.evaluation.tables import Tables, read_tables
from cloister.synth.evaluation.training import Training, measure_training

__all__ = ["PARTS", "evaluate"]

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
        need_learning()
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

    def training(self, target: str, task: str | None, models: Sequence[str]) -> Training:
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
