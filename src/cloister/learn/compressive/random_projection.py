"""Random projection: a matrix that does not depend on the rows, so that it tells nothing about them by itself.

Not differentially private; see `_base`. Each entry is normal with variance 1/k, so that distances are kept on average
(Johnson and Lindenstrauss 1984; for hiding rows Liu, Kargupta and Ryan 2006). It hides little: whoever has the matrix
has the least-norm estimate of every row, and whoever knows as many rows with their z as there are features computes
the matrix (`known_pairs_attack`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.core.guarantees import NoGuarantee
from cloister.core.random import RandomSource, RandomState, caveats_of, random_source
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError
from cloister.learn.compressive._base import LinearProjection, projections
from cloister.learn.compressive._labeled_rows import as_numbers

__all__ = ["RandomProjection", "known_pairs_attack"]

Labels = dict[str, list[NDArray[np.int64]]]

_REASON = (
    "compressive privacy is empirical and is not differential privacy; a random projection keeps distances between "
    "rows, and whoever knows the matrix, or a few rows with what was published of them, can estimate the others"
)


@projections.register("random_projection")
@dataclass(kw_only=True, eq=False, repr=False)
class RandomProjection(LinearProjection):
    """Projects onto normal random directions, without looking at the rows. Not differentially private.

    Args:
        n_components: how many numbers are published per row.
        mean: a public row to measure from; None for zeros. The mean of the rows is not used.
        random_state: None; an integer is for tests.

    >>> model = RandomProjection(n_components=2).fit([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    >>> model.projection_.shape, model.transform([[0.0, 0.0, 0.0]]).tolist()
    ((3, 2), [[0.0, 0.0]])
    """

    n_components: int | None = 2
    mean: Any = None
    random_state: RandomState = None

    def _middle(self, features: Floats) -> Floats:
        width = features.shape[1]
        if self.mean is None:
            return np.zeros(width)
        found = as_numbers(self.mean, what="numbers of mean")
        if found.shape != (width,) or not np.isfinite(found).all():
            raise ParameterError(
                "mean is not one finite number for each feature.", fix="give a public row, or leave mean out."
            )
        return found

    def _scales(self, features: Floats) -> Floats:
        return np.ones(features.shape[1])

    def _solve(self, centered: Floats, labels: Labels) -> None:
        """Draw the directions; of the rows, only the number of features matters."""
        width = centered.shape[1]
        self.rank_, self.rho_ = width, 0.0
        count = self._count(labels, room=width)
        source = random_source(self.random_state)
        self._caveats = caveats_of(source)
        self.projection_ = _normal(source, (width, count)) / np.sqrt(count)
        self.eigenvalues_, self.grain_ = np.ones(count), np.zeros(count)

    def _promise(self) -> NoGuarantee:
        return NoGuarantee(reason=_REASON, caveats=self._caveats)

    def _most(self, labels: Labels) -> int:  # noqa: ARG002  # it needs no labels
        return int(self.n_features_in_)

    def _because(self) -> str:
        return " (no more than features)"


def known_pairs_attack(known: Any, published: Any, targets: Any) -> Floats:
    """Return estimates of unknown rows from their z, for an attacker who knows some rows with their z and no matrix.

    Args:
        known: rows that the attacker knows.
        published: what was published of them, in the same order.
        targets: what was published of the rows that the attacker wants.

    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [5.0, 3.0]])
    >>> z = rows @ np.array([[3.0, 1.0], [1.0, 2.0]])
    >>> known_pairs_attack(rows[:3], z[:3], z[3:]).round(6).tolist()
    [[5.0, 3.0]]
    """
    rows, seen, wanted = (as_numbers(part, what="rows") for part in (known, published, targets))
    if rows.ndim != 2 or seen.ndim != 2 or wanted.ndim != 2 or len(rows) != len(seen) or len(rows) < 2:
        raise ParameterError(
            "The known rows and what was published of them do not belong together.",
            fix="give two or more known rows, and one row of z for each of them, in the same order.",
        )
    # The attacker does not know where rows are measured from, and takes differences from means.
    middle, shift = rows.mean(axis=0), seen.mean(axis=0)
    matrix = np.linalg.lstsq(rows - middle, seen - shift, rcond=None)[0]
    return np.asarray(middle + (wanted - shift) @ np.linalg.pinv(matrix))


def _normal(source: RandomSource, shape: tuple[int, int]) -> Floats:
    """Return standard normal numbers; nothing rests on their exact law."""
    words = source.words(shape[0] * shape[1]) >> np.uint64(11)
    return np.asarray(special.ndtri((words.astype(np.float64) + 0.5) * 2.0**-53)).reshape(shape)
