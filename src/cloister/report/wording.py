"""Text and numbers as every format shows them: nothing invisible, thousands apart, no more digits than help."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

from cloister.errors import ParameterTypeError
from cloister.plotting import inputs

NOTHING = "\N{EN DASH}"
"""How a missing value reads."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Control characters, surrogates, marks that turn text around, and code points that are no characters.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def clean(value: object, *, name: str = "text") -> str:
    r"""Return text without characters that a page could not show, or that would show another text than is there.

    >>> clean("one\r\ntwo\x00")
    'one\ntwo�'
    """
    if not isinstance(value, str):
        raise ParameterTypeError(f"{name} is not text.", fix=f'give {name} as text in quotes, such as "people".')
    return _UNPRINTABLE.sub(_REPLACEMENT, re.sub("\r\n?|\x0b|\x0c|\x85|\u2028|\u2029", "\n", value))


def one_line(value: object, *, name: str = "text") -> str:
    """Return clean text in one line."""
    return " ".join(clean(value, name=name).split())


def lines(values: object, *, name: str) -> tuple[str, ...]:
    """Return a sequence of clean texts."""
    return tuple(clean(value, name=f"an item of {name}") for value in several(values, name=name))


def several(values: object, *, name: str) -> tuple[object, ...]:
    """Return the items of a sequence; one text alone is refused, because its letters are not meant."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterTypeError(f"{name} is not a sequence.", fix=f"give {name} as a list.")
    return tuple(values)


def plain(value: object) -> str | int | float | None:
    """Return a value as text, a finite number or None; NumPy, Arrow and pandas values are taken as they are meant."""
    (found,) = inputs.items([value], name="value")
    match found:
        case None | bool():
            return {None: None, True: "yes", False: "no"}[found]
        case int():
            return found
        case float() | Fraction() | Decimal():
            return _finite(float(found))
        case datetime() | date():
            return inputs.text(found, width=80)
    return clean(found, name="a value")


def written(value: object) -> str:
    """Return a value as it reads in running text.

    >>> written(30162), written(0.0547), written(12345.678), written(0.5)
    ('30,162', '0.0547', '12,346', '0.5')
    """
    if value is None:
        return NOTHING
    if not isinstance(value, int | float):
        return str(value)
    return _digits(value).replace("-", "\N{MINUS SIGN}")


def percent(share: float) -> str:
    """Return a share as a percentage.

    >>> percent(0.35), percent(0.0547), percent(1), percent(0.00004), percent(0)
    ('35%', '5.5%', '100%', 'below 0.1%', '0%')
    """
    if 0 < share < 0.001:
        return "below 0.1%"
    shown = f"{100 * share:.1f}".removesuffix(".0")
    return f"{'99.9' if shown == '100' and share < 1 else shown}%"


def _digits(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if 1e-4 <= abs(value) < 1e15 or value == 0:
        decimals = (
            max(0, 4 - len(str(int(abs(value))))) if abs(value) >= 1 else 3 - math.floor(math.log10(abs(value or 1)))
        )
        text = f"{value:,.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.3g}"


def _finite(value: float) -> float | str:
    if math.isinf(value):
        return "∞" if value > 0 else "\N{MINUS SIGN}∞"
    return value
