"""Random policies, subjects and contexts."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from cloister.accounting.budget import Budget
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.decisions import RequestContext
from cloister.hub.domain.operations import PolicyOperation
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
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.terms import PurposeSet, UsageTerms

START = datetime(2026, 1, 1, tzinfo=UTC)
USERS, ORGANISATIONS, PURPOSES = ("u1", "u2", "u3"), ("h1", "h2"), ("research", "research.health", "teaching")
NETWORKS = ("campus", "guest")

OPERATIONS = (
    PolicyOperation.QUERY_COUNT,
    PolicyOperation.ML_TRAIN,
    PolicyOperation.EXPORT_RESULT,
    PolicyOperation.DESCRIBE,
    PolicyOperation.DISCOVER,
    PolicyOperation.POLICY_EDIT,
)


def rarely(strategy: st.SearchStrategy[Any], *, otherwise: Any = None) -> st.SearchStrategy[Any]:
    """Return conditions that are mostly absent, so that some decisions are positive."""
    return st.one_of(*[st.just(otherwise)] * 4, strategy)


operations = st.sampled_from(OPERATIONS)
moments = st.integers(0, 200).map(lambda hours: START + timedelta(hours=hours))
algorithms = st.builds(AlgorithmReference, st.sampled_from("ab"), st.sampled_from([None, "1", "2"]))
purpose_sets = st.lists(st.sampled_from((*PURPOSES, "*")), max_size=2).map(lambda names: PurposeSet(tuple(names)))
budgets = st.integers(1, 4).map(lambda number: Budget(epsilon=Fraction(number, 2)))
environments = st.builds(
    Environment,
    hours=st.sampled_from([(), ((time(8), time(18)),), ((time(22), time(6)),)]),
    networks=st.frozensets(st.sampled_from(NETWORKS), max_size=2),
    highest_risk=st.none() | st.sampled_from([0.5, 1.5]),
)


def rules(effect: RuleEffect) -> st.SearchStrategy[PolicyRule]:
    limits = st.builds(BudgetLimits, job=rarely(budgets), user=rarely(budgets))
    return st.builds(
        PolicyRule,
        effect=st.just(effect),
        operations=st.frozensets(operations, min_size=2, max_size=4),
        algorithms=rarely(st.lists(algorithms, max_size=2).map(tuple)),
        purposes=rarely(purpose_sets),
        not_before=rarely(moments),
        expires=rarely(moments),
        environment=rarely(environments, otherwise=Environment()),
        limits=limits if effect is RuleEffect.ALLOW else st.just(BudgetLimits()),
    )


members = st.builds(
    Members,
    users=st.lists(
        st.builds(Member, user_id=st.sampled_from(USERS), until=rarely(moments), budget=rarely(budgets)),
        max_size=2,
        unique_by=lambda member: member.user_id,
    ).map(tuple),
    organisations=st.sampled_from([frozenset(), frozenset({"h1"}), frozenset({"h2"})]),
    attributes=st.sampled_from([(), (AttributeCondition((("branch", frozenset({"north"})),)),)]),
    everyone=rarely(st.just(True), otherwise=False),
)


def roles(*, effects: tuple[RuleEffect, ...] = tuple(RuleEffect)) -> st.SearchStrategy[PolicyRole]:
    one = st.one_of(*map(rules, effects))
    rows = rarely(st.just(RowPredicate("branch = :branch")))
    return st.builds(
        PolicyRole,
        name=st.sampled_from("ABCD"),
        members=members,
        rules=st.lists(one, min_size=1, max_size=3).map(tuple),
        rows=rows,
    )


def policies(*, effects: tuple[RuleEffect, ...] = tuple(RuleEffect)) -> st.SearchStrategy[Policy]:
    purposes = rarely(purpose_sets, otherwise=PurposeSet.of("*"))
    terms = st.builds(UsageTerms, purposes=purposes, internal_only=rarely(st.just(True), otherwise=False))
    named = st.lists(roles(effects=effects), min_size=1, max_size=3, unique_by=lambda role: role.name).map(tuple)
    return st.builds(Policy, object_id=st.just("D"), roles=named, terms=terms, discoverable=st.booleans())


subjects = st.builds(
    AccessSubject,
    user_id=st.sampled_from(USERS),
    name=st.just("A person"),
    organisation_id=st.sampled_from(ORGANISATIONS),
    attributes=st.sampled_from([{}, {"branch": "north"}, {"branch": "south"}]),
)
contexts = st.builds(
    RequestContext,
    now=moments,
    owners=st.frozensets(st.sampled_from(USERS), max_size=1),
    owner_organisation=st.none() | st.sampled_from(ORGANISATIONS),
    role=rarely(st.sampled_from("ABCD")),
    purpose=rarely(st.none() | st.sampled_from(PURPOSES), otherwise="research.health"),
    algorithm=st.none() | algorithms,
    cost=rarely(budgets),
    network=st.none() | st.sampled_from(NETWORKS),
    risk=st.none() | st.sampled_from([0.0, 1.0, 2.0]),
)
