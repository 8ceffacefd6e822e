"""Noise and selection with exact guarantees.

Numbers: `DiscreteLaplace` and `DiscreteGaussian` for counts, `Laplace`, `Gaussian`, `ApproximateLaplace`, `Staircase`,
`ClampedLaplace`, `TruncatedLaplace` and `VectorLaplace` for reals. Choices: `Select`. Many yes/no: `SparseVector`.
One bit: `BinaryRandomizedResponse`; one of several categories: `transitions`. `sensitivity` says how far neighbors can
move a query.
"""

from cloister.mechanisms import refusals, sensitivity, transitions
from cloister.mechanisms.base import AdditiveNoise, Mechanism, NoisyAnswer, Selection, mechanisms
from cloister.mechanisms.gaussian import DiscreteGaussian, Gaussian
from cloister.mechanisms.laplace import (
    ApproximateLaplace,
    ClampedLaplace,
    DiscreteLaplace,
    Laplace,
    TruncatedLaplace,
    approximate_laplace_scale,
    truncated_laplace_scale,
)
from cloister.mechanisms.randomized_response import BinaryRandomizedResponse, randomized_response_epsilon
from cloister.mechanisms.selection import Select, select
from cloister.mechanisms.sparse_vector import SparseVector, ThresholdAnswers
from cloister.mechanisms.staircase import Staircase
from cloister.mechanisms.vector_laplace import VectorLaplace

__all__ = [
    "AdditiveNoise",
    "ApproximateLaplace",
    "BinaryRandomizedResponse",
    "ClampedLaplace",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "NoisyAnswer",
    "Select",
    "Selection",
    "SparseVector",
    "Staircase",
    "ThresholdAnswers",
    "TruncatedLaplace",
    "VectorLaplace",
    "approximate_laplace_scale",
    "mechanisms",
    "randomized_response_epsilon",
    "refusals",
    "select",
    "sensitivity",
    "transitions",
    "truncated_laplace_scale",
]
