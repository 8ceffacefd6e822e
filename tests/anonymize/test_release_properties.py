"""Whatever is asked of whatever table: its release keeps what it promises when somebody else reads the rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import cloister as cl
from cloister.anonymize.models import check_of
from cloister.anonymize.release import Release
from cloister.errors import CloisterError, UnsatisfiableError
from tests.support.random_releases import CELL, Case, cases, ways
from tests.support.released_rows import RowChecker, classes_of_rows, is_part, is_truthful, plain_text
from tests.support.thoroughness import examples

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]
WAYS = ways()
EXAMPLES = examples(8, usual=2)


def released(case: Case, order: list[int] | None = None) -> Release:
    return cl.anonymize(
        case.table(order),
        models=case.models,
        algorithm=case.algorithm,
        values=case.values,
        suppression_limit=case.suppression_limit,
        population=case.population_table(),
        **case.options,
    )


def checker_of(case: Case) -> RowChecker:
    return RowChecker(
        case.schema.columns,
        case.quasi,
        person=case.person,
        population=case.population,
        domains={name: [row[name] for row in case.rows] for name in case.quasi},
    )


def must_exist(case: Case) -> bool:
    """Return whether the whole table in one class satisfies every model, so that nothing may be refused."""
    checks = [check_of(model) for model in case.models]
    if any(check.needs_population for check in checks):
        return False
    counted = [model.with_unit("person") if case.person and hasattr(model, "k") else model for model in case.models]
    checker = checker_of(case)
    return all(checker.class_holds(model, case.rows, case.rows) for model in counted)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, (*way[:2], *way[2].values()))))
@given(data=st.data())
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_a_release_keeps_its_promises_or_there_is_none(way: Any, data: st.DataObject) -> None:
    case = data.draw(cases(way))
    try:
        release = released(case)
    except CloisterError as error:
        check_refusal(case, error)
        return
    rows = release.table.to_arrow().to_pylist()
    check_rows(case, release, rows)
    order = data.draw(st.permutations(range(len(case.rows))))
    assert released(case, list(order)).table.to_arrow().to_pylist() == rows


def check_refusal(case: Case, error: CloisterError) -> None:
    assert not CELL.search(str(error))
    if isinstance(error, UnsatisfiableError):
        assert not must_exist(case)


def check_rows(case: Case, release: Release, rows: list[dict[str, Any]]) -> None:
    columns, quasi, checker = case.schema.columns, case.quasi, checker_of(case)
    identifiers = case.schema.with_roles("identifier")
    assert rows
    assert list(rows[0]) == [name for name in case.arrow.names if name not in identifiers]
    for check in release.checks:
        if not (check.needs_population and case.values == "centers"):
            assert checker.holds(check.model, rows), check.model
    assert len(classes_of_rows(rows, quasi)) == release.partition.size
    assert len(rows) == len(case.rows) - release.suppressed
    assert release.suppressed <= case.suppression_limit * len(case.rows)
    assert is_part(rows, case.rows, [name for name in rows[0] if name not in quasi])
    assert release.risk.models.k == min(map(len, classes_of_rows(rows, quasi)))
    if case.values == "centers":
        check_centers(case, rows)
    else:
        assert is_truthful(rows, case.rows, columns, quasi)


def check_centers(case: Case, rows: list[dict[str, Any]]) -> None:
    """A mean lies between the values of its column; any other center is one of them, or the leaf that holds it."""
    for name in case.quasi:
        column, known = case.schema[name], [row[name] for row in case.rows]
        for shown in {row[name] for row in rows}:
            if isinstance(shown, float):
                numbers = [value for value in known if value is not None]
                assert min(numbers) <= shown <= max(numbers)
            elif shown is not None and column.hierarchy is not None:
                assert shown in column.hierarchy.leaves
            else:
                assert shown in [None if value is None else plain_text(value) for value in known]
