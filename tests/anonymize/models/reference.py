"""The models one class at a time, with rationals and long decimals: slow, obvious, and independent of the checks."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import cloister as cl
from cloister.core.guarantees import Guarantee

Counts = Sequence[int]
Tree = Sequence[Sequence[int]]
"""For each level above the leaves, the node of each value; the last level is the root."""


def holds(model: Guarantee, counts: Counts, overall: Counts, tree: Tree) -> bool:
    """Return whether a class with these counts satisfies a model in a table with those."""
    size, present = sum(counts), [count for count in counts if count]
    match model:
        case cl.KAnonymity():
            return size >= model.k
        case cl.AlphaKAnonymity():
            return size >= model.k and Fraction(max(present), size) <= model.alpha
        case cl.PSensitivity():
            return size >= model.k and len(present) >= model.p
        case cl.LDiversity():
            return _is_diverse(model, sorted(present, reverse=True))
        case cl.TCloseness(variant="kl"):
            return _divergence(counts, overall) <= _decimal(model.t) + Decimal("1e-13")
        case cl.TCloseness():
            return distance(model.variant, counts, overall, tree) <= model.t
        case cl.BetaLikeness():
            return all(_is_alike(model, *shares) for shares in _shares(counts, overall) if shares[0])
    raise AssertionError(model)


def _shares(counts: Counts, overall: Counts) -> list[tuple[Fraction, Fraction]]:
    pairs = zip(counts, overall, strict=True)
    return [(Fraction(count, sum(counts)), Fraction(all_, sum(overall))) for count, all_ in pairs]


def _is_diverse(model: cl.LDiversity, ranked: list[int]) -> bool:
    size = sum(ranked)
    match model.variant:
        case "distinct":
            return len(ranked) >= model.l
        case "frequency":
            return Fraction(ranked[0], size) <= 1 / model.l
        case "entropy":
            with localcontext(prec=50):
                entropy = sum(-(Decimal(r) / size) * (Decimal(r) / size).ln() for r in ranked)
                return entropy >= _decimal(model.l).ln() - Decimal("1e-13")
        case _:
            assert model.c is not None
            return ranked[0] < model.c * sum(ranked[int(model.l) - 1 :])


def distance(kind: str, counts: Counts, overall: Counts, tree: Tree) -> Fraction:
    """Return a rational distance of t-closeness."""
    differences = [p - q for p, q in _shares(counts, overall)]
    if kind in ("equal", "variational"):
        return sum(map(abs, differences), Fraction(0)) / 2
    if kind == "ordered":
        steps = [sum(differences[: place + 1]) for place in range(len(differences))]
        return sum(map(abs, steps), Fraction(0)) / max(len(differences) - 1, 1)
    return _tree_distance(differences, tree)


def _tree_distance(differences: list[Fraction], tree: Tree) -> Fraction:
    """Return the earth mover's distance over a hierarchy: at every node, what its children exchange."""
    cost, below, nodes = Fraction(0), dict(enumerate(differences)), list(range(len(differences)))
    for level, above in enumerate(tree, start=1):
        parents = dict(zip(nodes, above, strict=True))
        up: dict[int, list[Fraction]] = {}
        for node, extra in below.items():
            up.setdefault(parents[node], []).append(extra)
        for extras in up.values():
            surplus, lack = sum(e for e in extras if e > 0), -sum(e for e in extras if e < 0)
            cost += Fraction(level, len(tree)) * min(surplus, lack)
        below, nodes = {node: sum(extras, Fraction(0)) for node, extras in up.items()}, list(above)
    return cost


def _divergence(counts: Counts, overall: Counts) -> Decimal:
    with localcontext(prec=50):
        terms = [_decimal(p) * _decimal(p / q).ln() for p, q in _shares(counts, overall) if p]
        return sum(terms, Decimal(0))


def _is_alike(model: cl.BetaLikeness, share: Fraction, base: Fraction) -> bool:
    gain = (share - base) / base
    if gain > model.beta:
        return False
    with localcontext(prec=50):
        return model.variant == "basic" or _decimal(gain) <= -_decimal(base).ln() + Decimal("1e-13")


def _decimal(number: Fraction) -> Decimal:
    with localcontext(prec=50):
        return Decimal(number.numerator) / Decimal(number.denominator)
