from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import pytest

from cloister.data.columns import Column, Kind, Missing, Role
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.data.schema_check import Severity
from cloister.data.values import ColumnProfile, StorageType


class Example:
    def __init__(self, *profiles: ColumnProfile) -> None:
        self._profiles = list(profiles)

    def profiles(self) -> list[ColumnProfile]:
        return self._profiles


def profile(name: str, *common: Any, kind: StorageType = StorageType.TEXT, **facts: Any) -> ColumnProfile:
    return ColumnProfile(
        **{"name": name, "type": kind, "rows": 100, "missing": 0, "distinct": len(common), "common": common, **facts}
    )


def only(schema: Schema, table: Example | None = None) -> tuple[Severity, str, str]:
    findings = schema.check(table).findings
    assert len(findings) == 1
    return findings[0].severity, findings[0].sentence, findings[0].fix


COMPLETE = Column(name="sex", categories=("f", "m"), hierarchy=Hierarchy.from_levels([["f"], ["m"]]))


def test_a_complete_schema_has_nothing_to_say() -> None:
    report = Schema([COMPLETE, Column(name="ssn", role=Role.IDENTIFIER, kind=Kind.TEXT)]).check()
    assert report.ok
    assert report.findings == ()
    assert str(report) == "The schema is complete."


@pytest.mark.parametrize(
    ("column", "severity", "sentence", "fix"),
    [
        (
            {"guessed": {"categories"}},
            Severity.ERROR,
            'The categories of "sex" were read from the data',
            'schema.confirm("sex")',
        ),
        ({"guessed": {"role", "kind"}, "evidence": "its name"}, Severity.WARNING, "are guesses (its name)", "confirm"),
        ({"guessed": {"role"}}, Severity.WARNING, 'The role of "sex" are guesses.', "confirm"),
        ({"categories": None}, Severity.WARNING, "has no categories", 'schema.with_categories("sex"'),
        (
            {"categories": None, "kind": Kind.NUMERIC},
            Severity.WARNING,
            "has no bounds",
            'schema.with_bounds("sex", (lowest, highest))',
        ),
        ({"hierarchy": None}, Severity.WARNING, "has no hierarchy", "Hierarchy.read_csv"),
        (
            {"hierarchy": None, "kind": Kind.NUMERIC, "bounds": (0, 1), "categories": None},
            Severity.NOTE,
            "has no hierarchy",
            "Hierarchy.read_csv",
        ),
        ({"role": Role.INSENSITIVE}, Severity.WARNING, "called insensitive", 'schema.with_role("sex", "quasi")'),
        ({"missing": Missing.MATCHES_ANY}, Severity.WARNING, "weaker", "own_value"),
    ],
)
def test_what_is_missing_is_explained(column: dict[str, Any], severity: Severity, sentence: str, fix: str) -> None:
    facts = {
        "name": "sex",
        "categories": ("f", "m"),
        "hierarchy": COMPLETE.hierarchy,
        **column,
    }
    found = only(Schema([Column(**facts)]))
    assert found[0] is severity
    assert sentence in found[1]
    assert fix in found[2]


def test_the_gravest_comes_first_and_errors_stand_in_the_way() -> None:
    schema = Schema(
        [
            Column(name="a", kind=Kind.NUMERIC, bounds=(0, 1)),  # type: ignore[arg-type]
            Column(name="b", role=Role.INSENSITIVE, categories=("x",), guessed=frozenset({"categories"})),
        ]
    )
    report = schema.check()
    assert [finding.severity for finding in report.findings] == [Severity.ERROR, Severity.WARNING, Severity.NOTE]
    assert not report.ok
    assert [finding.column for finding in report.about("b")] == ["b", "b"]
    assert str(report).startswith('error: The categories of "b"')
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["schema"] == "cloister.schema-report/1"
    assert plain["findings"][0]["severity"] == "error"
    assert plain["ok"] is False


def test_columns_on_one_side_only() -> None:
    report = Schema([COMPLETE]).check(Example(profile("sexx", "f")))
    assert [(finding.severity, finding.column) for finding in report.findings] == [
        (Severity.ERROR, "sex"),
        (Severity.ERROR, "sexx"),
    ]
    assert 'not in the table. Did you mean "sexx"?' in report.findings[0].sentence
    assert 'not in the schema. Did you mean "sex"?' in report.findings[1].sentence


def test_a_table_that_fits_adds_nothing() -> None:
    schema = Schema(
        [
            COMPLETE,
            Column(name="tags", role=Role.SENSITIVE, kind=Kind.SET, categories=("x",)),
            Column(name="ssn", role=Role.IDENTIFIER, kind=Kind.TEXT),
        ]
    )
    table = Example(profile("sex", "f", "m", None), profile("tags", "x;y"), profile("ssn", "123-45-6789"))
    assert schema.check(table).findings == ()


def test_identifiers_that_are_not_declared_are_found_and_not_quoted() -> None:
    column = Column(name="contact", role=Role.INSENSITIVE, kind=Kind.TEXT)
    report = Schema([column]).check(Example(profile("contact", "ann@example.org", "bob@example.org")))
    assert report.findings[0].severity is Severity.ERROR
    assert "looks like an identifier (100% of the frequent values have the form of an e-mail" in str(report)
    assert "ann" not in str(report)
    by_name = Schema([Column(name="surname", role=Role.SENSITIVE, kind=Kind.TEXT)])
    assert only(by_name, Example(profile("surname", "a")))[0] is Severity.WARNING


def test_data_outside_the_domain_is_told_without_values() -> None:
    numeric = Schema([Column(name="pay", role=Role.SENSITIVE, kind=Kind.NUMERIC, bounds=(0, 10))])  # type: ignore[arg-type]
    real = StorageType.REAL
    assert "outside its bounds" in only(numeric, Example(profile("pay", kind=real, minimum=1.0, maximum=77.0)))[1]
    assert numeric.check(Example(profile("pay", kind=real, minimum=1.0, maximum=7.0))).findings == ()
    assert numeric.check(Example(profile("pay", kind=real))).findings == ()
    days = Schema([Column(name="day", role=Role.SENSITIVE, kind=Kind.DATETIME, bounds=("2020-01-01", "2020-12-31"))])  # type: ignore[arg-type]
    early = Example(profile("day", kind=StorageType.DATE, minimum=date(2019, 1, 1), maximum=date(2020, 5, 5)))
    assert "outside its bounds" in only(days, early)[1]
    listed = Schema([Column(name="job", role=Role.SENSITIVE, categories=("cook",))])
    found = only(listed, Example(profile("job", "cook", "secret")))
    assert "not among its categories" in found[1]
    assert "secret" not in " ".join(found)


def test_a_hierarchy_that_does_not_cover_the_data_is_an_error() -> None:
    column = Column(name="job", kind=Kind.TEXT, hierarchy=Hierarchy.from_levels([["cook"]]))
    found = only(Schema([column]), Example(profile("job", "cook", "secret")))
    assert found[0] is Severity.ERROR
    assert "does not cover" in found[1]
    assert "secret" not in " ".join(found)


@pytest.mark.parametrize(
    ("kind", "bounds", "storage", "right"),
    [
        ("numeric", (0, 5), StorageType.TEXT, "nominal"),
        ("numeric", (0, 5), StorageType.BOOLEAN, "nominal"),
        ("numeric", (0, 5), StorageType.DATE, "datetime"),
        ("ordinal", (0, 5), StorageType.TEXT, "nominal"),
        ("datetime", ("2020-01-01", "2021-01-01"), StorageType.INTEGER, "numeric"),
    ],
)
def test_a_kind_that_the_table_contradicts_is_an_error(
    kind: str, bounds: Any, storage: StorageType, right: str
) -> None:
    schema = Schema([Column(name="sex", role=Role.SENSITIVE, kind=kind, bounds=bounds)])  # type: ignore[arg-type]
    severity, sentence, fix = only(schema, Example(profile("sex", kind=storage)))
    assert severity is Severity.ERROR
    assert f"is called {kind}, but the table holds it as {storage}" in sentence
    assert f'schema.with_kind("sex", "{right}")' in fix
    assert f'"kind: {right}"' in schema.check(Example(profile("sex", kind=storage))).findings[0].in_file


def test_a_column_without_values_contradicts_nothing() -> None:
    schema = Schema([Column(name="pay", role=Role.SENSITIVE, kind=Kind.NUMERIC, bounds=(0, 5))])  # type: ignore[arg-type]
    assert schema.check(Example(profile("pay", missing=100))).findings == ()


def test_evidence_that_still_names_the_data_is_a_warning() -> None:
    draft = Schema.infer(Example(profile("age", 30, 40, kind=StorageType.INTEGER, minimum=30, maximum=40)))
    plain = draft.to_dict()
    del plain["columns"]["age"]["guessed"]
    found = Schema.from_dict(plain).check().findings
    assert any("names the data as their source" in finding.sentence for finding in found)
    assert not any("source" in finding.sentence for finding in draft.with_bounds("age", (0, 110)).check().findings)
    assert not any("source" in finding.sentence for finding in draft.confirm().check().findings)


def test_every_finding_says_what_to_write_in_the_file() -> None:
    column = Column(name="pay", kind=Kind.NUMERIC, bounds=(0, 5), guessed=frozenset({"bounds", "role"}))  # type: ignore[arg-type]
    findings = Schema([column]).check(Example(profile("age", 1))).findings
    assert any('delete "bounds" from the "guessed" line' in finding.in_file for finding in findings)
    assert all(finding.in_file and "schema." not in finding.in_file for finding in findings)
    assert findings[0].to_dict()["in_file"] == findings[0].in_file


@pytest.mark.parametrize(
    ("bounds", "outside"),
    [
        (("2020-01-01", "2020-12-31"), True),
        (("2020-01-01", "2021-05-05"), False),
        (("2020-01-01T00:00:00", "2021-05-05T00:00:00"), True),
        (("2020-01-01T00:00:00+00:00", "2021-01-01T00:00:00+00:00"), False),
    ],
)
def test_times_are_compared_with_days(bounds: Any, outside: bool) -> None:
    schema = Schema([Column(name="seen", role=Role.SENSITIVE, kind=Kind.DATETIME, bounds=bounds)])
    first, last = datetime(2020, 3, 1, 12), datetime(2021, 5, 5, 12)  # stored without a zone
    report = schema.check(Example(profile("seen", kind=StorageType.TIMESTAMP, minimum=first, maximum=last)))
    assert bool(report.findings) is outside
