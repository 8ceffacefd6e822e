"""What can be expected of a fit before it is paid: how much of what it learns would be noise.

Every plan says with how many rows its noise is as large as anything that the rows could show. With twice the rows it is
half of that. A fit on fewer rows would learn nothing, which is said before the ledger is charged. How many rows there
are is known of arrays to whoever holds them, and of tables only if a number was declared; else a million are assumed,
so that an epsilon is said to be too small if it is so for nearly every table.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from cloister.errors import PrivacyParameterWarning

__all__ = ["FitOutlook", "problem_of", "warn_if_hopeless"]

_MANY = 10**6
"""How many rows a table may well have, where nothing is said about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOutlook:
    """How large the noise of a fit is.

    Attributes:
        rows: with so many rows, the noise is as large as what it is compared with.
        what: what the noise is on.
        compared: what it is compared with.

    >>> outlook = FitOutlook(rows=200, what="a mean", compared="half of its public range")
    >>> outlook.error(1000)
    0.2
    >>> outlook.explain(50)
    'with 50 rows, the noise of a mean would be about 4 times half of its public range'
    >>> outlook.explain()
    'with about 200 rows, the noise of a mean would be as large as half of its public range; with ten times as many rows, a tenth of that'
    """  # noqa: E501  # the examples are as they are printed

    rows: float
    what: str
    compared: str

    def error(self, rows: int) -> float:
        """Return the noise to expect with a number of rows, in units of what it is compared with."""
        return self.rows / max(1, rows)

    def explain(self, rows: int | None = None) -> str:
        """Return the error to expect in words, for a number of rows or for any."""
        if rows is None:
            return (
                f"with about {_whole(self.rows)} rows, the noise of {self.what} would be as large as {self.compared}; "
                "with ten times as many rows, a tenth of that"
            )
        times = f"{self.error(rows):.2g} times " if self.error(rows) < 1000 else "more than 1,000 times "
        about = "about " if self.error(rows) < 1000 else ""
        return f"with {rows:,} rows, the noise of {self.what} would be {about}{times}{self.compared}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"rows": self.rows, "what": self.what, "compared": self.compared, "words": self.explain()}


TRIVIAL = {"classes": "naming the most frequent class each time", "number": "giving the same number each time"}
"""What a model must be better than, by what it predicts."""


def problem_of(outlook: FitOutlook | None, rows: int | None, *, target: str = "none") -> str | None:
    """Return that a fit would learn nothing, and which error to expect; nothing if it may learn something.

    Args:
        outlook: what the plan says; nothing for a fit that is free.
        rows: how many rows there are, if that is known.
        target: what is predicted: "classes", "number" or "none".
    """
    assumed = _MANY if rows is None else rows
    if outlook is None or outlook.error(assumed) < 1:
        return None
    problem = "epsilon is too small" if outlook.error(_MANY) >= 1 else "There are too few rows for this epsilon"
    worse = f" Expect worse predictions than from {TRIVIAL[target]}." if target in TRIVIAL else ""
    return (
        f"{problem} to learn anything: {outlook.explain(assumed)}. Use a larger epsilon, or more than "
        f"{_whole(outlook.rows)} rows.{worse}"
    )


def warn_if_hopeless(outlook: FitOutlook | None, rows: int | None, *, stacklevel: int, target: str = "none") -> None:
    """Warn of what `problem_of` returns.

    Args:
        outlook: as there.
        rows: as there.
        stacklevel: how far above the caller of this function the user is, as `warnings.warn` counts.
        target: as there.
    """
    problem = problem_of(outlook, rows, target=target)
    if problem is not None:
        warnings.warn(problem, PrivacyParameterWarning, stacklevel=stacklevel + 1)


def _whole(rows: float) -> str:
    """Return a number of rows in two digits."""
    return f"{float(f'{rows:.2g}'):,.0f}" if rows >= 1 else "1"
