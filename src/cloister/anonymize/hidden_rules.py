"""Hiding association rules: change few transactions so that chosen rules are no longer found at public thresholds.

Four ways (Verykios, Elmagarmid, Bertino, Saygin and Dasseni 2004; Saygin, Verykios and Clifton 2001):

- ``decrease_consequent`` (DSR) deletes items of the consequent from transactions that support the rule, first from
  those that support the fewest other rules;
- ``increase_antecedent`` (ISL) adds missing items of the antecedent to transactions without the consequent, which
  invents purchases;
- ``block`` replaces items of the consequent by ``?``, so that support and confidence become intervals;
- ``drop_item`` deletes an item of the consequent from all transactions.

**No guarantee.** A hidden rule is only below thresholds that somebody else may set lower; what is blocked was mostly
there; other rules may imply the hidden one. A promise needs noise from a differentially private method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np

from cloister.anonymize.transactions import AssociationRule, Bits, MinedRule, Transactions, mine_rules
from cloister.core.guarantees import NoGuarantee
from cloister.core.result import Result
from cloister.core.validation import check_choice, check_probability
from cloister.errors import ParameterError

__all__ = ["HiddenRules", "hide_rules"]

_REASON = "hiding rules keeps them below stated thresholds; it is no protection against other thresholds or knowledge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From when on a rule is found."""

    support: Fraction
    confidence: Fraction

    def shows(self, transactions: Transactions, rule: AssociationRule) -> bool:
        """Return whether a rule is found for certain."""
        support = transactions.support(rule.items)
        enough = support >= self.support * len(transactions) and support > 0
        return enough and transactions.confidence(rule) >= self.confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenRules(Result):
    """Transactions in which rules were hidden, and what that did to other rules.

    Attributes:
        transactions: the changed transactions.
        method: how rules were hidden.
        wanted: the rules to hide.
        still_found: those of them that are found all the same.
        lost: other rules that were found before and are not any more.
        ghosts: rules that are found now and were not before.
        rules_before: how many other rules were found before.
        entries_changed: how many items were added, deleted or blocked.
        entries_before: how many items all transactions held before.
    """

    schema: ClassVar[str] = "cloister.hidden_rules/1"

    transactions: Transactions = field(repr=False)
    method: str
    wanted: tuple[AssociationRule, ...]
    still_found: tuple[AssociationRule, ...]
    lost: tuple[AssociationRule, ...]
    ghosts: tuple[AssociationRule, ...]
    rules_before: int
    entries_changed: int
    entries_before: int

    @property
    def hiding_failure(self) -> float:
        """Return the share of the rules to hide that are still found."""
        return len(self.still_found) / len(self.wanted)

    @property
    def lost_share(self) -> float:
        """Return the share of the other rules that were lost."""
        return len(self.lost) / self.rules_before if self.rules_before else 0.0

    @property
    def dissimilarity(self) -> float:
        """Return the changed entries over the items that were there before."""
        return self.entries_changed / self.entries_before if self.entries_before else 0.0

    def __str__(self) -> str:
        hidden = len(self.wanted) - len(self.still_found)
        return (
            f"{hidden} of {len(self.wanted)} rules hidden; {len(self.lost)} of {self.rules_before} other rules lost, "
            f"{len(self.ghosts)} ghosts; {self.entries_changed} of {self.entries_before} entries changed"
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "hiding_failure": self.hiding_failure,
            "lost_share": self.lost_share,
            "dissimilarity": self.dissimilarity,
            "still_found": [str(rule) for rule in self.still_found],
            "lost": [str(rule) for rule in self.lost],
            "ghosts": [str(rule) for rule in self.ghosts],
        }


def hide_rules(
    transactions: Transactions,
    rules: Iterable[AssociationRule | str],
    *,
    method: str = "decrease_consequent",
    min_support: object,
    min_confidence: object,
    longest: int = 5,
) -> HiddenRules:
    """Return transactions in which some rules are not found at the thresholds, with the side effects.

    Args:
        transactions: the transactions; they are not changed.
        rules: the rules to hide, such as ``"milk => bread"``.
        method: ``decrease_consequent``, ``increase_antecedent``, ``block`` or ``drop_item``.
        min_support: the share of transactions from which on a rule is found.
        min_confidence: the confidence from which on a rule is found.
        longest: how many items the other rules have at most whose loss is reported.

    Raises:
        ParameterError: if a setting is out of range, or an item is unknown.
    """
    check_choice(method, name="method", allowed=tuple(_METHODS))
    wanted = tuple(
        dict.fromkeys(rule if isinstance(rule, AssociationRule) else AssociationRule.parse(rule) for rule in rules)
    )
    limits = Thresholds(
        support=check_probability(min_support, name="min_support"),
        confidence=check_probability(min_confidence, name="min_confidence"),
    )
    if not wanted or limits.confidence == 0:
        raise ParameterError("There are no rules, or every confidence is found.", fix="use min_confidence=0.7.")
    for rule in wanted:
        transactions.holding(rule.items)
    before = _find_rules(transactions, limits, longest)
    others = [mined.rule for mined in before if mined.rule not in wanted]
    after = transactions
    for rule in wanted:
        after = _METHODS[method](after, rule, limits, others)
    return _report(transactions, after, wanted=wanted, others=others, limits=limits, method=method, longest=longest)


def _find_rules(transactions: Transactions, limits: Thresholds, longest: int) -> tuple[MinedRule, ...]:
    return mine_rules(transactions, min_support=limits.support, min_confidence=limits.confidence, longest=longest)


def _report(
    before: Transactions,
    after: Transactions,
    *,
    wanted: tuple[AssociationRule, ...],
    others: list[AssociationRule],
    limits: Thresholds,
    method: str,
    longest: int,
) -> HiddenRules:
    now = [mined.rule for mined in _find_rules(after, limits, longest)]
    # An item that was dropped altogether has no column to compare: all its entries count as changed.
    kept = [before.place(item) for item in after.items]
    changed = (before.holds[:, kept] != after.holds) | (before.unknown[:, kept] != after.unknown)
    dropped = np.delete(before.holds | before.unknown, kept, axis=1).sum()
    return HiddenRules(
        guarantee=NoGuarantee(reason=_REASON),
        transactions=after,
        method=method,
        wanted=wanted,
        still_found=tuple(rule for rule in wanted if rule.items <= set(after.items) and limits.shows(after, rule)),
        lost=tuple(rule for rule in others if rule not in set(now)),
        ghosts=tuple(rule for rule in now if rule not in {*others, *wanted}),
        rules_before=len(others),
        entries_changed=int(changed.sum() + dropped),
        entries_before=int(before.holds.sum()),
    )


def _decrease(
    transactions: Transactions, rule: AssociationRule, limits: Thresholds, others: list[AssociationRule]
) -> Transactions:
    """Delete items of the consequent where that touches the fewest other rules."""
    rows, places = _cheapest_entries(transactions, rule, limits, others)
    holds = transactions.holds.copy()
    holds[rows, places] = False
    return Transactions(transactions.items, holds, transactions.unknown)


def _block(
    transactions: Transactions, rule: AssociationRule, limits: Thresholds, others: list[AssociationRule]
) -> Transactions:
    """Make items of the consequent unknown where that touches the fewest other rules."""
    rows, places = _cheapest_entries(transactions, rule, limits, others)
    holds, unknown = transactions.holds.copy(), transactions.unknown.copy()
    holds[rows, places], unknown[rows, places] = False, True
    return Transactions(transactions.items, holds, unknown)


def _increase(
    transactions: Transactions,
    rule: AssociationRule,
    limits: Thresholds,
    others: list[AssociationRule],  # noqa: ARG001  # as the other methods
) -> Transactions:
    """Add items of the antecedent to transactions without the consequent, where the fewest are missing."""
    if not _is_found(transactions, rule, limits):
        return transactions
    most = transactions.support_interval(rule.antecedent)[1]
    # Strictly below the confidence, hence one more than it takes to reach it; unknown items may all be there.
    needed = math.floor(transactions.support(rule.items) / limits.confidence - most) + 1
    places = np.array([transactions.place(item) for item in sorted(rule.antecedent)])
    possible = transactions.holds | transactions.unknown
    missing = (~possible[:, places]).sum(axis=1)
    fitting = np.flatnonzero((missing > 0) & ~transactions.holding(rule.consequent, possibly=True))
    rows = fitting[np.argsort(missing[fitting], kind="stable")][:needed]
    holds, unknown = transactions.holds.copy(), transactions.unknown.copy()
    holds[np.ix_(rows, places)], unknown[np.ix_(rows, places)] = True, False
    return Transactions(transactions.items, holds, unknown)


def _drop(
    transactions: Transactions, rule: AssociationRule, limits: Thresholds, others: list[AssociationRule]
) -> Transactions:
    """Drop the item of the consequent that the fewest other rules need."""
    if not rule.items <= set(transactions.items) or not _is_found(transactions, rule, limits):
        return transactions
    item = min(sorted(rule.consequent), key=lambda name: sum(name in other.items for other in others))
    place = transactions.place(item)
    items = [name for name in transactions.items if name != item]
    return Transactions(
        items, np.delete(transactions.holds, place, axis=1), np.delete(transactions.unknown, place, axis=1)
    )


def _is_found(transactions: Transactions, rule: AssociationRule, limits: Thresholds) -> bool:
    return limits.shows(transactions, rule)


def _cheapest_entries(
    transactions: Transactions, rule: AssociationRule, limits: Thresholds, others: list[AssociationRule]
) -> tuple[Any, Any]:  # arrays of rows and columns
    """Return one entry of the consequent in as few supporting transactions as it takes, the least harmful ones."""
    if not _is_found(transactions, rule, limits):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    rows = np.flatnonzero(transactions.holding(rule.items))
    most = transactions.support_interval(rule.antecedent)[1]
    # The rule disappears as soon as either of the two thresholds is missed: the one that is missed first decides.
    least = max(limits.confidence * most, limits.support * len(transactions))
    needed = math.floor(len(rows) - least) + 1
    items = sorted(rule.consequent)
    supported = _find_support(transactions, others)[:, rows]
    harm = np.stack([supported[[item in other.items for other in others]].sum(axis=0) for item in items])
    best = np.argmin(harm, axis=0)
    # Least harm first, then the shortest transactions, in which one item fewer changes the fewest rules.
    order = np.lexsort((rows, transactions.holds[rows].sum(axis=1), harm.min(axis=0)))[:needed]
    places = np.array([transactions.place(item) for item in items])
    return rows[order], places[best[order]]


def _find_support(transactions: Transactions, rules: list[AssociationRule]) -> Bits:
    """Return which rule is supported by which transaction."""
    if not rules:
        return np.zeros((0, len(transactions)), dtype=np.bool_)
    return np.stack([transactions.holding(rule.items) for rule in rules])


_Method: TypeAlias = Callable[[Transactions, AssociationRule, Thresholds, list[AssociationRule]], Transactions]
_METHODS: dict[str, _Method] = {
    "decrease_consequent": _decrease,
    "increase_antecedent": _increase,
    "block": _block,
    "drop_item": _drop,
}
