"""Methods that textbooks offer and cloister refuses, each with the reason and what to use instead."""

from __future__ import annotations

from typing import NoReturn

from cloister.errors import UnsafeMechanismError


def wishart(*_: object, **__: object) -> NoReturn:
    """Refuse the Wishart mechanism.

    Its noise is a positive semi-definite matrix, so for two neighbors some outputs are possible under one and
    impossible under the other: no epsilon bounds that.
    """
    raise UnsafeMechanismError(
        "Wishart noise on a covariance matrix is not differentially private: some outputs rule a neighbor out.",
        fix="add symmetric Gaussian noise to the matrix (mechanisms.Gaussian with the L2 sensitivity).",
    )


def redraw_laplace(*_: object, **__: object) -> NoReturn:
    """Refuse redrawing ordinary Laplace noise until the answer lies in bounds."""
    raise UnsafeMechanismError(
        "Redrawing Laplace noise until it lies in bounds can cost up to twice the epsilon that was asked for.",
        fix="use mechanisms.ClampedLaplace, or mechanisms.TruncatedLaplace, which has the scale that this needs.",
    )


def forced_response(*_: object, **__: object) -> NoReturn:
    """Refuse randomized response whose second coin always says yes."""
    raise UnsafeMechanismError(
        "If one coin face forces a yes, every no is certainly true: epsilon is infinite.",
        fix="use mechanisms.BinaryRandomizedResponse with a second coin strictly between 0 and 1.",
    )


def floating_point_laplace(*_: object, **__: object) -> NoReturn:
    """Refuse Laplace noise from floating-point inversion."""
    raise UnsafeMechanismError(
        "Floating-point Laplace noise shows the private value in its low-order bits.",
        fix="use mechanisms.Laplace or mechanisms.DiscreteLaplace, which sample exactly on a lattice.",
    )
