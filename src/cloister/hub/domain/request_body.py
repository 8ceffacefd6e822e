"""What every request body and every set of parameters has in common: nothing unknown, and no truth value as a number.

Python takes True for 1, and so does pydantic: a budget of ``true`` would be epsilon 1, and a limit of ``true`` one row.
"""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

__all__ = ["RequestBody"]


class RequestBody(BaseModel):
    """Values that somebody sends, checked by the types of the fields."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_values(cls, value: Any, info: ValidationInfo) -> Any:  # whatever somebody sent
        kinds = set(_kinds(cls.model_fields[str(info.field_name)].annotation))
        if kinds & {bool, Any, object}:
            return value
        # The values inside of another model are looked at by that model, whose fields may be truth values.
        has_models = any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds)
        if isinstance(value, bool) or (not has_models and _holds_truth_value(value)):
            raise ValueError(
                "a truth value (true or false) is neither a number nor a text"
            )  # pydantic takes no TypeError
        return value


def _kinds(annotation: Any) -> list[Any]:
    """Return the types that an annotation is made of."""
    parts = get_args(annotation)
    return [annotation] if not parts else [kind for part in parts for kind in _kinds(part)]


def _holds_truth_value(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_truth_value(part) for part in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds_truth_value(part) for part in value)
    return isinstance(value, bool)
