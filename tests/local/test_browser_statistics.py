from __future__ import annotations

import importlib.resources
import math
from collections.abc import Callable, Hashable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cloister.testing.distributions import Distribution, categorical
from cloister.testing.statistics import fit
from tests.support import browser
from tests.support.local_reference import ALL, choice, numeric_records, truth

HERE = Path(__file__).parent
CLIENT = Path(str(importlib.resources.files("cloister"))) / "local" / "js"
FOLDERS = {"/tests/local/js": HERE / "js", "/src/cloister/local/js": CLIENT}

REPORTS = 100_000
FALSE_ALARM = 1e-11
"""Of each of eleven protocols; 10% of epsilon is seven standard deviations and more."""
DOMAIN = ["a", "b", "c", "d"]

Law = Callable[[float], Distribution]


class Sampled(NamedTuple):
    """A protocol, a value, the law of what is looked at in its reports, for any epsilon, and how it is looked at."""

    record: dict[str, Any]
    value: Any
    law: Law
    look: Callable[[Any], Hashable] = str


def _direct(epsilon: float) -> Distribution:
    growth = math.exp(epsilon)
    return categorical({str(y): (growth if y == 2 else 1) / (growth + 3) for y in range(4)})


def _bits(keep: Callable[[float], float], flip: Callable[[float], float], chosen: set[int]) -> Law:
    def law(epsilon: float) -> Distribution:
        ones = [keep(epsilon) if place in chosen else flip(epsilon) for place in range(4)]
        return categorical({text: _product(ones, text) for text in (f"{code:04b}" for code in range(16))})

    return law


def _product(ones: list[float], text: str) -> float:
    return math.prod(p if bit == "1" else 1 - p for p, bit in zip(ones, text, strict=True))


def _lie(epsilon: float) -> float:
    return 1 / (math.exp(epsilon) + 1)


def _hashed(epsilon: float) -> Distribution:
    told = math.exp(epsilon) / (math.exp(epsilon) + 2)
    return categorical({True: told, False: 1 - told})


def _hadamard(epsilon: float) -> Distribution:
    """The third answer's row has a one where an even number of the lowest two bits is set."""
    return categorical({str(y): (_lie(epsilon) if y % 4 in (1, 2) else 1 - _lie(epsilon)) / 4 for y in range(8)})


def _bit(epsilon: float) -> Distribution:
    """Nine tenths of the way up from the lowest coin to the highest one."""
    ones = 0.1 * _lie(epsilon) + 0.9 * (1 - _lie(epsilon))
    return categorical({"0": 1 - ones, "1": ones})


def _inside(params: dict[str, Any], epsilon: float) -> float:
    """Return the weight of a window whose cells are exp(epsilon) times as likely as the others."""
    weight = math.exp(epsilon) * params["window"] / params["steps"]
    return weight / (weight + 1)


def _thirds(params: dict[str, Any]) -> Law:
    def law(epsilon: float) -> Distribution:
        inside = _inside(params, epsilon)
        weights = {"below": (1 - inside) / 2, "window": inside, "above": (1 - inside) / 2}
        return categorical({f"{part} {third}": weights[part] / 3 for part in weights for third in range(3)})

    return law


def _third(params: dict[str, Any]) -> Callable[[int], str]:
    """Return a function from a cell to its third below, in or above the window of the middle."""
    half, window = params["steps"] // 2, params["window"]

    def look(y: int) -> str:
        if y < half:
            return f"below {3 * y // half}"
        return f"window {3 * (y - half) // window}" if y < half + window else f"above {3 * (y - half - window) // half}"

    return look


def _parts(params: dict[str, Any]) -> Law:
    share = int(params["piecewise_share"]) / ALL

    def law(epsilon: float) -> Distribution:
        inside = _inside(params["piecewise"], epsilon)
        bits = dict.fromkeys(("0", "1"), (1 - share) / 2)
        sides = dict.fromkeys(("below", "above"), share * (1 - inside) / 2)
        return categorical(bits | sides | {"window": share * inside})

    return law


def _part(params: dict[str, Any]) -> Callable[[list[int]], str]:
    third = _third(params["piecewise"])
    return lambda y: third(y[1]).split()[0] if y[0] else str(y[1])


def _categorical() -> list[Sampled]:
    half, prime = truth("1/2", 2), 2**31 - 1
    direct = choice("direct_encoding", DOMAIN, 1, {"truth": truth(1, 4)})
    answer = choice("randomized_response", ["no", "yes"], 1, {"truth": truth(1, 2)})
    symmetric = choice("symmetric_unary_encoding", DOMAIN, 1, {"keep": half, "flip": ALL - half}, bits=4)
    optimized = choice("optimized_unary_encoding", DOMAIN, 1, {"keep": ALL // 2, "flip": ALL - truth(1, 2)}, bits=4)
    several = choice("unary_set", DOMAIN, 4, {"keep": truth(1, 2), "flip": ALL - truth(1, 2), "most": 2}, bits=4)
    hadamard = choice("hadamard_response", DOMAIN, 1, {"order": 8, "truth": truth(1, 2)}, y=8)
    hashed = {"prime": prime, "buckets": 3, "truth": truth(1, 3)}
    hashing = choice("optimized_local_hashing", DOMAIN, 1, hashed, a=prime, b=prime, y=3)
    return [
        Sampled(direct, "c", _direct),
        Sampled(answer, "yes", lambda epsilon: categorical({"0": _lie(epsilon), "1": 1 - _lie(epsilon)})),
        Sampled(symmetric, "b", _bits(lambda epsilon: 1 - _lie(epsilon / 2), lambda epsilon: _lie(epsilon / 2), {1})),
        Sampled(optimized, "b", _bits(lambda _: 0.5, _lie, {1})),
        Sampled(
            several, ["b", "d"], _bits(lambda epsilon: 1 - _lie(epsilon / 4), lambda epsilon: _lie(epsilon / 4), {1, 3})
        ),
        Sampled(hadamard, "c", _hadamard),
        Sampled(hashing, "c", _hashed, lambda y: (2 * y[0] + y[1]) % prime % 3 == y[2]),
    ]


def _numeric() -> list[Sampled]:
    duchi, piecewise, wave, _ = numeric_records(("0", "100"), Fraction(1))
    *_, hybrid = numeric_records(("0", "100"), Fraction(2))
    return [
        Sampled(duchi, "90", _bit),
        Sampled(piecewise, "50", _thirds(piecewise["params"]), _third(piecewise["params"])),
        Sampled(wave, "50", _thirds(wave["params"]), _third(wave["params"])),
        Sampled(hybrid, "50", _parts(hybrid["params"]), _part(hybrid["params"])),
    ]


@pytest.mark.chromium
@pytest.mark.slow
@pytest.mark.statistical
def test_browser_reports_follow_their_law_and_refute_another_epsilon() -> None:
    sampled = [*_categorical(), *_numeric()]
    tasks = [{"record": each.record, "value": each.value} for each in sampled]
    outputs = browser.run_module(
        "/tests/local/js/sample.mjs",
        {"tasks": tasks, "count": REPORTS, "outputsOnly": True},
        folders=FOLDERS,
        timeout=300,
    )
    for each, reports in zip(sampled, outputs, strict=True):
        seen = [each.look(y) for y in reports]
        assert len(seen) == REPORTS
        epsilon = float(each.record["epsilon"])
        found = {scale: fit(seen, each.law(scale * epsilon)) for scale in (0.9, 1.0, 1.1)}
        told = f"{each.record['name']}: {found}"
        assert found[1.0].p_value >= FALSE_ALARM, told
        assert found[0.9].p_value < FALSE_ALARM, told
        assert found[1.1].p_value < FALSE_ALARM, told
