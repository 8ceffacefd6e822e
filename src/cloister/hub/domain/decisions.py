"""Decisions: from a policy, a subject, an operation and its context to yes or no, with the reason.

Deciding is pure: the same values give the same decision, and nothing but the values counts. What no rule allows is
denied; a rule that denies beats every rule that allows. Where the context leaves something open, a condition of an
allow rule does not hold, and one of a deny rule does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cloister.hub.domain import matching
from cloister.hub.domain.column_rules import EVERY_COLUMN, NO_COLUMN, ColumnRules
from cloister.hub.domain.context import Constraints, Context, Decision, Step
from cloister.hub.domain.matching import Mismatch
from cloister.hub.domain.operations import OWNER_OPERATIONS, Operation
from cloister.hub.domain.policy import Effect, Policy, PolicyRole, RowPredicate, Rule
from cloister.hub.domain.roles import Subject
from cloister.hub.domain.rules import Limits, smaller

__all__ = ["Constraints", "Context", "Decision", "Step", "decide"]

_OUTSIDER = "You have no access to this; you can ask its owner for it."
_HIDDEN = "There is nothing here that you may see."
_REFUSED = "The owner's policy does not allow you to do this."


def decide(policy: Policy, subject: Subject, operation: Operation, context: Context) -> Decision:
    """Return whether a subject may perform an operation on the object of a policy, and why.

    Args:
        policy: the policy of the object.
        subject: who asks.
        operation: what is asked for.
        context: when, for what, with which algorithm and from where.
    """
    return _Deciding(policy, subject, Operation(operation), context).decision()


@dataclass(slots=True)
class _Deciding:
    """The work of one decision."""

    policy: Policy
    subject: Subject
    operation: Operation
    context: Context

    def decision(self) -> Decision:
        if self.subject.user_id in self.context.owners and self.operation in OWNER_OPERATIONS:
            constraints = self._constraints(EVERY_COLUMN, Limits())
            return self._allowed(f"{self.subject.name} owns the object, which includes {self.operation}", constraints)
        roles = [role for role in self.policy.roles if role.members.include(self.subject, now=self.context.now)]
        denial = self._denial(roles)
        if denial is not None:
            return denial
        if self.operation is Operation.DISCOVER and self.policy.discoverable:
            return self._allowed("everybody may see that this object exists", self._constraints(NO_COLUMN, Limits()))
        return self._searched(roles) if roles else self._outside()

    # The ways to decide ----------------------------------------------------------------------------------------------

    def _outside(self) -> Decision:
        now = self.context.now
        past = [role.name for role in self.policy.roles if role.members.has_run_out(self.subject, now=now)]
        why = f"whose time in the role {past[0]} is over" if past else "who is in none of the policy's roles"
        return self._refused(why, public=_OUTSIDER)

    def _denial(self, roles: list[PolicyRole]) -> Decision | None:
        for role in roles:
            for place, rule in enumerate(role.rules):
                if rule.effect is Effect.DENY and matching.denies(rule, self.operation, self.context):
                    step = Step(role=role.name, rule=place, effect=Effect.DENY, applies=True, why="it denies this")
                    why = f"for rule {place + 1} of the role {role.name} denies it, whatever other rules allow"
                    return self._refused(why, role=role.name, trace=(step,))
        return None

    def _searched(self, roles: list[PolicyRole]) -> Decision:
        """Return the permission of the first rule that gives it, or a refusal with the reason of the nearest one."""
        trace: list[Step] = []
        misses: list[tuple[bool, int, Mismatch, PolicyRole]] = []
        for role in roles:
            if self.context.role not in (None, role.name):
                continue
            for place, rule in enumerate(role.rules):
                if rule.effect is not Effect.ALLOW:
                    continue
                problems = self._problems(role, rule)
                why = "it allows this" if not problems else problems[0].reason
                trace.append(Step(role=role.name, rule=place, effect=rule.effect, applies=not problems, why=why))
                if not problems:
                    return self._granted(role, rule, place, tuple(trace))
                misses.append((self.operation not in rule.operations, len(problems), problems[0], role))
        if not misses:
            names = self.context.role or ", ".join(role.name for role in roles)
            return self._refused(f"to whom no rule of the role {names} allows anything")
        *_, mismatch, role = min(misses, key=lambda miss: miss[:2])
        why = f"who is in the role {role.name}, because {mismatch.reason}"
        return self._refused(why, public=mismatch.public, role=role.name, trace=tuple(trace))

    def _problems(self, role: PolicyRole, rule: Rule) -> list[Mismatch]:
        """Return what keeps a rule from allowing; who may do anything with an object also sees what it is."""
        if self.operation is Operation.DISCOVER:
            return []
        if self.operation is Operation.DESCRIBE and rule.operations - {Operation.DISCOVER}:
            return matching.undated(rule, self.context)
        return [
            *matching.mismatches(rule, self.operation, self.context),
            *matching.too_much(self._limits(role, rule), self.context),
            *matching.breaches(self.policy, self.subject, self.operation, self.context),
            *matching.lacking(self._rows(role), self.subject, self.operation),
        ]

    # What a decision carries -----------------------------------------------------------------------------------------

    def _granted(self, role: PolicyRole, rule: Rule, place: int, trace: tuple[Step, ...]) -> Decision:
        rows = self._rows(role)
        needed = sorted({name for predicate in rows for name in predicate.attributes})
        member = role.members.named(self.subject, now=self.context.now)
        ends = [end for end in (rule.expires, None if member is None else member.until) if end is not None]
        constraints = replace(
            self._constraints(self.policy.columns & role.columns, self._limits(role, rule)),
            rows=rows,
            attributes=tuple(
                (name, self.subject.attributes[name]) for name in needed if name in self.subject.attributes
            ),
            expires=min(ends, default=None),
        )
        why = f"{self.subject.name} is in the role {role.name}, whose rule {place + 1} allows it"
        return self._allowed(why, constraints, role=role.name, trace=trace)

    def _limits(self, role: PolicyRole, rule: Rule) -> Limits:
        entry = role.members.entry(self.subject.user_id)
        return replace(rule.limits, user=smaller(rule.limits.user, None if entry is None else entry.budget))

    def _rows(self, role: PolicyRole) -> tuple[RowPredicate, ...]:
        return tuple(predicate for predicate in (self.policy.rows, role.rows) if predicate is not None)

    def _constraints(self, columns: ColumnRules, limits: Limits) -> Constraints:
        return Constraints(
            mode=self.policy.mode,
            limits=limits,
            columns=columns,
            purpose=self.context.purpose,
            two_person=self.policy.two_person,
        )

    def _allowed(
        self, why: str, constraints: Constraints, *, role: str | None = None, trace: tuple[Step, ...] = ()
    ) -> Decision:
        return Decision(
            allowed=True,
            operation=self.operation,
            reason=f"{self.operation} was allowed: {why}.",
            public_reason="You may do this.",
            role=role,
            constraints=constraints,
            trace=trace,
            hides_existence=False,
            policy_version=self.policy.version,
        )

    def _refused(
        self, why: str, *, public: str = "", role: str | None = None, trace: tuple[Step, ...] = ()
    ) -> Decision:
        hidden = not self._is_known()
        return Decision(
            allowed=False,
            operation=self.operation,
            reason=f"{self.operation} was refused to {self.subject.name}, {why}.",
            public_reason=_HIDDEN if hidden else public or _REFUSED,
            role=role,
            constraints=None,
            trace=trace,
            hides_existence=hidden,
            policy_version=self.policy.version,
        )

    def _is_known(self) -> bool:
        """Return whether the subject may know of the object, so that a refusal may admit that it is there."""
        if self.operation is Operation.DISCOVER:
            return False
        return decide(self.policy, self.subject, Operation.DISCOVER, replace(self.context, role=None)).allowed
