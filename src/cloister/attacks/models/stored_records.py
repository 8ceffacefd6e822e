"""Stored records: models that keep rows of their training data, and so hand them to whoever gets the model.

Nearest neighbors keep all rows, support vector machines and Gaussian processes some or all. The attack opens the model
as any receiver can, follows its parts, undoes scaling inside of a pipeline where that can be undone, and counts which
records are there, number for number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.details import AttackDetails, Row
from cloister.attacks.models._victim import as_matrix
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.errors import ParameterError

__all__ = ["StoredRecordsDetails", "stored_records"]

_DEEPEST = 6
_DIGITS = 9
_ADVICE = (
    "do not hand out this kind of model: it contains people's records; release predictions or another model instead",
    "if the model must be kept, keep it sealed like the table, and answer questions about it",
    "train a model of a few parameters with differential privacy (cl.learn)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecordsDetails(AttackDetails):
    """Success is the share of training records that are in the model; the control counts records that never were in.

    Attributes:
        places: where in the model arrays of records were found, by the names of its attributes.
        found: how many of the training records are there.
    """

    schema: ClassVar[str] = "cloister.stored_records/1"

    places: tuple[str, ...]
    found: int

    def conclude(self, result: AttackResult, /) -> str:
        """Return how many records the model contains, and where."""
        if not self.found:
            return "No training record was found inside of the model as it is. It may still have learned from them."
        return (
            f"The model contains {self.found:,} of {result.trials:,} training records as they are, in "
            f"{', '.join(self.places)}: whoever gets the model gets them."
        )

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        yield "where", ", ".join(self.places) or "nowhere"


def stored_records(
    model: Any, records: Any, *, others: Any = None, confidence: Number = 0.95
) -> AttackResult[StoredRecordsDetails]:
    """Count the training records that a model carries along.

    Args:
        model: a fitted model, or a pipeline that ends in one.
        records: features of the training data, as numbers.
        others: features of similar people that the model was not trained on: a control for records that are alike.
        confidence: of the interval.

    Raises:
        ParameterError: if records are no numbers, or others have other columns.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]]
    >>> stored_records(KNeighborsClassifier(1).fit(rows, [0, 1, 1]), rows).success
    1.0
    """
    level = float(validation.check_confidence(confidence))
    rows = as_matrix(records, what="records")
    beside = None if others is None else as_matrix(others, what="others")
    if beside is not None and beside.shape[1] != rows.shape[1]:
        raise ParameterError("Records and others have other columns.", fix="give both with the same columns.")
    kept = {name: _undo_scaling(model, array, rows.shape[1]) for name, array in _arrays(model, rows.shape[1])}
    holding = {name: _are_in(rows, array) for name, array in kept.items()}
    holding = {name: mask for name, mask in holding.items() if mask.any()}
    found = np.any(list(holding.values()), axis=0) if holding else np.zeros(len(rows), dtype=np.bool_)
    control = None
    if beside is not None:
        control = float(np.any([_are_in(beside, kept[name]) for name in holding], axis=0).mean()) if holding else 0.0
    count = int(found.sum())
    return AttackResult(
        attack="stored records",
        assumption="gets the model as a file or object and looks inside",
        success=count / len(rows),
        baseline=0.0,
        interval=binomial_interval(count, len(rows), confidence=level),
        confidence=level,
        trials=len(rows),
        queries=0,
        control=control,
        mitigation=_ADVICE if count else (),
        worst=tuple((int(place), 1.0) for place in np.flatnonzero(found)[:20]),
        details=StoredRecordsDetails(
            places=tuple(sorted(holding)),
            found=count,
        ),
    )


def _arrays(model: Any, width: int) -> Iterator[tuple[str, Floats]]:
    """Yield the tables of numbers inside of a model, by the path that leads to them."""
    seen: set[int] = set()

    def walk(part: Any, path: str, depth: int) -> Iterator[tuple[str, Floats]]:
        if depth > _DEEPEST or id(part) in seen:
            return
        seen.add(id(part))
        table = _table(part, width)
        if table is not None:
            yield path, table
            return
        for name, inner in _parts(part):
            yield from walk(inner, f"{path}.{name}" if path else name, depth + 1)

    return walk(model, "", 0)


def _table(part: Any, width: int) -> Floats | None:
    if type(part).__name__ == "csr_matrix" or hasattr(part, "toarray"):
        part = part.toarray()
    elif type(part).__name__ in {"KDTree", "KDTree64", "BallTree", "BallTree64"}:
        part = np.asarray(part.data)
    if isinstance(part, np.ndarray) and part.ndim == 2 and part.shape[1] == width and part.dtype.kind in "iuf":
        return np.asarray(part, dtype=np.float64)
    return None


def _parts(part: Any) -> list[tuple[str, Any]]:
    if isinstance(part, dict):
        return [("…", inner) for inner in part.values()]
    if isinstance(part, list | tuple):
        return [(str(place), inner) for place, inner in enumerate(part)]
    return list(vars(part).items()) if hasattr(part, "__dict__") and not isinstance(part, type) else []


def _undo_scaling(model: Any, array: Floats, width: int) -> Floats:
    """Return rows as they were before the scalers of a pipeline."""
    for _, step in reversed(getattr(model, "steps", [])[:-1]):
        if not hasattr(step, "inverse_transform"):
            return array
        try:
            undone = np.asarray(step.inverse_transform(array), dtype=np.float64)
        except (TypeError, ValueError):
            return array
        array = undone if undone.ndim == 2 and undone.shape[1] == width else array
    return array


def _are_in(rows: Floats, table: Floats) -> NDArray[np.bool_]:
    """Return which rows are among those of a table, up to rounding in the last digits."""
    both = np.concatenate([table, rows])
    scale = np.maximum(np.abs(both).max(axis=0), 1e-300)
    codes = np.unique(np.round(both / scale, _DIGITS) + 0.0, axis=0, return_inverse=True)[1].ravel()
    return np.isin(codes[len(table) :], codes[: len(table)])
