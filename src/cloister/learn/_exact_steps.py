"""Steps of a scikit-learn pipeline that learn from the protected rows without privacy, before a private estimator does.

An exact `StandardScaler` moves every row by what all rows are. What comes out is no longer a table in which one row
more changes one row, so that the promise of a private estimator behind it does not hold.

scikit-learn does not tell an estimator in which pipeline it is fitted: the rows arrive as a plain array, tags and
parameters know nothing of other steps, and routed metadata is off unless every user turns it on. What is always there
is the call: a pipeline that fits a step is a caller of that fit, also inside of `cross_val_score` and `GridSearchCV`,
in other processes, and in pipelines of pipelines. So the callers are looked through for pipelines.

What this does not see: rows that somebody scaled before calling `fit`, and pipelines that are not scikit-learn's.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from cloister.core.guarantees import Caveat
from cloister.errors import PrivacyParameterWarning

__all__ = ["EXACT_STEPS", "caveats_of_steps", "learns_nothing", "warn_of_exact_steps"]

EXACT_STEPS = Caveat(
    "exact_steps", "a step before this model learned from the protected rows without privacy, and changed all of them"
)

_ROW_BY_ROW = {"Normalizer", "Binarizer"}


def learns_nothing(step: Any) -> bool:
    """Return whether a step of scikit-learn is known to be a function of each row by itself."""
    kind = type(step)
    if step is None or isinstance(step, str):  # "passthrough"
        return True
    if not kind.__module__.startswith("sklearn."):
        return False
    if kind.__name__ == "FunctionTransformer":
        return step.func is None or (_is_of_one_cell(step.func) and not step.kw_args)
    return kind.__name__ in _ROW_BY_ROW


def _is_of_one_cell(function: object) -> bool:
    """Return whether a function is one of NumPy's own that makes a number of each number."""
    return (
        isinstance(function, np.ufunc)
        and function.signature is None
        and (function.nin, function.nout) == (1, 1)
        and "d->d" in function.types
    )


def warn_of_exact_steps(estimator: Any, *, stacklevel: int) -> None:
    """Say that the promise will not hold if the estimator is being fitted behind a step that learns without privacy.

    Args:
        estimator: whose `fit` runs.
        stacklevel: how far above the caller of this function the user is, as `warnings.warn` counts.
    """
    name = next(_exact_steps(estimator), None)
    if name is not None:
        warnings.warn(
            f'The step "{name}" learns from the protected rows without privacy, so the promise of '
            f"{type(estimator).__name__} behind it does not hold. Use PrivateScaler or another private step in its "
            "place; cloister.learn.pipeline_guarantee says what a whole pipeline promises.",
            PrivacyParameterWarning,
            stacklevel=stacklevel + 1,
        )


def caveats_of_steps(estimator: Any) -> tuple[Caveat, ...]:
    """Return the caveat that steps before an estimator which is being fitted add to its guarantee, if any."""
    return () if next(_exact_steps(estimator), None) is None else (EXACT_STEPS,)


def _exact_steps(estimator: Any) -> Iterator[str]:
    """Yield the names of steps that learn without privacy, in the pipelines in which an estimator is being fitted."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline

    inside = [estimator]
    for caller in _callers():
        if isinstance(caller, TransformedTargetRegressor) and not learns_nothing(caller.transformer):
            yield "transformer"
        if isinstance(caller, Pipeline):
            for name, step in caller.steps[: _place(caller, inside)]:
                if not _is_private(step):
                    yield name
        inside.append(caller)


def _callers() -> Iterator[Any]:
    """Yield the objects whose methods are being called, the innermost first."""
    frame = inspect.currentframe()
    while frame is not None:
        # Only code of packages that call estimators is looked at; a user's own variables are not.
        if str(frame.f_globals.get("__name__", "")).startswith(("sklearn.", "imblearn.", "cloister.")):
            caller = frame.f_locals.get("self")
            if caller is not None:
                yield caller
        frame = frame.f_back


def _place(pipeline: Any, inside: list[Any]) -> int:
    """Return which step is being fitted: one that is among the inner callers, or like one, since steps are cloned."""
    steps = [step for _, step in pipeline.steps]
    for place, step in enumerate(steps):
        if any(step is caller for caller in inside):
            return place
    alike = [place for place, step in enumerate(steps) if any(type(step) is type(caller) for caller in inside)]
    return max(alike, default=len(steps))


def _is_private(step: Any) -> bool:
    """Return whether a step keeps rows neighbors: it is private, or a pipeline of such, or learns nothing."""
    from sklearn.pipeline import Pipeline

    from cloister.learn.base import PrivateEstimator  # which imports this module

    if isinstance(step, Pipeline):
        return all(_is_private(inner) for _, inner in step.steps)
    return isinstance(step, PrivateEstimator) or learns_nothing(step)
