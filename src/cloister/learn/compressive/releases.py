"""A registry of releases: two different projections of the same rows together may give the rows away.

Each projection fixes as many directions of a row as it has components. Two of them fix both, and as soon as the
directions span the features, the row is the solution of linear equations (`reconstruct_from_releases`). So a registry
keeps a keyed fingerprint of each row that was released, and of the models, and refuses another projection of the same
rows unless it adds no direction to what was published. Fingerprints are made with a secret key that stays in the
registry, since a plain hash could be tested against guesses. Rows are recognized if their numbers, or the identifiers
that are given for them, are exactly the same: a registry cannot see that two different rows are of one person.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cloister.core import validation
from cloister.core.random import random_source
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError, ParameterTypeError, PrivacyParameterWarning, UnsafeMechanismError
from cloister.learn.compressive._base import LinearProjection
from cloister.learn.compressive._labeled_rows import as_numbers

__all__ = ["ProjectionRegistry", "reconstruct_from_releases"]

SCHEMA = "cloister.projection_registry/1"


@dataclass(frozen=True, slots=True, eq=False)
class _Release:
    name: str
    model: str
    matrix: Floats | None
    rows: frozenset[str]


@dataclass(kw_only=True, eq=False)
class ProjectionRegistry:
    """Remembers which rows were released through which projection.

    Args:
        on_repeat: what to do about another projection of the same records: "refuse", or "warn".

    >>> from cloister.learn import PrincipalComponents
    >>> rows = np.array([[0.0, 1.0, 5.0], [2.0, 3.0, 1.0], [1.0, 0.0, 2.0], [4.0, 1.0, 3.0]])
    >>> registry = ProjectionRegistry()
    >>> registry.register(PrincipalComponents(n_components=1).fit(rows), rows, name="first")
    >>> registry.names
    ('first',)
    """

    on_repeat: str = "refuse"
    _key: bytes = field(init=False, repr=False)
    _releases: list[_Release] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        validation.check_choice(self.on_repeat, name="on_repeat", allowed=("refuse", "warn"))
        self._key, self._releases = random_source().random_bytes(32), []

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the releases."""
        return tuple(release.name for release in self._releases)

    def register(self, model: Any, X: Any, *, name: str, identifiers: Sequence[object] | None = None) -> None:
        """Note a release, before it is published.

        Args:
            model: the fitted projection.
            X: the rows whose z is published.
            name: a public name of the release.
            identifiers: who each row is of; without them, rows are recognized by their numbers.

        Raises:
            UnsafeMechanismError: if some of the rows were released through another projection. Nothing is noted then.
        """
        release = self._release(model, X, str(name), identifiers)
        earlier = [item for item in self._releases if item.rows & release.rows]
        if any(_adds(item, release) for item in earlier):
            self._object_to(earlier, release)
        self._releases.append(release)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, among them the secret key: keep them as you keep the rows."""
        return {
            "schema": SCHEMA,
            "on_repeat": self.on_repeat,
            "key": self._key.hex(),
            "releases": [
                {
                    "name": item.name,
                    "model": item.model,
                    "matrix": None if item.matrix is None else item.matrix.tolist(),
                    "rows": sorted(item.rows),
                }
                for item in self._releases
            ],
        }

    @classmethod
    def from_dict(cls, values: Any) -> ProjectionRegistry:
        """Return the registry that `to_dict` wrote."""
        if not isinstance(values, Mapping) or values.get("schema") != SCHEMA:
            raise ParameterError("This is not a registry of projections.", fix="use what to_dict() wrote.")
        registry = cls(on_repeat=values["on_repeat"])
        registry._key = bytes.fromhex(values["key"])
        registry._releases = [
            _Release(
                item["name"],
                item["model"],
                None if item["matrix"] is None else np.array(item["matrix"], dtype=np.float64),
                frozenset(item["rows"]),
            )
            for item in values["releases"]
        ]
        return registry

    def _release(self, model: Any, X: Any, name: str, identifiers: Sequence[object] | None) -> _Release:
        rows = as_numbers(X, what="rows")
        model.transform(rows)  # refuses rows that are not of this model
        if identifiers is None:
            marks = [b"row" + row.tobytes() for row in np.ascontiguousarray(rows + 0.0)]
        elif len(identifiers) != len(rows):
            raise ParameterError("There is not one identifier for each row.", fix="give them in the order of the rows.")
        else:
            marks = [b"identifier" + str(item).encode() for item in identifiers]
        matrix = model.matrix_ if isinstance(model, LinearProjection) else None
        return _Release(name, model.fingerprint(), matrix, frozenset(map(self._fingerprint, marks)))

    def _fingerprint(self, mark: bytes) -> str:
        return hashlib.blake2b(mark, key=self._key, digest_size=16).hexdigest()

    def _object_to(self, earlier: list[_Release], release: _Release) -> None:
        listing = ", ".join(f'"{item.name}"' for item in earlier)
        problem = (
            f"These would be two projections of the same records: some of these rows were released as {listing}. "
            f"{_together([*earlier, release])}"
        )
        if self.on_repeat == "refuse":
            raise UnsafeMechanismError(
                problem, fix="publish the same projection again, or rows that were not published before."
            )
        warnings.warn(problem, PrivacyParameterWarning, stacklevel=3)


def reconstruct_from_releases(models: Sequence[Any], released: Sequence[Any]) -> Floats:
    """Return the rows that several linear projections of them were made from, as far as these determine them.

    Args:
        models: the fitted projections.
        released: for each of them z of the same rows, in the same order.

    Raises:
        ParameterTypeError: if a projection is not linear.
        ParameterError: if there is not one z for each model, of the same rows.

    >>> from cloister.learn import RandomProjection
    >>> rows = np.array([[0.0, 1.0, 5.0], [2.0, 3.0, 1.0]])
    >>> models = [RandomProjection(n_components=2).fit(rows) for _ in range(2)]
    >>> reconstruct_from_releases(models, [model.transform(rows) for model in models]).round(6).astype(int).tolist()
    [[0, 1, 5], [2, 3, 1]]
    """
    if not models or not all(isinstance(model, LinearProjection) for model in models):
        raise ParameterTypeError("These are not linear projections.", fix="give fitted linear projections.")
    parts = [as_numbers(part, what="released z") for part in released]
    if len(parts) != len(models) or len({len(part) for part in parts}) != 1:
        raise ParameterError(
            "There is not one release of the same rows for each model.", fix="give z of the same rows for each model."
        )
    matrix = np.hstack([model.matrix_ for model in models])
    middle = np.mean([model.mean_ for model in models], axis=0)
    # Each projection has a mean of its own; the equations are brought to a common one before they are stacked.
    shifts = [part + (model.mean_ - middle) @ model.matrix_ for model, part in zip(models, parts, strict=True)]
    return np.asarray(middle + np.linalg.lstsq(matrix.T, np.hstack(shifts).T, rcond=None)[0].T)


def _adds(earlier: _Release, release: _Release) -> bool:
    """Return whether a release tells more of a row than an earlier one does."""
    if earlier.model == release.model:
        return False
    if earlier.matrix is None or release.matrix is None:
        return True
    return _directions([earlier.matrix, release.matrix]) > _directions([earlier.matrix])


def _directions(matrices: list[Floats]) -> int:
    # Columns of length 1, so that the rank does not depend on units.
    return int(np.linalg.matrix_rank(np.hstack([matrix / np.linalg.norm(matrix, axis=0) for matrix in matrices])))


def _together(releases: list[_Release]) -> str:
    matrices = [item.matrix for item in releases if item.matrix is not None]
    if len(matrices) < len(releases):
        return "Together they tell more than either does."
    features, directions = len(matrices[0]), _directions(matrices)
    if directions >= features:
        return "Together they determine such rows exactly."
    return f"Together they fix {directions} of {features} directions of such rows."
