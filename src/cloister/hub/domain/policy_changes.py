"""What is different between two versions of a policy, in sentences for the owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from cloister.hub.domain.column_rules import ColumnRule, ColumnRules
from cloister.hub.domain.policy import Mode, Policy, PolicyRole
from cloister.hub.domain.policy_words import member_words, members_words, rule_words, use_words
from cloister.hub.domain.row_predicates import RowPredicate
from cloister.hub.domain.sticky import Terms

__all__ = ["changes"]

Namer = Callable[[str], str]

_MODES = {
    Mode.DP: "with noise (differential privacy)",
    Mode.SDC: "exactly, behind statistical disclosure control",
    Mode.EXACT: "exactly, with nothing that protects the people in the data",
}
_TERMS = {
    "sensitivity": "sensitivity",
    "legal_bases": "legal bases",
    "regions": "regions",
    "retention_days": "retention in days",
    "not_with": "bans on combination",
    "only_with": "what it may be combined with",
    "policies": "policies of the objects it comes from",
}


def _same(identifier: str) -> str:
    return identifier


def changes(before: Policy, after: Policy, *, user: Namer = _same, organisation: Namer = _same) -> tuple[str, ...]:
    """Return one sentence for each difference between two versions of a policy.

    Args:
        before: the earlier version.
        after: the later version.
        user: how an account is called.
        organisation: how an organisation is called.
    """
    return tuple(_changes(before, after, user, organisation))


def _changes(before: Policy, after: Policy, user: Namer, organisation: Namer) -> Iterator[str]:
    if before.discoverable != after.discoverable:
        yield "Everybody can find the data now." if after.discoverable else "Only members can find the data now."
    if before.two_person != after.two_person:
        yield f"Requests need {'two owners' if after.two_person else 'one owner'} to approve them."
    if (before.mode, before.acknowledgement) != (after.mode, after.acknowledgement):
        yield f"Answers are given {_MODES[after.mode]}."
    yield from _terms(before.terms, after.terms)
    yield from _rows("", before.rows, after.rows)
    yield from _columns("", before.columns, after.columns)
    old, new = {role.name: role for role in before.roles}, {role.name: role for role in after.roles}
    for name in old:
        if name not in new:
            yield f"The role {name} is gone."
    for name, role in new.items():
        yield from _role(old.get(name), role, user, organisation)
    if [name for name in old if name in new] != [name for name in new if name in old]:
        yield f"The roles are tried in another order: {', '.join(new)}."


def _terms(before: Terms, after: Terms) -> Iterator[str]:
    if before.purposes != after.purposes:
        yield f"The data may be used for {after.purposes} (before: {before.purposes})."
    if before.internal_only != after.internal_only:
        yield f"The data is {'' if after.internal_only else 'no longer '}internal to the owner's organisation."
    for name, words in _TERMS.items():
        if getattr(before, name) != getattr(after, name):
            yield f"The terms have another entry: {words}."


def _role(before: PolicyRole | None, after: PolicyRole, user: Namer, organisation: Namer) -> Iterator[str]:
    where = f"In the role {after.name}: "
    if before is None:
        yield f"The role {after.name} is new."
        before = PolicyRole(name=after.name)
    yield from _members(where, before, after, user, organisation)
    old, new = [rule_words(rule) for rule in before.rules], [rule_words(rule) for rule in after.rules]
    for words in old:
        if words not in new:
            yield f"{where}no longer “{words}”."
    for words in new:
        if words not in old:
            yield f"{where}now “{words}”."
    if before.rules != after.rules and sorted(old) == sorted(new):
        yield f"{where}the rules have another order."
    yield from _rows(where, before.rows, after.rows)
    yield from _columns(where, before.columns, after.columns)


def _members(where: str, before: PolicyRole, after: PolicyRole, user: Namer, organisation: Namer) -> Iterator[str]:
    old = {member.user_id: member for member in before.members.users}
    new = {member.user_id: member for member in after.members.users}
    for identifier, member in new.items():
        if identifier not in old:
            yield f"{where}{member_words(member, user=user)} is in."
        elif old[identifier] != member:
            was = member_words(old[identifier], user=user)
            yield f"{where}{member_words(member, user=user)} (before: {was})."
    for identifier in old:
        if identifier not in new:
            yield f"{where}{user(identifier)} is out."
    earlier, later = (
        members_words(replace(role.members, users=()), user=user, organisation=organisation) for role in (before, after)
    )
    for line in later:
        if line not in earlier:
            yield f"{where}{line} is in."
    for line in earlier:
        if line not in later:
            yield f"{where}{line} is out."


def _rows(where: str, before: RowPredicate | None, after: RowPredicate | None) -> Iterator[str]:
    if before != after:
        yield f"{where}{'all rows count' if after is None else f'only rows with {after.text} count'}."


def _columns(where: str, before: ColumnRules, after: ColumnRules) -> Iterator[str]:
    for name in dict.fromkeys([*dict(before.named), *dict(after.named)]):
        yield from _column(f"{where}column {name}", before.of(name), after.of(name))
    yield from _column(f"{where}columns that are not named", before.others, after.others)


def _column(what: str, before: ColumnRule, after: ColumnRule) -> Iterator[str]:
    if before.uses != after.uses:
        yield f"{what}: {use_words(after)} (before: {use_words(before)})."
    if before.terms != after.terms:
        yield f"{what}: its own terms are different."
