"""The hybrid of Duchi's bit and the piecewise point: a public coin chooses between them.

Wang et al. (2019): piecewise with probability ``1 - exp(-epsilon / 2)`` above epsilon 0.61, always Duchi's bit below.
Its worst variance is never above that of either part, and above 0.61 it is the same for every number.

Privacy: claim epsilon-LDP. The coin does not depend on the number, and both parts have the epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import log
from typing import Any

import numpy as np

from cloister.core import exact
from cloister.core.exact import Number
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Integer, OutputSpace, Payload, report_error
from cloister.local._plausibility import Test
from cloister.local.domain import Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.numeric._bounds import STEPS, Floats
from cloister.local.numeric.base import MeanProtocol
from cloister.local.numeric.duchi import Bit
from cloister.local.numeric.piecewise import piecewise_window
from cloister.local.protocol import protocols

__all__ = ["SWITCH", "Hybrid"]

SWITCH = Fraction(61, 100)
"""The epsilon up to which Duchi's bit alone is best."""


@dataclass(frozen=True)
class _Parts(OutputSpace):
    """A part and its report: a bit in part 0, a cell in part 1, unless that is never chosen."""

    points: bool

    def check(self, payload: Payload) -> Payload:
        super().check(payload)
        is_point = payload["part"] == 1
        if not (np.where(is_point, self.points, payload["y"] <= 1)).all():
            raise report_error()
        return payload

    def parse(self, values: Any) -> Payload:  # JSON values
        return self.check(super().parse(values))


@protocols.register("hybrid")
class Hybrid(MeanProtocol):
    """Duchi's bit or a piecewise point, by a public coin: the smallest worst case for a mean at every epsilon.

    >>> protocol = Hybrid(bounds=(0, 100), epsilon=1)
    >>> reports = protocol.randomize([20, 35, 50] * 1000)
    >>> protocol.estimate(reports).reports
    3000
    """

    name = "hybrid"
    in_browsers = True

    def __init__(self, *, bounds: object = None, epsilon: Number, steps: object = STEPS) -> None:
        super().__init__(bounds=bounds, epsilon=epsilon, steps=steps)
        self.bit = Bit.of(self.epsilon, self.grid.steps)
        self.window = piecewise_window(self.epsilon, self.grid.steps)
        # The coin may be rounded either way: it is public, and both parts keep the epsilon by themselves.
        share = 1 - exact.exp_bounds(-self.epsilon / 2)[1] if self.epsilon > SWITCH else 0
        self.share = int(share * CERTAIN)
        self.output_space = _Parts(
            (Integer("part", 0, 1), Integer("y", 0, self.window.cells - 1)), points=self.share > 0
        )
        self._check_epsilon()

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the larger ratio of the parts that are ever chosen."""
        parts = [self.bit.likelihood_ratio, self.window.likelihood_ratio]
        return max(parts) if self.share else parts[0]

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: a toss which part, then the draws of that part."""
        part = draws.chances(self.share, len(codes))
        y = np.empty_like(codes)
        y[part] = self.window.slide(codes[part], draws)
        y[~part] = self.bit.toss(codes[~part], draws)
        return self.output_space.rows(part=part, y=y)

    def _places(self, payload: Payload) -> Floats:
        is_point = payload["part"] == 1
        places = np.empty(len(payload), dtype=np.float64)
        places[is_point] = self.window.places(payload["y"][is_point])
        places[~is_point] = self.bit.places(payload["y"][~is_point])
        return places

    def _step_variance(self, step: int) -> Fraction:
        share = Fraction(self.share, CERTAIN)
        return share * self.window.variance(step) + (1 - share) * self.bit.variance(step)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        share = Fraction(self.share, CERTAIN)
        return log(max((1 - share) * Fraction(self.bit.high, CERTAIN), share * self.window.likeliest))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        share, is_point = self.share / CERTAIN, 1
        yield partial(plausibility.parts, share=share)
        # The counts are among all reports, so that the coin's share multiplies the probabilities of its part.
        low, high = (ends * (1 - share) for ends in plausibility.bits_between(self.bit))
        yield partial(plausibility.bits, low=low, high=high, part=0)
        low, high = (ends * share for ends in plausibility.cells_between(self.window))
        yield partial(plausibility.cells, count=self.window.cells, low=low, high=high, part=is_point)

    def _params(self) -> dict[str, Any]:
        return {"piecewise_share": str(self.share), "duchi": self.bit.params(), "piecewise": self.window.params()}
