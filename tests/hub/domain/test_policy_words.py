from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from cloister.accounting.budget import Budget
from cloister.errors import PolicyError
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import (
    FORBIDDEN,
    Acknowledgement,
    AlgorithmReference,
    AttributeCondition,
    BudgetLimits,
    ColumnRule,
    ColumnRules,
    Environment,
    Member,
    Members,
    Mode,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
    Use,
)
from cloister.hub.domain.policy_edits import RoleEdit, edit_policy, is_simple
from cloister.hub.domain.policy_words import describe_changes, rule_words
from cloister.hub.domain.requests import approve, ask, history_to_list, request_from_dict, request_to_dict, submit
from cloister.hub.domain.terms import DataSensitivity, PurposeSet, UsageTerms
from tests.hub.domain import policies

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LATER = datetime(2027, 5, 1, tzinfo=UTC)
START = Policy(object_id="d")
QUERY = PolicyRule(effect=RuleEffect.ALLOW, operations=frozenset({PolicyOperation.QUERY_COUNT}))


@given(policies.policies(), policies.policies())
def test_versions_that_differ_say_so_and_equal_ones_say_nothing(one: Policy, other: Policy) -> None:
    assert describe_changes(one, one) == ()
    assert bool(describe_changes(one, other)) == (one != replace(other, version=one.version))


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({"two_person": True}, ["Requests need two owners to approve them."]),
        ({"mode": Mode.SDC}, ["Answers are given exactly, behind statistical disclosure control."]),
        (
            {"mode": Mode.EXACT, "acknowledgement": Acknowledgement(by="o", at=NOW, statement="s")},
            ["Answers are given exactly, with nothing that protects the people in the data."],
        ),
        (
            {"terms": UsageTerms(internal_only=True, sensitivity=DataSensitivity.PUBLIC)},
            ["The data is internal to the owner's organisation.", "The terms have another entry: sensitivity."],
        ),
        (
            {"columns": ColumnRules(others=ColumnRule(uses=frozenset({Use.FILTER}), terms=UsageTerms()))},
            [
                "columns that are not named: see that it exists and select rows by it (before: hidden).",
                "columns that are not named: its own terms are different.",
            ],
        ),
        (
            {"roles": (PolicyRole(name="r", members=Members(organisations=frozenset({"h"}), everyone=True)),)},
            ["The role r is new.", "In the role r: everybody is in.", "In the role r: everybody of h is in."],
        ),
    ],
)
def test_each_change_has_its_sentence(after: dict[str, object], told: list[str]) -> None:
    assert list(describe_changes(START, START.next_version(**after))) == told


def test_members_and_roles_that_change() -> None:
    role = PolicyRole(
        name="r",
        members=Members(
            users=(Member(user_id="u1"), Member(user_id="u2")),
            attributes=(AttributeCondition((("ward", frozenset({"a", "b"})),)),),
        ),
        rules=(QUERY, replace(QUERY, effect=RuleEffect.DENY)),
    )
    before = Policy(object_id="d", roles=(role, PolicyRole(name="s")))
    users = (Member(user_id="u1", until=LATER, budget=Budget(epsilon=Fraction(1, 2), delta=Fraction(1, 1000))),)
    after = before.next_version(
        roles=(PolicyRole(name="s"), replace(role, members=Members(users=users), rules=role.rules[::-1]))
    )
    assert list(describe_changes(before, after, user=str.upper)) == [
        "In the role r: U1, until 2027-05-01 00:00 UTC, with epsilon 0.5, delta 0.001 in all (before: U1).",
        "In the role r: U2 is out.",
        "In the role r: everybody with ward a or b is out.",
        "In the role r: the rules have another order.",
        "The roles are tried in another order: s, r.",
    ]
    assert describe_changes(after, after.next_version(roles=())) == ("The role s is gone.", "The role r is gone.")


def test_a_rule_in_words() -> None:
    rule = PolicyRule(
        effect=RuleEffect.ALLOW,
        operations=frozenset({PolicyOperation.ML_TRAIN}),
        algorithms=(AlgorithmReference("kmeans", "1.0.0"),),
        purposes=PurposeSet.of("research"),
        not_before=NOW,
        expires=LATER,
        environment=Environment(days=frozenset({"monday"}), networks=frozenset({"campus"}), highest_risk=2),
        limits=BudgetLimits(job=Budget(epsilon=Fraction(1, 10))),
    )
    assert rule_words(rule) == (
        "may train models, with kmeans@1.0.0 only, for research, from 2026-05-01 00:00 UTC on, until 2027-05-01 00:00 "
        "UTC, on monday, from the network campus, with a session risk up to 2, with at most epsilon 0.1 per run"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [("job", "run"), ("user", "person"), ("organisation", "organisation"), ("purpose", "purpose")],
)
def test_every_limit_of_a_rule_has_words(name: str, words: str) -> None:
    limits = BudgetLimits(**{name: Budget(epsilon=Fraction(1, 2))})
    rule = PolicyRule(effect=RuleEffect.ALLOW, operations=frozenset({PolicyOperation.QUERY_COUNT}), limits=limits)
    assert rule_words(rule).endswith(f"with at most epsilon 0.5 per {words}")


@given(policies.policies())
def test_an_edit_of_nothing_changes_nothing(policy: Policy) -> None:
    assert replace(edit_policy(policy), version=policy.version) == policy
    kept = edit_policy(policy, roles=[RoleEdit(name=role.name) for role in policy.roles])
    assert replace(kept, version=policy.version) == policy


@given(policies.policies(), st.sampled_from([frozenset(), frozenset({Use.FILTER}), frozenset(Use)]))
def test_an_edit_of_a_column_leaves_the_others(policy: Policy, uses: frozenset[Use]) -> None:
    after = edit_policy(policy, columns={"age": uses})
    assert after.columns.of("age").uses == (uses | {Use.VISIBLE} if uses else FORBIDDEN.uses)
    assert after.columns.of("sex") == policy.columns.of("sex")
    assert after.roles == policy.roles


def test_a_form_cannot_change_what_it_does_not_show() -> None:
    hidden = replace(QUERY, operations=QUERY.operations | {PolicyOperation.EXPORT_RAW})
    several = PolicyRole(name="several", rules=(QUERY, replace(QUERY, effect=RuleEffect.DENY)))
    before = Policy(object_id="d", roles=(PolicyRole(name="raw", rules=(hidden,)), several))
    after = edit_policy(before, roles=[RoleEdit(name="raw", operations=[PolicyOperation.ML_TRAIN])])
    assert after.role("raw").rules[0].operations == {PolicyOperation.ML_TRAIN, PolicyOperation.EXPORT_RAW}
    assert not is_simple(several)
    with pytest.raises(PolicyError, match="change them in the JSON"):
        edit_policy(before, roles=[RoleEdit(name="several", operations=[])])
    with pytest.raises(PolicyError, match="name it in the JSON"):
        edit_policy(before, roles=[RoleEdit(name="new", operations=[PolicyOperation.DELETE])])
    narrowed = edit_policy(before, roles=[RoleEdit(name="several", rows="age > 3"), RoleEdit(name="raw", remove=True)])
    assert [role.name for role in narrowed.roles] == ["several"]
    assert narrowed.role("several").rows == RowPredicate("age > 3")
    assert edit_policy(narrowed, roles=[RoleEdit(name="several", rows=" ")]).role("several").rows is None


@given(st.booleans(), st.none() | st.integers(1, 9))
def test_a_request_is_read_as_it_was_written(two: bool, budget: int | None) -> None:
    amount = None if budget is None else Budget(epsilon=Fraction(budget, 7))
    policy = Policy(object_id="d", two_person=two, roles=(PolicyRole(name="r"),))
    made = submit(
        "req_1",
        policy=policy,
        requester="u",
        at=NOW,
        purpose="research",
        operations=[PolicyOperation.ML_TRAIN, PolicyOperation.QUERY_COUNT],
        algorithms=[AlgorithmReference("kmeans", "1.0.0", "a" * 64)],
        budget=amount,
        note="please",
    )
    asked = ask(made, by="o", owners={"o"}, at=NOW, note="why?")
    approved = approve(made, by="o", owners={"o"}, at=NOW, role="r", until=LATER, budget=amount)
    for request in (made, asked, approved):
        again = request_from_dict(
            request_to_dict(request),
            history_to_list(request),
            request_id=request.request_id,
            requester=request.requester,
            state=str(request.state),
        )
        assert again == request
    for name in ("two_person", "algorithms", "approvals"):
        damaged = {field: value for field, value in request_to_dict(made).items() if field != name}
        with pytest.raises(PolicyError, match=f'"{name}" is missing'):
            request_from_dict(damaged, history_to_list(made), request_id="r", requester="u", state="requested")


def test_an_edited_limit_leaves_that_of_a_purpose() -> None:
    limits = BudgetLimits(user=Budget(epsilon=1), purpose=Budget(epsilon=2))
    operations = frozenset({PolicyOperation.ML_TRAIN})
    rule = PolicyRule(effect=RuleEffect.ALLOW, operations=operations, limits=limits)
    policy = Policy(object_id="d", roles=(PolicyRole(name="r", rules=(rule,)),))
    less = edit_policy(policy, roles=[RoleEdit(name="r", limits=BudgetLimits(user=Budget(epsilon="1/2")))])
    found = less.role("r").rules[0].limits
    assert (found.user, found.purpose) == (Budget(epsilon="1/2"), Budget(epsilon=2))
