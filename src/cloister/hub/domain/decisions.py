"""Decisions: from a policy, a subject, an operation and its context to yes or no, with the reason.

Deciding is pure: the same values give the same decision, and nothing but the values counts. What no rule allows is
denied; a rule that denies beats every rule that allows. Where the context leaves something open, a condition of an
allow rule does not hold, and one of a deny rule does. A decision that allows carries constraints to be kept to, and one
that refuses says what does not fit, in words: all of it to the owner, and to who asked what they may be told.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from cloister.accounting.budget import Budget
from cloister.errors import ForbiddenError, ParameterError
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.operations import ALGORITHM_OPERATIONS, DATA_OPERATIONS, OWNER_OPERATIONS, PolicyOperation
from cloister.hub.domain.policy import (
    EVERY_COLUMN,
    NO_COLUMN,
    AlgorithmReference,
    BudgetLimits,
    ColumnRules,
    Environment,
    Mode,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
    stricter_budget,
)
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.terms import check_purpose, conflicts

__all__ = [
    "Constraints",
    "Decision",
    "DecisionStep",
    "Mismatch",
    "RequestContext",
    "decide",
    "denies",
    "find_date_mismatches",
    "find_limit_mismatches",
    "find_missing_attributes",
    "find_rule_mismatches",
    "find_term_breaches",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """The circumstances of a request.

    Attributes:
        now: when; with its offset.
        owners: who owns the object.
        owner_organisation: the organisation that the object belongs to.
        role: the role of the policy in which the subject wants to act; None: the first that allows it.
        purpose: what the request is for.
        algorithm: what it runs.
        cost: what it would spend.
        network: the hub's label of the network that it comes from.
        risk: the risk score of the session.
        region: where it would run.
        combined_with: other objects that it uses together with this one.
    """

    now: datetime
    owners: frozenset[str] = frozenset()
    owner_organisation: str | None = None
    role: str | None = None
    purpose: str | None = None
    algorithm: AlgorithmReference | None = None
    cost: Budget | None = None
    network: str | None = None
    risk: float | None = None
    region: str | None = None
    combined_with: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.now.tzinfo is None:
            raise ParameterError("now has no offset from UTC.", fix="use datetime.now(UTC).")
        if self.purpose is not None:
            check_purpose(self.purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionStep:
    """One rule that was looked at, and why it did or did not apply."""

    role: str
    rule: int
    effect: RuleEffect
    applies: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What has to be kept to when the operation runs.

    Attributes:
        mode: how answers are protected.
        limits: how much may be spent, to be compared with the ledger.
        columns: what each column may be used for.
        rows: conditions that the rows have to fulfill, all of them.
        attributes: the attributes of the subject that the conditions need.
        purpose: what was declared; columns whose purposes exclude it do not exist.
        expires: when the permission ends, unless something changes before.
        two_person: whether two owners have to approve.
    """

    mode: Mode
    limits: BudgetLimits = field(default_factory=BudgetLimits)
    columns: ColumnRules = field(default_factory=ColumnRules)
    rows: tuple[RowPredicate, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    purpose: str | None = None
    expires: datetime | None = None
    two_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Yes or no, and why.

    Attributes:
        allowed: whether the operation may be performed.
        operation: which one.
        reason: one sentence for the owner.
        public_reason: one sentence for the person who asked, that names no members, roles or hidden columns.
        role: the role of the policy that decided.
        constraints: what has to be kept to; None unless allowed.
        trace: the rules that were looked at.
        hides_existence: whether the answer has to be the same as if the object did not exist.
        policy_version: the version that was asked.
    """

    allowed: bool
    operation: PolicyOperation
    reason: str
    public_reason: str
    role: str | None
    constraints: Constraints | None
    trace: tuple[DecisionStep, ...]
    hides_existence: bool
    policy_version: int

    def require(self) -> None:
        """Return nothing if the operation is allowed, else raise what the person who asked may know.

        Raises:
            ForbiddenError: if it is not allowed.
        """
        if not self.allowed:
            raise ForbiddenError(self.public_reason, fix="ask the owner for access, or for other terms.")

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values for the owner and the audit log, not for the person who asked."""
        return {
            "schema": "cloister.decision/1",
            "allowed": self.allowed,
            "operation": str(self.operation),
            "reason": self.reason,
            "role": self.role,
            "policy_version": self.policy_version,
            "trace": [
                {
                    "role": step.role,
                    "rule": step.rule,
                    "effect": str(step.effect),
                    "applies": step.applies,
                    "why": step.why,
                }
                for step in self.trace
            ],
        }


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What does not fit: for the owner, and for the person who asked where that may be told."""

    reason: str
    public: str = ""


def find_rule_mismatches(rule: PolicyRule, operation: PolicyOperation, context: RequestContext) -> list[Mismatch]:
    """Return what keeps an allow rule from applying."""
    found: list[Mismatch] = []
    if operation not in rule.operations:
        found.append(Mismatch(f"its rules allow {_list_operations(rule)}, not {operation}"))
    found += _find_algorithm_mismatches(rule, context)
    if rule.purposes is not None and operation in DATA_OPERATIONS:
        found += _find_purpose_mismatches(str(rule.purposes), allowed=_serves(rule, context), context=context)
    return [*found, *find_date_mismatches(rule, context), *_find_environment_mismatches(rule.environment, context)]


def find_date_mismatches(rule: PolicyRule, context: RequestContext) -> list[Mismatch]:
    """Return whether a rule is not yet, or no longer, in force."""
    if rule.is_current(context.now):
        return []
    if rule.not_before is not None and context.now < rule.not_before:
        return [Mismatch("its rule is not in force yet", "Your access has not begun yet.")]
    return [Mismatch("its rule has expired", "Your access has expired; you can ask the owner to renew it.")]


def denies(rule: PolicyRule, operation: PolicyOperation, context: RequestContext) -> bool:
    """Return whether a deny rule applies; what the context leaves open counts as fitting."""
    if operation not in rule.operations or not rule.is_current(context.now):
        return False
    by_purpose = rule.purposes is None or context.purpose is None or rule.purposes.allows(context.purpose)
    return by_purpose and _forbids_algorithm(rule, operation, context) and _is_inside(rule.environment, context)


def find_limit_mismatches(limits: BudgetLimits, context: RequestContext) -> list[Mismatch]:
    """Return limits that a request would pass even if nothing had been spent before."""
    if context.cost is None or context.cost.measure != "epsilon":
        return []
    cost = context.cost
    return [
        Mismatch(f"it asks for more than the limit per {name}", f"This asks for more than your limit per {name}.")
        for name, budget in limits
        if not budget.covers(cost)
    ]


def find_term_breaches(
    policy: Policy, subject: AccessSubject, operation: PolicyOperation, context: RequestContext
) -> list[Mismatch]:
    """Return which terms of the data a request would break."""
    if operation not in DATA_OPERATIONS:
        return []
    terms = policy.terms
    allowed = context.purpose is not None and terms.purposes.allows(context.purpose)
    found = _find_purpose_mismatches(str(terms.purposes), allowed=allowed, context=context)
    if terms.internal_only and (
        context.owner_organisation is None or subject.organisation_id != context.owner_organisation
    ):
        found.append(Mismatch("the data is internal to the owner's organisation"))
    if terms.regions is not None and context.region not in terms.regions:
        found.append(Mismatch("the data may not be processed in that region", "The data may not be processed there."))
    banned = conflicts(terms, context.combined_with)
    if banned:
        found.append(
            Mismatch(
                f"the data may not be combined with {', '.join(banned)}",
                "The data may not be combined with the other data of this request.",
            )
        )
    return found


def find_missing_attributes(
    rows: tuple[RowPredicate, ...], subject: AccessSubject, operation: PolicyOperation
) -> list[Mismatch]:
    """Return attributes that the conditions on rows need and the subject does not have."""
    if operation not in DATA_OPERATIONS:
        return []
    needed = {name for predicate in rows for name in predicate.attributes} - set(subject.attributes)
    public = "Your account lacks an attribute that the owner's policy needs."
    return [
        Mismatch(f'the account has no attribute "{name}", which its rows depend on', public) for name in sorted(needed)
    ]


def _list_operations(rule: PolicyRule) -> str:
    return ", ".join(operation for operation in PolicyOperation if operation in rule.operations)


def _find_algorithm_mismatches(rule: PolicyRule, context: RequestContext) -> list[Mismatch]:
    if rule.algorithms is None:
        return []
    used = context.algorithm
    if used is not None and any(item.permits(used) for item in rule.algorithms):
        return []
    allowed = ", ".join(map(str, rule.algorithms)) or "no algorithm"
    asked = "work without a named algorithm" if used is None else str(used)
    return [
        Mismatch(f"its rule allows {allowed}, not {asked}", "The owner has not allowed this algorithm and version.")
    ]


def _forbids_algorithm(rule: PolicyRule, operation: PolicyOperation, context: RequestContext) -> bool:
    if rule.algorithms is None:
        return True
    if context.algorithm is None:
        return operation in ALGORITHM_OPERATIONS
    return any(item.forbids(context.algorithm) for item in rule.algorithms)


def _serves(rule: PolicyRule, context: RequestContext) -> bool:
    return context.purpose is not None and rule.purposes is not None and rule.purposes.allows(context.purpose)


def _find_purpose_mismatches(shown: str, *, allowed: bool, context: RequestContext) -> list[Mismatch]:
    if allowed:
        return []
    if context.purpose is None:
        return [Mismatch("no purpose was declared", "Say what this is for.")]
    return [
        Mismatch(
            f"the purpose {context.purpose} is not among those allowed ({shown})",
            "The owner has not allowed this purpose.",
        )
    ]


def _find_environment_mismatches(environment: Environment, context: RequestContext) -> list[Mismatch]:
    found: list[Mismatch] = []
    if not environment.admits_time(context.now):
        found.append(Mismatch("it is outside of its hours and days", "This is not allowed at this time."))
    if environment.networks and context.network not in environment.networks:
        found.append(Mismatch("it comes from another network", "This is not allowed from your network."))
    if environment.highest_risk is not None and (context.risk is None or context.risk > environment.highest_risk):
        found.append(Mismatch("the session's risk is too high or unknown", "Log in again to do this."))
    return found


def _is_inside(environment: Environment, context: RequestContext) -> bool:
    """Return whether the environment of a deny rule fits; its risk is the highest that it still spares."""
    networks = not environment.networks or context.network is None or context.network in environment.networks
    spared = environment.highest_risk is not None and context.risk is not None
    risky = not spared or (context.risk or 0) > (environment.highest_risk or 0)
    return environment.admits_time(context.now) and networks and risky


_OUTSIDER = "You have no access to this; you can ask its owner for it."
_HIDDEN = "There is nothing here that you may see."
_REFUSED = "The owner's policy does not allow you to do this."


def decide(policy: Policy, subject: AccessSubject, operation: PolicyOperation, context: RequestContext) -> Decision:
    """Return whether a subject may perform an operation on the object of a policy, and why.

    Args:
        policy: the policy of the object.
        subject: who asks.
        operation: what is asked for.
        context: when, for what, with which algorithm and from where.
    """
    return _DecisionMaker(policy, subject, PolicyOperation(operation), context).decision()


@dataclass(slots=True)
class _DecisionMaker:
    """The work of one decision."""

    policy: Policy
    subject: AccessSubject
    operation: PolicyOperation
    context: RequestContext

    def decision(self) -> Decision:
        # Owners can change the policy, so that its rules cannot keep them from what owning includes.
        if self.subject.user_id in self.context.owners and self.operation in OWNER_OPERATIONS:
            constraints = self._constraints(EVERY_COLUMN, BudgetLimits())
            return self._allowed(f"{self.subject.name} owns the object, which includes {self.operation}", constraints)
        roles = [role for role in self.policy.roles if role.members.include(self.subject, now=self.context.now)]
        denial = self._denial(roles)
        if denial is not None:
            return denial
        if self.operation is PolicyOperation.DISCOVER and self.policy.discoverable:
            return self._allowed(
                "everybody may see that this object exists", self._constraints(NO_COLUMN, BudgetLimits())
            )
        return self._search(roles) if roles else self._outside()

    # The ways to decide ----------------------------------------------------------------------------------------------

    def _outside(self) -> Decision:
        now = self.context.now
        past = [role.name for role in self.policy.roles if role.members.has_run_out(self.subject, now=now)]
        why = f"whose time in the role {past[0]} is over" if past else "who is in none of the policy's roles"
        return self._refuse(why, public=_OUTSIDER)

    def _denial(self, roles: list[PolicyRole]) -> Decision | None:
        for role in roles:
            for place, rule in enumerate(role.rules):
                if rule.effect is RuleEffect.DENY and denies(rule, self.operation, self.context):
                    step = DecisionStep(
                        role=role.name, rule=place, effect=RuleEffect.DENY, applies=True, why="it denies this"
                    )
                    why = f"for rule {place + 1} of the role {role.name} denies it, whatever other rules allow"
                    return self._refuse(why, role=role.name, trace=(step,))
        return None

    def _search(self, roles: list[PolicyRole]) -> Decision:
        """Return the permission of the first rule that gives it, or a refusal with the reason of the nearest one."""
        trace: list[DecisionStep] = []
        misses: list[tuple[bool, int, Mismatch, PolicyRole]] = []
        for role in roles:
            if self.context.role not in (None, role.name):
                continue
            for place, rule in enumerate(role.rules):
                if rule.effect is not RuleEffect.ALLOW:
                    continue
                problems = self._problems(role, rule)
                why = "it allows this" if not problems else problems[0].reason
                trace.append(
                    DecisionStep(role=role.name, rule=place, effect=rule.effect, applies=not problems, why=why)
                )
                if not problems:
                    return self._grant(role, rule, place, tuple(trace))
                misses.append((self.operation not in rule.operations, len(problems), problems[0], role))
        if not misses:
            names = self.context.role or ", ".join(role.name for role in roles)
            return self._refuse(f"to whom no rule of the role {names} allows anything")
        # Of all rules that failed, the one for this operation that lacks the least is worth telling.
        *_, mismatch, role = min(misses, key=lambda miss: miss[:2])
        why = f"who is in the role {role.name}, because {mismatch.reason}"
        return self._refuse(why, public=mismatch.public, role=role.name, trace=tuple(trace))

    def _problems(self, role: PolicyRole, rule: PolicyRule) -> list[Mismatch]:
        """Return what keeps a rule from allowing; who may do anything with an object also sees what it is."""
        if self.operation is PolicyOperation.DISCOVER:
            return []
        if self.operation is PolicyOperation.DESCRIBE and rule.operations - {PolicyOperation.DISCOVER}:
            return find_date_mismatches(rule, self.context)
        return [
            *find_rule_mismatches(rule, self.operation, self.context),
            *find_limit_mismatches(self._limits(role, rule), self.context),
            *find_term_breaches(self.policy, self.subject, self.operation, self.context),
            *find_missing_attributes(self._rows(role), self.subject, self.operation),
        ]

    # What a decision carries -----------------------------------------------------------------------------------------

    def _grant(self, role: PolicyRole, rule: PolicyRule, place: int, trace: tuple[DecisionStep, ...]) -> Decision:
        rows = self._rows(role)
        needed = sorted({name for predicate in rows for name in predicate.attributes})
        member = role.members.named(self.subject, now=self.context.now)
        ends = [end for end in (rule.expires, None if member is None else member.until) if end is not None]
        constraints = replace(
            # A role can only narrow what the policy shows.
            self._constraints(self.policy.columns & role.columns, self._limits(role, rule)),
            rows=rows,
            attributes=tuple(
                (name, self.subject.attributes[name]) for name in needed if name in self.subject.attributes
            ),
            expires=min(ends, default=None),
        )
        why = f"{self.subject.name} is in the role {role.name}, whose rule {place + 1} allows it"
        return self._allowed(why, constraints, role=role.name, trace=trace)

    def _limits(self, role: PolicyRole, rule: PolicyRule) -> BudgetLimits:
        entry = role.members.entry(self.subject.user_id)
        return replace(rule.limits, user=stricter_budget(rule.limits.user, None if entry is None else entry.budget))

    def _rows(self, role: PolicyRole) -> tuple[RowPredicate, ...]:
        return tuple(predicate for predicate in (self.policy.rows, role.rows) if predicate is not None)

    def _constraints(self, columns: ColumnRules, limits: BudgetLimits) -> Constraints:
        return Constraints(
            mode=self.policy.mode,
            limits=limits,
            columns=columns,
            purpose=self.context.purpose,
            two_person=self.policy.two_person,
        )

    def _allowed(
        self, why: str, constraints: Constraints, *, role: str | None = None, trace: tuple[DecisionStep, ...] = ()
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

    def _refuse(
        self, why: str, *, public: str = "", role: str | None = None, trace: tuple[DecisionStep, ...] = ()
    ) -> Decision:
        # A refusal must not confirm that something exists which the person may not know of.
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
        if self.operation is PolicyOperation.DISCOVER:
            return False
        return decide(self.policy, self.subject, PolicyOperation.DISCOVER, replace(self.context, role=None)).allowed
