"""Which columns are taken for what, and which contradictions are refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize._roles import checks_for, roles_of
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import DataWarning, ParameterError, ParameterTypeError, SchemaError, UnknownColumnError
from tests.anonymize.people import SCHEMA, people


def test_roles_are_those_of_the_schema() -> None:
    roles = roles_of(people())
    assert (roles.quasi, roles.sensitive) == (("age", "city"), ("disease", "pay"))
    assert (roles.identifiers, roles.insensitive, roles.subject) == (("patient",), ("note",), None)


def test_named_columns_replace_those_of_the_schema() -> None:
    roles = roles_of(people(), quasi_identifiers=["city", "note"], sensitive=["age"])
    assert (roles.quasi, roles.sensitive) == (("city", "note"), ("age",))
    assert roles.insensitive == ()
    assert roles.identifiers == ("patient", "disease", "pay")


def test_a_table_without_schema_needs_names() -> None:
    with pytest.raises(SchemaError, match="quasi_identifiers"):
        roles_of(people(None))
    roles = roles_of(people(None), quasi_identifiers=["age", "city"], sensitive=["disease"])
    assert roles.schema["age"].kind == "numeric"
    assert roles.identifiers == ("patient", "pay", "note")


def test_an_undescribed_column_is_refused() -> None:
    with pytest.raises(SchemaError, match="add them to the schema"):
        roles_of(people(SCHEMA.without("note")))


def test_a_schema_without_quasi_identifiers_is_refused() -> None:
    with pytest.raises(SchemaError, match="with_role"):
        roles_of(people(), quasi_identifiers=[])


def test_a_column_is_not_both() -> None:
    with pytest.raises(SchemaError, match="others may know"):
        roles_of(people(), quasi_identifiers=["age"], sensitive=["age"])
    with pytest.raises(SchemaError, match='give "age" the role sensitive in the schema'):
        cl.anonymize(people(), models=[cl.LDiversity("age", l=2)])


def test_names_are_a_list_of_columns() -> None:
    with pytest.raises(ParameterTypeError, match='quasi_identifiers=\\["age"\\]'):
        roles_of(people(), quasi_identifiers="age")
    with pytest.raises(UnknownColumnError, match="age"):
        roles_of(people(), sensitive=["aje"])


@pytest.mark.parametrize(("kind", "what"), [("text", "free text"), ("set", "sets")])
def test_free_text_cannot_be_generalized(kind: str, what: str) -> None:
    schema = SCHEMA.with_hierarchy("city", None).with_kind("city", kind)
    with pytest.raises(SchemaError, match=what) as caught:
        roles_of(people(schema))
    assert 'schema.with_role("city", "identifier")' in str(caught.value)
    assert roles_of(people(SCHEMA.with_kind("city", "text"))).quasi == ("age", "city")


@pytest.mark.parametrize(
    ("kind", "cells", "wanted"),
    [("datetime", ["2020-01-02", "2020-11-05"], "date"), ("numeric", ["10", "9"], "integer")],
)
def test_dates_and_numbers_stored_as_text_are_refused(kind: str, cells: list[str], wanted: str) -> None:
    schema = Schema([Column(name="when", kind=kind)])  # type: ignore[arg-type]
    with pytest.warns(DataWarning, match="stored as text"):
        table = open_table(pa.table({"when": cells * 3}), schema=schema)
    with pytest.raises(SchemaError, match=f'schema.with_storage\\("when", "{wanted}"\\)') as caught:
        roles_of(table)
    assert cells[0] not in str(caught.value)


def test_dates_in_their_type_are_generalized() -> None:
    table = open_table(
        pa.table({"when": [dt.date(2020, 1, day) for day in range(1, 9)]}),
        schema=Schema([Column(name="when", kind="datetime")]),
    )
    release = cl.anonymize(table, models=[cl.KAnonymity(k=4)], algorithm="mondrian")
    assert set(release.table.to_arrow().column("when").to_pylist()) == {
        "[2020-01-01, 2020-01-04]",
        "[2020-01-05, 2020-01-08]",
    }


def test_a_person_who_is_told_apart_is_counted_and_not_released() -> None:
    schema = SCHEMA.with_subject("patient")
    for role in ("identifier", "insensitive"):
        release = cl.anonymize(people(schema.with_role("patient", role)), models=[cl.KAnonymity(k=3)])
        assert "patient" not in release.table.columns
        assert release.guarantee.unit == "patient"
        assert release.classes.persons.min() >= 3


def checked(*models: Any, schema: Schema = SCHEMA) -> Any:
    return checks_for(models, roles_of(people(schema)))


def test_models_are_needed_and_must_be_about_the_table() -> None:
    with pytest.raises(ParameterError, match="KAnonymity"):
        checked()
    with pytest.raises(UnknownColumnError, match="disease"):
        checked(cl.LDiversity("diseese", l=2))
    with pytest.raises(SchemaError, match='schema.with_role\\("note", "sensitive"\\)'):
        checked(cl.LDiversity("note", l=2))
    with pytest.raises(ParameterTypeError, match="PureDP is not a model"):
        checked(cl.PureDP(epsilon=1))
    with pytest.raises(SchemaError, match='schema.with_subject\\("city"\\)'):
        checked(cl.KAnonymity(k=2, unit="city"))


def test_one_model_needs_no_list() -> None:
    roles = roles_of(people())
    assert checks_for(cl.KAnonymity(k=2), roles)[0].model == cl.KAnonymity(k=2)  # type: ignore[arg-type]
    assert checks_for({"k": 2}, roles)[0].model == cl.KAnonymity(k=2)  # type: ignore[arg-type]


def test_a_population_is_counted_in_rows() -> None:
    schema = SCHEMA.with_subject("patient")
    assert checked(cl.KMap(k=3), schema=schema)[0].model.unit == "row"
    with pytest.raises(SchemaError, match="one row per person"):
        checked(cl.KMap(k=3, unit="patient"), schema=schema)


def test_distances_need_an_order_or_a_hierarchy() -> None:
    ordered, tree = (cl.TCloseness("disease", t="0.2", kind=kind) for kind in ("ordered", "hierarchical"))
    with pytest.raises(SchemaError, match='kind="equal"'):
        checked(ordered)
    with pytest.raises(SchemaError, match="with_categories"):
        checked(ordered, schema=SCHEMA.with_kind("disease", "ordinal"))
    with pytest.raises(SchemaError, match="with_hierarchy"):
        checked(tree)
    stated = SCHEMA.with_kind("disease", "ordinal").with_categories("disease", ["cold", "flu", "angina"])
    assert checked(ordered, schema=stated)
    named = cl.Hierarchy.taxonomy({"light": ["cold", "flu"], "grave": ["angina"]})
    assert checked(tree, schema=SCHEMA.with_hierarchy("disease", named))
