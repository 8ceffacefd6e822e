"""Attribute inference: guess an unknown value of a person from a model that was trained on that person's record.

The attacker knows everything else about the person, and the label. The model says how likely this label is with each
possible value; Bayes' rule does the rest (Fredrikson et al. 2014). Much of what is found so is no leak: whoever has
similar data guesses the value from the other columns without any model. The control does exactly that, and what the
attack finds beyond it is what the model gives away (Jayaraman and Evans 2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.details import HELD, AttackDetails, Row
from cloister.attacks.models._victim import Labeled, Victim, read_labeled, seed_of
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.core.lazy_imports import need_learning
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.wordings import format_points, percent
from cloister.errors import ParameterError, UnknownColumnError

__all__ = ["AttributeInferenceDetails", "attribute_inference"]

_MOST_VALUES = 50
_TINY = 1e-12
_ADVICE = (
    "train with differential privacy (cl.learn): then the model tells no more about members than about others",
    "leave the sensitive column out of the model, if it predicts nearly as well without",
    "what similar data tell without the model is not the model's doing, and no protection of it helps against that",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeInferenceDetails(AttackDetails):
    """Success is the share of people whose value is guessed rightly; the baseline is the most common value.

    The control is imputation: the same guess from similar data, without the model. Only ``excess`` is the model's leak.

    Attributes:
        prior: what the attacker believes before asking the model: "imputation" or "marginal".
        success_on_others: how often the attack is right about people who were not in the training data, if given.
        guesses: the guessed values by their places among ``values``; custodian only.
        values: the possible values; custodian only.
    """

    schema: ClassVar[str] = "cloister.attribute_inference/1"
    further: ClassVar[tuple[str, ...]] = ("excess",)

    prior: str
    success_on_others: float | None = None
    guesses: tuple[int, ...] = field(default=(), repr=False, metadata=HELD)
    values: tuple[Any, ...] = field(default=(), repr=False, metadata=HELD)

    def conclude(self, result: AttackResult, /) -> str:
        """Return how often values are guessed with and without the model."""
        known = percent(result.control or 0)
        rates = (
            f"with the model the value is guessed rightly for {percent(result.success)} of people, without it for "
            f"{known}, by the most common value for {percent(result.baseline)}"
        )
        if result.succeeded:
            return f"The model gives values away: {rates}."
        return f"The model gave nothing certain away: {rates}. Others may find more."

    def compare(self, result: AttackResult, /) -> dict[str, float]:
        """Return the success, and what is achieved without the model and without anything."""
        without = {"without the model": result.control or 0, "common value": result.baseline}
        others = self.success_on_others
        about = {} if others is None else {"with the model, about others": others}
        return {"with the model": result.success, **without, **about}

    def tell(self, result: AttackResult, /) -> Iterator[Row]:
        """Return how much of the success is the model's."""
        yield "beyond similar data", f"{format_points(result.excess, signed=True)} points"
        yield "prior", self.prior
        if self.success_on_others is not None:
            yield "about people who were not trained on", percent(self.success_on_others)


def attribute_inference(
    model: Any,
    members: Any,
    *,
    column: Any,
    background: Any,
    target: str | None = None,
    non_members: Any = None,
    values: Sequence[Any] = (),
    prior: str = "imputation",
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[AttributeInferenceDetails]:
    """Guess one column of the training data with a model's help, and say how much of that is the model's doing.

    Args:
        model: a fitted classifier with ``predict_proba``.
        members: records of the training data: a pair (features, labels), or a table with ``target``.
        column: the unknown column: its name, or its position in an array.
        background: records of other, similar people that the attacker has, likewise.
        target: the column of labels, where tables are given.
        non_members: records that the model was not trained on, likewise, for comparison.
        values: the possible values; by default those in the background.
        prior: "imputation" starts from what similar data say given the other columns, "marginal" from how common
            each value is.
        confidence: of the intervals.
        random_state: None; an integer is for tests.

    Raises:
        ParameterError: if there are too many values, or records, labels and model do not belong together.
        UnknownColumnError: if there is no such column.
    """
    validation.check_choice(prior, name="prior", allowed=("imputation", "marginal"))
    level = float(validation.check_confidence(confidence))
    need_learning("Attribute inference")
    source, victim = random_source(random_state), Victim(model)
    rows = read_labeled(members, target=target, what="members")
    known = read_labeled(background, target=target, what="background")
    known.beside(rows)
    choices = _values(known, column, values)
    truth = _codes(_column(rows.features, column), choices)
    if (truth < 0).all():
        raise ParameterError("No member has any of the values.", fix="list the values that occur, with values=.")
    attacker = _Attacker(victim, known, column, choices, prior=prior, source=source)
    guesses = attacker.guesses(rows)
    control = attacker.impute(rows)
    hits, imputed = int((guesses == truth).sum()), int((control == truth).sum())
    others = None
    if non_members is not None:
        outside = read_labeled(non_members, target=target, what="non members")
        others = float((attacker.guesses(outside) == _codes(_column(outside.features, column), choices)).mean())
    return AttackResult(
        attack="attribute inference",
        assumption="knows all other columns and the label of a person in the training data, has similar data, and asks "
        "the model about each possible value",
        success=hits / len(rows),
        baseline=float((truth == attacker.common).mean()),
        interval=binomial_interval(hits, len(rows), confidence=level),
        confidence=level,
        trials=len(rows),
        queries=victim.queries,
        control=imputed / len(rows),
        control_interval=binomial_interval(imputed, len(rows), confidence=level),
        mitigation=_ADVICE,
        details=AttributeInferenceDetails(
            prior=prior,
            success_on_others=others,
            guesses=tuple(guesses.tolist()),
            values=tuple(choices.tolist()),
        ),
    )


class _Attacker:
    """Who has similar data, and may ask the model."""

    def __init__(
        self, victim: Victim, known: Labeled, column: Any, choices: NDArray[Any], *, prior: str, source: RandomSource
    ) -> None:
        self.victim, self.known, self.column, self.choices, self.source = victim, known, column, choices, source
        self.codes = _codes(_column(known.features, column), choices)
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(choices))
        self.common = int(counts.argmax())
        self.marginal = counts / counts.sum()
        self.prior = prior

    def guesses(self, rows: Labeled) -> NDArray[np.int64]:
        """Return the most likely value of each record, given the model's word on its label."""
        # The belief beforehand must not know the label, which comes in with the model's answers.
        belief = self._beliefs(rows, with_label=False) if self.prior == "imputation" else self.marginal[None, :]
        likely = np.empty((len(rows), len(self.choices)))
        for place, value in enumerate(self.choices):
            answers = self.victim.confidences(_with(rows.features, self.column, value))
            columns = self.victim.positions(rows.labels, answers.shape[1])
            likely[:, place] = answers[np.arange(len(rows)), columns]
        return np.asarray(((belief + _TINY) * (likely + _TINY)).argmax(axis=1))

    def impute(self, rows: Labeled) -> NDArray[np.int64]:
        """Return the most likely value of each record, given its label and similar data, without the model."""
        return np.asarray(self._beliefs(rows, with_label=True).argmax(axis=1))

    def _beliefs(self, rows: Labeled, *, with_label: bool) -> Floats:
        from sklearn.ensemble import HistGradientBoostingClassifier

        train, asked = _encode_columns(self.known, rows, self.column, with_label=with_label)
        usable = self.codes >= 0
        beliefs = np.zeros((len(rows), len(self.choices)))
        if len(np.unique(self.codes[usable])) < 2 or not train.shape[1]:
            beliefs[:] = self.marginal
            return beliefs
        judge = HistGradientBoostingClassifier(max_iter=60, random_state=seed_of(self.source), early_stopping=False)
        judge.fit(train[usable], self.codes[usable])
        beliefs[:, judge.classes_] = judge.predict_proba(asked)
        return beliefs


def _values(known: Labeled, column: Any, values: Sequence[Any]) -> NDArray[Any]:
    found = np.asarray(list(values)) if len(values) else np.unique(_column(known.features, column))
    if len(found) < 2:
        raise ParameterError("The column has a single value: nothing to guess.", fix="choose another column.")
    if len(found) > _MOST_VALUES:
        raise ParameterError(
            f"The column has more than {_MOST_VALUES} values.", fix="cut it into bins first, or list a few values=."
        )
    return found


def _column(features: Any, column: Any) -> NDArray[Any]:
    if hasattr(features, "columns"):
        if column not in features.columns:
            raise UnknownColumnError(str(column), known=[str(name) for name in features.columns])
        return np.asarray(features[column])
    place = validation.check_count(column, name="column")
    if place >= features.shape[1]:
        raise ParameterError("There is no such column.", fix=f"use a position below {features.shape[1]}.")
    return np.asarray(features[:, place])


def _codes(values: NDArray[Any], choices: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each value among the choices, -1 if it is none of them."""
    equal = values[:, None] == choices[None, :]
    return np.where(equal.any(axis=1), equal.argmax(axis=1), -1)


def _with(features: Any, column: Any, value: Any) -> Any:
    changed = features.copy()
    if hasattr(changed, "columns"):
        changed[column] = np.full(len(changed), value)
    else:
        changed[:, column] = value
    return changed


def _encode_columns(known: Labeled, rows: Labeled, column: Any, *, with_label: bool) -> tuple[Floats, Floats]:
    """Return all other columns of both as numbers, words by their place in the alphabet."""
    both = known.beside(rows)
    names = list(both.features.columns) if hasattr(both.features, "columns") else range(both.features.shape[1])
    parts = [_column(both.features, name) for name in names if name != column]
    parts += [both.labels] if with_label else []
    numbers = [
        part.astype(np.float64) if part.dtype.kind in "biuf" else np.unique(part, return_inverse=True)[1].astype(float)
        for part in parts
    ]
    table = np.column_stack(numbers) if numbers else np.empty((len(both), 0))
    return table[: len(known)], table[len(known) :]
