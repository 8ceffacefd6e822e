"""Forms from the parameters of a service, and tables from what it gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloister.hub.services.registry import Parameters


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


def fields_of(parameters: type[Parameters]) -> list[Field]:
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
    resolved = _resolved(facts, definitions)
    default = facts.get("default")
    choices = tuple(str(item) for item in resolved.get("enum", ()))
    return Field(
        name=name,
        title=str(facts.get("title") or name),
        help=str(facts.get("description", "")),
        kind="choice" if choices else _kind(resolved),
        is_required=is_required,
        value=_written(default),
        choices=choices,
    )


def _written(default: Any) -> str:
    """Return a default as people type it."""
    if default is None:
        return ""
    if isinstance(default, list | tuple):
        return ", ".join(str(item) for item in default)
    return str(default).lower() if isinstance(default, bool) else str(default)


def _resolved(facts: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in facts:
        return dict(definitions.get(str(facts["$ref"]).rpartition("/")[2], {}))
    options = [item for item in facts.get("anyOf", ()) if item.get("type") != "null"]
    return _resolved(options[0], definitions) if options else facts


def _kind(facts: dict[str, Any]) -> str:
    if facts.get("type") == "string" and int(facts.get("maxLength", 0)) > 1_000:
        return "text"
    known = {"boolean": "boolean", "integer": "number", "number": "number", "array": "list", "object": "json"}
    return known.get(str(facts.get("type")), "line")
