"""What the page for questions without SQL offers: only what the columns and the policy allow, and public values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cloister.hub.web.wording import COMPARISONS, MEASURES

MOST_GROUPS = 200
_EQUALITY = ("=", "!=")


def parts_of(columns: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the measures, groups and conditions that can be chosen, from a dataset's public description."""
    known = list(columns)
    return {
        "kinds": MEASURES,
        "measures": [column["name"] for column in known if "measure" in column["uses"] and _is_number(column)],
        "groups": [
            {"name": column["name"], "size": _size(column)}
            for column in known
            if "group_by" in column["uses"] and 0 < _size(column) <= MOST_GROUPS
        ],
        "filters": [_filter(column) for column in known if "filter" in column["uses"]],
    }


def _filter(column: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a column is compared: a choice of its public values, a number within its bounds, a date, or a text."""
    categories, bounds = column["categories"], column["bounds"]
    kind = "text"
    if categories:
        kind = "choice"
    elif column["kind"] == "datetime":
        kind = "date"
    elif _is_number(column):
        kind = "number"
    comparable = COMPARISONS if kind in ("number", "date") else {sign: COMPARISONS[sign] for sign in _EQUALITY}
    return {
        "name": column["name"],
        "kind": kind,
        "comparisons": comparable,
        "values": [(_type(value), _written(value)) for value in categories or ()],
        "bounds": [str(end)[:10] if kind == "date" else end for end in bounds] if bounds else None,
    }


def _is_number(column: Mapping[str, Any]) -> bool:
    return column["kind"] == "numeric" and bool(column["bounds"])


def _size(column: Mapping[str, Any]) -> int:
    """Return how many groups a column gives; 0 where its values are not public or not whole numbers."""
    if column["categories"]:
        return len(column["categories"])
    bounds = column["bounds"]
    if column["kind"] != "numeric" or not bounds or not all(isinstance(end, int) for end in bounds):
        return 0
    return int(bounds[1] - bounds[0] + 1) if column["storage"] in (None, "integer") else 0


def _type(value: object) -> str:
    return "boolean" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
