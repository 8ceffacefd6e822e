"""What forms show: fields from the parameters of a service, parts of a question without SQL, columns of a schema.

A question without SQL offers only what the columns and the policy allow, and public values. The page about columns
shows choices in plain words, and which facts are guesses. Also tables from what a service gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cloister.hub.services.registry import ServiceParameters
from cloister.hub.web.display import COMPARISONS, MEASURES

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
        "values": [(_type(value), _format_value(value)) for value in categories or ()],
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


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


ROLES = {
    "identifier": "names a person",
    "quasi": "others may know it",
    "sensitive": "sensitive",
    "insensitive": "harmless",
}
KINDS = {
    "numeric": "numbers",
    "nominal": "categories without order",
    "ordinal": "categories in order",
    "datetime": "dates or times",
    "text": "free text",
    "set": "sets of values",
    "location": "places on a map",
}
STORAGE = {
    "integer": "whole numbers",
    "real": "decimal numbers",
    "boolean": "true or false",
    "text": "text",
    "date": "dates",
    "timestamp": "dates with time",
}
FACTS = {
    "role": "what it gives away",
    "kind": "kind of values",
    "storage": "how it is read",
    "bounds": "smallest and largest",
    "categories": "values",
    "subject": "who a row is about",
}


def rows_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row per column that is stored, with what the schema says about it so far."""
    columns = found["document"]["columns"]
    return [_row(name, stored, columns.get(name, {})) for name, stored in found["types"].items()]


def _row(name: str, stored: str, facts: dict[str, Any]) -> dict[str, Any]:
    guessed = set(facts.get("guessed", ()))
    return {
        "name": name,
        "facts": facts,
        "stored": stored,
        "role": facts.get("role", "quasi"),
        "kind": facts.get("kind", "nominal"),
        "storage": facts.get("storage") or stored,
        "bounds": [str(end) for end in facts.get("bounds") or ("", "")],
        "categories": "\n".join(_format_value(value) for value in facts.get("categories") or ()),
        "subject": bool(facts.get("subject")),
        "guesses": [FACTS[fact] for fact in FACTS if fact in guessed],
        "guessed": guessed,
        "evidence": facts.get("evidence", ""),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a form."""

    name: str
    title: str
    help: str
    kind: str
    is_required: bool
    value: str
    choices: tuple[str, ...] = ()


def fields_of(parameters: type[ServiceParameters]) -> list[Field]:
    """Return a field for each parameter, in their order."""
    schema = parameters.model_json_schema()
    required = set(schema.get("required", ()))
    return [
        _field(name, facts, schema.get("$defs", {}), is_required=name in required)
        for name, facts in schema.get("properties", {}).items()
    ]


def table_of(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the columns and rows of a result that is a table of answers, or None."""
    columns = (result or {}).get("document", {}).get("columns")
    if not isinstance(columns, list) or not all(isinstance(item, dict) and "values" in item for item in columns):
        return None
    margins = [(item.get("margin") or {}).get("half_widths") for item in columns]
    rows = [
        [
            {"value": item["values"][place], "margin": None if margin is None else margin[place]}
            for item, margin in zip(columns, margins, strict=True)
        ]
        for place in range(len(columns[0]["values"]) if columns else 0)
    ]
    return {
        "names": [str(item["name"]) for item in columns],
        "are_numbers": [_holds_numbers(item) for item in columns],
        "rows": rows,
        "has_margins": any(margin is not None for margin in margins),
    }


def _holds_numbers(column: dict[str, Any]) -> bool:
    given = [value for value in column["values"] if value is not None]
    return bool(given) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in given)


def _field(name: str, facts: dict[str, Any], definitions: dict[str, Any], *, is_required: bool) -> Field:
    resolved = _resolve_reference(facts, definitions)
    default = facts.get("default")
    choices = tuple(str(item) for item in resolved.get("enum", ()))
    return Field(
        name=name,
        title=str(facts.get("title") or name),
        help=str(facts.get("description", "")),
        kind="choice" if choices else _kind(resolved),
        is_required=is_required,
        value=_format_default(default),
        choices=choices,
    )


def _format_default(default: Any) -> str:
    """Return a default as people type it."""
    if default is None:
        return ""
    if isinstance(default, list | tuple):
        return ", ".join(str(item) for item in default)
    return _format_value(default)


def _resolve_reference(facts: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in facts:
        return dict(definitions.get(str(facts["$ref"]).rpartition("/")[2], {}))
    options = [item for item in facts.get("anyOf", ()) if item.get("type") != "null"]
    return _resolve_reference(options[0], definitions) if options else facts


def _kind(facts: dict[str, Any]) -> str:
    if facts.get("type") == "string" and int(facts.get("maxLength", 0)) > 1_000:
        return "text"
    known = {"boolean": "boolean", "integer": "number", "number": "number", "array": "list", "object": "json"}
    return known.get(str(facts.get("type")), "line")
