"""Evasion: change an input a little so that a trained model errs.

*One step* along the sign of the slope (FGSM: Goodfellow, Shlens and Szegedy 2015) and *several steps*, each brought
back within the budget (PGD: Madry et al. 2018), use a model's slopes, how its confidence changes with its inputs: by
its formula for linear and logistic models, estimated by asking for others. *Boundary* finds a misleading input near a
given one from labels alone: the walk starts at a record that the model takes for another class, halves its way to the
border, and there asks about points around it: which of them mislead the model tells where the border lies, and so the
way that leads nearer (HopSkipJump: Chen, Jordan and Wainwright 2020). A *surrogate* stands for a model that cannot be
asked: what misleads one model often misleads another. Random changes of the same size are the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.operations.noise import standard_normals, uniforms
from cloister.attacks.integrity.robustness import (
    RobustnessResult,
    common_share,
    measure_accuracy,
    read_numbers,
    read_strengths,
)
from cloister.attacks.models._victim import Integers, Labeled, Victim, linear_layer
from cloister.core import validation
from cloister.core.confidence import Floats
from cloister.core.exact import Number
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.errors import ParameterError

__all__ = ["Slopes", "Space", "boundary_distances", "evasion", "misleading_rows", "slopes_of"]


Slopes: TypeAlias = Callable[[Floats, Integers], Floats]
"""From rows and the place of a class of each to the gradient of the logarithm of its probability."""

_DIFFERENCE = 0.1
_TINY = 1e-12


def slopes_of(victim: Victim, rows: Floats, *, width: float) -> Slopes:
    """Return the slopes of a model, checked on some rows; differences reach over 10 % of the width of features."""
    layer = linear_layer(victim.model, rows[:8])
    if layer is not None:
        return layer.gradients
    reach = _DIFFERENCE * width

    def differences(points: Floats, places: Integers) -> Floats:
        found = np.empty_like(points)
        for feature in range(points.shape[1]):
            step = reach * (np.arange(points.shape[1]) == feature)
            up, down = (
                np.log(victim.confidences(points + sign * step)[np.arange(len(points)), places] + _TINY)
                for sign in (1, -1)
            )
            found[:, feature] = (up - down) / (2 * reach)
        return found

    return differences


_HALVINGS = 10
_PROBES = 40
_SHRINKS = 5


def boundary_distances(
    victim: Victim, rows: Labeled, *, limits: tuple[float, float], norm: str, steps: int, source: RandomSource
) -> Floats:
    """Return how far each row must at most be changed until the model errs; infinite where no start was found.

    Args:
        victim: the model.
        rows: what is attacked.
        limits: public bounds of features.
        norm: "largest" or "euclidean".
        steps: how often the border is probed.
        source: where random steps come from.
    """
    said = victim.predictions(rows.features)
    starts = _starts(rows.features, said, rows.labels)
    # Rows without a start walk from any point, and count as infinitely far in the end.
    points = _bisect(victim, rows, rows.features[np.maximum(starts, 0)])
    for step in range(1, steps + 1):
        apart = np.linalg.norm(points - rows.features, axis=1)
        way = _uphill(victim, rows, points, reach=apart / np.sqrt(points.shape[1]), source=source)
        way = np.sign(way) / np.sqrt(points.shape[1]) if norm == "largest" else way
        moved = _bisect(victim, rows, _advance(victim, rows, points, way, apart / np.sqrt(step), limits=limits))
        nearer = _length(moved - rows.features, norm) < _length(points - rows.features, norm)
        points = np.where(nearer[:, None], moved, points)
    distance = np.where(starts < 0, np.inf, _length(points - rows.features, norm))
    return np.asarray(np.where(said != rows.labels, 0.0, distance))


def _starts(rows: Floats, said: NDArray[np.generic], labels: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return for each row the position of the nearest one that the model takes for another class than its own."""
    squares = (rows**2).sum(axis=1)
    apart = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    apart[labels[:, None] == said[None, :]] = np.inf
    return np.where(np.isfinite(apart).any(axis=1), apart.argmin(axis=1), -1)


def _bisect(victim: Victim, rows: Labeled, points: Floats) -> Floats:
    """Return points on the way to the rows, as near as the model still errs, by halving."""
    good, bad = np.zeros(len(points)), np.ones(len(points))
    for _ in range(_HALVINGS):
        middle = (good + bad) / 2
        errs = victim.predictions(points + middle[:, None] * (rows.features - points)) != rows.labels
        good, bad = np.where(errs, middle, good), np.where(errs, bad, middle)
    return np.asarray(points + good[:, None] * (rows.features - points))


def _uphill(victim: Victim, rows: Labeled, points: Floats, *, reach: Floats, source: RandomSource) -> Floats:
    """Return the direction of unit length into which the model errs more, as points around tell."""
    probes = standard_normals(source, _PROBES * points.size).reshape(_PROBES, *points.shape)
    probes /= np.maximum(np.linalg.norm(probes, axis=2, keepdims=True), 1e-300)
    asked = (points + reach[:, None] * probes).reshape(-1, points.shape[1])
    errs = (victim.predictions(asked) != np.tile(rows.labels, _PROBES)).reshape(_PROBES, -1).astype(np.float64)
    # Without the mean the direction would be noise where nearly all points around mislead the model, or hardly
    # any does.
    lean = ((errs - errs.mean(axis=0))[:, :, None] * probes).mean(axis=0)
    return np.asarray(lean / np.maximum(np.linalg.norm(lean, axis=1, keepdims=True), 1e-300))


def _advance(
    victim: Victim, rows: Labeled, points: Floats, way: Floats, size: Floats, *, limits: tuple[float, float]
) -> Floats:
    """Return points further on the way, as far as the model still errs there; where it does nowhere, the old ones."""
    found = points
    arrived = np.zeros(len(points), dtype=np.bool_)
    for _ in range(_SHRINKS):
        tried = np.clip(points + size[:, None] * way, *limits)
        errs = (victim.predictions(tried) != rows.labels) & ~arrived
        found, arrived, size = np.where(errs[:, None], tried, found), arrived | errs, size / 2
    return np.asarray(found)


def _length(changes: Floats, norm: str) -> Floats:
    return np.asarray(np.abs(changes).max(axis=1) if norm == "largest" else np.linalg.norm(changes, axis=1))


KINDS = ("one_step", "several_steps", "boundary")
NORMS = ("largest", "euclidean")
_KNOWS = {
    "one_step": "knows how the model's confidence changes with its inputs, and changes an input once",
    "several_steps": "knows how the model's confidence changes with its inputs, and changes an input step by step",
    "boundary": "sees the labels that the model gives, and nothing else",
}
_ADVICE = (
    "train with misled inputs among the training rows (adversarial training), and measure again",
    "check inputs for plausibility where a wrong answer is dear, and let a person decide near the border",
    "differential privacy does not help here: it bounds what is learned about people, not how a model is misled",
)


def evasion(
    model: Any,
    test: Any,
    *,
    bounds: object,
    budgets: Sequence[object],
    kind: str = "several_steps",
    norm: str = "largest",
    surrogate: Any = None,
    aim: Any = None,
    steps: int = 10,
    target: str | None = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> RobustnessResult:
    """Measure the accuracy of a model on inputs that were changed to mislead it, by how much they may be changed.

    Args:
        model: a fitted classifier of numbers.
        test: rows that it has not seen: a pair (features, labels), or a table with ``target``.
        bounds: public bounds (low, high) of all features, which changed inputs keep.
        budgets: how far an input may be changed, in the units of the features.
        kind: "one_step", "several_steps", or "boundary" for attackers who see labels only.
        norm: "largest" limits the change of every feature, "euclidean" the length of the change.
        surrogate: a fitted model of the attacker's own, whose slopes are used instead of the model's.
        aim: the class that inputs shall be taken for; by default any but their own.
        steps: how many steps are taken.
        target: the column of labels, where a table is given.
        confidence: of the intervals.
        random_state: None; an integer is for tests.

    Raises:
        ParameterError: if model, rows and settings do not belong together.
    """
    validation.check_choice(kind, name="kind", allowed=KINDS)
    validation.check_choice(norm, name="norm", allowed=NORMS)
    level = float(validation.check_confidence(confidence))
    count = validation.check_count(steps, name="steps", at_least=1)
    low, high = (float(end) for end in validation.check_bounds(bounds))
    limits = read_strengths(budgets, name="budgets")
    rows = read_numbers(test, target=target, what="test")
    source, victim = random_source(random_state), Victim(model)
    unharmed = victim.predictions(rows.features) == rows.labels
    space = Space(low, high, norm)
    if kind == "boundary":
        if surrogate is not None or aim is not None:
            raise ParameterError("The boundary attack takes no surrogate and no aim.", fix="leave them out.")
        reached = boundary_distances(victim, rows, limits=(low, high), norm=norm, steps=count, source=source)
        masks = [unharmed & (reached > limit) for limit in limits]
    else:
        masks = _by_slopes(victim, rows, limits, space, kind=kind, surrogate=surrogate, aim=aim, steps=count)
        masks[0] = unharmed
    noise = [_under_noise(victim, rows, limit, space, source) for limit in limits]
    # Who may change much may also change little: what misled the model once counts for all larger budgets.
    harmed = np.logical_and.accumulate(masks, axis=0)
    curves = {
        "misled": tuple(
            measure_accuracy(limit, mask, confidence=level) for limit, mask in zip(limits, harmed, strict=True)
        ),
        "random changes": tuple(
            measure_accuracy(limit, mask, confidence=level) for limit, mask in zip(limits, noise, strict=True)
        ),
    }
    stood = "" if surrogate is None else "; asks a model of their own instead of this one"
    return RobustnessResult(
        attack=f"evasion ({kind.replace('_', ' ')}{', transferred' if surrogate is not None else ''})",
        assumption=_KNOWS[kind] + stood,
        measure="largest change of a feature" if norm == "largest" else "length of the change",
        curves=curves,
        baseline=common_share(rows.labels),
        confidence=level,
        trials=len(rows),
        queries=victim.queries,
        mitigation=_ADVICE,
    )


class Space:
    """Where changed inputs may be: within public bounds, and within a budget."""

    def __init__(self, low: float, high: float, norm: str) -> None:
        self.low, self.high, self.norm = low, high, norm

    def within(self, points: Floats, start: Floats, budget: float) -> Floats:
        """Return points brought back within the budget of where they started, and within the bounds."""
        change = points - start
        if self.norm == "largest":
            change = np.clip(change, -budget, budget)
        else:
            length = np.linalg.norm(change, axis=1, keepdims=True)
            change = change * np.minimum(1.0, budget / np.maximum(length, 1e-300))
        return np.asarray(np.clip(start + change, self.low, self.high))

    def direction(self, slopes: Floats) -> Floats:
        """Return the step of unit size that follows the slopes furthest."""
        if self.norm == "largest":
            return np.asarray(np.sign(slopes))
        return np.asarray(slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300))


def misleading_rows(
    slopes: Slopes, rows: Floats, places: Integers, *, toward: bool, budget: float, space: Space, steps: int
) -> Floats:
    """Return rows changed within a budget, away from a class or toward it."""
    points = rows
    # The steps together may pass the budget, so that points can walk on along its border.
    step = budget if steps == 1 else 2.5 * budget / steps
    for _ in range(steps):
        uphill = space.direction(slopes(points, places))
        points = space.within(points + (step if toward else -step) * uphill, rows, budget)
    return points


def _by_slopes(
    victim: Victim,
    rows: Labeled,
    limits: list[float],
    space: Space,
    *,
    kind: str,
    surrogate: Any,
    aim: Any,
    steps: int,
) -> list[NDArray[np.bool_]]:
    """Return for each budget which rows the model still gets right, or does not take for the aim."""
    teacher = victim if surrogate is None else Victim(surrogate)
    classes = teacher.confidences(rows.features[:1]).shape[1]
    wanted = rows.labels if aim is None else np.full(len(rows), aim)
    places = teacher.positions(wanted, classes)
    slopes = slopes_of(teacher, rows.features, width=space.high - space.low)
    masks = []
    for limit in limits:
        points = misleading_rows(
            slopes,
            rows.features,
            places,
            toward=aim is not None,
            budget=limit,
            space=space,
            steps=1 if kind == "one_step" else steps,
        )
        said = victim.predictions(points)
        masks.append(np.asarray(said == rows.labels if aim is None else (said != aim) | (rows.labels == aim)))
    return masks


def _under_noise(victim: Victim, rows: Labeled, limit: float, space: Space, source: RandomSource) -> NDArray[np.bool_]:
    shape = rows.features.shape
    if space.norm == "largest":
        change = limit * np.sign(uniforms(source, rows.features.size).reshape(shape) - 0.5)
    else:
        change = limit * space.direction(standard_normals(source, rows.features.size).reshape(shape))
    return np.asarray(victim.predictions(np.clip(rows.features + change, space.low, space.high)) == rows.labels)
