"""What a fitted pipeline promises: the sum of its private steps, if no step looked at the rows without privacy.

Private transformers change each row by itself, by noisy or public numbers, so rows stay neighbors from step to step and
the steps compose. A step that learns without privacy, such as scikit-learn's StandardScaler, breaks the promise of the
whole; it is refused. Steps that change each row by itself, without learning anything, may stand anywhere; a function of
one's own may not, since it could look at all rows together.
"""

from __future__ import annotations

from typing import Any

from cloister.accounting.accountants import compose
from cloister.accounting.composition import sequential
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP
from cloister.errors import AccountingError, ParameterError, ParameterTypeError
from cloister.learn._exact_steps import learns_nothing
from cloister.learn.base import PrivateEstimator

__all__ = ["pipeline_guarantee"]


def pipeline_guarantee(pipeline: Any) -> PureDP | ApproxDP:
    """Return what all private steps of a fitted scikit-learn pipeline promise together.

    Args:
        pipeline: a fitted `sklearn.pipeline.Pipeline`.

    Raises:
        ParameterError: if a step learns from the rows without privacy, or no step is private.

    >>> from sklearn.pipeline import make_pipeline
    >>> from cloister.learn import PrivateKMeans, PrivateScaler
    >>> scaler, clusters = PrivateScaler(bounds=(0, 100)), PrivateKMeans(n_clusters=2, bounds=(0, 1), epsilon=0.5)
    >>> pipeline = make_pipeline(scaler, clusters).fit([[10], [90]] * 500)
    >>> pipeline_guarantee(pipeline).epsilon
    Fraction(1, 2)
    """
    models = _private_steps(pipeline)
    total = sequential([model.guarantee_ for model in models])
    return _tighter(models, total) if isinstance(total, ApproxDP) else total


def _private_steps(pipeline: Any) -> list[PrivateEstimator]:
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(pipeline, Pipeline):
        raise ParameterTypeError("This is not a pipeline.", fix="pass a fitted sklearn.pipeline.Pipeline.")
    models: list[PrivateEstimator] = []
    for name, step in pipeline.steps:
        if isinstance(step, Pipeline):
            models += _private_steps(step)
        elif isinstance(step, PrivateEstimator):
            check_is_fitted(step, "guarantee_")
            models.append(step)
        elif not learns_nothing(step):
            raise ParameterError(
                f'Step "{name}" may learn from the rows without privacy, so the pipeline promises nothing.',
                fix="use the private estimator of cloister.learn instead, or leave the step out.",
            )
    if not models:
        raise ParameterError("No step of the pipeline is private.", fix="use estimators of cloister.learn.")
    return models


def _tighter(models: list[PrivateEstimator], total: ApproxDP) -> ApproxDP:
    """Return the joint account of all steps at the summed delta where that is better than the sum."""
    events = [step.event for model in models for step in model.steps_]
    if not all(map(_for_one_row, models)):
        return total
    try:
        found = compose(events, delta=total.delta, adjacency=total.adjacency, unit=total.unit)
    except AccountingError:
        return total
    if found.epsilon >= total.epsilon:
        return total
    return ApproxDP(
        epsilon=found.epsilon,
        delta=total.delta,
        adjacency=total.adjacency,
        unit=total.unit,
        assumptions=total.assumptions,
        caveats=total.caveats,
    )


def _for_one_row(model: PrivateEstimator) -> bool:
    """Return whether the steps of a model, which are stated for one row, are stated for the protected unit."""
    return model.guarantee_.adjacency is Adjacency.ADD_REMOVE and model.guarantee_.unit == "row"
