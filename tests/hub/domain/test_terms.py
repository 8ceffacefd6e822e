from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from cloister.errors import ParameterError
from cloister.hub.domain.terms import (
    ANYTHING,
    NEUTRAL,
    NOTHING,
    VOCABULARY,
    DataSensitivity,
    PolicyMark,
    PurposeSet,
    UsageTerms,
    check_purpose,
    conflicts,
    inherit,
)

purposes = st.lists(st.sampled_from([*VOCABULARY, "*"]), max_size=4).map(lambda names: PurposeSet(tuple(names)))
names = st.frozensets(st.sampled_from("abc"))
marks = st.builds(PolicyMark, object_id=st.sampled_from("ab"), version=st.integers(1, 2), digest=st.just("0"))
terms = st.builds(
    UsageTerms,
    purposes=purposes,
    sensitivity=st.sampled_from(list(DataSensitivity)),
    legal_bases=names,
    regions=st.none() | names,
    retention_days=st.none() | st.integers(0, 9),
    not_with=names,
    only_with=st.none() | names,
    internal_only=st.booleans(),
    policies=st.lists(marks, unique=True, max_size=2).map(lambda found: tuple(sorted(found))),
)
FEW = settings(max_examples=60, deadline=None)


def test_a_purpose_includes_those_below_it() -> None:
    research = PurposeSet.of("research")
    assert research.allows("research.health.cancer")
    assert not research.allows("researchers")
    assert not PurposeSet.of("research.health").allows("research")
    assert not NOTHING.allows("research")
    assert ANYTHING.allows("anything.at-all")
    assert research.includes(PurposeSet.of("research.health", "research.social"))
    assert not research.includes(PurposeSet.of("research", "teaching"))


def test_purposes_read_as_words() -> None:
    assert [str(item) for item in (NOTHING, ANYTHING, PurposeSet.of("teaching", "care"))] == [
        "no purpose",
        "any purpose",
        "care, teaching",
    ]


@pytest.mark.parametrize(
    "value", ["", "Research", "research.", ".health", "a..b", "a b", "x" * 41, None, 3, "research\n"]
)
def test_a_malformed_purpose_is_refused(value: object) -> None:
    with pytest.raises(ParameterError, match="joined by dots"):
        check_purpose(value)


def test_a_near_purpose_is_suggested() -> None:
    with pytest.raises(ParameterError, match='Did you mean "research.health"'):
        check_purpose("Research.Health")


@FEW
@given(purposes, purposes, st.sampled_from(list(VOCABULARY)))
def test_an_intersection_allows_what_both_allow(left: PurposeSet, right: PurposeSet, purpose: str) -> None:
    assert (left & right).allows(purpose) == (left.allows(purpose) and right.allows(purpose))
    assert left.includes(left & right)


def test_teaching_and_health_joined_with_health_is_health_only() -> None:
    first = UsageTerms(purposes=PurposeSet.of("teaching", "research.health"))
    assert inherit([first, UsageTerms(purposes=PurposeSet.of("research.health"))]).purposes == PurposeSet.of(
        "research.health"
    )


def test_the_strictest_of_all_parents_is_inherited() -> None:
    marks = [PolicyMark(object_id=name, version=1, digest=name * 64) for name in "ab"]
    first = UsageTerms(
        purposes=PurposeSet.of("research"),
        sensitivity=DataSensitivity.INTERNAL,
        legal_bases=frozenset({"consent"}),
        regions=frozenset({"eu", "ch"}),
        retention_days=100,
        not_with=frozenset({"x"}),
        policies=(marks[1],),
    )
    second = UsageTerms(
        purposes=PurposeSet.of("research.health", "teaching"),
        sensitivity=DataSensitivity.CONFIDENTIAL,
        legal_bases=frozenset({"law"}),
        regions=frozenset({"ch", "us"}),
        retention_days=10,
        not_with=frozenset({"y"}),
        only_with=frozenset({"z"}),
        internal_only=True,
        policies=(marks[0],),
    )
    assert inherit([first, second]) == UsageTerms(
        purposes=PurposeSet.of("research.health"),
        sensitivity=DataSensitivity.CONFIDENTIAL,
        legal_bases=frozenset({"consent", "law"}),
        regions=frozenset({"ch"}),
        retention_days=10,
        not_with=frozenset({"x", "y"}),
        only_with=frozenset({"z"}),
        internal_only=True,
        policies=tuple(marks),
    )


def test_what_has_no_parents_allows_nothing() -> None:
    assert inherit([]) == UsageTerms()
    assert not inherit([]).purposes


@FEW
@given(terms, terms, terms)
def test_inheriting_is_the_same_in_any_order_and_grouping(
    first: UsageTerms, second: UsageTerms, third: UsageTerms
) -> None:
    assert inherit([first, second]) == inherit([second, first])
    assert inherit([inherit([first, second]), third]) == inherit([first, inherit([second, third])])
    assert inherit([first, first]) == inherit([first])
    assert inherit([first, NEUTRAL]) == first


@FEW
@given(terms, terms, st.sampled_from("abcd"))
def test_nothing_is_freed_by_combining(first: UsageTerms, second: UsageTerms, other: str) -> None:
    both = inherit([first, second])
    for parent in (first, second):
        assert parent.purposes.includes(both.purposes)
        assert both.sensitivity >= parent.sensitivity
        assert parent.retention_days is None or (both.retention_days or 0) <= parent.retention_days
        assert set(conflicts(parent, [other])) <= set(conflicts(both, [other]))
        assert both.internal_only or not parent.internal_only
        assert set(parent.policies) <= set(both.policies)


def test_bans_on_combination() -> None:
    banned = replace(NEUTRAL, not_with=frozenset({"b"}), only_with=frozenset({"a", "b"}))
    assert conflicts(banned, ["c", "b", "a"]) == ("b", "c")
    assert conflicts(replace(NEUTRAL, not_with=frozenset({"*"})), ["a"]) == ("a",)
    assert conflicts(NEUTRAL, ["a"]) == ()
