from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import cloister as cl
from cloister.core.registry import Registry
from cloister.core.result import Result
from cloister.errors import InternalError, ParameterError


def test_members_are_found_by_name_in_order() -> None:
    family: Registry[str] = Registry("color")
    family.register("red")("r")
    family.register("green")("g")
    assert list(family) == ["red", "green"]
    assert dict(family.items()) == {"red": "r", "green": "g"}
    assert len(family) == 2
    assert family.get("green") == "g"


def test_unknown_names_get_a_hint() -> None:
    family: Registry[str] = Registry("color")
    family.register("green")("g")
    with pytest.raises(ParameterError, match='Did you mean "green"'):
        family.get("grene")


def test_a_name_is_taken_once() -> None:
    family: Registry[str] = Registry("color")
    family.register("red")("r")
    with pytest.raises(InternalError, match="report"):
        family.register("red")("again")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Five(Result):
    def __str__(self) -> str:
        return f"5, {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {"value": 5}


def test_a_result_prints_explains_and_exports_itself() -> None:
    result = _Five(guarantee=cl.PureDP(epsilon=0.2))
    assert str(result) == "5, epsilon = 0.2 per row"
    assert list(result.to_dict()) == ["schema", "value", "guarantee"]
    assert dict(result.summary())["promise"] == result.guarantee.explain()
