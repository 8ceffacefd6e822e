"""Trajectory uniqueness: how many known places and times single a person out.

A few points of a trajectory, from photographs or payments, are enough to find it among many thousands (de Montjoye,
Hidalgo, Verleysen and Blondel, "Unique in the crowd", 2013). The attacker knows some random points of a person and
looks for the trajectories that contain them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from cloister.attacks._column_values import values_of
from cloister.attacks.details import AttackDetails, count, fact, number
from cloister.attacks.result import AttackResult
from cloister.core import random, validation
from cloister.core.confidence import binomial_interval
from cloister.core.exact import Number
from cloister.errors import ParameterError

__all__ = ["TrajectoryUniquenessDetails", "trajectory_uniqueness"]

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryUniquenessDetails(AttackDetails):
    """What looking for trajectories by a few points found; the trials are random people with random points.

    People in ``worst`` are numbered as they first come in the table.

    Attributes:
        points: how many points the attacker knows.
        typical_candidates: the median number of trajectories that contain them.
    """

    points: int = field(metadata=fact("points known", count))
    typical_candidates: float = field(metadata=fact("typical candidates", number(",.0f")))


def trajectory_uniqueness(
    people: Any,
    *,
    points: Any,
    known: int = 4,
    trials: int = 1000,
    confidence: Number = 0.95,
    random_state: random.RandomState = None,
) -> AttackResult[TrajectoryUniquenessDetails]:
    """Return how often some random points of a person are in nobody else's trajectory.

    Args:
        people: for each row, whose it is.
        points: for each row, where and when: one value, such as ``("cell 17", "Monday 8 o'clock")``, as coarse as it is
            released.
        known: how many points the attacker knows; people with fewer different ones are not attacked.
        trials: how many times to draw a person and points.
        confidence: the confidence of the interval of the success.
        random_state: where people and points are drawn from.

    >>> whose, where = ["ann", "ann", "bob", "bob"], ["home", "gym", "home", "bar"]
    >>> trajectory_uniqueness(whose, points=where, known=2, trials=50).success
    1.0
    """
    level = float(validation.check_confidence(confidence))
    needed = validation.check_count(known, name="known", at_least=1)
    rounds = validation.check_count(trials, name="trials", at_least=1)
    visits, visitors = _read(people, points)
    names = list(visits)
    targets = [place for place, name in enumerate(names) if len(visits[name]) >= needed]
    if not targets:
        raise ParameterError(
            "Nobody has so many different points.", fix="let the attacker know fewer points: lower known=."
        )
    source = random.random_source(random_state)
    drawn = random.integers_below(source, len(targets), rounds)
    sizes, found = [], []
    for place in drawn.tolist():
        target = targets[place]
        own = visits[names[target]]
        chosen = random.permutation(source, len(own))[:needed]
        sizes.append(len(reduce(set.intersection, (visitors[own[point]] for point in chosen))))
        found.append(target)
    unique = [target for target, size in zip(found, sizes, strict=True) if size == 1]
    often = sorted(set(unique), key=lambda target: (-unique.count(target), target))[:_SHOWN]
    return AttackResult(
        attack="finding trajectories by points",
        assumption=f"has the trajectories without names, and knows {needed} random points of a person",
        success=len(unique) / rounds,
        baseline=1 / len(names),
        interval=binomial_interval(len(unique), rounds, confidence=level),
        confidence=level,
        trials=rounds,
        queries=rounds,
        mitigation=(
            "release places and times more coarsely, or shorter stretches",
            "release counts of places and flows with noise in place of trajectories",
        ),
        worst=tuple((target, unique.count(target) / found.count(target)) for target in often),
        details=TrajectoryUniquenessDetails(
            points=needed,
            typical_candidates=float(sorted(sizes)[rounds // 2]),
        ),
    )


def _read(people: Any, points: Any) -> tuple[dict[Hashable, list[Hashable]], dict[Hashable, set[Hashable]]]:
    """Return the different points of everybody, and everybody at a point."""
    whose, where = values_of(people, name="people"), values_of(points, name="points")
    if len(whose) != len(where):
        raise ParameterError(
            f"There are {len(whose):,} people and {len(where):,} points.", fix="give one person and one point a row."
        )
    visits: dict[Hashable, dict[Hashable, None]] = defaultdict(dict)
    visitors: dict[Hashable, set[Hashable]] = defaultdict(set)
    for person, point in zip(whose, where, strict=True):
        visits[person][point] = None
        visitors[point].add(person)
    return {person: list(own) for person, own in visits.items()}, visitors
