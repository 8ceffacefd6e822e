"""The exact law of a device, read off its own code, and the epsilon of that law."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cloister.core import exact
from cloister.local import Protocol
from cloister.testing.local_laws import device_law, worst_ratio

Law = dict[bytes, Fraction]


def law(protocol: Protocol, code: Any) -> Law:
    """The probability of every report for one code."""
    return device_law(protocol, code)


def assert_epsilon_is_exact(protocol: Protocol, laws: list[Law]) -> None:
    """The law of the device has the epsilon asked for, to a billionth, never above."""
    assert all(sum(each.values()) == 1 for each in laws)
    worst = worst_ratio(laws)
    assert worst is not None
    assert worst == protocol.likelihood_ratio
    low, high = exact.log_bounds(worst)
    assert low <= protocol.epsilon
    assert high >= protocol.epsilon - Fraction(1, 10**9)
