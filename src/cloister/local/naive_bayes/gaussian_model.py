"""Naive Bayes with normal features, from one report per person.

A public coin gives a person a feature and a moment: the number b in -1 .. 1, or its square (Yilmaz, Al-Rubaie and
Chang 2019). The report tells it together with the class, see `_class_means`. For each class the mean mu and the second
moment give the variance, which is kept above a public floor.

The reports of one feature and moment come from a small part of the people, so the plain estimates are noisy. Unless
``shrink=False``, class means are drawn towards the mean of all classes, and class variances towards their common value,
as far as the known noise demands (the positive part of James and Stein's rule).

`GaussianPlan` says how many people the design needs, before anybody is asked.

Privacy: claim epsilon-LDP per person, see `_design` and `_class_means`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.validation import check_bounds, check_choice, check_positive, check_probability
from cloister.core.wordings import percent
from cloister.errors import MissingBoundsError, ParameterError
from cloister.local.domain import Codes
from cloister.local.estimates import z_of
from cloister.local.naive_bayes._class_means import (
    ClassMeanProtocol,
    ClassProducts,
    ClassVector,
    best_protocol,
    class_mean_protocols,
)
from cloister.local.naive_bayes._design import DesignReports, QuestionDesign
from cloister.local.naive_bayes._joint_tables import Floats, class_shares, class_tables
from cloister.local.naive_bayes._model import LocalNaiveBayes
from cloister.local.naive_bayes._questions import FeatureQuestion, JointCoding, JointQuestion, best_support_protocol
from cloister.local.naive_bayes.features import LabeledPeople, finite_numbers
from cloister.local.naive_bayes.projection import PublicProjection
from cloister.local.protocol import check_local_epsilon

__all__ = ["GaussianPlan", "LocalGaussianNaiveBayes", "MomentQuestion", "class_means", "plan_gaussian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianPlan:
    """How many people class means within a wanted error take.

    Attributes:
        people: how many in all.
        least: with so many the standard error of a class mean is still half its range; fewer are hopeless.
        per_question: how many of them are asked about one moment of one feature.
        features: how many features there are.
        epsilon: what one person pays.
        way: how a class and a number are told together.
        half_width: of the 95% interval of a class mean, with the bounds at -1 and 1.
        smallest_class: the share of the smallest class.
    """

    people: int
    least: int
    per_question: int
    features: int
    epsilon: float
    way: str
    half_width: float
    smallest_class: float

    def __str__(self) -> str:
        return (
            f"To know the mean of each of {self.features} features in a class of {percent(self.smallest_class)} "
            f"to ± {self.half_width:g} of half its range (95%) takes about {self.people:,} people at epsilon "
            f"{self.epsilon:g}: {self.per_question:,} for each of two moments of each feature. "
            f"With {self.least:,} people the standard error is still half the range."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.local_gaussian_plan/1",
            **{name: getattr(self, name) for name in self.__slots__},
        }


def plan_gaussian(
    *, features: int, epsilon: Fraction, way: str, variance: float, half_width: object, smallest_class: object
) -> GaussianPlan:
    """Return the plan for a number of features.

    The mean of a class of share P has variance ``variance / (m P**2)`` from m reports, and a moment of a feature gets
    one in ``2 features + 1`` people.

    Args:
        features: how many there are.
        epsilon: what one person pays.
        way: how a class and a number are told together.
        variance: of a product P(c) E[v | c], times the number of reports.
        half_width: of the 95% interval of a class mean, with the bounds at -1 and 1.
        smallest_class: the share of the smallest class.
    """
    wanted, share = float(check_positive(half_width, name="half_width")), _share(smallest_class)
    each = math.ceil(z_of(0.95) ** 2 * variance / (share * wanted) ** 2)
    sides = 2 * features + 1
    return GaussianPlan(
        people=sides * each,
        least=math.ceil(sides * variance / share**2),
        per_question=each,
        features=features,
        epsilon=float(epsilon),
        way=way,
        half_width=wanted,
        smallest_class=share,
    )


def _share(value: object) -> float:
    share = float(check_probability(value, name="smallest_class"))
    if share == 0:
        raise ParameterError("An empty class has no mean.", fix="give the share of the smallest class, such as 0.1.")
    return share


_LEAST_SHARE = 0.01
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class MomentQuestion(FeatureQuestion):
    """A feature, or its square, together with the class.

    Attributes:
        place: which feature.
        moment: 1 or 2.
    """

    protocol: ClassMeanProtocol
    place: int
    moment: int

    def codes(self, people: LabeledPeople) -> Codes:
        """Return (class, step): of the number, of its square, or of the square stretched to -1 .. 1."""
        numbers = people.features[self.place]
        if self.moment == 2:
            # A square lies in 0 .. 1 only: stretched to both ends, rounding and noise of the protocol are used in full.
            numbers = 2 * numbers**2 - 1 if self._stretched else numbers**2
        return self.protocol.code(people.labels, numbers)

    def moments(self, found: ClassProducts, shares: Floats) -> tuple[Floats, Floats]:
        """Return the moment in each class, and its variance."""
        means = class_means(found.products, shares)
        variances = found.variances / shares**2
        if self.moment == 2 and self._stretched:
            # Undoing the stretch halves the moment, and its variance twice.
            return (means + 1) / 2, variances / 4
        return means, variances

    @property
    def _stretched(self) -> bool:
        return not isinstance(self.protocol, ClassVector)


class LocalGaussianNaiveBayes(LocalNaiveBayes):
    """Naive Bayes with normal features within public bounds, from one report per person.

    Args:
        bounds: for each feature its name and its public bounds; numbers outside are clamped on the device. With a
            projection they may be left out.
        classes: the public classes.
        epsilon: what everything that one person sends may cost them.
        way: how a class and a number are told together: ``"vector"``, ``"value"``, ``"bit"``, see `_class_means`; or
            ``"auto"`` for the most exact one.
        variance_floor: the smallest variance of a feature in a class, with the bounds at -1 and 1.
        shrink: whether classes are drawn together as far as the noise demands.
        projection: a public projection of numeric columns; the features are then its components.

    Attributes:
        means_: for each feature (rows) and class (columns) the mean, with the bounds at -1 and 1.
        variances_: likewise the variance.

    >>> model = LocalGaussianNaiveBayes(bounds={"weight": (40, 160)}, classes=["light", "heavy"], epsilon=4)
    >>> reports = model.randomize({"weight": [55.0, 120.0] * 1000}, ["light", "heavy"] * 1000)
    >>> model.fit(reports).predict({"weight": [60, 115]}).tolist()
    ['light', 'heavy']
    """

    means_: Floats
    variances_: Floats

    def __init__(
        self,
        *,
        bounds: Mapping[str, Any] | None = None,
        classes: object,
        epsilon: Number,
        way: str = "auto",
        variance_floor: object = 0.01,
        shrink: bool = True,
        projection: PublicProjection | None = None,
    ) -> None:
        super().__init__(classes=classes, epsilon=epsilon, projection=projection)
        self.bounds = bounds
        self.way = way
        self.variance_floor = variance_floor
        self.shrink = shrink
        self._check_public()

    @cached_property
    def design(self) -> QuestionDesign:
        """Return what devices and collector agree on: questions, coin, promise."""
        epsilon, classes = check_local_epsilon(self.epsilon), len(self._classes)
        protocol = class_mean_protocols[self._way](classes=classes, epsilon=epsilon)
        alone = best_support_protocol(classes, epsilon)
        questions: list[FeatureQuestion] = [JointQuestion("class", alone, 1, (), JointCoding((), classes))]
        for place, name in enumerate(self._names):
            questions += [
                MomentQuestion(f"class and {name}", protocol, 1, place, 1),
                MomentQuestion(f"class and {name} squared", protocol, 1, place, 2),
            ]
        shown = {name: {"bounds": list(ends)} for name, ends in self._ends.items()}
        return QuestionDesign(tuple(questions), self._promise(epsilon), self._facts(shown))

    def plan(self, *, half_width: float = 0.1, smallest_class: float | None = None) -> GaussianPlan:
        """Return how many people a wanted error of class means takes, before anybody is asked.

        Args:
            half_width: of the 95% interval of a class mean, with the bounds at -1 and 1.
            smallest_class: the share of the smallest class; by default all are equal.
        """
        share = 1 / len(self._classes) if smallest_class is None else smallest_class
        return plan_gaussian(
            features=len(self._names),
            epsilon=check_local_epsilon(self.epsilon),
            way=self._way,
            variance=class_mean_protocols[self._way].typical_variance(
                len(self._classes), check_local_epsilon(self.epsilon)
            ),
            half_width=half_width,
            smallest_class=share,
        )

    def _learn(self, reports: DesignReports) -> None:
        told = class_tables(reports)
        found: dict[tuple[int, int], tuple[MomentQuestion, ClassProducts]] = {}
        for question, rows in zip(reports.design.questions, reports.rows, strict=True):
            if isinstance(question, MomentQuestion) and len(rows):
                products = question.protocol.products(rows)
                found[question.place, question.moment] = question, products
                told += [] if products.shares is None else [products.shares]
        self.class_prior_ = class_shares(told, shrunk=self.shrink)
        floor = float(check_positive(self.variance_floor, name="variance_floor"))
        learned = [self._feature(found, place, floor) for place in range(len(self._names))]
        self.means_, self.variances_ = (np.array(part) for part in zip(*learned, strict=True))

    def _feature(
        self, found: Mapping[tuple[int, int], tuple[MomentQuestion, ClassProducts]], place: int, floor: float
    ) -> tuple[Floats, Floats]:
        """Return mean and variance of a feature in each class; the same for all classes where reports are missing."""
        # A class that seems empty would make its mean infinite.
        shares = np.maximum(self.class_prior_, _LEAST_SHARE)
        shares = shares / shares.sum()
        if (place, 1) not in found or (place, 2) not in found:
            # Without reports a feature must say nothing: the same law in every class leaves the others to decide.
            return np.zeros(len(shares)), np.ones(len(shares))
        (first, raw), (second, squared) = found[place, 1], found[place, 2]
        means, noise = first.moments(raw, shares)
        moments, more = second.moments(squared, shares)
        means = np.clip(self._shrink_to_mean(means, noise, shares), -1, 1)
        # The squared mean is noisy as well: its error is, to first order, twice the mean times that of the mean.
        variances = self._shrink_to_mean(np.clip(moments, 0, 1) - means**2, more + 4 * means**2 * noise, shares)
        return means, np.clip(variances, floor, 1)

    def _shrink_to_mean(self, values: Floats, noise: Floats, shares: Floats) -> Floats:
        """Return the values of the classes, drawn towards their mean as far as the noise demands."""
        middle = float(values @ shares)
        apart = float(shares @ (values - middle) ** 2)
        # So far apart would classes lie by noise alone, as the weighted mean follows each of them a little.
        expected = float((shares * (1 - shares)) @ noise)
        kept = max(0.0, 1 - expected / apart) if self.shrink and apart else 1.0
        return np.asarray(middle + kept * (values - middle))

    def _log_likelihoods(self, features: Sequence[NDArray[Any]]) -> Floats:
        numbers = np.stack(features, axis=1)[:, :, None]
        squares = (numbers - self.means_) ** 2 / self.variances_ + np.log(self.variances_)
        return np.asarray(-squares.sum(axis=1) / 2)

    def _features(self, columns: Sequence[Any]) -> tuple[NDArray[Any], ...]:
        scaled = []
        for (low, high), column in zip(self._ends.values(), columns, strict=True):
            numbers = np.clip(finite_numbers(column), low, high)
            scaled.append(2 * (numbers - low) / (high - low) - 1)
        return tuple(scaled)

    def _check_public(self) -> None:
        """Refuse at once what no device could use."""
        check_local_epsilon(self.epsilon)
        _ = self._classes, self._ends

    def _tells_classes_apart(self) -> bool:
        """Return whether shrinking left a difference; without it, that is not known."""
        apart = max(np.ptp(self.means_, axis=1).max(), np.ptp(self.variances_, axis=1).max())
        return not self.shrink or bool(apart > _SAME)

    @property
    def _names(self) -> Sequence[str]:
        return list(self._ends)

    @cached_property
    def _ends(self) -> dict[str, tuple[float, float]]:
        declared = self.bounds
        if declared is None and self._projection is not None:
            declared = self._projection.bounds
        if not isinstance(declared, Mapping) or not declared:
            raise MissingBoundsError(
                "The bounds of the features are not declared, and reading them from the data would not be private.",
                fix='write for example bounds={"age": (0, 110)}.',
            )
        pairs = {str(name): check_bounds(ends, name=f"the bounds of {name}") for name, ends in declared.items()}
        return {name: (float(low), float(high)) for name, (low, high) in pairs.items()}

    @cached_property
    def _way(self) -> str:
        allowed = ("auto", *class_mean_protocols)
        chosen = check_choice(self.way, name="way", allowed=allowed)
        return best_protocol(len(self._classes), check_local_epsilon(self.epsilon)) if chosen == "auto" else chosen


def class_means(products: Floats, shares: Floats) -> Floats:
    """Return the mean in each class: the products P(c) E[v | c], divided by the shares of the classes.

    >>> class_means(np.array([0.25, -0.125]), np.array([0.5, 0.5])).tolist()
    [0.5, -0.25]
    """
    return np.asarray(products / shares)
