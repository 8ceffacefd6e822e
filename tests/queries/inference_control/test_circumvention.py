"""What attackers try: with the controls off it works, so that the tests can fail; with them it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.attacks.interfaces.differences import differencing, value_of_newcomer
from cloister.attacks.interfaces.repeated_questions import averaging
from cloister.errors import QueryRefusedError
from cloister.queries.inference_control import ControlledTable, Controls, MemoryHistory
from cloister.queries.inference_control._linear_audit import Mask
from tests.queries.inference_control.controlled import (
    CUT_POINTS,
    SALARIES,
    pairs_given_away,
    singles_given_away,
    staff,
    staff_rows,
    ten,
)
from tests.support.thoroughness import audited, examples


def tracker(table: ControlledTable, target: str, padding: str) -> float | None:
    """Return a forbidden sum by the general tracker; None if a part is refused."""
    parts = (f"({target}) OR ({padding})", f"({target}) OR NOT ({padding})", padding, f"NOT ({padding})")
    try:
        first, second, *whole = (table.sum("salary", where).value for where in parts)
    except QueryRefusedError:
        return None
    return float(first + second - sum(whole))


def test_the_general_tracker_gets_around_the_size_alone() -> None:
    table = ten(audit=False)
    assert [table.sum("salary", where).value for where in ("sex = 'F'", "sex = 'M'")] == [9000, 24000]
    assert [table.sum("salary", f"id = 8 OR sex = '{sex}'").value for sex in "FM"] == [19000, 24000]
    assert tracker(table, "id = 8", "sex = 'F'") == 10000


CONTROLS: list[dict[str, Any]] = [
    {},
    {"pairs": False},
    {"audit": False, "max_overlap": 1},
    {"max_overlap": 1},
    {"audit": True},
]
TRACKED = [(controls, person) for controls in CONTROLS for person in (1, 8, 10)]


@pytest.mark.parametrize(
    ("controls", "person"),
    audited(TRACKED, but=[case for case in TRACKED if case[1] == 8 or not case[0]]),
)
def test_the_general_tracker_does_not_get_around_overlap_control_or_the_audit(
    controls: dict[str, Any], person: int
) -> None:
    assert tracker(ten(audit=False), f"id = {person}", "sex = 'F'") == SALARIES[person - 1]
    assert tracker(ten(**controls), f"id = {person}", "sex = 'F'") is None


def individual_tracker(table: ControlledTable) -> float | None:
    """Return the salary of number 8, who is the only one with A and B, from A and from A without B."""
    try:
        whole, rest = (table.sum("salary", where).value for where in ("sex = 'M'", "sex = 'M' AND NOT id = 8"))
    except QueryRefusedError:
        return None
    return float(whole - rest)


def test_the_individual_tracker() -> None:
    assert individual_tracker(ten(audit=False)) == 10000
    assert individual_tracker(ten()) is None
    assert individual_tracker(ten(audit=False, max_overlap=3)) is None


@pytest.mark.slow
@pytest.mark.parametrize("with_counts", [False, True])
def test_differencing_works_without_the_audit_and_never_with_it(with_counts: bool) -> None:
    rows = staff_rows(40)
    people = range(10, 10 + examples(20, usual=6))
    truth = rows["bonus"].to_pylist()[people.start : people.stop]
    questions = [("number >= 5", f"number >= 5 AND number <> {number}") for number in people]

    def attacked(**controls: Any) -> Any:
        table = staff(40, controls=Controls(min_size=3, **controls))
        ask = (lambda where: table.mean("bonus", where)) if with_counts else (lambda where: table.sum("bonus", where))
        return differencing(
            ask,
            questions=questions,
            truth=truth,
            count=table.count if with_counts else None,
            tolerance=0.01,
            refusal=QueryRefusedError,
        )

    assert attacked(audit=False).success == 1
    guarded = attacked()
    assert guarded.success == 0
    assert guarded.refused == len(questions)


def test_a_mean_and_a_count_are_a_sum() -> None:
    open_table, guarded = ten(audit=False), ten()
    conditions = ("sex = 'M'", "sex = 'M' AND id <> 8")
    after, before = ((open_table.count(where).value, open_table.mean("salary", where).value) for where in conditions)
    assert value_of_newcomer(before=before, after=after) == 10000
    guarded.mean("salary", conditions[0])
    assert guarded.count(conditions[1]).value == 4
    for ask in (guarded.mean, guarded.sum):
        with pytest.raises(QueryRefusedError) as refused:
            ask("salary", conditions[1])
        assert refused.value.control == "audit"


def test_one_column_does_not_open_a_way_to_another() -> None:
    table = staff()
    table.sum("salary", "number >= 20")
    with pytest.raises(QueryRefusedError):
        table.sum("bonus", "number >= 21")
    with pytest.raises(QueryRefusedError):
        table.count("number >= 21 AND illness = 'flu'")


def test_repeating_a_question_gives_the_same_answer() -> None:
    table = staff()
    result = averaging(
        lambda where: table.mean("bonus", where),
        questions=["sex = 'F'", "sex = 'M'"],
        truth=[0, 0],
        repeats=5,
        refusal=QueryRefusedError,
    )
    assert result.unchanged == 2


def test_an_insider_learns_nobody_elses_value() -> None:
    """Number 7 knows the own salary and asks about a group, and about it without numbers 7 and 8."""
    conditions = ("sex = 'M'", "sex = 'M' AND id NOT IN (7, 8)")
    careless = ten(pairs=False)
    whole, rest = (careless.sum("salary", where).value for where in conditions)
    assert whole - rest - SALARIES[6] == SALARIES[7]
    careful = ten()
    careful.sum("salary", conditions[0])
    with pytest.raises(QueryRefusedError):
        careful.sum("salary", conditions[1])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("target", [3, 4])
def test_refusals_of_conditions_on_confidential_columns_do_not_tell_who_meets_them(
    order: tuple[int, int], target: int
) -> None:
    """Number 4 has flu, number 3 does not; in both cases the attacker sees the same."""
    low, high = (3, 23) if target == 3 else (4, 24)
    questions = [f"number >= {low + 1} AND number < {high} AND illness = 'flu'"]
    questions.append(f"number >= {low} AND number < {high} AND illness = 'flu'")
    table = staff(controls=Controls(min_size=5, cut_points=CUT_POINTS))
    seen = []
    for place in order:
        try:
            table.count(questions[place])
            seen.append("answered")
        except QueryRefusedError as refused:
            seen.append(refused.control)
    assert seen[1] == "audit"


def test_colluding_organizations_are_not_seen() -> None:
    """A limit that is stated: each organization has its own history."""
    ann, bob = ten(), ten()
    assert bob.sum("salary", "sex = 'M'").value - ann.sum("salary", "sex = 'M' AND id <> 8").value == 10000


def _condition(parts: Sequence[tuple[str, int]], joined: str) -> str:
    return f" {joined} ".join(f"number {sign} {number}" for sign, number in parts)


def _holds(parts: Sequence[tuple[str, int]], joined: str, number: int) -> bool:
    tests = {"<": int.__lt__, ">=": int.__ge__, "<>": int.__ne__, "=": int.__eq__}
    truths = [tests[sign](number, other) for sign, other in parts]
    return all(truths) if joined == "AND" else any(truths)


questions = st.tuples(
    st.lists(st.tuples(st.sampled_from(["<", ">=", "<>", "="]), st.integers(0, 13)), min_size=1, max_size=3),
    st.sampled_from(["AND", "OR"]),
    st.sampled_from(["sum", "mean", "flu"]),
)


@pytest.mark.slow
@settings(max_examples=examples(25, usual=4), deadline=None)
@given(st.integers(8, 13), st.lists(questions, min_size=3, max_size=12), st.booleans())
def test_no_value_follows_from_what_is_answered(
    size: int, asked: list[tuple[list[tuple[str, int]], str, str]], pairs: bool
) -> None:
    rows = staff_rows(size).to_pylist()
    table = staff(size, controls=Controls(min_size=2, pairs=pairs, cut_points=CUT_POINTS))
    known: list[Mask] = []
    contributing: list[Mask] = []
    for parts, joined, kind in asked:
        where = f"({_condition(parts, joined)})"
        members = np.array([_holds(parts, joined, row["number"]) for row in rows])
        meant = np.array([kind != "flu" or row["illness"] == "flu" for row in rows])
        values = np.array([row["bonus"] for row in rows])
        try:
            if kind == "mean":
                shown = table.mean("bonus", where).value
                assert shown == pytest.approx(values[members].mean(), abs=1e-12)
            else:
                shown = table.sum("bonus", where if kind == "sum" else f"{where} AND illness = 'flu'").value
                assert shown == values[members & meant].sum()
        except QueryRefusedError:
            continue
        known.append(members)
        contributing.append(members & meant)
    for sets in (known, contributing):
        assert singles_given_away(sets) == []
        if pairs:
            assert pairs_given_away(sets) == []
    history = table.history
    assert isinstance(history, MemoryHistory)
    again = staff(size, controls=table.controls, history=MemoryHistory.from_dict(history.to_dict()))
    for parts, joined, _ in asked:
        where = f"({_condition(parts, joined)})"
        assert _outcome(table, where) == _outcome(again, where)


def _outcome(table: ControlledTable, where: str) -> Any:
    try:
        return table.sum("bonus", where).value
    except QueryRefusedError as refused:
        return refused.control
