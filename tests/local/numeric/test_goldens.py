from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.local import Duchi, DuchiVector, Piecewise, SquareWave, recommend_numeric
from cloister.testing import check_golden, load_goldens
from tests.local.numeric.helpers import words

FOLDER = Path(__file__).parents[2] / "golden" / "local" / "numeric"
UNIT = (-1, 1)


def _variances(*, epsilon: float, values: list[float]) -> list[float]:
    return [Piecewise(bounds=UNIT, epsilon=epsilon).variance(value) for value in values]


def _readings(*, value: float, draws: list[list[float]]) -> list[float]:
    protocol = Piecewise(bounds=UNIT, epsilon=2 * math.log(3))
    reports = [protocol.randomize(value, random_state=words(*pair)) for pair in draws]
    return [float(protocol.debias(report)[0]) for report in reports]


def _sizes(*, epsilon: float, dimensions: list[int]) -> list[float]:
    return [float(DuchiVector(bounds=[UNIT] * count, epsilon=epsilon).size) for count in dimensions]


def _printed_duchi(*, what: str, dimensions: list[int]) -> list[float]:
    return [_printed_duchi_one(what, count) for count in dimensions]


def _printed_duchi_one(what: str, d: int) -> float:
    """Enumerate the cube around the corner (1, ..., 1), which a vector of upper bounds is rounded to."""
    corners = list(product((-1, 1), repeat=d))
    agree = [corner for corner in corners if sum(corner) > 0]
    others = [corner for corner in corners if sum(corner) <= 0]
    chance = math.e / (math.e + 1)
    if what == "epsilon":
        return math.log(chance / len(agree) / ((1 - chance) / len(others)))
    overlapping = sum(sum(corner) >= 0 for corner in corners)
    size = overlapping * (math.e + 1) / ((math.e - 1) * math.comb(d - 1, d // 2))
    mean = chance * np.mean([corner[0] for corner in agree]) + (1 - chance) * np.mean([corner[0] for corner in others])
    return float(size * mean)


def _printed_piecewise(*, values: list[float]) -> list[float]:
    s = math.exp(0.5)
    end = (s + 1) / (s - 1)
    lefts = [(end + 1) * t / 2 - (end - 1) / 2 for t in values]
    pieces = [(left, left + end - 1) for left in lefts]
    return [s / (s + 1) * (l + r) / 2 + ((l - end) / 2 + (r + end) / 2) / 2 / (s + 1) for l, r in pieces]  # noqa: E741


def _crossing(*, first: str, second: str, low: float, high: float) -> float:
    def difference(epsilon: float) -> float:
        variances = {name: variance for name, variance, _ in recommend_numeric(epsilon).alternatives}
        return variances[first] - variances[second]

    assert difference(low) * difference(high) < 0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if difference(low) * difference(middle) > 0 else (low, middle)
    return low


def _half_widths(*, epsilons: list[float]) -> list[float]:
    windows = [SquareWave(bounds=(0, 1), epsilon=epsilon).window for epsilon in epsilons]
    return [window.width / window.steps / 2 for window in windows]


FUNCTIONS = {
    "crossings": _crossing,
    "duchi_as_printed": _printed_duchi,
    "duchi_sizes": _sizes,
    "piecewise_as_printed": _printed_piecewise,
    "piecewise_readings": _readings,
    "piecewise_variances": _variances,
    "square_wave_half_widths": _half_widths,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    """LDP-10."""
    check_golden(golden, FUNCTIONS[golden.name])


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("t", [-1, -0.3, 0, 0.5, 1])
def test_variances_are_those_of_the_continuous_laws(epsilon: float, t: float) -> None:
    """LDP-10."""
    e, s = math.exp(epsilon), math.exp(epsilon / 2)
    size = (e + 1) / (e - 1)
    assert Duchi(bounds=UNIT, epsilon=epsilon).variance(t) == pytest.approx(size**2 - t**2, rel=1e-8)
    smooth = t**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
    assert Piecewise(bounds=UNIT, epsilon=epsilon).variance(t) == pytest.approx(smooth, rel=1e-7)


def test_bits_are_read_as_plus_or_minus_the_exact_size() -> None:
    protocol = Duchi(bounds=UNIT, epsilon=1)
    report = protocol.randomize(1, random_state=words(0.0))
    assert protocol.debias(report)[0] == pytest.approx(2.163953, abs=1e-6)
    assert float(Fraction(2**64, protocol.bit.high - protocol.bit.low)) == pytest.approx(protocol.debias(report)[0])
