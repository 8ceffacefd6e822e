from __future__ import annotations

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cloister.data.columns import Column, Kind, Missing, Role
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.errors import DataError, DataWarning, SchemaError, SourceNotFoundError

DESIGN = """
columns: {age: {role: quasi, kind: numeric, bounds: [17, 90]}, occupation: {role: sensitive, categories: [a, b]},
  ssn: {role: identifier}}
"""


def read(tmp_path: Path, text: str) -> Schema:
    path = tmp_path / "schema.yaml"
    path.write_text(text, encoding="utf-8")
    return Schema.read(path)


def test_the_form_of_the_design_is_read(tmp_path: Path) -> None:
    schema = read(tmp_path, DESIGN)
    assert schema.bounds_of("age") == (17, 90)
    assert schema.categories_of("occupation") == ("a", "b")
    assert [column.kind for column in schema.values()] == [Kind.NUMERIC, Kind.NOMINAL, Kind.TEXT]
    assert [column.role for column in schema.values()] == [Role.QUASI, Role.SENSITIVE, Role.IDENTIFIER]
    assert not any(column.guessed for column in schema.values())


def test_everything_survives_a_round_trip(tmp_path: Path) -> None:
    schema = Schema(
        [
            Column(name="pid", role=Role.IDENTIFIER, kind=Kind.TEXT, subject=True),
            Column(
                name="age",
                kind=Kind.NUMERIC,
                bounds=(Fraction(1, 3), Fraction("110.5")),
                weight=Fraction(5, 2),
                missing=Missing.MATCHES_ANY,
                guessed=frozenset({"bounds", "role"}),
                evidence="its name: it says so",
                hierarchy=Hierarchy.intervals((0, 110), widths=[5, 10]),
            ),
            Column(name="day", kind=Kind.DATETIME, bounds=(date(2000, 1, 1), date(2030, 12, 31))),
            Column(name="no", kind=Kind.ORDINAL, categories=("yes", "no", "01", "2020-01-01", "null", "1e5", "~", "")),
            Column(name="2020", role=Role.INSENSITIVE, categories=(True, False)),
            Column(name="code", categories=(1, 2, 2.5)),
            Column(name="big", kind=Kind.NUMERIC, bounds=(Fraction(-(10**40)), Fraction(10) ** 400)),
        ]
    )
    schema.write(tmp_path / "s.yaml")
    assert Schema.read(tmp_path / "s.yaml") == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert next(iter(schema.to_dict())) == "schema"
    assert schema.to_dict()["schema"] == "cloister.schema/1"


def test_guesses_are_marked_in_the_file_and_warned_about(tmp_path: Path) -> None:
    guess = Schema([Column(name="age", kind=Kind.NUMERIC, bounds=(17, 90), guessed=frozenset({"bounds", "role"}))])  # type: ignore[arg-type]
    guess.write(tmp_path / "guess.yaml")
    text = (tmp_path / "guess.yaml").read_text("utf-8")
    assert "guessed: [bounds, role]" in text
    assert "values of the data: keep it as private as the data" in text
    guess.confirm().write(tmp_path / "sure.yaml")
    assert "guessed" not in (tmp_path / "sure.yaml").read_text("utf-8")
    assert Schema.read(tmp_path / "sure.yaml") == guess.confirm()


def test_odd_values_mean_what_they_say(tmp_path: Path) -> None:
    schema = read(
        tmp_path,
        """
        columns:
          on: {role: quasi, categories: [yes, no, on, off, y, n]}
          flag: {role: quasi, categories: [true, false]}
          code: {role: quasi, categories: [01, 02, 08, 0x1F, 1_000, 12:30]}
          day: {role: quasi, categories: [2020-01-01, 2020-02-30]}
          level: {role: quasi, categories: [1, 2, 1.50, high]}
          number: {role: quasi, categories: [1, 2, 2.5]}
          2020: {role: quasi, kind: numeric, bounds: ["1/3", 1e3]}
          visit: {role: quasi, bounds: [2020-01-01, 2020-12-31]}
        """,
    )
    assert schema.names == ("on", "flag", "code", "day", "level", "number", "2020", "visit")
    assert schema.categories_of("on") == ("yes", "no", "on", "off", "y", "n")
    assert schema.categories_of("flag") == (True, False)
    assert schema.categories_of("code") == ("01", "02", "08", "0x1F", "1_000", "12:30")
    assert schema.categories_of("day") == ("2020-01-01", "2020-02-30")
    assert schema.categories_of("level") == ("1", "2", "1.50", "high")
    assert schema.categories_of("number") == (1, 2, 2.5)
    assert schema.bounds_of("2020") == (Fraction(1, 3), 1000)
    assert schema["visit"].kind is Kind.DATETIME
    assert schema.bounds_of("visit") == (date(2020, 1, 1), date(2020, 12, 31))


def test_a_column_without_a_role_is_quasi_and_a_guess(tmp_path: Path) -> None:
    schema = read(tmp_path, "columns: {a: {bounds: [0, 1]}, b: , c: {guessed: [kind]}}")
    assert {column.role for column in schema.values()} == {Role.QUASI}
    assert [sorted(column.guessed) for column in schema.values()] == [["role"], ["role"], ["kind", "role"]]
    assert "safe choice" in schema["a"].evidence
    schema.write(tmp_path / "again.yaml")
    assert Schema.read(tmp_path / "again.yaml") == schema


def test_a_hierarchy_may_be_a_file_beside_the_schema(tmp_path: Path) -> None:
    (tmp_path / "trees").mkdir()
    Hierarchy.masking(2).write_csv(tmp_path / "trees" / "zip.csv")
    schema = read(tmp_path, "columns: {zip: {role: quasi, hierarchy: trees/zip.csv}}")
    assert schema["zip"].hierarchy == Hierarchy.masking(2)
    (tmp_path / "below").mkdir()
    schema.write(tmp_path / "below" / "s.yaml")
    assert "hierarchy: ../trees/zip.csv" in (tmp_path / "below" / "s.yaml").read_text("utf-8")
    assert Schema.read(tmp_path / "below" / "s.yaml") == schema
    assert Schema.from_dict(schema.to_dict()) == schema


def test_a_hierarchy_may_be_written_inside(tmp_path: Path) -> None:
    schema = read(
        tmp_path,
        """
        columns:
          taxonomy: {role: quasi, hierarchy: {Public: [judge, clerk], Private: }}
          rows: {role: quasi, hierarchy: [[judge, Public], [cook, Private]]}
          text:
            role: quasi
            hierarchy: |
              judge;Public;*
              cook;Private;*
        """,
    )
    assert schema["taxonomy"].hierarchy == Hierarchy.taxonomy({"Public": ["judge", "clerk"], "Private": None})
    assert schema["rows"].hierarchy == schema["text"].hierarchy
    schema.write(tmp_path / "again.yaml")
    assert "    hierarchy: |\n      judge;Public;*\n" in (tmp_path / "again.yaml").read_text("utf-8")
    assert Schema.read(tmp_path / "again.yaml") == schema


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        ("", "empty", "columns:"),
        ("# only words\n", "empty", "columns:"),
        ("just text", "not a mapping", "columns:"),
        ("[1, 2]", "not a mapping", "columns:"),
        ("columns:", "no columns", "columns:"),
        ("columns: [a]", "no columns", "columns:"),
        ("schema: cloister.schema/1", "no columns", "columns:"),
        ("schema: cloister.schema/9\ncolumns: {a: }", "cloister.schema/9", "update cloister"),
        ("column: {a: }", 'Did you mean "columns"', "use schema, columns"),
        ("columns: {age: {bound: [1, 2]}}", 'unknown key "bound". Did you mean "bounds"', "use role, kind"),
        ("columns: {age: 5}", '"age" is not a mapping', "columns:"),
        ("columns: {age: {kind: numeric, bounds: [90, 17]}}", 'Column "age": bounds are reversed', "bounds=(17, 90)"),
        ("columns: {age: {bounds: [90, 17]}}", "reversed", "bounds=(17, 90)"),
        ("columns: {age: {bounds: 5}}", "pair", "bounds=(0, 110)"),
        ("columns: {age: {bounds: [true, 5]}}", "truth value", "number"),
        ("columns: {age: {bounds: [.nan, .inf]}}", "finite", "finite number"),
        ("columns: {age: {role: quazi}}", 'Did you mean "quasi"', "use one of"),
        ("columns: {age: {role: [quasi]}}", "is not known", "use one of"),
        ("columns: {age: {categories: {a: 1}}}", "categories are not a list", "categories: [first"),
        ("columns: {age: {categories: abc}}", "categories are not a list", "categories: [first"),
        ("columns: {age: {categories: [a, null]}}", "a category is missing", "quote it"),
        ("columns: {age: {categories: [a, ~]}}", "a category is missing", "quote it"),
        ("columns: {age: {evidence: 5}}", "evidence is not a text", "in quotes"),
        ("columns: {age: {guessed: role}}", "guessed", "bounds"),
        ("columns: {age: {guessed: {a: b}}}", "guessed", "use one of"),
        ("columns: {age: {subject: maybe}}", "subject is not true or false", "subject: true"),
        ("columns: {age: {weight: heavy}}", "weight", "finite number"),
        ("columns: {age: {hierarchy: none.csv}}", 'Column "age": There is no hierarchy file', "check the path"),
        ("columns: {age: {hierarchy: 5}}", 'Column "age": A taxonomy holds', "Government"),
        ("columns: {age: {role: quasi}, age: {role: quasi}}", '"age" is there twice (line 1)', 'keep one "age"'),
        ("columns:\n  age:\n    role: quasi\n    role: quasi", '"role" is there twice (line 4)', 'keep one "role"'),
        ("columns: {a: {role: quasi}", "not valid YAML (line", "mend the line"),
        ("columns:\n\tage: 5", "not valid YAML (line 2)", "mend the line"),
        ("a: !!python/object/apply:os.system ['true']", "not valid YAML (line 1)", "mend the line"),
        ("a: !!int abc", "not valid YAML", "columns:"),
        ("? [a, b]\n: 5", "not valid YAML (line 1)", "mend the line"),
        ("\x01", "not valid YAML", "columns:"),
        ("[" * 600, "not valid YAML", "columns:"),
        ("'': {role: quasi}", 'unknown key ""', "use schema, columns"),
        ("columns: {'': {role: quasi}}", "empty", "name the column"),
        ("columns: {a: &x {role: quasi, <<: *x}}", "", ""),
    ],
)
def test_bad_files_are_one_clear_error(tmp_path: Path, text: str, problem: str, fix: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read(tmp_path, text)
    assert problem in caught.value.problem
    assert fix in caught.value.fix
    assert str(tmp_path / "schema.yaml") in caught.value.problem


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="check the path"):
        Schema.read(tmp_path / "none.yaml")
    with pytest.raises(SchemaError, match="readable file"):
        Schema.read(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"columns: {Z\xfcrich: {role: quasi}}")
    with pytest.raises(SchemaError, match="UTF-8"):
        Schema.read(tmp_path / "latin.yaml")


def test_a_schema_file_is_not_overwritten_by_accident(tmp_path: Path) -> None:
    schema = Schema([Column(name="a")])
    schema.write(tmp_path / "s.yaml")
    with pytest.raises(DataError, match="overwrite=True"):
        schema.with_role("a", "sensitive").write(tmp_path / "s.yaml")
    assert Schema.read(tmp_path / "s.yaml") == schema
    schema.with_role("a", "sensitive").write(tmp_path / "s.yaml", overwrite=True)
    assert Schema.read(tmp_path / "s.yaml")["a"].role is Role.SENSITIVE


@pytest.mark.parametrize("data", [{}, None, [], {"columns": {}}, {"columns": {"a": []}}])
def test_bad_plain_values_are_refused(data: Any) -> None:
    with pytest.raises(SchemaError, match="columns:"):
        Schema.from_dict(data)


def test_plain_values_may_hold_a_hierarchy_itself() -> None:
    schema = Schema.from_dict({"columns": {"zip": {"role": "quasi", "hierarchy": Hierarchy.masking(2)}}})
    assert schema["zip"].hierarchy == Hierarchy.masking(2)


def test_the_reader_of_a_wrong_interval_is_warned(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="renamed"):
        schema = read(tmp_path, "columns:\n  a:\n    role: quasi\n    hierarchy: |\n      5;0-4;*\n")
    assert schema["a"].hierarchy == Hierarchy.from_levels([["5", "5-5"]])


def test_files_are_not_opened_for_a_stranger(tmp_path: Path) -> None:
    Hierarchy.masking(1).write_csv(tmp_path / "zip.csv")
    data = {"columns": {"zip": {"role": "quasi", "hierarchy": "zip.csv"}}}
    assert Schema.from_dict(data, folder=tmp_path)["zip"].hierarchy == Hierarchy.masking(1)
    with pytest.raises(SchemaError, match="inside the schema"):
        Schema.from_dict(data, folder=None)
    inside = Schema.from_dict(data, folder=tmp_path).to_dict()
    assert Schema.from_dict(inside, folder=None)["zip"].hierarchy == Hierarchy.masking(1)
