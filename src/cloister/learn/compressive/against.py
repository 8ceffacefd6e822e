"""Linear projections that keep a utility task and work against a privacy task: MDR and RUCA.

Neither is differentially private; see `base`. If the two labels depend on each other, hiding the one costs the other:
`association_` says by how much they do (Cramér's V), before anything is published.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.learn.compressive.base import LinearProjection, RatioProjection, listed, projections
from cloister.learn.compressive.ratios import Ratio, utility_cost_ratio, utility_privacy_ratio
from cloister.learn.compressive.scatter import association
from cloister.learn.rows import Floats

__all__ = ["MultiDiscriminantRatio", "UtilityCostRatio"]

Labels = dict[str, list[NDArray[np.int64]]]


@projections.register("multi_discriminant_ratio")
@dataclass(kw_only=True, eq=False, repr=False)
class MultiDiscriminantRatio(LinearProjection, RatioProjection):
    """The directions in which utility classes differ and privacy classes do not (MDR). Not differentially private.

    Args:
        n_components: how many numbers are published per row; None for one less than utility classes.
        rho: added to the diagonal of the denominator; None for a thousandth of the mean
            scatter between privacy classes.

    Attributes:
        association_: Cramér's V of the two labels, from 0 to 1: what hides one hides as much of the other.

    >>> rows, sick, sex = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]], [0, 0, 1, 1], [0, 1, 0, 1]
    >>> model = MultiDiscriminantRatio(rho=1).fit(rows, sick, privacy=sex)
    >>> model.eigenvalues_.round(6).tolist(), model.projection_.ravel().round(6).tolist(), model.association_
    ([4.0], [1.0, 0.0], 0.0)
    """

    uses: ClassVar[tuple[str, ...]] = ("utility", "privacy")
    learned: ClassVar[tuple[str, ...]] = listed(("association_",))

    rho: Any = None

    association_: float = field(init=False)

    def _ratio(self, rows: Floats, labels: Labels) -> Ratio:
        wanted, unwanted = labels["utility"][0], labels["privacy"][0]
        self.association_ = association(wanted, unwanted)
        return utility_privacy_ratio(rows, wanted, unwanted, rho=self.rho, width=self.n_features_in_)


@projections.register("utility_cost_ratio")
@dataclass(kw_only=True, eq=False, repr=False)
class UtilityCostRatio(LinearProjection, RatioProjection):
    """The directions of the largest utility for their scatter and their privacy cost (RUCA).

    Not differentially private. Several labels of either kind are columns of a table, or a mapping of names to labels.
    With all privacy weights 0 this is `DiscriminantComponents`; large ones lead to `MultiDiscriminantRatio`.

    Args:
        n_components: how many numbers are published per row; None for one less than classes, summed over
            utility labels.
        rho: added to the diagonal of the denominator; None for 2% of the largest scatter inside of classes.
        utility_weights: how much each utility label counts; one number, or one per label.
        privacy_weights: how much each privacy label counts; one number, or one per label.

    Attributes:
        association_: the largest Cramér's V of a utility and a privacy label, from 0 to 1.

    >>> rows, sick, sex = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]], [0, 0, 1, 1], [0, 1, 0, 1]
    >>> UtilityCostRatio(rho=1).fit(rows, sick, privacy=sex).eigenvalues_.round(6).tolist()
    [0.8]
    """

    uses: ClassVar[tuple[str, ...]] = ("utility", "privacy")
    takes_several: ClassVar[bool] = True
    learned: ClassVar[tuple[str, ...]] = listed(("association_",))

    rho: Any = None
    utility_weights: Any = 1.0
    privacy_weights: Any = 1.0

    association_: float = field(init=False)

    def _ratio(self, rows: Floats, labels: Labels) -> Ratio:
        wanted, unwanted = labels["utility"], labels["privacy"]
        self.association_ = max(association(one, other) for one in wanted for other in unwanted)
        return utility_cost_ratio(
            rows, wanted, unwanted, gains=self.utility_weights, costs=self.privacy_weights, rho=self.rho
        )
