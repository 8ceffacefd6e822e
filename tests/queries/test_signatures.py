from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.errors import ParameterTypeError

METHODS = {
    name: method for name, method in inspect.getmembers(cl.PrivateTable, inspect.isfunction) if not name.startswith("_")
}
FREE = {"with_limit", "answer", "compile_query"}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_no_method_hides_what_it_takes(name: str) -> None:
    kinds = {parameter.kind for parameter in inspect.signature(METHODS[name]).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert inspect.Parameter.VAR_POSITIONAL not in kinds


@pytest.mark.parametrize("name", sorted(set(METHODS) - FREE))
def test_what_a_call_costs_is_in_its_signature(name: str) -> None:
    parameters = inspect.signature(METHODS[name]).parameters
    for word in ("epsilon", "delta", "rho"):
        assert parameters[word].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[word].default is None
        assert parameters[word].annotation == "Number | None"


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.count(epsilom=1),
        lambda t: t.sum("age", epsilom=1),
        lambda t: t.sql("SELECT COUNT(*) FROM data", epsilom=1),
        lambda t: t.top_k("sex", 1, epsilom=1),
        lambda t: t.preview("SELECT COUNT(*) FROM data", epsilom=1),
    ],
)
def test_a_misspelled_price_is_recognized(ask: Callable[[Any], object]) -> None:
    people = cl.open_table(pa.table({"age": [34, 51], "sex": ["F", "M"]}))
    private = cl.PrivateTable(people, budget=cl.Budget(epsilon=1))
    with pytest.raises(ParameterTypeError, match=r'no option "epsilom".* Did you mean "epsilon"') as caught:
        ask(private)
    assert "use epsilon, delta, rho" in str(caught.value)
    assert private.remaining == cl.Budget(epsilon=1)
