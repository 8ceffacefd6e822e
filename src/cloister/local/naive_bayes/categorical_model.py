"""Naive Bayes with discrete features, from one report per person.

Yilmaz, Al-Rubaie and Chang (2019) let each person report the joint code of the class and one feature, or the class
alone. Their published code reports every feature of every person at the full epsilon, which costs (2 F + 1) epsilon;
`legacy_all_columns` does that and says so. Here a person sends one report that costs epsilon in all. Three things make
up for the fewer reports: questions are chosen to be as exact as epsilon allows (`_questions`), class shares are pooled
from all reports (`_joint_tables.class_shares`), and features shrink as far as their noise demands
(`_joint_tables.posterior`).

Privacy: claim epsilon-LDP per person, see `_design`. With ``legacy_all_columns`` two people differ in the class, and
for each of F features in at most two of the answers about it (those for their classes): (2 F + 1) epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.validation import check_choice, check_non_negative
from cloister.errors import MissingBoundsError, ParameterError, ParameterTypeError
from cloister.local.domain import Domain
from cloister.local.naive_bayes._design import DesignReports, QuestionDesign
from cloister.local.naive_bayes._joint_tables import (
    Floats,
    JointTable,
    class_shares,
    class_tables,
    feature_tables,
    is_telling,
    posterior,
    project_probabilities,
)
from cloister.local.naive_bayes._model import LocalNaiveBayes
from cloister.local.naive_bayes._questions import QuestionPlan
from cloister.local.naive_bayes.features import Bins
from cloister.local.naive_bayes.projection import PublicProjection
from cloister.local.protocol import check_local_epsilon

__all__ = ["LocalCategoricalNaiveBayes"]


_ESTIMATORS = ("posterior", "projected")


class LocalCategoricalNaiveBayes(LocalNaiveBayes):
    """Naive Bayes with discrete features, or numbers in public bins, from one report per person.

    Args:
        features: for each feature its name and its public values: a list, a number of values, or `Bins` for numbers.
        classes: the public classes.
        epsilon: what everything that one person sends may cost them.
        protocol: the registered name of a frequency protocol, or ``"auto"`` for the most exact one.
        questions: ``"auto"`` for the most exact ones, see `QuestionPlan`; ``"single"`` for the published ones: the
            class alone, or with one feature.
        estimator: ``"posterior"`` (knows the noise) or ``"projected"`` (shares projected to the simplex); see
            `_joint_tables`.
        smoothing: what ``"projected"`` adds to each share.
        pooled_prior: whether class shares come from all reports, rather than from those about the class alone if there
            are any.
        projection: a public projection of numeric columns; ``features`` are then its components, such as
            ``projection.to_bins(4)``.
        legacy_all_columns: let everyone report everything at ``epsilon`` each; the guarantee states the true cost.

    Attributes:
        conditionals_: for each feature the probability of each value (rows) in each class (columns).

    >>> model = LocalCategoricalNaiveBayes(features={"smokes": ["no", "yes"]}, classes=["well", "ill"], epsilon=2)
    >>> reports = model.randomize({"smokes": ["no", "yes"] * 500}, ["well", "ill"] * 500)
    >>> model.fit(reports).predict({"smokes": ["no", "yes"]}).tolist()
    ['well', 'ill']
    """

    conditionals_: dict[str, Floats]
    _tables: list[JointTable]

    def __init__(
        self,
        *,
        features: Mapping[str, Any],
        classes: object,
        epsilon: Number,
        protocol: str = "auto",
        questions: str = "auto",
        estimator: str = "posterior",
        smoothing: object = 1e-4,
        pooled_prior: bool = True,
        projection: PublicProjection | None = None,
        legacy_all_columns: bool = False,
    ) -> None:
        super().__init__(classes=classes, epsilon=epsilon, projection=projection)
        self.features = features
        self.protocol = protocol
        self.questions = questions
        self.estimator = estimator
        self.smoothing = smoothing
        self.pooled_prior = pooled_prior
        self.legacy_all_columns = legacy_all_columns
        # Mistakes in what is public must show when the model is declared, before anybody reports.
        self._public()

    @cached_property
    def design(self) -> QuestionDesign:
        """Return what devices and collector agree on: questions, coin, promise."""
        epsilon, names, sizes, classes = self._public()
        plan = QuestionPlan(names=names, sizes=sizes, classes=classes, epsilon=epsilon, protocol=self.protocol)
        way = check_choice(self.questions, name="questions", allowed=("auto", "single"))
        questions, guarantee = plan.single() if way == "single" else plan.best(), self._promise(epsilon)
        if self.legacy_all_columns:
            questions, total = plan.all_columns(), (2 * len(sizes) + 1) * epsilon
            guarantee = self._promise(total, f"each of the answers costs {float(epsilon):g}, and everyone gives all")
        shown = {name: _record(domain) for name, domain in self._domains.items()}
        return QuestionDesign(questions, guarantee, self._facts(shown), asks_all=self.legacy_all_columns)

    def _learn(self, reports: DesignReports) -> None:
        way = check_choice(self.estimator, name="estimator", allowed=_ESTIMATORS)
        alone = [table for table in class_tables(reports, alone=not self.pooled_prior) if table.reports]
        # Where nobody was asked for the class alone, all reports tell it together.
        self.class_prior_ = class_shares(alone or class_tables(reports), shrunk=way == "posterior")
        tables = self._tables = feature_tables(reports, self._public()[2], self.class_prior_)
        smoothing = float(check_non_negative(self.smoothing, name="smoothing"))
        self.conditionals_ = {
            name: self._conditional(table, way, smoothing) for name, table in zip(self._names, tables, strict=True)
        }

    def _tells_classes_apart(self) -> bool:
        return is_telling(self._tables, self.class_prior_)

    def _conditional(self, table: JointTable, way: str, smoothing: float) -> Floats:
        if way == "posterior":
            return posterior(table, self.class_prior_)
        return project_probabilities(table, smoothing=smoothing)

    def _log_likelihoods(self, features: Sequence[NDArray[Any]]) -> Floats:
        # A value that was never seen in a class makes it unlikely, and must not rule it out for good.
        tables = [np.log(np.maximum(table, 1e-12)) for table in self.conditionals_.values()]
        return np.asarray(sum(table[codes] for table, codes in zip(tables, features, strict=True)))

    def _features(self, columns: Sequence[Any]) -> tuple[NDArray[Any], ...]:
        return tuple(domain.codes(column) for domain, column in zip(self._domains.values(), columns, strict=True))

    @property
    def _names(self) -> Sequence[str]:
        return list(self._domains)

    @cached_property
    def _domains(self) -> dict[str, Domain | Bins]:
        if not _is_named(self.features):
            raise ParameterTypeError(
                "The features are not declared by name.", fix='write for example features={"smokes": ["no", "yes"]}.'
            )
        return {str(name): _domain(str(name), domain) for name, domain in self.features.items()}

    def _public(self) -> tuple[Any, list[str], list[int], int]:
        sizes = [len(domain) for domain in self._domains.values()]
        return check_local_epsilon(self.epsilon), list(self._domains), sizes, len(self._classes)


def _domain(name: str, values: object) -> Domain | Bins:
    if isinstance(values, Bins):
        return values
    try:
        return Domain.of(values)
    except MissingBoundsError as error:
        raise MissingBoundsError(f'Feature "{name}": {error.problem}', fix=error.fix) from None
    except ParameterError as error:
        raise ParameterError(f'Feature "{name}": {error.problem}', fix=error.fix) from None


def _is_named(features: object) -> bool:
    return isinstance(features, Mapping) and bool(features)


def _record(domain: Domain | Bins) -> dict[str, Any]:
    return {"edges": list(domain.edges)} if isinstance(domain, Bins) else {"values": list(domain.values)}
