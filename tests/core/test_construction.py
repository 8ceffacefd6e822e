from __future__ import annotations

import dataclasses
import importlib
import inspect
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import cloister
from cloister.core.construction import construct

SOURCES = Path(cloister.__file__).parent


def _classes() -> list[type]:
    """Return the dataclasses that write their own constructor and hand what they are given to `construct`."""
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        if "construct(" in path.read_text("utf-8") and path.stem != "construction":
            name = ".".join(("cloister", *path.relative_to(SOURCES).with_suffix("").parts))
            members = vars(importlib.import_module(name)).values()
            found += [item for item in members if inspect.isclass(item) and item.__module__ == name]
    return [item for item in found if "construct" in getattr(getattr(item.__init__, "__code__", None), "co_names", ())]


def _default(field: dataclasses.Field[Any]) -> object:
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


@pytest.mark.parametrize("cls", _classes(), ids=lambda cls: cls.__name__)
def test_a_written_constructor_takes_the_fields_of_its_class(cls: Any) -> None:
    taken = dict(list(inspect.signature(cls.__init__).parameters.items())[1:])
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    assert set(taken) == set(fields)
    for name, field in fields.items():
        assert taken[name].default == _default(field), name
        assert (taken[name].kind is inspect.Parameter.KEYWORD_ONLY) == field.kw_only, name


def test_there_are_such_classes() -> None:
    assert {"Budget", "PureDP", "Laplace", "Column"} <= {cls.__name__ for cls in _classes()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    per_day: Fraction

    def __init__(self, *, per_day: float | Fraction) -> None:
        construct(self, per_day=per_day)

    def __post_init__(self) -> None:
        object.__setattr__(self, "per_day", Fraction(self.per_day))


def test_what_is_given_is_converted() -> None:
    rate = Rate(per_day=0.5)
    assert rate.per_day == Fraction(1, 2)
    assert dataclasses.replace(rate, per_day=2) == Rate(per_day=Fraction(2))
