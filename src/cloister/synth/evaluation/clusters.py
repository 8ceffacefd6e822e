"""Do synthetic rows form the same clusters? K-means on both tables, compared on real rows that neither was fitted on.

Clusters are compared by how they divide the same held-out real rows, never by matching rows of the two tables: a
synthetic row belongs to no real one. For comparison, the clusters of one half of the real rows are held against those
of the other half: more agreement cannot be expected.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cloister.core.random import RandomSource
from cloister.errors import DataError
from cloister.synth.evaluation.encoding import Features
from cloister.synth.evaluation.models import undisturbed
from cloister.synth.evaluation.tables import Tables

__all__ = ["Clusters", "measure_clusters"]

_RESTARTS = 10
_TESTED = 0.3
_MOST_ROWS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """How alike the clusters of real and of synthetic rows divide held-out real rows.

    Attributes:
        clusters: how many.
        adjusted_rand: 1 for the same division, about 0 for unrelated ones.
        mutual_information: normalized, 1 for the same division.
        control_adjusted_rand: the same between two halves of the real rows.
        control_mutual_information: the same between two halves of the real rows.
        tested: how many rows were divided.
    """

    clusters: int
    adjusted_rand: float
    mutual_information: float
    control_adjusted_rand: float
    control_mutual_information: float
    tested: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


@undisturbed()
def measure_clusters(tables: Tables, source: RandomSource, *, clusters: int, most: int, seed: int = 0) -> Clusters:
    """Find clusters in both tables and compare them.

    Raises:
        DataError: if there are fewer rows than clusters.
        MissingExtraError: if scikit-learn is not installed.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    most = min(most, _MOST_ROWS)
    features = Features(tables, tuple(range(len(tables.names))))
    real, synthetic = (rows.some(rows.total, source) for rows in (tables.real, tables.synthetic))
    if tables.holdout is None:
        tested = int(len(real) * _TESTED)
        test, real = real[:tested], real[tested:]
    else:
        test = tables.holdout.some(most, source)
    real, synthetic, shown = real[:most], synthetic[:most], features.distances(test[:most])
    half = len(real) // 2
    parts = [features.distances(codes) for codes in (real, synthetic, real[:half], real[half:])]
    if any(len(np.unique(part, axis=0)) < clusters for part in parts) or not len(shown):
        raise DataError(
            f"There are too few different rows for {clusters} clusters.",
            fix="ask for fewer clusters, or give more rows.",
        )
    labels = [KMeans(clusters, n_init=_RESTARTS, random_state=seed).fit(part).predict(shown) for part in parts]
    return Clusters(
        clusters=clusters,
        adjusted_rand=float(adjusted_rand_score(labels[0], labels[1])),
        mutual_information=float(normalized_mutual_info_score(labels[0], labels[1])),
        control_adjusted_rand=float(adjusted_rand_score(labels[2], labels[3])),
        control_mutual_information=float(normalized_mutual_info_score(labels[2], labels[3])),
        tested=len(shown),
    )
