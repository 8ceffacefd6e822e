from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest

from cloister.errors import ParameterError
from cloister.synth import plausible_deniability


def test_syn_14_numbers_of_one_released_record() -> None:
    found = plausible_deniability(epsilon0=1, gamma=2, t=10, k=30)
    assert float(found.epsilon) == pytest.approx(1 + math.log(1.2), abs=1e-6)
    assert float(found.epsilon) == pytest.approx(1.182322, abs=1e-6)
    assert float(found.delta) == pytest.approx(2.06e-9, rel=1e-3)
    assert float(found.delta) >= math.exp(-20) * (1 - 1e-15)
    assert "each further one costs the same again" in found.explain()


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"t": 30}, "t from 1 to 29"),
        ({"t": 0}, "t"),
        ({"gamma": 1}, "gamma=2"),
        ({"epsilon0": 0}, "epsilon0"),
        ({"k": 1, "t": 1}, "k"),
    ],
)
def test_what_the_theorem_does_not_cover_is_refused(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        plausible_deniability(**{"epsilon0": 1, "gamma": 2, "t": 10, "k": 30, **options})


MAKES = ((0.5, 0.3, 0.2), (0.3, 0.5, 0.2), (0.25, 0.15, 0.6))
"""With which probability each of three kinds of records makes each of three outputs."""


def released(counts: tuple[int, ...], k: int, epsilon0: float, gamma: float) -> list[float]:
    """Return the probability of each released output, for so many records of each kind."""
    total = sum(counts)
    found = []
    for output in range(3):
        chance = 0.0
        for kind, many in enumerate(counts):
            made = MAKES[kind][output]
            alike = sum(
                other for place, other in enumerate(counts) if 1 / gamma <= made / MAKES[place][output] <= gamma
            )
            gap = (alike - k) * epsilon0
            passes = 1 - math.exp(-gap) / 2 if gap >= 0 else math.exp(gap) / 2
            chance += many / total * made * passes
        found.append(chance)
    return found


@pytest.mark.parametrize(("epsilon0", "gamma", "k"), [(1.0, 2.0, 4), (0.5, 1.5, 6), (2.0, 3.0, 3)])
def test_the_promise_holds_for_every_small_table(epsilon0: float, gamma: float, k: int) -> None:
    promises = [plausible_deniability(epsilon0=epsilon0, gamma=gamma, t=t, k=k) for t in range(1, k)]
    for counts in product(range(5), repeat=3):
        if sum(counts) < k:
            continue
        for kind in range(3):
            more = tuple(count + (place == kind) for place, count in enumerate(counts))
            here, there = (released(part, k, epsilon0, gamma) for part in (counts, more))
            for promise in promises:
                factor, delta = math.exp(promise.epsilon), float(promise.delta)
                for first, second in ((here, there), (there, here)):
                    over = sum(max(0.0, p - factor * q) for p, q in zip(first, second, strict=True))
                    assert over <= delta + 1e-12
