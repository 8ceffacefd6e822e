"""What cl.anonymize refuses, in words that help and quote no cell, and what it gives back."""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.errors import (
    CloisterError,
    DataError,
    HierarchyError,
    LatticeTooLargeError,
    ParameterError,
    ParameterTypeError,
    SchemaError,
    UnknownColumnError,
    UnsatisfiableError,
)
from tests.anonymize.people import SCHEMA, columns, people

K3 = cl.KAnonymity(k=3)


def refusal(kind: type[CloisterError], table: Any = None, **options: Any) -> CloisterError:
    """Return the error of a call that must be refused; it may quote no cell of the table."""
    table = people() if table is None else table
    with pytest.raises(kind) as caught:
        cl.anonymize(table, **({"models": [K3]} | options))
    for cell in ("kiel", "angina", "p11", "n1", "secret"):
        assert cell not in str(caught.value)
    assert caught.value.fix
    return caught.value


def test_the_signature_is_that_of_the_function() -> None:
    assert "suppression_limit" in inspect.signature(cl.anonymize).parameters


def test_something_that_is_no_table_is_refused() -> None:
    assert "open_table" in refusal(ParameterTypeError, pa.table({"a": [1]})).fix


def test_an_empty_table_is_refused() -> None:
    empty = {name: pa.array([], pa.int64() if name in ("age", "pay") else pa.string()) for name in columns()}
    assert "open a table with data" in refusal(DataError, people(**empty)).fix


def test_a_hierarchy_that_misses_a_value_is_named_and_the_value_is_not() -> None:
    error = refusal(HierarchyError, people(city=["kiel", "secret place"] * 12))
    assert '"city" misses values' in error.problem
    assert "uncovered(values)" in error.fix


def test_a_value_under_two_parents_makes_no_hierarchy() -> None:
    with pytest.raises(HierarchyError, match="two parents"):
        Hierarchy.from_levels([("kiel", "north"), ("kiel", "south")])


def test_values_outside_declared_categories_are_refused() -> None:
    schema = SCHEMA.with_hierarchy("city", None).with_categories("city", ["kiel", "ulm"])
    assert "with_categories" in refusal(SchemaError, people(schema, city=["kiel", "secret place"] * 12)).fix


@pytest.mark.parametrize(
    ("model", "fix"),
    [
        (cl.KAnonymity(k=25), "use a k that is at most the number of rows, or have more data."),
        (cl.LDiversity("disease", l=4), "use l <= 3, or have more data."),
        (cl.LDiversity("disease", l=4, kind="frequency"), "use l <= 3, or have more data."),
        (cl.LDiversity("disease", l=4, kind="entropy"), "use l <= 3, or have more data."),
        (cl.LDiversity("disease", l=4, kind="recursive", c=2), "use a smaller l, or have more data."),
        (cl.LDiversity("disease", l=3, kind="recursive", c=1), "use c > 1, or have more data."),
        (cl.AlphaKAnonymity("disease", alpha="0.3", k=2), "use alpha >= 0.334, or have more data."),
        (cl.AlphaKAnonymity("disease", alpha=1, k=25), "use a k that is at most the number of rows"),
        (cl.PSensitivity("disease", p=4, k=4), "use p <= 3, or have more data."),
        (cl.PSensitivity("disease", p=2, k=25), "use a k that is at most the number of rows"),
    ],
)
def test_what_no_release_can_satisfy_says_which_model_and_what_would_do(model: Any, fix: str) -> None:
    error = refusal(UnsatisfiableError, models=[K3, model])
    assert model.brief() in error.problem
    assert fix in error.fix


@pytest.mark.parametrize("kind", ["frequency", "entropy"])
def test_the_advice_satisfies(kind: str) -> None:
    unlike = ["flu"] * 13 + ["cold"] * 7 + ["angina"] * 4
    error = refusal(UnsatisfiableError, people(disease=unlike), models=[cl.LDiversity("disease", l=3, kind=kind)])
    advised = error.fix.removeprefix("use l <= ").split(",")[0]
    release = cl.anonymize(people(disease=unlike), models=[cl.LDiversity("disease", l=advised, kind=kind)])
    assert release.partition.size == 1


def test_suppression_may_satisfy_what_the_whole_table_does_not() -> None:
    unlike = ["flu"] * 4 + ["flu", "cold"] * 10
    table = people(age=[50] * 4 + [20] * 20, city=["ulm"] * 4 + ["kiel"] * 20, disease=unlike)
    model = cl.LDiversity("disease", l=2, kind="entropy")
    refusal(UnsatisfiableError, table, models=[model])
    release = cl.anonymize(table, models=[model], suppression_limit="1/6", algorithm="optimal")
    assert release.suppressed == 4


def test_suppressing_everything_is_never_the_best_release() -> None:
    """By discernibility, suppressing all five rows costs as much as one class of them."""
    schema = Schema([Column(name="c", role="quasi", kind="nominal", hierarchy=Hierarchy.from_levels({0: [], 1: []}))])
    table = cl.open_table(pa.table({"c": [0, 0, 0, 0, 1]}), schema=schema)
    models = [cl.KAnonymity(k=5)]
    release = cl.anonymize(table, models=models, algorithm="optimal", loss="discernibility", suppression_limit=1)
    assert release.suppressed == 0


def test_models_that_fail_within_the_limit_are_named() -> None:
    table = people(disease=["flu"] * 13 + ["cold"] * 11, age=[30] * 24, city=["ulm"] * 24)
    model = cl.LDiversity("disease", l=2, kind="frequency")
    error = refusal(UnsatisfiableError, table, models=[K3, model], suppression_limit="0.1")
    assert model.brief() in error.problem
    assert K3.brief() not in error.problem
    assert "raise suppression_limit" in error.fix


def test_a_population_is_asked_for() -> None:
    assert "population=" in refusal(ParameterError, models=[cl.KMap(k=3)]).fix


def test_a_population_is_a_table_with_the_same_columns() -> None:
    assert "open_table" in refusal(ParameterTypeError, models=[cl.KMap(k=3)], population=1000).fix
    other = cl.open_table(pa.table({"year": [1990]}))
    assert "same names" in refusal(SchemaError, models=[cl.KMap(k=3)], population=other).fix


def test_a_population_that_the_table_is_no_sample_of_is_refused() -> None:
    few = people(None, **{name: cells[:5] for name, cells in columns().items()})
    error = refusal(UnsatisfiableError, models=[cl.DeltaPresence(delta_max=1)], population=few)
    assert "the whole population" in error.fix
    error = refusal(UnsatisfiableError, models=[cl.KMap(k=9)], population=few)
    assert "rows of the population" in error.fix


def test_too_large_a_lattice_is_refused_and_heuristic_search_is_offered() -> None:
    names = [f"q{number}" for number in range(20)]
    table = pa.table(dict.fromkeys(names, ["kiel", "ulm"] * 6))
    schema = Schema(Column(name=name) for name in names)
    error = refusal(LatticeTooLargeError, cl.open_table(table, schema=schema), algorithm="optimal")
    assert 'search="heuristic"' in error.fix
    opened = cl.open_table(table, schema=schema)
    assert cl.anonymize(opened, models=[K3], algorithm="optimal", search="heuristic").partition.size == 2


def test_unknown_names_are_refused() -> None:
    assert "mondrian" in refusal(ParameterError, algorithm="mondrain").fix
    assert "its options are" in refusal(ParameterError, algorithm="mondrian", modus="strict").fix
    assert "values=" in refusal(ParameterError, algorithm="optimal", values="sets").fix
    refusal(ParameterError, algorithm="mondrian", values="pictures")
    refusal(UnknownColumnError, weights={"disease": 2})
    refusal(ParameterError, weights={"age": 0})
    refusal(ParameterError, suppression_limit=2)
    refusal(ParameterError, algorithm="optimal", loss="beauty")


def test_missing_values_are_values_of_their_own() -> None:
    ages = [None if place % 4 == 0 else 20 for place in range(24)]
    release = cl.anonymize(people(age=pa.array(ages, pa.int64())), models=[cl.KAnonymity(k=6)], algorithm="optimal")
    shown = release.table.to_arrow().column("age").to_pylist()
    assert shown.count(None) == 6


def test_weights_decide_which_column_stays_exact() -> None:
    table = people(age=[20, 30, 40, 50] * 6, city=["kiel", "ulm", "emden", "lindau"] * 6)
    kept = {}
    for name in ("age", "city"):
        release = cl.anonymize(table, models=[cl.KAnonymity(k=6)], weights={name: 100}, algorithm="optimal")
        kept[name] = release.loss.by_column[name]
        assert release.settings["weights"] == {name: 100.0}
    assert kept == {"age": 0.0, "city": 0.0}


def test_settings_of_models_do_as_well_as_models() -> None:
    release = cl.anonymize(people(), models=[{"k": 3}, {"l": 2, "attribute": "disease"}])
    assert [check.model for check in release.checks] == [K3, cl.LDiversity("disease", l=2)]


def test_the_released_schema_knows_what_was_changed() -> None:
    release = cl.anonymize(people(), models=[K3], algorithm="mondrian", values="centers")
    schema = release.table.schema
    assert schema is not None
    assert "patient" not in schema
    assert schema["age"].kind == "numeric"
    assert schema["city"].kind == "nominal"
    assert schema["city"].hierarchy is None


def test_leaves_that_are_intervals_are_shown_instead_of_the_numbers_in_them() -> None:
    schema = SCHEMA.with_hierarchy("age", Hierarchy.intervals((20, 60), widths=[20], step=None))
    ages = [20 + place + 0.25 for place in range(24)]
    release = cl.anonymize(people(schema, age=ages), models=[cl.KAnonymity(k=2)], algorithm="optimal")
    assert set(release.table.to_arrow().column("age").to_pylist()) == {"[20, 40)", "[40, 60)"}
    assert release.table.schema is not None
    assert release.table.schema["age"].kind == "nominal"


def test_progress_is_told() -> None:
    told: list[float] = []
    cl.anonymize(people(), models=[K3], algorithm="mondrian", progress=lambda share, what: told.append(share))
    assert told
    assert all(0 <= share <= 1 for share in told)


def test_an_exact_limit_is_kept_exactly() -> None:
    release = cl.anonymize(people(), models=[K3], suppression_limit=Fraction(1, 3))
    assert release.settings["suppression_limit"] == "1/3"
    assert cl.anonymize(people(), **release.settings).suppression_limit == Fraction(1, 3)


@pytest.mark.parametrize("setting", [{"suppression_limit": 0.1}, {"values": "sets"}, {"weights": {"age": 2}}])
def test_anatomy_refuses_what_it_would_not_heed(setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(ParameterError, match=f"leave {name} out"):
        cl.anonymize(people(), models=[cl.LDiversity("disease", l=2)], algorithm="anatomy", **setting)
