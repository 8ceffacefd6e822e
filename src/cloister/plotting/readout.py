"""The numbers of a Vega-Lite specification as a table: the fields that its tooltips show, under their titles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def table_of(specification: dict[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
    """Return headings and rows; a specification without tooltips is shown with all fields of its data."""
    data = specification.get("data")
    rows = data.get("values", []) if isinstance(data, dict) else []
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    titles = next(_tooltips(specification), None) or {field: field for row in rows for field in row}
    return tuple(titles.values()), tuple(tuple(_readable(row.get(field)) for field in titles) for row in rows)


def _tooltips(part: object) -> Iterator[dict[str, str]]:
    """Yield, for each mark that has a tooltip, its fields with their titles."""
    if isinstance(part, dict):
        shown = part.get("tooltip")
        if isinstance(shown, list) and all(isinstance(item, dict) and "field" in item for item in shown):
            yield {str(item["field"]): _title(item) for item in shown}
        part = list(part.values())
    if isinstance(part, list):
        for child in part:
            yield from _tooltips(child)


def _title(item: dict[str, Any]) -> str:
    """Return the title of a field; a backslash in it is doubled for Vega-Lite, see `style.tooltip`."""
    return str(item.get("title") or item["field"]).replace(r"\\", "\\")


def _readable(value: object) -> object:
    """Return a value in one line; parts of a specification are not numbers."""
    if isinstance(value, str):
        return value.replace("\n", " ")
    return value if value is None or isinstance(value, bool | int | float) else str(value)
