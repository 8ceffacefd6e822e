"""Ladders of coarser and coarser codes for each quasi-identifier, and the order in which their combinations are tried.

A rung of a ladder says which leaves are put together, and what that is expected to cost a row. Where classes are nodes
of a hierarchy, the rungs are its levels and the cost is exact. Where classes are sets or intervals, the rungs are the
single values, bins of doubling widths (of an ordered attribute) or the levels above a long list of values, and
everything; there the cost is that of ``k`` rows drawn at random, and only says where to look first.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.regions import Values

Codes: TypeAlias = NDArray[np.int64]
Prices: TypeAlias = NDArray[np.float64]

_FEW_LEAVES = 64
_HALVINGS = 6
_SAMPLE = 256
_SHARES = (0.2, 0.5, 0.8)
_HASTES = (1.0,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ladder:
    """The rungs of one attribute: for each, the group of every leaf and what it costs a row with that leaf."""

    codes: tuple[Codes, ...]
    prices: tuple[Prices, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def thin(self) -> Ladder:
        """Return the ladder without the rung that leaves the smallest gap in price; first and last stay."""
        means = np.array([prices.mean() for prices in self.prices])
        # What matters is the jump in price from the rung below to the one above.
        drop = 1 + int((means[2:] - means[:-2]).argmin())
        kept = [rung for rung in range(len(self)) if rung != drop]
        return Ladder(codes=tuple(self.codes[r] for r in kept), prices=tuple(self.prices[r] for r in kept))


@dataclass(frozen=True, slots=True)
class Visit:
    """Look at one combination of rungs (by number), and take classes that cost a row at most ``bound``."""

    node: int
    bound: float


def ladders_of(cells: CodedCells, pieces: Codes, *, k: int, values: Values) -> list[Ladder]:
    """Return the ladder of each attribute for the cells that are to be grouped."""
    found = []
    for place, (attribute, weight) in enumerate(zip(cells.attributes, cells.weights_of_attributes, strict=True)):
        shares = np.bincount(cells.codes[pieces, place], minlength=len(attribute.leaves)) / max(len(pieces), 1)
        rungs = _hierarchy_rungs(attribute) if values is Values.HIERARCHY else _set_rungs(attribute, shares, k)
        found.append(_ladder(rungs, weight))
    return found


def _ladder(rungs: list[tuple[Codes, Prices]], weight: float) -> Ladder:
    """Return a ladder without rungs that put no more together than the one below."""
    kept = [rungs[0]]
    for codes, prices in rungs[1:]:
        if len(np.unique(codes)) < len(np.unique(kept[-1][0])):
            kept.append((codes, prices))
    return Ladder(codes=tuple(codes for codes, _ in kept), prices=tuple(prices * weight for _, prices in kept))


def _hierarchy_rungs(attribute: CodedAttribute) -> list[tuple[Codes, Prices]]:
    return [
        (codes.astype(np.int64), prices)
        for codes, prices in zip(attribute.ancestors, attribute.leaf_losses, strict=True)
    ]


def _set_rungs(attribute: CodedAttribute, shares: Prices, k: int) -> list[tuple[Codes, Prices]]:
    if attribute.positions is not None:
        groups = _bins(attribute.positions)
        # The range of k numbers drawn at random is expected to cover (k - 1) / (k + 1) of their interval.
        return [(codes, np.full(len(codes), price * (k - 1) / (k + 1))) for codes, price in groups]
    levels = list(attribute.ancestors) if len(attribute.leaves) > _FEW_LEAVES else [attribute.ancestors[0]]
    levels.append(np.zeros_like(attribute.ancestors[0]))
    return [(codes.astype(np.int64), _expect_losses(codes, shares, k)) for codes in levels]


def _bins(positions: Prices) -> list[tuple[Codes, float]]:
    """Return bins of doubling widths and the share of the scale that each covers; a missing value is on its own."""
    known = ~np.isnan(positions)
    low, span = (positions[known].min(), np.ptp(positions[known])) if known.any() else (0.0, 0.0)
    bins = [(np.arange(len(positions)), 0.0)]
    for halving in range(_HALVINGS, 0, -1):
        parts = 1 << halving
        numbers = np.minimum((positions - low) / (span or 1.0) * parts, parts - 1)
        bins.append((np.where(known, np.nan_to_num(numbers).astype(np.int64), parts), 1.0 / parts))
    bins.append((np.zeros(len(positions), dtype=np.int64), 1.0))
    return bins


def _expect_losses(codes: NDArray[np.integer], shares: Prices, k: int) -> Prices:
    """Return the loss of a set that ``k`` rows of the same group are expected to need."""
    groups = np.bincount(codes, weights=shares)[codes]
    # The probability that a leaf is among k rows of its group; the sum over leaves is the expected size of the set.
    drawn = 1 - (1 - np.divide(shares, groups, out=np.zeros_like(shares), where=groups > 0)) ** k
    distinct = np.bincount(codes, weights=drawn)[codes]
    return np.asarray(np.maximum(distinct - 1, 0) / max(len(codes) - 1, 1))


def combinations_of(ladders: list[Ladder], *, limit: int) -> tuple[list[Ladder], Codes]:
    """Return the ladders, thinned if need be, and combinations of their rungs (one row each), about ``limit`` at most.

    With too many attributes for all combinations, attributes of like price climb together.
    """
    ladders = list(ladders)
    # A ladder of two rungs says all or nothing, and cannot be thinned further.
    while prod(map(len, ladders)) > limit and max(map(len, ladders)) > 2:
        longest = max(range(len(ladders)), key=lambda place: len(ladders[place]))
        ladders[longest] = ladders[longest].thin()
    bundles = _bundles(ladders, limit)
    steps = [range(max(len(ladders[place]) for place in bundle)) for bundle in bundles]
    chosen = np.array(list(product(*steps)), dtype=np.int64).reshape(-1, len(bundles))
    nodes = np.empty((len(chosen), len(ladders)), dtype=np.int64)
    for number, bundle in enumerate(bundles):
        for place in bundle:
            # Shorter ladders of a bundle wait at their top.
            nodes[:, place] = np.minimum(chosen[:, number], len(ladders[place]) - 1)
    return ladders, nodes


def _bundles(ladders: list[Ladder], limit: int) -> list[list[int]]:
    places = sorted(range(len(ladders)), key=lambda place: float(ladders[place].prices[-1].mean()))
    if prod(map(len, ladders)) <= limit:
        return [[place] for place in places]
    count = max(limit.bit_length() - 1, 1)
    return [[int(place) for place in part] for part in np.array_split(places, count)]


def exact_agenda(ladders: list[Ladder], nodes: Codes, leaves: Codes) -> list[Visit]:
    """Return visits in the order of true cost: nodes that cost some rows less than others are seen several times.

    Args:
        ladders: the rungs.
        nodes: the combinations.
        leaves: the leaf codes of what is grouped, one row each; a sample of them is priced.
    """
    # An order needs only rough costs, so that a few rows stand for all.
    sample = leaves[:: max(len(leaves) // _SAMPLE, 1)]
    costs = np.zeros((len(nodes), len(sample)), dtype=np.float32)
    for place, ladder in enumerate(ladders):
        costs += np.stack([prices[sample[:, place]] for prices in ladder.prices]).astype(np.float32)[nodes[:, place]]
    costs.sort(axis=1)
    last = len(sample) - 1
    bounds = [costs[:, int(share * last)] for share in _SHARES] + [costs[:, last]]
    # A bound that equals the last one says nothing new, since the last visit has no bound.
    seen = {(float(bound), node) for column in bounds[:-1] for node, bound in enumerate(column)}
    seen -= {(float(bound), node) for node, bound in enumerate(bounds[-1])}
    visits = [(bound, node, bound) for bound, node in seen]
    visits += [(float(bound), node, np.inf) for node, bound in enumerate(bounds[-1])]
    return [Visit(node, bound) for _, node, bound in sorted(visits)]


def hopeful_agenda(ladders: list[Ladder], nodes: Codes) -> list[Visit]:
    """Return visits in the order of expected cost, which bounds the true cost of what is taken; then without bound."""
    prices = [np.array([prices.mean() for prices in ladder.prices]) for ladder in ladders]
    costs = np.sum([price[nodes[:, place]] for place, price in enumerate(prices)], axis=0)
    # The expected cost is a bound at first, so that no class takes rows which would be cheaper elsewhere.
    bounded = sorted((haste * cost, node) for haste in _HASTES for node, cost in enumerate(costs.tolist()))
    return [Visit(node, bound) for bound, node in bounded] + [
        Visit(int(node), np.inf) for node in np.argsort(costs, kind="stable")
    ]
