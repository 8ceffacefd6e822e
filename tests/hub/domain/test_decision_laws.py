"""What holds of every decision, whatever the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings, strategies as st

from cloister.hub.domain.decisions import Decision, RequestContext, decide
from cloister.hub.domain.operations import OWNER_OPERATIONS, PolicyOperation
from cloister.hub.domain.policy import Environment, Members, Policy, PolicyRole, PolicyRule, RuleEffect
from cloister.hub.domain.policy_file import policy_from_dict, policy_to_dict
from cloister.hub.domain.roles import AccessSubject
from tests.hub.domain import policies as random
from tests.support.thoroughness import examples

MANY = settings(max_examples=examples(60, usual=24), deadline=None)
ALLOWING = random.policies(effects=(RuleEffect.ALLOW,))
HOURS = st.integers(1, 90).map(lambda hours: timedelta(hours=hours))


def is_by_owning(subject: AccessSubject, operation: PolicyOperation, context: RequestContext) -> bool:
    return subject.user_id in context.owners and operation in OWNER_OPERATIONS


def cases(subject: AccessSubject) -> Iterator[tuple[AccessSubject, PolicyOperation]]:
    for user in random.USERS:
        for operation in random.OPERATIONS:
            yield replace(subject, user_id=user), operation


def pairs(
    before: Policy, after: Policy, subject: AccessSubject, context: RequestContext
) -> Iterator[tuple[Decision, Decision]]:
    for someone, operation in cases(subject):
        yield decide(before, someone, operation, context), decide(after, someone, operation, context)


def with_rules(policy: Policy, change: Callable[[PolicyRule], PolicyRule]) -> Policy:
    return replace(policy, roles=tuple(replace(role, rules=tuple(map(change, role.rules))) for role in policy.roles))


def test_enough_of_the_random_decisions_are_positive() -> None:
    counts = {True: 0, False: 0}

    # The same examples in every run: of others, a share too small would come up now and then.
    @settings(max_examples=150, derandomize=True, database=None)
    @given(random.policies(), random.subjects, random.contexts)
    def count(policy: Policy, subject: AccessSubject, context: RequestContext) -> None:
        for someone, operation in cases(subject):
            decision = decide(policy, someone, operation, context)
            counts[decision.allowed and decision.role is not None] += 1

    count()
    assert min(counts.values()) > sum(counts.values()) / 20


@MANY
@given(random.policies(), random.subjects, random.contexts)
def test_the_same_values_give_the_same_decision_and_so_does_a_policy_read_again(
    policy: Policy, subject: AccessSubject, context: RequestContext
) -> None:
    again = policy_from_dict(policy_to_dict(policy))
    assert again == policy
    assert all(before == after for before, after in pairs(policy, again, subject, context))


@MANY
@given(random.policies(), random.subjects, random.contexts)
def test_nothing_is_allowed_that_no_rule_of_a_role_of_the_subject_allows(
    policy: Policy, subject: AccessSubject, context: RequestContext
) -> None:
    for someone, operation in cases(subject):
        decision = decide(policy, someone, operation, context)
        if not decision.allowed or is_by_owning(someone, operation, context):
            continue
        if decision.role is None:
            assert (operation, policy.discoverable) == (PolicyOperation.DISCOVER, True)
            continue
        role = policy.role(decision.role)
        assert role.members.include(someone, now=context.now)
        implied = operation in (PolicyOperation.DISCOVER, PolicyOperation.DESCRIBE)
        assert any(rule.effect is RuleEffect.ALLOW and (implied or operation in rule.operations) for rule in role.rules)


@MANY
@given(random.policies(), random.subjects, random.contexts, random.members, random.operations)
def test_deny_beats_allow(
    policy: Policy, subject: AccessSubject, context: RequestContext, members: Members, denied: PolicyOperation
) -> None:
    rule = PolicyRule(effect=RuleEffect.DENY, operations=frozenset({denied}))
    barred = replace(policy, roles=(PolicyRole(name="barred", members=members, rules=(rule,)), *policy.roles))
    for someone, operation in cases(subject):
        decision = decide(barred, someone, operation, context)
        hit = operation is denied and members.include(someone, now=context.now)
        if hit and not is_by_owning(someone, operation, context):
            assert not decision.allowed
        else:
            assert decision.allowed == decide(policy, someone, operation, context).allowed


@MANY
@given(random.policies(), random.subjects, random.contexts, st.data())
def test_adding_a_deny_rule_never_widens(
    policy: Policy, subject: AccessSubject, context: RequestContext, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(policy.roles) - 1))
    role = policy.roles[place]
    stricter = replace(role, rules=(*role.rules, data.draw(random.rules(RuleEffect.DENY))))
    narrowed = replace(policy, roles=(*policy.roles[:place], stricter, *policy.roles[place + 1 :]))
    for before, after in pairs(policy, narrowed, subject, context):
        assert before.allowed or not after.allowed
        assert not after.allowed or after.constraints == before.constraints


@MANY
@given(ALLOWING, random.subjects, random.contexts, st.data())
def test_removing_a_member_never_widens_where_nothing_is_denied(
    policy: Policy, subject: AccessSubject, context: RequestContext, data: st.DataObject
) -> None:
    """A budget of one's own goes with its entry: whoever stays in the role, as everybody is, has what others have."""
    named = [(role.name, user.user_id) for role in policy.roles for user in role.members.users]
    role, user = data.draw(st.sampled_from([*named, (policy.roles[0].name, "nobody")]))
    for before, after in pairs(without_budget(policy, role, user), policy.without_member(role, user), subject, context):
        assert before.allowed or not after.allowed


def without_budget(policy: Policy, role: str, user: str) -> Policy:
    """Return the policy in which one entry has no budget of its own."""
    found = policy.role(role)
    users = tuple(replace(one, budget=None) if one.user_id == user else one for one in found.members.users)
    changed = replace(found, members=replace(found.members, users=users))
    return replace(policy, roles=tuple(changed if one.name == role else one for one in policy.roles))


@MANY
@given(ALLOWING, random.subjects, random.contexts, HOURS)
def test_a_later_end_never_narrows(
    policy: Policy, subject: AccessSubject, context: RequestContext, more: timedelta
) -> None:
    def later(rule: PolicyRule) -> PolicyRule:
        return rule if rule.expires is None else replace(rule, expires=rule.expires + more)

    for before, after in pairs(policy, with_rules(policy, later), subject, context):
        assert after.allowed or not before.allowed


@MANY
@given(ALLOWING, random.subjects, random.contexts, HOURS)
def test_what_has_ended_stays_ended(
    policy: Policy, subject: AccessSubject, context: RequestContext, more: timedelta
) -> None:
    ending = with_rules(policy, lambda rule: replace(rule, not_before=None, environment=Environment()))
    after = replace(context, now=context.now + more)
    for someone, operation in cases(subject):
        now = decide(ending, someone, operation, context)
        assert now.allowed or not decide(ending, someone, operation, after).allowed


@MANY
@given(random.policies(), random.subjects, random.contexts)
def test_a_refusal_tells_no_names_and_hides_what_may_not_be_discovered(
    policy: Policy, subject: AccessSubject, context: RequestContext
) -> None:
    secrets = {"A", "B", "C", "D", *random.USERS, *random.ORGANISATIONS, "branch"}
    for someone, operation in cases(subject):
        decision = decide(policy, someone, operation, context)
        assert decision.allowed is (decision.constraints is not None)
        if decision.allowed:
            continue
        assert decision.reason.endswith(".")
        assert not secrets & set(decision.public_reason.replace(".", " ").split())
        seen = decide(policy, someone, PolicyOperation.DISCOVER, replace(context, role=None)).allowed
        assert operation is PolicyOperation.DISCOVER or decision.hides_existence is not seen
        assert not decision.hides_existence or decision.public_reason == "There is nothing here that you may see."
