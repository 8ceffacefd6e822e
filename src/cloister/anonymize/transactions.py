"""Transactions (sets of items), the rules that hold in them, and a miner for data of moderate size.

The support of a set of items is the number of transactions that hold all of them; a rule ``X => Y`` has the support of
both sides together, and as confidence that support over the support of X (Agrawal, Imielinski and Swami 1993). Counts
and confidences are exact. Items may be unknown (``?``) after blocking: then supports and confidences are intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.core.validation import check_count, check_probability
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import DataError, ParameterError, ParameterTypeError, did_you_mean

__all__ = ["AssociationRule", "MinedRule", "Transactions", "mine_rules"]

Bits: TypeAlias = NDArray[np.bool_]
ItemSet: TypeAlias = "frozenset[str]"

_MOST_SETS = 200_000
_CHUNK = 2**25


@dataclass(frozen=True, slots=True)
class AssociationRule:
    """Whoever has the antecedent tends to have the consequent.

    >>> print(AssociationRule.parse("milk, eggs => bread"))
    eggs, milk => bread
    """

    antecedent: ItemSet
    consequent: ItemSet

    def __post_init__(self) -> None:
        for side in ("antecedent", "consequent"):
            given = getattr(self, side)
            object.__setattr__(self, side, frozenset([given] if isinstance(given, str) else given))
        if not self.antecedent or not self.consequent or self.antecedent & self.consequent:
            raise ParameterError(
                "A rule has items on both sides, and none on both at once.", fix='write for example "milk => bread".'
            )

    @classmethod
    def parse(cls, text: str) -> AssociationRule:
        """Return the rule that a text such as ``"milk, eggs => bread"`` states."""
        sides = str(text).split("=>")
        if len(sides) != 2:
            raise ParameterError("This is not a rule.", fix='write for example "milk, eggs => bread".')
        left, right = (frozenset(filter(None, (item.strip() for item in side.split(",")))) for side in sides)
        return cls(left, right)

    @property
    def items(self) -> ItemSet:
        """Return the items of both sides."""
        return self.antecedent | self.consequent

    def __str__(self) -> str:
        return f"{', '.join(sorted(self.antecedent))} => {', '.join(sorted(self.consequent))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedRule:
    """A rule with its support and confidence as shares; lower ends where items are unknown."""

    rule: AssociationRule
    support: Fraction
    confidence: Fraction

    def __str__(self) -> str:
        return f"{self.rule} (support {float(self.support):.3g}, confidence {float(self.confidence):.3g})"


class Transactions:
    """Which transaction holds which item, as a matrix of truth values; some entries may be unknown.

    >>> basket = Transactions.from_sets([{"milk", "bread"}, {"bread"}])
    >>> basket.support({"bread"}), basket.confidence(AssociationRule.parse("bread => milk"))
    (2, Fraction(1, 2))
    """

    def __init__(self, items: Sequence[str], holds: Bits, unknown: Bits | None = None) -> None:
        self.items = tuple(items)
        self.holds = np.asarray(holds, dtype=np.bool_)
        self.unknown = np.zeros_like(self.holds) if unknown is None else np.asarray(unknown, dtype=np.bool_)
        shape = (len(self.holds), len(self.items))
        if self.holds.shape != shape or self.unknown.shape != shape or (self.holds & self.unknown).any():
            raise ParameterError("The matrix does not have one column per item.", fix="use Transactions.from_sets.")
        if len(set(self.items)) != len(self.items) or not all(isinstance(item, str) for item in self.items):
            raise ParameterError("Items are not different texts.", fix="name every item once.")

    @classmethod
    def from_sets(cls, sets: Iterable[Iterable[str]]) -> Transactions:
        """Return transactions from sets of item names."""
        rows = [list(row) if not isinstance(row, str) else _no_set() for row in sets]
        if not all(isinstance(item, str) for row in rows for item in row):
            raise ParameterTypeError("An item is not a text.", fix="name items by texts.")
        items = sorted({item for row in rows for item in row})
        places = {item: place for place, item in enumerate(items)}
        holds = np.zeros((len(rows), len(items)), dtype=np.bool_)
        numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        holds[numbers, [places[item] for row in rows for item in row]] = True
        return cls(items, holds)

    @classmethod
    def from_table(cls, table: Any) -> Transactions:  # what open_table takes
        """Return transactions from a table with one column of truth values per item; missing is unknown."""
        rows = (table if isinstance(table, Table) else open_table(table)).to_arrow()
        other = next((field.name for field in rows.schema if not pa.types.is_boolean(field.type)), None)
        if other is not None:
            raise DataError(f'Column "{other}" does not hold truth values.', fix="give one true/false column per item.")
        columns = [column.combine_chunks() for column in rows.columns]
        holds = [np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False)) for column in columns]  # noqa: FBT003  # Arrow's signature
        unknown = [np.asarray(column.is_null().to_numpy(zero_copy_only=False)) for column in columns]
        return cls(rows.column_names, np.column_stack(holds), np.column_stack(unknown))

    def to_sets(self) -> list[ItemSet]:
        """Return the items that each transaction certainly holds."""
        return [frozenset(self.items[place] for place in np.flatnonzero(row)) for row in self.holds]

    def to_arrow(self) -> pa.Table:
        """Return one column of truth values per item, missing where it is unknown."""
        columns = [pa.array(self.holds[:, place], mask=self.unknown[:, place]) for place in range(len(self.items))]
        return pa.table(columns, names=list(self.items))

    def __len__(self) -> int:
        return len(self.holds)

    def __repr__(self) -> str:
        return f"Transactions({len(self.items)} items)"

    def support(self, items: Iterable[str]) -> int:
        """Return how many transactions certainly hold all of some items."""
        return int(self.holding(items).sum())

    def support_interval(self, items: Iterable[str]) -> tuple[int, int]:
        """Return how many transactions hold all of some items at least, and at most."""
        listed = list(items)
        return self.support(listed), int(self.holding(listed, possibly=True).sum())

    def confidence(self, rule: AssociationRule) -> Fraction:
        """Return the confidence of a rule, its lower end where items are unknown; 0 if nobody has the antecedent."""
        return self.confidence_interval(rule)[0]

    def confidence_interval(self, rule: AssociationRule) -> tuple[Fraction, Fraction]:
        """Return the ends between which the confidence of a rule lies (Saygin, Verykios and Clifton 2001)."""
        low, high = self.support_interval(rule.items)
        fewest, most = self.support_interval(rule.antecedent)
        # The least confidence has the fewest of both sides over the most of the antecedent.
        lower = Fraction(low, most) if most else Fraction(0)
        return lower, min(Fraction(1), Fraction(high, fewest)) if fewest else Fraction(int(high > 0))

    def holding(self, items: Iterable[str], *, possibly: bool = False) -> Bits:
        """Return which transactions hold all of some items, certainly or possibly."""
        matrix = self.holds | self.unknown if possibly else self.holds
        return np.asarray(matrix[:, [self.place(item) for item in items]].all(axis=1))

    def place(self, item: str) -> int:
        """Return the place of an item.

        Raises:
            ParameterError: if there is none of that name.
        """
        if item not in self._places:
            raise ParameterError(
                f'There is no item "{item}".{did_you_mean(str(item), self.items)}', fix="use a name from items."
            )
        return self._places[item]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {item: place for place, item in enumerate(self.items)}


def mine_rules(
    transactions: Transactions, *, min_support: object, min_confidence: object, longest: int = 5
) -> tuple[MinedRule, ...]:
    """Return all rules that certainly reach a support and a confidence, by the Apriori method.

    Args:
        transactions: the transactions.
        min_support: the least share of transactions that hold both sides, above 0.
        min_confidence: the least confidence.
        longest: how many items a rule may have in all.

    Raises:
        ParameterError: if there are too many frequent sets.
    """
    share = check_probability(min_support, name="min_support")
    least = check_probability(min_confidence, name="min_confidence")
    check_count(longest, name="longest", at_least=2)
    if share == 0:
        raise ParameterError("min_support must be above 0.", fix="use for example min_support=0.01.")
    supports = _frequent_sets(transactions, share, longest)
    above: dict[tuple[int, ...], int] = {}
    found = []
    for places, support in supports.items():
        for size in range(1, len(places)):
            for left in combinations(places, size):
                # An antecedent occurs in many sets, and is counted once.
                if left not in above:
                    above[left] = _most(transactions, left, supports)
                if support >= least * above[left]:
                    found.append(_make_rule(transactions, places, left, Fraction(support, above[left])))
    return tuple(found)


def _make_rule(
    transactions: Transactions, places: tuple[int, ...], left: tuple[int, ...], confidence: Fraction
) -> MinedRule:
    names = transactions.items
    rule = AssociationRule(
        frozenset(names[place] for place in left), frozenset(names[place] for place in set(places) - set(left))
    )
    return MinedRule(
        rule=rule, support=Fraction(transactions.support(rule.items), len(transactions)), confidence=confidence
    )


def _most(transactions: Transactions, places: tuple[int, ...], supports: dict[tuple[int, ...], int]) -> int:
    """Return how many transactions hold a set at most; a part of a frequent set is frequent."""
    if not transactions.unknown.any():
        return supports[places]
    return transactions.support_interval(transactions.items[place] for place in places)[1]


def _frequent_sets(transactions: Transactions, share: Fraction, longest: int) -> dict[tuple[int, ...], int]:
    """Return the support of every frequent set, level by level: a set is frequent only if all its parts are."""
    columns = np.ascontiguousarray(transactions.holds.T)
    least = share * len(transactions)
    level: dict[tuple[int, ...], int] = {
        (place,): int(count) for place, count in enumerate(columns.sum(axis=1)) if count >= least and count
    }
    frequent = dict(level)
    for size in range(2, longest + 1):
        candidates = _join_sets(level, size)
        if len(candidates) + len(frequent) > _MOST_SETS:
            raise ParameterError("There are too many frequent sets.", fix="raise min_support, or lower longest.")
        counts = _counts(columns, candidates)
        level = {places: count for places, count in zip(candidates, counts, strict=True) if count >= least}
        frequent |= level
    return frequent


def _join_sets(level: dict[tuple[int, ...], int], size: int) -> list[tuple[int, ...]]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for places in sorted(level):
        groups.setdefault(places[:-1], []).append(places[-1])
    pairs = ((*start, first, last) for start, ends in groups.items() for first, last in combinations(ends, 2))
    # A set with an infrequent part cannot be frequent, and need not be counted.
    return [places for places in pairs if all(part in level for part in combinations(places, size - 1))]


def _counts(columns: Bits, candidates: list[tuple[int, ...]]) -> list[int]:
    """Return the supports of sets of one size, many at a time."""
    step = max(1, _CHUNK // max(1, columns.shape[1]))
    counts: list[int] = []
    # In parts: one line of truth values for each candidate would not fit into memory.
    for start in range(0, len(candidates), step):
        places = np.array(candidates[start : start + step])
        together = columns[places[:, 0]]
        for other in places.T[1:]:
            together = together & columns[other]
        counts += together.sum(axis=1).tolist()
    return counts


def _no_set() -> list[str]:
    raise ParameterTypeError("A transaction is one text.", fix='write transactions as sets, such as {"milk", "bread"}.')
