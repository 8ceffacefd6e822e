"""Whether a rule, and the terms of the data, fit a request, and what does not fit, in words."""

from __future__ import annotations

from dataclasses import dataclass

from cloister.hub.domain.context import Context
from cloister.hub.domain.operations import ALGORITHM_OPERATIONS, DATA_OPERATIONS, Operation
from cloister.hub.domain.policy import Policy, RowPredicate, Rule
from cloister.hub.domain.roles import Subject
from cloister.hub.domain.rules import Environment, Limits
from cloister.hub.domain.sticky import conflicts

__all__ = ["Mismatch", "breaches", "denies", "lacking", "mismatches", "too_much", "undated"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What does not fit: for the owner, and for the person who asked where that may be told."""

    reason: str
    public: str = ""


def mismatches(rule: Rule, operation: Operation, context: Context) -> list[Mismatch]:
    """Return what keeps an allow rule from applying."""
    found: list[Mismatch] = []
    if operation not in rule.operations:
        found.append(Mismatch(f"its rules allow {_listed(rule)}, not {operation}"))
    found += _algorithm(rule, context)
    if rule.purposes is not None and operation in DATA_OPERATIONS:
        found += _purpose(str(rule.purposes), allowed=_serves(rule, context), context=context)
    return [*found, *undated(rule, context), *_surroundings(rule.environment, context)]


def undated(rule: Rule, context: Context) -> list[Mismatch]:
    """Return whether a rule is not yet, or no longer, in force."""
    if rule.is_current(context.now):
        return []
    if rule.not_before is not None and context.now < rule.not_before:
        return [Mismatch("its rule is not in force yet", "Your access has not begun yet.")]
    return [Mismatch("its rule has expired", "Your access has expired; you can ask the owner to renew it.")]


def denies(rule: Rule, operation: Operation, context: Context) -> bool:
    """Return whether a deny rule applies; what the context leaves open counts as fitting."""
    if operation not in rule.operations or not rule.is_current(context.now):
        return False
    by_purpose = rule.purposes is None or context.purpose is None or rule.purposes.allows(context.purpose)
    return by_purpose and _forbids_algorithm(rule, operation, context) and _is_inside(rule.environment, context)


def too_much(limits: Limits, context: Context) -> list[Mismatch]:
    """Return limits that a request would pass even if nothing had been spent before."""
    if context.cost is None or context.cost.measure != "epsilon":
        return []
    cost = context.cost
    return [
        Mismatch(f"it asks for more than the limit per {name}", f"This asks for more than your limit per {name}.")
        for name, budget in limits
        if not budget.covers(cost)
    ]


def breaches(policy: Policy, subject: Subject, operation: Operation, context: Context) -> list[Mismatch]:
    """Return which terms of the data a request would break."""
    if operation not in DATA_OPERATIONS:
        return []
    terms = policy.terms
    allowed = context.purpose is not None and terms.purposes.allows(context.purpose)
    found = _purpose(str(terms.purposes), allowed=allowed, context=context)
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


def lacking(rows: tuple[RowPredicate, ...], subject: Subject, operation: Operation) -> list[Mismatch]:
    """Return attributes that the conditions on rows need and the subject does not have."""
    if operation not in DATA_OPERATIONS:
        return []
    needed = {name for predicate in rows for name in predicate.attributes} - set(subject.attributes)
    public = "Your account lacks an attribute that the owner's policy needs."
    return [
        Mismatch(f'the account has no attribute "{name}", which its rows depend on', public) for name in sorted(needed)
    ]


def _listed(rule: Rule) -> str:
    return ", ".join(operation for operation in Operation if operation in rule.operations)


def _algorithm(rule: Rule, context: Context) -> list[Mismatch]:
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


def _forbids_algorithm(rule: Rule, operation: Operation, context: Context) -> bool:
    if rule.algorithms is None:
        return True
    if context.algorithm is None:
        return operation in ALGORITHM_OPERATIONS
    return any(item.forbids(context.algorithm) for item in rule.algorithms)


def _serves(rule: Rule, context: Context) -> bool:
    return context.purpose is not None and rule.purposes is not None and rule.purposes.allows(context.purpose)


def _purpose(shown: str, *, allowed: bool, context: Context) -> list[Mismatch]:
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


def _surroundings(environment: Environment, context: Context) -> list[Mismatch]:
    found: list[Mismatch] = []
    if not environment.admits_time(context.now):
        found.append(Mismatch("it is outside of its hours and days", "This is not allowed at this time."))
    if environment.networks and context.network not in environment.networks:
        found.append(Mismatch("it comes from another network", "This is not allowed from your network."))
    if environment.highest_risk is not None and (context.risk is None or context.risk > environment.highest_risk):
        found.append(Mismatch("the session's risk is too high or unknown", "Log in again to do this."))
    return found


def _is_inside(environment: Environment, context: Context) -> bool:
    """Return whether the environment of a deny rule fits; its risk is the highest that it still spares."""
    networks = not environment.networks or context.network is None or context.network in environment.networks
    spared = environment.highest_risk is not None and context.risk is not None
    risky = not spared or (context.risk or 0) > (environment.highest_risk or 0)
    return environment.admits_time(context.now) and networks and risky
