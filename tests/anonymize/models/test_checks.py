from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import cloister as cl
from cloister.anonymize.models import EquivalenceClasses, all_hold, check_of, classes_of, distances
from cloister.anonymize.models.equivalence_classes import sum_by_key
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.errors import ParameterTypeError
from tests.anonymize.models import reference
from tests.anonymize.tables import attained, cells_of, classes_from_counts, full_domain
from tests.support.thoroughness import examples

VALUES = ("a", "b", "c", "d", "e")
HIERARCHY = Hierarchy.from_levels(
    [("a", "ab", "abc"), ("b", "ab", "abc"), ("c", "c-", "abc"), ("d", "de", "de-"), ("e", "de", "de-")]
)
TREE = ((0, 0, 1, 2, 2), (0, 0, 0, 1, 1), (0, 0, 0, 0, 0))
COLUMN = Column(name="s", role="sensitive", kind="ordinal", categories=VALUES, hierarchy=HIERARCHY)


@st.composite
def tables(draw: st.DrawFn) -> list[list[int]]:
    """Draw counts of every value in every class; no class is empty and every value occurs."""
    counts = draw(st.lists(st.lists(st.integers(0, 6), min_size=5, max_size=5), min_size=1, max_size=6))
    assume(all(map(any, counts)) and all(map(any, zip(*counts, strict=True))))
    return counts


shares = st.fractions(0, 1, max_denominator=12)
MODELS = st.one_of(
    st.builds(cl.KAnonymity, k=st.integers(1, 20)),
    st.builds(cl.AlphaKAnonymity, st.just("s"), alpha=shares, k=st.integers(1, 9)),
    st.builds(cl.PSensitivity, st.just("s"), p=st.integers(1, 5), k=st.integers(5, 9)),
    st.builds(cl.LDiversity, st.just("s"), l=st.integers(1, 6)),
    st.builds(
        cl.LDiversity,
        st.just("s"),
        l=st.fractions(1, 6, max_denominator=6),
        kind=st.sampled_from(["frequency", "entropy"]),
    ),
    st.builds(
        cl.LDiversity,
        st.just("s"),
        l=st.integers(1, 6),
        kind=st.just("recursive"),
        c=st.fractions(Fraction(1, 4), 9, max_denominator=4),
    ),
    st.builds(
        cl.TCloseness,
        st.just("s"),
        t=shares,
        kind=st.sampled_from(["equal", "variational", "kl", "ordered", "hierarchical"]),
    ),
    st.builds(
        cl.BetaLikeness,
        st.just("s"),
        beta=st.fractions(Fraction(1, 9), 4, max_denominator=9),
        kind=st.sampled_from(["basic", "enhanced"]),
    ),
)


@given(counts=tables(), model=MODELS)
def test_checks_agree_with_a_plain_reference(counts: list[list[int]], model: Any) -> None:
    classes = classes_from_counts(counts, column=COLUMN)
    overall = np.sum(counts, axis=0).tolist()
    expected = [reference.holds(model, line, overall, TREE) for line in counts]
    assert check_of(model).holds(classes).tolist() == expected


@given(counts=tables(), kind=st.sampled_from(["equal", "ordered", "hierarchical"]))
def test_a_class_attains_exactly_the_t_that_is_reported(counts: list[list[int]], kind: str) -> None:
    classes = classes_from_counts(counts, column=COLUMN)
    overall = np.sum(counts, axis=0).tolist()
    exact = [reference.distance(kind, line, overall, TREE) for line in counts]
    assert attained(cl.TCloseness("s", t=1, kind=kind), classes) == pytest.approx(list(map(float, exact)), rel=1e-12)
    assert check_of(cl.TCloseness("s", t=max(exact), kind=kind)).holds(classes).all()
    if max(exact):
        less = max(exact) - Fraction(1, 10**15)
        assert not check_of(cl.TCloseness("s", t=less, kind=kind)).holds(classes).all()


SMALLER_IS_STRONGER = (cl.TCloseness, cl.AlphaKAnonymity, cl.BetaLikeness)
EVERY = [
    cl.KAnonymity(k=2),
    cl.AlphaKAnonymity("s", alpha=0.5, k=2),
    cl.PSensitivity("s", p=2, k=2),
    cl.LDiversity("s", l=2),
    cl.LDiversity("s", l=2, kind="frequency"),
    cl.LDiversity("s", l=2, kind="entropy"),
    cl.LDiversity("s", l=2, kind="recursive", c=2),
    cl.LDiversity("s", l=3, kind="recursive", c=2),
    *(cl.TCloseness("s", t=0.2, kind=kind) for kind in ("equal", "kl", "ordered", "hierarchical")),
    cl.BetaLikeness("s", beta=1, kind="basic"),
]


@pytest.mark.parametrize("model", EVERY, ids=lambda model: f"{model.kind} {getattr(model, 'variant', '')}")
@settings(max_examples=examples(30, usual=12))
@given(counts=tables(), data=st.data())
def test_merging_classes_never_makes_the_weakest_class_weaker(model: Any, counts: list[list[int]], data: Any) -> None:
    merged_into = data.draw(st.lists(st.integers(0, 2), min_size=len(counts), max_size=len(counts)))
    merged = [
        np.sum([line for line, place in zip(counts, merged_into, strict=True) if place == target], axis=0).tolist()
        for target in sorted(set(merged_into))
    ]
    before, after = (attained(model, classes_from_counts(table, column=COLUMN)) for table in (counts, merged))
    is_small = isinstance(model, SMALLER_IS_STRONGER) or getattr(model, "variant", "") == "recursive"
    assert check_of(model).is_monotone
    assert max(after) <= max(before) + 1e-9 if is_small else min(after) >= min(before) - 1e-9


@given(counts=tables(), model=MODELS, data=st.data())
def test_a_table_that_satisfies_a_model_does_so_after_any_merge(counts: Any, model: Any, data: Any) -> None:
    assume(check_of(model).holds(classes_from_counts(counts, column=COLUMN)).all())
    first, second, *rest = [*data.draw(st.permutations(counts)), [0] * 5]
    merged = [np.add(first, second).tolist(), *(line for line in rest if any(line))]
    assert check_of(model).holds(classes_from_counts(merged, column=COLUMN)).all()


def test_the_entropy_of_one_class_may_fall_when_it_is_merged_but_not_that_of_the_weakest() -> None:
    model = cl.LDiversity("s", l=2, kind="entropy")
    (first, second), (merged,) = (
        attained(model, classes_from_counts(table)) for table in ([[1, 1], [9, 1]], [[10, 2]])
    )
    assert second < merged < first


def test_suppression_changes_the_table_that_classes_are_compared_with() -> None:
    kept, gone = [1, 1, 0], [0, 0, 8]
    model = cl.TCloseness("s", t=0.05)
    table = classes_from_counts([[2, 2, 4], kept, gone])
    partition = full_domain(table.cells, (0,))
    before = attained(model, table)
    after = attained(model, classes_of(partition.without(np.array([False, False, True]))))
    assert after != before[:2]


def test_the_largest_difference_of_shares_is_not_closeness() -> None:
    counts, overall = [1, 1, 0, 0], [1, 1, 1, 1]
    largest = max(abs(Fraction(p, 2) - Fraction(q, 4)) for p, q in zip(counts, overall, strict=True))
    assert attained(cl.TCloseness("s", t=1), classes_from_counts([counts], overall=overall), 1) == [2 * largest]


def test_distinct_diversity_implies_as_many_rows() -> None:
    classes = classes_from_counts([[1, 1, 1], [5, 0, 1]])
    holds = check_of(cl.LDiversity("s", l=3)).holds(classes)
    assert (classes.rows[holds] >= 3).all()
    assert holds.tolist() == [True, False]


def test_no_whole_number_overflows_in_tables_beyond_64_bits() -> None:
    huge = 2**40
    classes = classes_from_counts([[1, 3], [3, 1]])
    big = EquivalenceClasses(
        cells=classes.cells,
        records=classes.records,
        groups=classes.groups,
        counts=classes.counts * huge,
        size=classes.size,
    )
    for kind in ("equal", "ordered", "hierarchical"):
        model = cl.TCloseness("s", t=Fraction(1, 4), kind=kind)
        assert attained(model, big) == attained(model, classes) == [0.25, 0.25]
        assert check_of(model).holds(big).all()
    assert check_of(cl.AlphaKAnonymity("s", alpha=Fraction(3 * huge**2 + 1, 4 * huge**2), k=2)).holds(big).all()
    assert not check_of(cl.LDiversity("s", l=Fraction(4 * huge + 1, 3 * huge), kind="frequency")).holds(big).any()


def test_a_value_that_the_table_does_not_have_is_infinitely_far() -> None:
    classes = classes_from_counts([[1, 1]])
    foreign = EquivalenceClasses(
        cells=classes.cells,
        records=classes.records,
        groups=classes.groups,
        counts=classes.counts,
        size=1,
        overall={"s": np.array([2, 0])},
    )
    assert attained(cl.TCloseness("s", t=1, kind="kl"), foreign) == [np.inf]
    assert not check_of(cl.BetaLikeness("s", beta=5)).holds(foreign).any()


def test_missing_sensitive_values_are_a_value_of_their_own_at_the_end_of_the_scale() -> None:
    column = Column(name="s", role="sensitive", kind="numeric")
    rows = {"class": [0, 0, 1, 1], "s": [1, None, 1, 5]}
    classes = classes_of(full_domain(cells_of(rows, [column], quasi=["class"], sensitive=["s"]), (0,)))
    assert classes.cells.sensitive[0].values == (1, 5, None)
    assert attained(cl.LDiversity("s", l=2), classes) == [2, 2]
    assert attained(cl.TCloseness("s", t=1, kind="ordered"), classes) == [0.125, 0.125]


@pytest.mark.parametrize("kind", ["equal", "kl", "ordered", "hierarchical"])
def test_a_column_with_one_value_is_close(kind: str) -> None:
    classes = classes_from_counts([[3], [1]])
    assert attained(cl.TCloseness("s", t=0, kind=kind), classes) == [0, 0]
    assert check_of(cl.TCloseness("s", t=0, kind=kind)).holds(classes).all()


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.kind)
def test_no_classes_satisfy_everything(model: Any) -> None:
    classes = classes_from_counts([[1, 1]])
    none = classes_of(full_domain(classes.cells, (0,)).without(np.array([True])))
    assert check_of(model).holds(none).tolist() == []
    assert check_of(model).measure(none).tolist() == []


def test_distances_are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = classes_from_counts([[place, 1, 3] for place in range(9)])
    whole = {kind: attained(cl.TCloseness("s", t=1, kind=kind), classes) for kind in ("ordered", "hierarchical")}
    monkeypatch.setattr(distances, "_BLOCK", 6)
    assert whole == {kind: attained(cl.TCloseness("s", t=1, kind=kind), classes) for kind in whole}


def test_persons_are_counted_where_a_column_tells_them_apart() -> None:
    rows = {"zip": ["1", "1", "1", "2", "2"], "s": ["x", "y", "x", "x", "y"], "id": ["p", "p", "p", "q", "r"]}
    cells = cells_of(rows, quasi=["zip"], sensitive=["s"], subject="id")
    classes = classes_of(full_domain(cells, (0,)))
    assert attained(cl.KAnonymity(k=2), classes) == [3, 2]
    assert attained(cl.KAnonymity(k=2, unit="id"), classes) == [1, 2]
    for model in (cl.AlphaKAnonymity("s", alpha=1, k=2, unit="id"), cl.PSensitivity("s", p=2, k=2, unit="id")):
        assert check_of(model).holds(classes).tolist() == [False, True]
        assert check_of(model.with_unit("row")).holds(classes).tolist() == [True, True]


def test_rows_are_persons_where_nothing_tells_them_apart() -> None:
    classes = classes_from_counts([[3, 1]])
    assert attained(cl.KAnonymity(k=2, unit="id"), classes) == [4]


def test_sums_are_the_same_for_few_and_for_many_possible_keys() -> None:
    keys, counts = np.array([7, 2, 7]), np.array([1, 2, 3])
    for bound in (8, 10**12):
        found, totals = sum_by_key(keys, counts, bound)
        assert (found.tolist(), totals.tolist()) == ([2, 7], [2, 4])


def test_all_checks_must_hold() -> None:
    classes = classes_from_counts([[3, 0], [1, 1], [2, 2]])
    checks = [check_of(cl.KAnonymity(k=3)), check_of(cl.LDiversity("s", l=2))]
    assert all_hold(checks, classes).tolist() == [False, False, True]
    assert all_hold([], classes).all()


@pytest.mark.parametrize("model", [cl.PureDP(epsilon=1), "k=5", cl.KAnonymity])
def test_what_a_table_cannot_satisfy_is_refused(model: Any) -> None:
    with pytest.raises(ParameterTypeError, match="KAnonymity"):
        check_of(model)


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (cl.KAnonymity(k=9), "at most the number of rows"),
        (cl.KAnonymity(k=9, unit="id"), "at most the number of persons"),
        (cl.LDiversity("s", l=4), "l <= 3"),
        (cl.LDiversity("s", l=4, kind="frequency"), "l <= 2"),
        (cl.LDiversity("s", l=4, kind="entropy"), "l <= 2.749"),
        (cl.LDiversity("s", l=2, kind="recursive", c="0.1"), "c > 1"),
        (cl.AlphaKAnonymity("s", alpha="0.1", k=2), "alpha >= 0.5"),
        (cl.PSensitivity("s", p=4, k=5), "p <= 3"),
    ],
)
def test_advice_says_what_the_whole_table_would_satisfy(model: Any, advice: str) -> None:
    assert advice in check_of(model).advice(classes_from_counts([[3, 2, 1]]))


def test_advice_on_closeness_and_likeness_is_about_the_worst_class() -> None:
    classes = classes_from_counts([[3, 1], [1, 3]])
    assert "t >= 0.25" in check_of(cl.TCloseness("s", t=0)).advice(classes)
    assert "beta >= 0.5" in check_of(cl.BetaLikeness("s", beta="0.1")).advice(classes)
