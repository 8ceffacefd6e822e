"""What both classifiers share: reports on devices, and predictions from what was learned.

A model is used on both sides. Devices need only its public parameters; `report` and `randomize` return everything that
may leave them. The collector gives all reports to `fit` and predicts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.guarantees import LocalDP
from cloister.core.random import RandomState
from cloister.core.wordings import format_count
from cloister.errors import ParameterError, ParameterTypeError
from cloister.local.domain import Domain
from cloister.local.estimates import enough
from cloister.local.naive_bayes._design import DesignReports, QuestionDesign
from cloister.local.naive_bayes._joint_tables import Floats
from cloister.local.naive_bayes.features import LabeledPeople, columns_of, label_codes, one_row
from cloister.local.naive_bayes.projection import PublicProjection, check_projection
from cloister.local.protocol import FOLLOWED

__all__ = ["NOTHING_TOLD", "LocalNaiveBayes"]

NOTHING_TOLD = (
    "noise alone can explain every difference between the classes: predictions are hardly better than the largest "
    "class; more people or a larger epsilon would help"
)
"""What a fit says whose features tell nothing."""

_LEAST = 1e-12


class LocalNaiveBayes(ABC):
    """The base of naive Bayes from local reports.

    Attributes:
        classes_: the public classes, in order.
        class_prior_: the share of each class.
        guarantee_: what everything that a person sent promises them.
        reports_: how many reports were learned from.
        notes_: what to know about the fit, such as that noise explains all that it says.
    """

    classes_: tuple[Any, ...]
    class_prior_: Floats
    guarantee_: LocalDP
    reports_: int
    notes_: tuple[str, ...]

    def __init__(self, *, classes: object, epsilon: Number, projection: PublicProjection | None = None) -> None:
        self.classes = classes
        self.epsilon = epsilon
        self.projection = projection

    def randomize(self, rows: Any, labels: Any, *, random_state: RandomState = None) -> DesignReports:
        """Return the reports of many people, one each.

        This is the devices' side: only what is returned may leave them.

        Args:
            rows: a data frame or a mapping from names to columns; or rows of values in the public order.
            labels: each person's class.
            random_state: leave it out; an integer makes the reports predictable, for tests only.

        Raises:
            OutsideDomainError: if a value or a label is missing or not declared.
        """
        return self.design.ask(self._people(rows, labels), single=False, random_state=random_state)

    def report(self, row: Any, label: Any, *, random_state: RandomState = None) -> DesignReports:
        """Return the report of one person, on their device; see `randomize`.

        Args:
            row: the person's features, a mapping by name or a sequence in the public order.
            label: the person's class.
            random_state: leave it out; an integer makes the report predictable, for tests only.
        """
        people = self._people(one_row(row, self._inputs), [label])
        return self.design.ask(people, single=True, random_state=random_state)

    def fit(self, reports: Any, labels: object = None) -> Self:  # reports in any form
        """Learn from reports: the collector's side.

        Args:
            reports: what `randomize` or `report` returned, several of them, or their JSON.
            labels: nothing. Labels are in the reports; whoever gives rows and labels is told what to do instead.

        Raises:
            ForeignReportError: if a report was made for another model.
            MalformedReportError: if a report is not one that a device can make.
            ParameterTypeError: if these are people's values and not reports.
            TooFewReportsError: if there are none.
        """
        # scikit-learn's habit is fit(X, y): here that would hand the values of people to the collector.
        if labels is not None or hasattr(reports, "columns") or isinstance(reports, np.ndarray):
            raise ParameterTypeError(
                "fit takes reports, and not people's values: a collector never has those.",
                fix="call randomize(rows, labels) on the devices first, then fit(reports) with what they sent.",
            )
        found = self.design.read(reports)
        self.reports_ = enough(len(found))
        self.classes_ = self._classes.values
        self.guarantee_ = found.guarantee
        self._learn(found)
        self.notes_ = () if self._tells_classes_apart() else (NOTHING_TOLD,)
        return self

    @property
    def guarantee(self) -> LocalDP:
        """Return what everything that a person sends promises them, before anybody was asked or after."""
        return getattr(self, "guarantee_", self.design.guarantee)

    def __repr__(self) -> str:
        classes = ", ".join(map(str, self._classes.values[:4])) + (", ..." if len(self._classes) > 4 else "")
        learned = f"learned from {self.reports_:,} reports" if hasattr(self, "reports_") else "not fitted"
        count = len(self._names)
        features = format_count(count, "feature")
        return f"{type(self).__name__}({features}; {classes}; {self.guarantee.brief()}; {learned})"

    def predict_proba(self, rows: Any) -> Floats:  # rows, as for randomize
        """Return the probability of each class for each row."""
        scores = self._scores(rows)
        # The largest score is taken off first, as likelihoods of many features vanish in floating point.
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def predict(self, rows: Any) -> NDArray[Any]:  # rows, as for randomize
        """Return the most probable class of each row."""
        return np.asarray(np.array(self._classes.values)[self._scores(rows).argmax(axis=1)])

    def score(self, rows: Any, labels: Any) -> float:  # rows, as for randomize
        """Return the share of rows whose class is predicted rightly."""
        scores = self._scores(rows)
        return float((scores.argmax(axis=1) == label_codes(self._classes, labels, len(scores))).mean())

    @property
    @abstractmethod
    def design(self) -> QuestionDesign:
        """Return what devices and collector agree on: questions, coin, promise."""

    @property
    @abstractmethod
    def _names(self) -> Sequence[str]:
        """Return the features that are asked for, in public order."""

    @abstractmethod
    def _features(self, columns: Sequence[Any]) -> tuple[NDArray[Any], ...]:
        """Return the features of people as codes or numbers, checked against what is declared."""

    @abstractmethod
    def _learn(self, reports: DesignReports) -> None:
        """Set what is learned from reports."""

    @abstractmethod
    def _tells_classes_apart(self) -> bool:
        """Return whether any feature differs between classes by more than noise explains."""

    @abstractmethod
    def _log_likelihoods(self, features: Sequence[NDArray[Any]]) -> Floats:
        """Return the logarithm of the likelihood of each row (rows) under each class (columns)."""

    @cached_property
    def _classes(self) -> Domain:
        return Domain.of(self.classes)

    @cached_property
    def _projection(self) -> PublicProjection | None:
        return None if self.projection is None else check_projection(self.projection)

    @property
    def _inputs(self) -> Sequence[str]:
        """Return the columns that rows must have."""
        return self._names if self._projection is None else self._projection.inputs

    def _read(self, rows: Any) -> tuple[NDArray[Any], ...]:  # rows, as for randomize
        columns = columns_of(rows, self._inputs)
        if self._projection is None:
            return self._features(columns)
        projected = self._projection.transform(dict(zip(self._inputs, columns, strict=True)))
        return self._features([projected[:, place] for place in range(projected.shape[1])])

    def _people(self, rows: Any, labels: Any) -> LabeledPeople:  # rows and labels, as for randomize
        features = self._read(rows)
        return LabeledPeople(features, label_codes(self._classes, labels, len(features[0])))

    def _scores(self, rows: Any) -> Floats:  # rows, as for randomize
        if not hasattr(self, "reports_"):
            raise ParameterError("This model has learned nothing yet.", fix="call fit(reports) first.")
        # A class of share zero is unlikely, not impossible: its logarithm must stay finite.
        return np.log(np.maximum(self.class_prior_, _LEAST)) + self._log_likelihoods(self._read(rows))

    def _promise(self, epsilon: Number, *assumptions: str) -> LocalDP:  # an exact number
        public = ["features, classes and bounds are public and were not read from the people who are asked"]
        if self._projection is not None:
            public.append(self._projection.assumption)
        return LocalDP(epsilon=epsilon, unit="person", assumptions=(FOLLOWED, *public, *assumptions))

    def _facts(self, features: Mapping[str, Any]) -> dict[str, Any]:
        facts: dict[str, Any] = {"features": dict(features), "classes": list(self._classes.values)}
        return facts if self._projection is None else {**facts, "projection": self._projection.to_dict()}
