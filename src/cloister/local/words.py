"""Numbers as text for a person: no powers of ten, no more digits than the margin allows."""

from __future__ import annotations

import math

__all__ = ["number_text", "with_margin"]

_MOST_DECIMALS = 12
_LARGEST = 1e15


def number_text(value: float, digits: int = 4) -> str:
    """Return a number with some leading digits.

    >>> number_text(29831.4), number_text(0.0123449), number_text(-7.5), number_text(0)
    ('29,830', '0.01234', '-7.5', '0')
    """
    if not math.isfinite(value) or abs(value) >= _LARGEST or 0 < abs(value) < 10**-_MOST_DECIMALS:
        return f"{value:.{digits}g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    shown = f"{round(value, decimals):,.{min(max(decimals, 0), _MOST_DECIMALS)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def with_margin(value: float, margin: float) -> str:
    """Return a number and its margin, with the decimals that two digits of the margin have.

    >>> with_margin(29831.4, 2211.9), with_margin(7.0113, 0.2312)
    ('29,830 ± 2,200', '7.01 ± 0.23')
    """
    if not math.isfinite(margin) or not 10**-_MOST_DECIMALS < margin < _LARGEST or abs(value) >= _LARGEST:
        return f"{number_text(value)} ± {number_text(margin, 2)}"
    decimals = 1 - math.floor(math.log10(margin))
    places = min(max(decimals, 0), _MOST_DECIMALS)
    shown = max(decimals, -max(math.floor(math.log10(abs(value))) - 3, 0)) if value else decimals
    return f"{round(value, shown):,.{places}f} ± {round(margin, decimals):,.{places}f}"
