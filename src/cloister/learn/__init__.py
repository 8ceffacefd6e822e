"""Private learning: scikit-learn estimators whose models carry a guarantee, and never read a bound from the data.

    model = cloister.learn.PrivateGaussianNB(epsilon=1, bounds=(lows, highs), classes=["no", "yes"])
    model.fit(X, y).predict(others)
    model.guarantee_.explain()

Estimators are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cloister.errors import MissingExtraError

if TYPE_CHECKING:
    from cloister.learn.clustering.kmeans import PrivateKMeans as PrivateKMeans
    from cloister.learn.compressive.kernel import (
        KernelDiscriminantComponents as KernelDiscriminantComponents,
        KernelPrincipalComponents as KernelPrincipalComponents,
    )
    from cloister.learn.compressive.linear_projections import (
        DiscriminantComponents as DiscriminantComponents,
        LinearDiscriminants as LinearDiscriminants,
        MultiDiscriminantRatio as MultiDiscriminantRatio,
        PrincipalComponents as PrincipalComponents,
        UtilityCostRatio as UtilityCostRatio,
    )
    from cloister.learn.compressive.projection_audit import compressive_audit as compressive_audit
    from cloister.learn.compressive.random_projection import (
        RandomProjection as RandomProjection,
        known_pairs_attack as known_pairs_attack,
    )
    from cloister.learn.compressive.releases import (
        ProjectionRegistry as ProjectionRegistry,
        reconstruct_from_releases as reconstruct_from_releases,
    )
    from cloister.learn.compressive.sweep import compressive_sweep as compressive_sweep
    from cloister.learn.compressive.utility import utility_scores as utility_scores
    from cloister.learn.curves import learning_curve as learning_curve
    from cloister.learn.decomposition import PrivatePCA as PrivatePCA
    from cloister.learn.evaluation import (
        count_predictions_privately as count_predictions_privately,
        evaluate as evaluate,
        evaluate_privately as evaluate_privately,
    )
    from cloister.learn.linear.logistic import PrivateLogisticRegression as PrivateLogisticRegression
    from cloister.learn.linear.regression import PrivateLinearRegression as PrivateLinearRegression
    from cloister.learn.naive_bayes import (
        PrivateCategoricalNB as PrivateCategoricalNB,
        PrivateGaussianNB as PrivateGaussianNB,
    )
    from cloister.learn.neural.mlp import PrivateMLP as PrivateMLP, PrivateMLPRegressor as PrivateMLPRegressor
    from cloister.learn.persistence import load as load
    from cloister.learn.pipelines import pipeline_guarantee as pipeline_guarantee
    from cloister.learn.preprocessing import PrivateQuantileBins as PrivateQuantileBins, PrivateScaler as PrivateScaler
    from cloister.learn.selection import PrivateSearch as PrivateSearch
    from cloister.learn.torch import PrivateTorch as PrivateTorch
    from cloister.learn.trees.boosting import PrivateGradientBoosting as PrivateGradientBoosting
    from cloister.learn.trees.forest import PrivateForest as PrivateForest, PrivateTree as PrivateTree

_ESTIMATORS = {
    "categorical_nb": ("PrivateCategoricalNB", "cloister.learn.naive_bayes"),
    "forest": ("PrivateForest", "cloister.learn.trees.forest"),
    "gaussian_nb": ("PrivateGaussianNB", "cloister.learn.naive_bayes"),
    "gradient_boosting": ("PrivateGradientBoosting", "cloister.learn.trees.boosting"),
    "kmeans": ("PrivateKMeans", "cloister.learn.clustering.kmeans"),
    "linear_regression": ("PrivateLinearRegression", "cloister.learn.linear.regression"),
    "logistic_regression": ("PrivateLogisticRegression", "cloister.learn.linear.logistic"),
    "mlp": ("PrivateMLP", "cloister.learn.neural.mlp"),
    "mlp_regressor": ("PrivateMLPRegressor", "cloister.learn.neural.mlp"),
    "pca": ("PrivatePCA", "cloister.learn.decomposition"),
    "quantile_bins": ("PrivateQuantileBins", "cloister.learn.preprocessing"),
    "scaler": ("PrivateScaler", "cloister.learn.preprocessing"),
    "tree": ("PrivateTree", "cloister.learn.trees.forest"),
}
"""Every private estimator by the name that ``cloister train`` and the hub know it by: its class, and where it is."""

_HOMES = {
    **dict(_ESTIMATORS.values()),
    "DiscriminantComponents": "cloister.learn.compressive.linear_projections",
    "KernelDiscriminantComponents": "cloister.learn.compressive.kernel",
    "KernelPrincipalComponents": "cloister.learn.compressive.kernel",
    "LinearDiscriminants": "cloister.learn.compressive.linear_projections",
    "MultiDiscriminantRatio": "cloister.learn.compressive.linear_projections",
    "PrincipalComponents": "cloister.learn.compressive.linear_projections",
    "PrivateSearch": "cloister.learn.selection",
    "PrivateTorch": "cloister.learn.torch",
    "ProjectionRegistry": "cloister.learn.compressive.releases",
    "RandomProjection": "cloister.learn.compressive.random_projection",
    "UtilityCostRatio": "cloister.learn.compressive.linear_projections",
    "compressive_audit": "cloister.learn.compressive.projection_audit",
    "compressive_sweep": "cloister.learn.compressive.sweep",
    "count_predictions_privately": "cloister.learn.evaluation",
    "evaluate": "cloister.learn.evaluation",
    "evaluate_privately": "cloister.learn.evaluation",
    "known_pairs_attack": "cloister.learn.compressive.random_projection",
    "learning_curve": "cloister.learn.curves",
    "load": "cloister.learn.persistence",
    "pipeline_guarantee": "cloister.learn.pipelines",
    "reconstruct_from_releases": "cloister.learn.compressive.releases",
    "utility_scores": "cloister.learn.compressive.utility",
}
"""Every public name, and where it is."""

_WITHOUT_SKLEARN = ("PrivateTorch",)

__all__ = sorted(_HOMES)  # noqa: PLE0605  # names come from the table above


def _load(name: str) -> Any:  # any public object
    if name not in _HOMES:
        raise AttributeError(f"module 'cloister.learn' has no attribute {name!r}")
    try:
        if name not in _WITHOUT_SKLEARN:
            import sklearn  # noqa: F401  # estimators need it
    except ImportError:
        raise MissingExtraError(what="Private models", package="scikit-learn", extra="learn") from None
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:
    # Type checkers read the imports above; a function that gives any name would hide misspelled ones from them.
    __getattr__ = _load


def estimator_homes() -> dict[str, tuple[str, str]]:
    """Return the class and the module of each private estimator by its name, without loading any."""
    return dict(_ESTIMATORS)


def __dir__() -> list[str]:
    return __all__
