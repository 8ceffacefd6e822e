"""How numbers and short lists read in sentences: shares, estimates, prices, factors, counts, and words joined by "and".

Everything that people read is worded here, so that the same number reads the same in a report, on a page and in a
terminal. What a program reads is written by `cloister.core.exact` and by ``to_dict`` instead.

No wording claims more than is so. A share is 0% or 100% only if it is exactly that, and a bound is rounded to the side
on which it stays true.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np

Real: TypeAlias = "float | np.number[Any]"
Rounding: TypeAlias = Literal["nearest", "up", "down"]

_ROUNDINGS = {"nearest": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}
_AWAY: dict[Rounding, Rounding] = {"nearest": "nearest", "up": "down", "down": "up"}
_BEYOND = {"": "", "below": "above ", "above": "below "}
_LEAST, _MOST = Decimal("0.01"), Decimal("99.99")
_SMALLEST_WRITTEN, _LARGEST_WRITTEN = 1e-4, 1e15
_MOST_DECIMALS = 12


def percent(share: float | Fraction, *, digits: int = 3, rounding: Rounding = "nearest") -> str:
    """Return a share as a percentage that reads as nothing or as everything only if it is.

    Args:
        share: the share; an error relative to something may be above 1 or below 0.
        digits: how many leading digits are shown; near 100% it is two decimals instead.
        rounding: "up" for a bound from above, such as the chance that somebody may give an answer at most, and "down"
            for one from below: rounded to the nearest, it could claim more than is proven.

    >>> percent(0.35), percent(0.05472), percent(0.99949), percent(1), percent(0)
    ('35%', '5.47%', '99.95%', '100%', '0%')
    >>> percent(0.00004), percent(0.99999), percent(0.2311, digits=2, rounding="up")
    ('below 0.01%', 'above 99.99%', '24%')
    """
    if share < 0:
        word, _, number = percent(-share, digits=digits, rounding=_AWAY[rounding]).rpartition(" ")
        return f"{_BEYOND[word]}-{number}"
    if not math.isfinite(share):
        return f"{float(share)}%"
    # Of a float its shortest decimal is meant: 0.07 is 7%, and not a little more that would be rounded up to 7.1%.
    exactly = 100 * _decimal(share if isinstance(share, Fraction) else Fraction(repr(float(share))))
    if 0 < exactly < _LEAST:
        return "below 0.01%"
    if _MOST < exactly < 100:
        return "above 99.99%"
    kept = Context(prec=max(digits, 4) if 99 < exactly < 100 else digits, rounding=_ROUNDINGS[rounding])
    rounded = kept.plus(exactly)
    return f"{_without_zeros(f'{rounded:,f}')}%" if rounded != 100 or exactly == 100 else "above 100%"


def format_points(
    difference: float | Fraction, *, digits: int = 3, rounding: Rounding = "nearest", signed: bool = False
) -> str:
    """Return a difference of shares in percentage points, rounded as `percent` rounds the shares themselves.

    The word "points" is left to the sentence, which may state two of them.

    >>> format_points(0.0345), format_points(0.25, signed=True), format_points(-0.00706, digits=2, signed=True)
    ('3.45', '+25', '-0.71')
    """
    word, _, number = percent(difference, digits=digits, rounding=rounding).removesuffix("%").rpartition(" ")
    plus = "+" if signed and difference > 0 else ""
    return f"{word} {plus}{number}".lstrip()


def format_number(value: Real, *, digits: int = 4) -> str:
    """Return a number with some leading digits, thousands apart; what stands before the point is never rounded.

    >>> format_number(30162), format_number(0.05472), format_number(12345.678), format_number(0.5)
    ('30,162', '0.05472', '12,346', '0.5')
    """
    if _is_whole(value):
        return f"{int(value):,}"
    size = abs(float(value))
    if not math.isfinite(value) or size >= _LARGEST_WRITTEN or 0 < size < _SMALLEST_WRITTEN:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size))) if size else 0
    return _without_zeros(f"{value:,.{decimals}f}")


def format_estimate(value: Real, margin: float | None) -> str:
    """Return a number with the decimals that two digits of its margin of error have; a whole one in full.

    >>> format_estimate(47.312, 1.92), format_estimate(1234.5678, 33.3), format_estimate(1234, 0.5)
    ('47.3', '1,235', '1,234')
    """
    if _is_whole(value):
        return f"{int(value):,}"
    if not margin or not math.isfinite(margin):
        return format_number(value, digits=6)
    margin = abs(margin)
    if not 1e-6 <= max(abs(float(value)), margin) < _LARGEST_WRITTEN:
        return f"{value:.3g}"
    decimals = 0 if float(margin).is_integer() else max(0, 1 - math.floor(math.log10(margin)))
    return f"{value:,.{min(decimals, _MOST_DECIMALS)}f}"


def format_with_margin(value: Real, margin: float) -> str:
    """Return a number and its margin of error.

    >>> format_with_margin(1247.318, 12.4), format_with_margin(0.1234567, 0.00213)
    ('1,247 ± 12', '0.1235 ± 0.0021')
    """
    return f"{format_estimate(value, margin)} ± {format_estimate(float(margin), margin)}"


def format_parameter(value: float | Fraction) -> str:
    """Return a number of a promise or a price in at most six digits, a whole one in all of them.

    >>> format_parameter(Fraction(1, 3)), format_parameter(1e-6), format_parameter(1234567)
    ('0.333333', '1e-06', '1234567')
    """
    if isinstance(value, int):
        return str(value)
    digits = _decimal(Fraction(value), Context(prec=6))
    # Some budgets are beyond what a float can hold.
    return f"{float(digits):g}" if -300 < digits.adjusted() < 300 else f"{digits.normalize():e}"


def format_price(measure: str, amount: float | Fraction, delta: float | Fraction = 0) -> str:
    """Return an amount of privacy in words: a budget, a price, or what is left.

    >>> format_price("epsilon", 0.5, 1e-6), format_price("rho", Fraction(1, 10))
    ('epsilon 0.5, delta 1e-06', 'rho 0.1')
    """
    slack = f", delta {format_parameter(delta)}" if delta else ""
    return f"{measure} {format_parameter(amount)}{slack}"


def format_factor(factor: float | Fraction) -> str:
    """Return a factor that bounds something, with three digits, rounded up: what is printed must be true.

    What exceeds three digits by less than one part in 10**12 is left off: so far does the exponential of a stated
    epsilon, itself rounded up, exceed the round factor that was meant.

    >>> format_factor(1.2840254), format_factor(1.0049), format_factor(Fraction(3)), format_factor(22026.5)
    ('1.29', '1.01', '3.00', '22,100')
    """
    meant = Fraction(factor) * (1 - Fraction(1, 10**12))
    rounded = _decimal(meant, Context(prec=3, rounding=ROUND_CEILING))
    if rounded >= _LARGEST_WRITTEN:
        return f"{rounded:.2e}"
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:.{2 - rounded.adjusted()}f}"


def format_count(number: int, one: str, many: str | None = None) -> str:
    """Return how many there are of something, with its noun in the form that fits.

    >>> format_count(1, "report"), format_count(2000, "report"), format_count(2, "entry", "entries")
    ('1 report', '2,000 reports', '2 entries')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def join_words(items: Iterable[str], *, last: str = "and") -> str:
    """Return items as a sentence lists them.

    >>> join_words(["age"]), join_words(["age", "sex"]), join_words(["age", "sex", "zip"], last="or")
    ('age', 'age and sex', 'age, sex or zip')
    """
    *first, final = [*items] or [""]
    return f"{', '.join(first)} {last} {final}" if first else final


_SPOKEN_AS_CONSONANTS = ("uni", "una", "use", "usu", "one", "once", "eu")


def a_or_an(noun: str) -> str:
    """Return a noun with its article.

    >>> a_or_an("sum"), a_or_an("epsilon"), a_or_an("unit")
    ('a sum', 'an epsilon', 'a unit')
    """
    sounds_like_a_vowel = noun[:1].lower() in "aeiou" and not noun.lower().startswith(_SPOKEN_AS_CONSONANTS)
    return f"{'an' if sounds_like_a_vowel or noun.lower().startswith('hour') else 'a'} {noun}"


def _decimal(value: Fraction, context: Context | None = None) -> Decimal:
    return (context or Context(prec=40)).divide(Decimal(value.numerator), Decimal(value.denominator))


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral)


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
