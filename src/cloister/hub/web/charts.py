"""Charts of the pages, as SVG from the plotting package, with the same numbers as text beside them."""

from __future__ import annotations

from typing import Any

from cloister.core.exact import number
from cloister.plotting import lines

_FEWEST = 3


def burn_down(account: dict[str, Any]) -> str:
    """Return how a budget was spent, charge by charge, or nothing where there is nothing to see yet."""
    measure = "epsilon" if "epsilon" in account["budget"] else "rho"
    left: list[tuple[float, float]] = []
    budget = number(account["budget"][measure])
    for place, item in enumerate(account["items"]):
        budget = number(item["budget"][measure]) if item["kind"] in ("open", "raise") else budget
        left.append((float(place), float(budget - number(item["spent"][measure]))))
    if len(left) < _FEWEST:
        return ""
    return lines({"left": left}, title="What is left of the budget", x="entries in the ledger", y=measure).to_svg(
        owner="burn"
    )
