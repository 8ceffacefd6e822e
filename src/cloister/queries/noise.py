"""The noise of a measurement: exact, on whole steps, and its law when a step is worth something."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from cloister.mechanisms.step_noise import GaussianSteps, LaplaceSteps
from cloister.queries.uncertainty import Noise

__all__ = ["GaussianNoise", "LaplaceNoise"]


@dataclass(frozen=True, slots=True)
class LaplaceNoise(LaplaceSteps):
    """Discrete Laplace noise on whole numbers."""

    def law(self, unit: Fraction) -> Noise:
        """Return the law of the noise when a step is worth ``unit``."""
        return Noise("laplace", float(self.scale * unit), float(unit))


@dataclass(frozen=True, slots=True)
class GaussianNoise(GaussianSteps):
    """Discrete Gaussian noise on whole numbers, or on a finer lattice."""

    def law(self, unit: Fraction) -> Noise:
        """Return the law of the noise when a step is worth ``unit``."""
        return Noise("gaussian", math.sqrt(self.squared_sigma) * float(unit), float(unit / self.refinement))
