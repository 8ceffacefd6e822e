"""What the page about columns shows of each: choices in plain words, and which facts are guesses."""

from __future__ import annotations

from typing import Any

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
        "categories": "\n".join(_written(value) for value in facts.get("categories") or ()),
        "subject": bool(facts.get("subject")),
        "guesses": [FACTS[fact] for fact in FACTS if fact in guessed],
        "guessed": guessed,
        "evidence": facts.get("evidence", ""),
    }


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
