from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from cloister.accounting.budget import Budget
from cloister.errors import ForbiddenError, ParameterError, PolicyError
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.decisions import Decision, RequestContext, decide
from cloister.hub.domain.operations import OWNER_OPERATIONS, PolicyOperation
from cloister.hub.domain.policy import (
    AlgorithmReference,
    AttributeCondition,
    BudgetLimits,
    Environment,
    Member,
    Members,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
)
from cloister.hub.domain.policy_file import policy_from_dict
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.domain.terms import PurposeSet, UsageTerms

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HEALTH = UsageTerms(purposes=PurposeSet.of("research.health"))
A1, A2 = AlgorithmReference("a1", "1.0.0"), AlgorithmReference("a2", "1.0.0")


def person(name: str, **facts: object) -> AccessSubject:
    return AccessSubject(user_id=name.lower(), name=name, **facts)  # type: ignore[arg-type]


def allow(*operations: PolicyOperation, **conditions: object) -> PolicyRule:
    return PolicyRule(effect=RuleEffect.ALLOW, operations=frozenset(operations), **conditions)  # type: ignore[arg-type]


def deny(*operations: PolicyOperation, **conditions: object) -> PolicyRule:
    return PolicyRule(effect=RuleEffect.DENY, operations=frozenset(operations), **conditions)  # type: ignore[arg-type]


def named(*users: str) -> Members:
    return Members(users=tuple(Member(user_id=user.lower()) for user in users))


def in_role(*rules: PolicyRule, members: Members | None = None, **facts: object) -> Policy:
    role = PolicyRole(name="R", members=members or named("U1"), rules=rules, rows=facts.pop("rows", None))  # type: ignore[arg-type]
    return Policy(object_id="D1", roles=(role,), **{"terms": HEALTH, **facts})  # type: ignore[arg-type]


def ask(
    policy: Policy, subject: AccessSubject, operation: PolicyOperation = PolicyOperation.QUERY_COUNT, **facts: object
) -> Decision:
    context = RequestContext(**{"now": NOW, "purpose": "research.health", **facts})  # type: ignore[arg-type]
    return decide(policy, subject, operation, context)


QUERIES = (PolicyOperation.QUERY_COUNT, PolicyOperation.QUERY_AGGREGATE)
FIGURE = Policy(
    object_id="D1",
    terms=HEALTH,
    roles=(
        PolicyRole(name="R1", members=named("U1", "U2"), rules=(allow(*QUERIES),)),
        PolicyRole(name="R2", members=named("U3"), rules=(allow(PolicyOperation.ML_TRAIN, algorithms=(A1,)),)),
    ),
)


@pytest.mark.parametrize(
    ("name", "operation", "algorithm", "allowed"),
    [
        ("U1", PolicyOperation.QUERY_COUNT, None, True),
        ("U2", PolicyOperation.QUERY_AGGREGATE, None, True),
        ("U3", PolicyOperation.ML_TRAIN, A1, True),
        ("U3", PolicyOperation.QUERY_COUNT, None, False),
        ("U1", PolicyOperation.ML_TRAIN, A1, False),
        ("U3", PolicyOperation.ML_TRAIN, A2, False),
        ("U3", PolicyOperation.ML_TRAIN, AlgorithmReference("a1", "1.1.0"), False),
        ("U3", PolicyOperation.ML_TRAIN, AlgorithmReference("a1"), False),
        ("U3", PolicyOperation.ML_TRAIN, None, False),
        ("U9", PolicyOperation.QUERY_COUNT, None, False),
        ("U9", PolicyOperation.ML_TRAIN, A1, False),
    ],
)
def test_the_example_of_two_roles(
    name: str, operation: PolicyOperation, algorithm: AlgorithmReference | None, allowed: bool
) -> None:
    assert ask(FIGURE, person(name), operation, algorithm=algorithm).allowed is allowed


def test_owning_one_dataset_gives_nothing_on_another() -> None:
    owner = person("O1", roles=frozenset({AccountRole.DATA_OWNER, AccountRole.DATA_USER}))
    second = in_role(allow(*QUERIES), members=named("U1"))
    mine = frozenset({"o1"})
    for operation in PolicyOperation:
        assert not ask(second, owner, operation, owners=frozenset({"o2"}), algorithm=A1).allowed
    assert all(ask(FIGURE, owner, operation, owners=mine).allowed for operation in OWNER_OPERATIONS)
    granted = second.with_member("R", Member(user_id="o1"))
    assert ask(granted, owner, owners=frozenset({"o2"})).allowed


def test_an_owner_queries_only_by_a_grant_and_never_gets_raw_rows_by_owning() -> None:
    mine = frozenset({"o1"})
    for operation in set(PolicyOperation) - OWNER_OPERATIONS:
        assert not ask(FIGURE, person("O1"), operation, owners=mine, algorithm=A1).allowed
    assert PolicyOperation.EXPORT_RAW not in OWNER_OPERATIONS


def test_an_owner_cannot_be_locked_out_by_the_own_policy() -> None:
    policy = in_role(deny(*PolicyOperation), members=Members(everyone=True))
    assert ask(policy, person("O1"), PolicyOperation.POLICY_EDIT, owners=frozenset({"o1"})).allowed
    assert not ask(policy, person("U1"), PolicyOperation.POLICY_EDIT, owners=frozenset({"o1"})).allowed


def test_deny_beats_allow_in_whatever_role_it_stands() -> None:
    barred = PolicyRole(name="barred", members=Members(organisations=frozenset({"x"})), rules=(deny(*QUERIES),))
    policy = replace(FIGURE, roles=(*FIGURE.roles, barred))
    assert ask(policy, person("U1", organisation_id="y")).allowed
    refused = ask(policy, person("U1", organisation_id="x"))
    assert not refused.allowed
    assert "rule 1 of the role barred denies it" in refused.reason
    assert "barred" not in refused.public_reason


def test_cutting_an_algorithm_leaves_other_work_alone() -> None:
    work = allow(PolicyOperation.QUERY_COUNT, PolicyOperation.ML_TRAIN)
    policy = in_role(work, deny(*PolicyOperation, algorithms=(AlgorithmReference("a1"),)))
    assert ask(policy, person("U1")).allowed
    assert ask(policy, person("U1"), PolicyOperation.ML_TRAIN, algorithm=A2).allowed
    assert not ask(policy, person("U1"), PolicyOperation.ML_TRAIN, algorithm=A1).allowed
    assert not ask(policy, person("U1"), PolicyOperation.ML_TRAIN).allowed


def test_a_pinned_algorithm_must_have_the_pinned_contents() -> None:
    policy = in_role(allow(PolicyOperation.ALGO_RUN, algorithms=(AlgorithmReference("a", "1", "f" * 64),)))
    assert ask(policy, person("U1"), PolicyOperation.ALGO_RUN, algorithm=AlgorithmReference("a", "1", "f" * 64)).allowed
    assert not ask(
        policy, person("U1"), PolicyOperation.ALGO_RUN, algorithm=AlgorithmReference("a", "1", "e" * 64)
    ).allowed
    assert not ask(policy, person("U1"), PolicyOperation.ALGO_RUN, algorithm=AlgorithmReference("a", "1")).allowed


def test_outsiders_see_only_what_is_discoverable() -> None:
    shown = replace(FIGURE, discoverable=True)
    outsider = person("U9")
    assert ask(shown, outsider, PolicyOperation.DISCOVER).allowed
    assert not any(
        ask(shown, outsider, item, algorithm=A1).allowed for item in set(PolicyOperation) - {PolicyOperation.DISCOVER}
    )
    assert not ask(FIGURE, outsider, PolicyOperation.DISCOVER).allowed


def test_what_is_hidden_is_refused_as_if_it_were_not_there() -> None:
    refusals = {ask(FIGURE, person("U9"), item, algorithm=A1).public_reason for item in PolicyOperation}
    assert refusals == {"There is nothing here that you may see."}
    assert ask(FIGURE, person("U9")).hides_existence
    assert not ask(replace(FIGURE, discoverable=True), person("U9")).hides_existence
    assert not ask(FIGURE, person("U3")).hides_existence


def test_members_see_that_it_exists_and_what_it_has() -> None:
    assert ask(FIGURE, person("U3"), PolicyOperation.DISCOVER).allowed
    assert ask(FIGURE, person("U3"), PolicyOperation.DESCRIBE, purpose=None).allowed
    only = in_role(allow(PolicyOperation.DISCOVER))
    assert not ask(only, person("U1"), PolicyOperation.DESCRIBE).allowed


def test_the_reason_is_one_sentence_and_the_public_one_names_nobody() -> None:
    refused = ask(FIGURE, person("U3"))
    assert refused.reason == (
        "query.count was refused to U3, who is in the role R2, because its rules allow ml.train, not query.count."
    )
    assert refused.public_reason == "The owner's policy does not allow you to do this."
    assert [step.applies for step in refused.trace] == [False]
    with pytest.raises(ForbiddenError, match="ask the owner"):
        refused.require()
    ask(FIGURE, person("U1")).require()


def test_a_permission_says_by_which_role_and_rule() -> None:
    decision = ask(FIGURE, person("U1"))
    assert decision.reason == "query.count was allowed: U1 is in the role R1, whose rule 1 allows it."
    assert (decision.role, decision.policy_version) == ("R1", 1)
    assert decision.to_dict()["trace"] == [
        {"role": "R1", "rule": 0, "effect": "allow", "applies": True, "why": "it allows this"}
    ]


def test_a_purpose_must_be_declared_and_allowed() -> None:
    policy = in_role(allow(*QUERIES))
    assert ask(policy, person("U1"), purpose="research.health.cancer").allowed
    assert ask(policy, person("U1"), purpose=None).public_reason == "Say what this is for."
    refused = ask(policy, person("U1"), purpose="commercial")
    assert "the purpose commercial is not among those allowed (research.health)" in refused.reason
    assert not ask(replace(policy, terms=UsageTerms()), person("U1")).allowed
    narrower = in_role(allow(*QUERIES, purposes=PurposeSet.of("research.health.cancer")))
    assert not ask(narrower, person("U1")).allowed
    with pytest.raises(ParameterError, match="lower-case words joined by dots"):
        ask(policy, person("U1"), purpose="Research!")


def test_a_purpose_that_is_not_known_counts_against_the_one_who_asks() -> None:
    policy = in_role(
        allow(PolicyOperation.DISCOVER, PolicyOperation.DESCRIBE),
        deny(PolicyOperation.DESCRIBE, purposes=PurposeSet.of("x")),
    )
    assert ask(policy, person("U1"), PolicyOperation.DESCRIBE).allowed
    assert not ask(policy, person("U1"), PolicyOperation.DESCRIBE, purpose=None).allowed


@pytest.mark.parametrize(
    ("conditions", "public"),
    [
        ({"expires": NOW}, "Your access has expired; you can ask the owner to renew it."),
        ({"not_before": NOW + timedelta(seconds=1)}, "Your access has not begun yet."),
        ({"environment": Environment(networks=frozenset({"campus"}))}, "This is not allowed from your network."),
        ({"environment": Environment(highest_risk=1)}, "Log in again to do this."),
        ({"environment": Environment(days=frozenset({"sunday"}))}, "This is not allowed at this time."),
        ({"limits": BudgetLimits(user=Budget(epsilon=Fraction(1)))}, "This asks for more than your limit per user."),
    ],
)
def test_a_member_learns_what_is_missing(conditions: dict[str, object], public: str) -> None:
    policy = in_role(allow(*QUERIES, **conditions))
    refused = ask(policy, person("U1"), cost=Budget(epsilon=Fraction(2)))
    assert not refused.allowed
    assert refused.public_reason == public


@pytest.mark.parametrize("limit", [1e308, 0])
def test_every_finite_limit_of_risk_is_read(limit: float) -> None:
    rule = {"effect": "allow", "operations": ["query.*"], "environment": {"highest_risk": limit}}
    document = {
        "schema": "cloister.policy/1",
        "object": "D1",
        "terms": {"purposes": ["research"]},
        "roles": [{"name": "R", "members": {"users": ["u1"]}, "rules": [rule]}],
    }
    found = policy_from_dict(document).roles[0].rules[0].environment
    assert found is not None
    assert found.highest_risk == limit
    with pytest.raises(PolicyError, match="not a risk score"):
        policy_from_dict(json.loads(json.dumps(document).replace(json.dumps(limit), "1" + "0" * 400)))


def test_hours_follow_the_clock_of_the_time_zone_and_pass_midnight() -> None:
    night = {"effect": "allow", "operations": ["query.*"]}
    night["environment"] = {"hours": ["22:00-06:00"], "timezone": "Europe/Berlin"}  # type: ignore[assignment]
    policy = policy_from_dict(
        {
            "schema": "cloister.policy/1",
            "object": "D1",
            "terms": {"purposes": ["research"]},
            "roles": [{"name": "R", "members": {"users": ["u1"]}, "rules": [night]}],
        }
    )
    winter = datetime(2026, 1, 10, tzinfo=UTC)
    allowed = [hour for hour in range(24) if ask(policy, person("U1"), now=winter.replace(hour=hour)).allowed]
    assert allowed == [0, 1, 2, 3, 4, 21, 22, 23]
    summer = datetime(2026, 7, 10, tzinfo=UTC)
    assert ask(policy, person("U1"), now=summer.replace(hour=20)).allowed
    assert not ask(policy, person("U1"), now=summer.replace(hour=4)).allowed


def test_networks_and_risk_that_are_known_and_fit_are_let_through() -> None:
    campus = Environment(networks=frozenset({"campus"}), highest_risk=1)
    assert ask(in_role(allow(*QUERIES, environment=campus)), person("U1"), network="campus", risk=0.5).allowed


def test_a_deny_rule_spares_networks_and_risks_outside_of_it() -> None:
    elsewhere = Environment(networks=frozenset({"guest"}), highest_risk=2)
    policy = in_role(allow(*QUERIES), deny(*QUERIES, environment=elsewhere))
    assert ask(policy, person("U1"), network="campus", risk=9).allowed
    assert ask(policy, person("U1"), network="guest", risk=1).allowed
    assert not ask(policy, person("U1"), network="guest", risk=3).allowed
    assert not ask(policy, person("U1")).allowed


def test_internal_data_stays_with_the_organisation_of_its_owner() -> None:
    policy = in_role(allow(*QUERIES), terms=replace(HEALTH, internal_only=True))
    assert ask(policy, person("U1", organisation_id="h"), owner_organisation="h").allowed
    assert not ask(policy, person("U1", organisation_id="i"), owner_organisation="h").allowed
    assert not ask(policy, person("U1"), owner_organisation=None).allowed


def test_regions_and_combinations_are_kept() -> None:
    terms = replace(HEALTH, regions=frozenset({"eu"}), not_with=frozenset({"D9"}), only_with=frozenset({"D2", "D9"}))
    policy = in_role(allow(*QUERIES), terms=terms)
    assert ask(policy, person("U1"), region="eu", combined_with=frozenset({"D2"})).allowed
    assert not ask(policy, person("U1"), region="us").allowed
    assert not ask(policy, person("U1")).allowed
    refused = ask(policy, person("U1"), region="eu", combined_with=frozenset({"D2", "D3", "D9"}))
    assert "may not be combined with D3, D9" in refused.reason
    assert "D9" not in refused.public_reason


def test_members_by_organisation_and_attributes() -> None:
    condition = AttributeCondition((("department", frozenset({"cardiology"})), ("grade", frozenset({"2", "3"}))))
    policy = in_role(allow(*QUERIES), members=Members(organisations=frozenset({"h"}), attributes=(condition,)))
    assert ask(policy, person("A", organisation_id="h")).allowed
    assert ask(policy, person("B", attributes={"department": "cardiology", "grade": "3"})).allowed
    assert not ask(policy, person("C", attributes={"department": "cardiology", "grade": "1"})).allowed
    assert not ask(policy, person("D", attributes={"department": "cardiology"})).allowed
    assert not AttributeCondition(()).holds(person("E"))


def test_a_membership_ends_and_carries_its_own_budget() -> None:
    until = NOW + timedelta(days=1)
    member = Member(user_id="u1", until=until, budget=Budget(epsilon=Fraction(1, 2)))
    rule = allow(*QUERIES, limits=BudgetLimits(user=Budget(epsilon=Fraction(1), delta=Fraction(1, 10**6))))
    policy = in_role(rule, members=Members(users=(member,)))
    decision = ask(policy, person("U1"))
    assert decision.constraints is not None
    assert decision.constraints.limits.user == Budget(epsilon=Fraction(1, 2))
    assert decision.constraints.expires == until
    over = ask(policy, person("U1"), now=until)
    assert not over.allowed
    assert "whose time in the role R is over" in over.reason


def test_the_end_of_a_membership_does_not_lift_its_budget() -> None:
    until = NOW + timedelta(days=1)
    member = Member(user_id="u1", until=until, budget=Budget(epsilon=Fraction(1, 2)))
    policy = in_role(allow(*QUERIES), members=Members(users=(member,), organisations=frozenset({"h"})))
    after = ask(policy, person("U1", organisation_id="h"), now=until)
    assert after.constraints is not None
    assert after.constraints.limits.user == Budget(epsilon=Fraction(1, 2))


def test_rows_that_depend_on_an_attribute_need_it() -> None:
    policy = in_role(allow(*QUERIES), rows=RowPredicate("branch = :branch"))
    refused = ask(policy, person("U1"))
    assert 'no attribute "branch"' in refused.reason
    decision = ask(policy, person("U1", attributes={"branch": "north", "other": "x"}))
    assert decision.constraints is not None
    assert decision.constraints.attributes == (("branch", "north"),)
    assert decision.constraints.rows == (RowPredicate("branch = :branch"),)


def test_the_first_role_that_allows_decides_unless_another_is_chosen() -> None:
    small = PolicyRole(
        name="small",
        members=named("U1"),
        rules=(allow(*QUERIES, limits=BudgetLimits(job=Budget(epsilon=Fraction(1)))),),
    )
    large = PolicyRole(
        name="large",
        members=named("U1"),
        rules=(allow(*QUERIES, limits=BudgetLimits(job=Budget(epsilon=Fraction(9)))),),
    )
    policy = Policy(object_id="D1", terms=HEALTH, roles=(small, large))
    assert ask(policy, person("U1")).role == "small"
    assert ask(policy, person("U1"), cost=Budget(epsilon=Fraction(5))).role == "large"
    assert ask(policy, person("U1"), role="large").role == "large"
    unknown = ask(policy, person("U1"), role="huge")
    assert not unknown.allowed
    assert not unknown.hides_existence


def test_a_cost_in_another_measure_is_left_to_the_ledger() -> None:
    policy = in_role(allow(*QUERIES, limits=BudgetLimits(user=Budget(epsilon=Fraction(1)))))
    assert ask(policy, person("U1"), cost=Budget(rho=Fraction(9))).allowed


def test_a_moment_needs_its_offset() -> None:
    with pytest.raises(ParameterError, match="datetime.now"):
        RequestContext(now=datetime(2026, 1, 1))
