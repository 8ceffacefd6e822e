from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.data.columns import MOST_CATEGORIES, Column, Kind, Missing, Role
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.errors import MissingBoundsError, SchemaError, UnconfirmedSchemaError, UnknownColumnError


@pytest.fixture
def schema() -> Schema:
    return Schema(
        [
            Column(name="ssn", role=Role.IDENTIFIER, kind=Kind.TEXT),
            Column(
                name="age",
                kind=Kind.NUMERIC,
                bounds=(17, 90),  # type: ignore[arg-type]
                guessed=frozenset({"bounds", "role"}),
                evidence="its name",
            ),
            Column(name="job", role=Role.SENSITIVE, categories=("a", "b"), guessed=frozenset({"categories"})),
        ]
    )


def test_a_schema_is_a_mapping_in_order(schema: Schema) -> None:
    assert schema.names == tuple(schema) == tuple(schema.columns) == ("ssn", "age", "job")
    assert len(schema) == 3
    assert "age" in schema
    assert "zip" not in schema
    assert schema.get("zip") is None
    assert schema["age"] is schema.columns["age"]
    assert schema.with_roles("sensitive") == ("job",)
    assert repr(schema) == "Schema(ssn: identifier text, age: quasi numeric, job: sensitive nominal)"


def test_columns_cannot_be_changed_in_place(schema: Schema) -> None:
    with pytest.raises(TypeError):
        schema.columns["age"] = schema["job"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        schema["age"].role = Role.SENSITIVE  # type: ignore[misc]


def test_an_unknown_column_gets_a_near_name(schema: Schema) -> None:
    for use in (
        lambda: schema["agee"],
        lambda: schema.with_role("agee", "quasi"),
        lambda: schema.without("agee"),
        lambda: schema.confirm("agee"),
        lambda: schema.with_subject("agee"),
        lambda: schema.bounds_of("agee"),
        lambda: schema.require_confirmed(["agee"]),
    ):
        with pytest.raises(UnknownColumnError, match='Did you mean "age"'):
            use()


def test_equal_schemas_are_equal(schema: Schema) -> None:
    assert schema == Schema(schema.values())
    assert hash(schema) == hash(Schema(schema.values()))
    assert schema != schema.without("ssn")
    assert schema != Schema(reversed(list(schema.values())))
    assert schema != 3


def test_a_schema_needs_distinct_columns(schema: Schema) -> None:
    with pytest.raises(SchemaError, match="its own name"):
        Schema([schema["age"], schema["age"]])
    with pytest.raises(SchemaError, match="at least one column"):
        Schema([])
    with pytest.raises(SchemaError, match="at least one column"):
        schema.without("ssn", "age", "job")


def test_what_a_person_states_is_no_guess(schema: Schema) -> None:
    changed = schema.with_role("age", "sensitive").with_bounds("age", (0, "110.5"))
    assert changed["age"].role is Role.SENSITIVE
    assert changed["age"].bounds == (Fraction(0), Fraction(221, 2))
    assert changed["age"].guessed == frozenset()
    assert changed["age"].evidence == ""
    assert schema.with_role("age", "quasi")["age"].evidence == "its name"
    assert schema["age"].guessed == {"bounds", "role"}


def test_confirming_all_or_some(schema: Schema) -> None:
    assert not any(column.guessed for column in schema.confirm().values())
    partly = schema.confirm("age")
    assert partly["age"].guessed == frozenset()
    assert partly["job"].guessed == {"categories"}


def test_guesses_are_refused_until_confirmed(schema: Schema) -> None:
    with pytest.raises(UnconfirmedSchemaError, match=r'schema\.confirm\("age", "job"\)'):
        schema.require_confirmed()
    with pytest.raises(UnconfirmedSchemaError, match=r'schema\.confirm\("age"\)') as caught:
        schema.bounds_of("age")
    assert "age: bounds" in caught.value.problem
    with pytest.raises(UnconfirmedSchemaError, match=r'schema\.confirm\("job"\)'):
        schema.categories_of("job")
    with pytest.raises(UnconfirmedSchemaError, match="age: role"):
        schema.require_confirmed(["age"], facts=("role",))
    schema.require_confirmed(["ssn"])
    schema.confirm().require_confirmed()
    assert schema.bounds_of("age", allow_guessed=True) == schema.confirm().bounds_of("age") == (17, 90)
    assert schema.categories_of("job", allow_guessed=True) == schema.confirm().categories_of("job") == ("a", "b")


def test_missing_domains_name_what_to_type(schema: Schema) -> None:
    plain = schema.with_column(Column(name="pay", kind=Kind.NUMERIC)).with_column(
        Column(name="day", kind=Kind.DATETIME)
    )
    with pytest.raises(MissingBoundsError, match=r'schema\.with_bounds\("pay", \(0, 110\)\)'):
        plain.bounds_of("pay")
    with pytest.raises(MissingBoundsError, match=r'schema\.with_bounds\("day", \("2000-01-01", "2030-12-31"\)\)'):
        plain.bounds_of("day")
    with pytest.raises(MissingBoundsError, match="a nominal column has categories"):
        plain.bounds_of("job")
    with pytest.raises(MissingBoundsError, match=r'schema\.with_categories\("pay", \["first", "second"\]\)'):
        plain.categories_of("pay")


def test_kind_takes_impossible_bounds_along(schema: Schema) -> None:
    nominal = schema.with_kind("age", "nominal")
    assert nominal["age"].bounds is None
    assert nominal["age"].guessed == {"role"}
    assert schema.with_kind("age", Kind.ORDINAL)["age"].bounds == (17, 90)
    assert schema.with_kind("age", "datetime")["age"].bounds is None
    with pytest.raises(SchemaError, match="use one of numeric, ordinal"):
        schema.with_kind("age", "number")


def test_hierarchy_and_subject(schema: Schema) -> None:
    hierarchy = Hierarchy.intervals((17, 90), widths=[5])
    assert schema.with_hierarchy("age", hierarchy)["age"].hierarchy == hierarchy
    assert schema.with_hierarchy("age", hierarchy).with_hierarchy("age", None)["age"].hierarchy is None
    with pytest.raises(SchemaError, match="read_csv"):
        schema.with_hierarchy("age", "age.csv")  # type: ignore[arg-type]
    assert schema.subject is None
    assert schema.with_subject("ssn").subject == "ssn"
    assert schema.with_subject("ssn").with_subject("job").subject == "job"
    with pytest.raises(SchemaError, match="only the column that names the person"):
        Schema([Column(name="a", subject=True), Column(name="b", subject=True)])


def test_categories_and_replacing(schema: Schema) -> None:
    assert schema.with_categories("job", ["x", "y"])["job"].categories == ("x", "y")
    assert schema.with_column(Column(name="age"))["age"].kind is Kind.NOMINAL
    assert schema.without("age").names == ("ssn", "job")


@pytest.mark.parametrize(
    ("facts", "fix"),
    [
        ({"name": ""}, "name the column"),
        ({"name": 5}, "name the column"),
        ({"role": "quazi"}, 'Did you mean "quasi"'),
        ({"role": []}, "use one of identifier"),
        ({"kind": "numbers"}, "use one of numeric"),
        ({"kind": "numeric", "bounds": (90, 17)}, r"smaller number first: bounds=\(17, 90\)"),
        ({"kind": "numeric", "bounds": 5}, r"bounds=\(0, 110\)"),
        ({"kind": "numeric", "bounds": ("a", "b")}, "finite number"),
        ({"kind": "nominal", "bounds": (1, 2)}, "or drop the bounds"),
        ({"kind": "datetime", "bounds": ("2024-01-01",)}, "2000-01-01"),
        ({"kind": "datetime", "bounds": 5}, "2000-01-01"),
        ({"kind": "datetime", "bounds": (1, 2)}, "2020-12-31"),
        ({"kind": "datetime", "bounds": ("x", "y")}, "2020-12-31"),
        ({"kind": "datetime", "bounds": ("2024-01-02", "2024-01-01")}, "earlier date first"),
        ({"kind": "datetime", "bounds": ("2024-01-01", "2024-01-02T10:00")}, "in the same way"),
        ({"kind": "datetime", "bounds": ("2024-01-01T10:00", "2024-01-02T10:00+00:00")}, "in the same way"),
        ({"categories": "abc"}, r"categories: \[first, second\]"),
        ({"categories": []}, "every category once"),
        ({"categories": ["a", "a"]}, "every category once"),
        ({"categories": [1, 1.0]}, "every category once"),
        ({"categories": ["a", None]}, "leave it out"),
        ({"categories": [float("nan"), 1]}, "leave it out"),
        ({"categories": [float("inf"), 1]}, "plain values"),
        ({"categories": [["a"]]}, "plain values"),
        ({"categories": [True, 1]}, "in quotes"),
        ({"weight": 0}, "weight: 1"),
        ({"weight": "x"}, "finite number"),
        ({"missing": "ignore"}, "own_value"),
        ({"subject": "yes"}, "subject: true"),
        ({"guessed": "role"}, r"guessed: \[bounds, role\]"),
        ({"guessed": ["roles"]}, "Did you mean"),
    ],
)
def test_bad_columns_are_refused_by_name(facts: dict[str, Any], fix: str) -> None:
    with pytest.raises(SchemaError, match=fix) as caught:
        Column(**{"name": "pay", **facts})
    assert "name" in facts or caught.value.problem.startswith('Column "pay": ')


def test_dates_may_be_written_in_many_ways() -> None:
    expected = (date(2000, 1, 1), date(2030, 12, 31))
    for bounds in (expected, ("2000-01-01", "2030-12-31"), tuple(np.array(expected, dtype="datetime64[D]"))):
        assert Column(name="day", kind=Kind.DATETIME, bounds=bounds).bounds == expected  # type: ignore[arg-type]
    moment = Column(name="t", kind=Kind.DATETIME, bounds=("2000-01-01T00:00", "2000-01-01T12:30"))  # type: ignore[arg-type]
    assert moment.bounds == (datetime(2000, 1, 1), datetime(2000, 1, 1, 12, 30))


def test_categories_keep_one_type() -> None:
    def clean(*values: Any) -> Any:
        return Column(name="c", categories=values).categories

    assert clean("yes", "no") == ("yes", "no")
    assert clean("01", 2, 3.5) == ("01", "2", "3.5")
    assert clean(True, "maybe") == ("true", "maybe")
    assert clean(1, 2.5) == (1, 2.5)
    assert clean(np.int64(3), Fraction(1, 2)) == (3, 0.5)
    assert clean(date(2024, 1, 1)) == ("2024-01-01",)
    assert clean(False, True) == (False, True)


def test_defaults_are_the_safe_ones() -> None:
    column = Column(name="anything")
    assert column.role is Role.QUASI
    assert column.missing is Missing.OWN_VALUE
    assert column.weight == 1
    assert not column.guessed


def test_more_categories_than_an_answer_can_show_are_refused_with_the_limit() -> None:
    with pytest.raises(SchemaError, match=r"1,000,001 categories, more than 1,000,000") as caught:
        Column(name="code", categories=range(MOST_CATEGORIES + 1))
    assert "declare at most 1,000,000" in caught.value.fix
    assert caught.value.problem.startswith('Column "code"')
