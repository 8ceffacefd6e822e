"""Reconstruction: from many answers about many people, the secret of every single one.

Sums over random sets, each a little wrong, are linear equations in the secrets. Dinur and Nissim ("Revealing
information while preserving privacy", 2003) showed that answers to sufficiently many of them, with errors well below
the square root of the number of people, give nearly all secrets away, however the errors are made. Noise that does not
grow with the number of questions is therefore no protection: a budget for all questions together is.

The system has one row for each answered question, one column for each person, and numbers that are off by an unknown
error. Least squares is fast and forgives noise of any shape. The linear program keeps every value within its public
bounds and minimizes the total of the errors, so that it needs fewer answers than there are people, and forgives some
answers that are badly wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from cloister.attacks.details import Row, fact, or_none
from cloister.attacks.interfaces.query_interface import (
    Guess,
    Interface,
    InterfaceDetails,
    Knowledge,
    Numbers,
    Refusal,
)
from cloister.attacks.result import AttackResult
from cloister.core import exact, random, validation
from cloister.core.confidence import Floats
from cloister.core.exact import Number
from cloister.errors import BudgetExceededError, ParameterError

__all__ = ["METHODS", "ReconstructionDetails", "least_squares", "linear_program", "reconstruction"]


def least_squares(members: NDArray[np.bool_], answers: Floats, *, bounds: tuple[float, float]) -> Floats:
    """Return the values whose sums are nearest to the answers; of several, those nearest to the middle of the bounds.

    >>> sets = np.array([[True, True, False], [False, True, True], [True, False, True]])
    >>> least_squares(sets, np.array([1.0, 1.0, 2.0]), bounds=(0, 1)).round(3).astype(int).tolist()
    [1, 0, 1]
    """
    middle = sum(bounds) / 2
    matrix = members.astype(np.float64)
    deviations, *_ = np.linalg.lstsq(matrix, answers - middle * matrix.sum(axis=1), rcond=None)
    return middle + np.asarray(deviations, dtype=np.float64)


def linear_program(members: NDArray[np.bool_], answers: Floats, *, bounds: tuple[float, float]) -> Floats:
    """Return values within bounds that minimize the sum of absolute errors; NaN should the solver fail.

    >>> sets = np.array([[True, True, False], [False, True, True]])
    >>> linear_program(sets, np.array([2.0, 1.0]), bounds=(0, 1)).round(9).tolist()
    [1.0, 1.0, 0.0]
    """
    asked, people = members.shape
    # An error is the difference of two numbers that are not negative; at the minimum one of them is zero, and
    # their sum its size.
    slack = sparse.eye(asked, format="csr")
    matrix: Any = sparse.hstack([sparse.csr_matrix(members.astype(np.float64)), slack, -slack], format="csr")
    found = optimize.linprog(
        np.concatenate([np.zeros(people), np.ones(2 * asked)]),
        A_eq=matrix,
        b_eq=answers,
        bounds=[bounds] * people + [(0, None)] * (2 * asked),
        method="highs",
    )
    return np.full(people, np.nan) if found.x is None else np.asarray(found.x[:people], dtype=np.float64)


METHODS = {"least_squares": least_squares, "linear_program": linear_program}
"""The ways to solve, by name."""


_QUESTIONS_EACH = 5
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructionDetails(InterfaceDetails):
    """What a reconstruction found; ``estimates`` has what the attacker believes about everybody.

    Attributes:
        method: how the equations were solved.
        misfit: the root mean square distance between the answers and the solution, before rounding: about the size of
            the noise where there are more answers than people. NaN without answers.
    """

    method: str
    misfit: float = field(metadata=fact(write=or_none))

    def remark(self, result: AttackResult, /) -> str:
        """Return how much was asked."""
        refused = f", of which {self.refused:,} were refused" if self.refused else ""
        return f" It asked {result.queries:,} questions about {result.trials:,} people{refused}."

    def tell(self, result: AttackResult, /) -> Iterator[Row]:
        """Return the rows of every interface, and how the equations were solved."""
        yield from InterfaceDetails.tell(self, result)
        yield "solved by", self.method.replace("_", " ")
        yield "misfit", f"{self.misfit:.4g}"


def reconstruction(
    ask: Callable[[Any], Any],
    *,
    truth: Numbers,
    queries: int | None = None,
    members: Any = None,
    questions: Sequence[Any] | None = None,
    method: str = "least_squares",
    choices: Sequence[object] = (0, 1),
    guess: Guess = None,
    refusal: Refusal = BudgetExceededError,
    confidence: Number = 0.95,
    random_state: random.RandomState = None,
) -> AttackResult[ReconstructionDetails]:
    """Return how many secrets follow from sums over random sets of people.

    Args:
        ask: the interface: returns the sum of the secrets of some people. By default a question is an array of their
            positions, in ascending order.
        truth: the secret of everybody, by position; used for scoring only.
        queries: how many random sets to ask about, each person being in a set with probability one half; by default
            five for each person.
        members: in place of random sets, one row for each question that says of everybody whether they are in.
        questions: what to ask in place of positions, one for each row of ``members``, such as conditions in SQL.
        method: "least_squares", or "linear_program", which takes longer and needs fewer answers.
        choices: the values that a secret can have, which are public; estimates are rounded to the nearest.
        guess: what to say without any answer, for all people or for each; the baseline. By default the baseline is the
            best of the choices in hindsight.
        refusal: the errors by which the interface refuses; others are raised.
        confidence: the confidence of the interval of the success.
        random_state: where the random sets come from.

    >>> sick = np.array([1, 0, 0, 1, 1, 0, 1, 0])
    >>> result = reconstruction(lambda positions: sick[positions].sum(), truth=sick, queries=40)
    >>> result.success, result.queries
    (1.0, 40)
    """
    known = Knowledge.of(truth, targets=len(truth), tolerance=_half_step(choices), guess=guess, choices=choices)
    solve = METHODS[validation.check_choice(method, name="method", allowed=METHODS)]
    people = len(known.truth)
    sets = _random_sets(queries, people, random_state) if members is None else _read_sets(members, people, queries)
    asked = _questions(questions, sets, given=members is not None)
    interface = Interface(ask=ask, refusal=refusal)
    replies = [interface.number(question) for question in asked]
    answers = np.array([np.nan if reply is None else reply for reply in replies], dtype=np.float64)
    there = ~np.isnan(answers)
    span = _span(known)
    found = solve(sets[there], answers[there], bounds=span) if there.any() else np.full(people, np.nan)
    details = partial(ReconstructionDetails, method=method, misfit=_misfit(sets[there], answers[there], found))
    return AttackResult(
        attack="reconstruction",
        assumption="asks for sums over many random sets of people and solves for the single values",
        mitigation=(
            "answer with noise under one budget for all questions together",
            "publish fewer or coarser numbers; fixed noise only makes the attacker ask more",
        ),
        worst=_most_certain(found, span),
        **known.score(found, [interface], confidence=confidence, details=details),
    )


def _random_sets(queries: int | None, people: int, random_state: random.RandomState) -> NDArray[np.bool_]:
    asked = _QUESTIONS_EACH * people if queries is None else validation.check_count(queries, name="queries", at_least=1)
    source = random.random_source(random_state)
    return random.bits(source, asked * people).reshape(asked, people)


def _read_sets(members: Any, people: int, queries: int | None) -> NDArray[np.bool_]:
    if queries is not None:
        raise ParameterError("There are both members and a number of queries.", fix="give one of the two.")
    sets = np.asarray(members)
    if sets.ndim != 2 or sets.shape[1] != people or not len(sets) or not np.isin(sets, (0, 1)).all():
        raise ParameterError(
            "The members are no table of zeros and ones with a row for each question and a column for each person.",
            fix="give an array of shape (questions, people) that says who is in which set.",
        )
    return sets.astype(np.bool_)


def _questions(questions: Sequence[Any] | None, sets: NDArray[np.bool_], *, given: bool) -> Sequence[Any]:
    if questions is None:
        return [np.flatnonzero(row) for row in sets]
    if not given or len(questions) != len(sets):
        raise ParameterError(
            "The questions do not belong to the sets.", fix="give members= with one row for every question."
        )
    return questions


def _half_step(choices: Sequence[object]) -> float:
    """Return how near is right: half of the smallest distance of two choices."""
    values = np.unique(np.array([float(exact.number(choice, name="each choice")) for choice in choices]))
    if len(values) < 2:
        raise ParameterError("A secret has at least two possible values.", fix="write for example choices=(0, 1).")
    return float(np.diff(values).min()) / 2


def _span(known: Knowledge) -> tuple[float, float]:
    values = known.choices if known.choices is not None else known.truth[:0]
    return float(values.min()), float(values.max())


def _misfit(sets: NDArray[np.bool_], answers: Floats, found: Floats) -> float:
    return float(np.sqrt(np.mean((sets @ found - answers) ** 2))) if len(answers) else float("nan")


def _most_certain(found: Floats, span: tuple[float, float]) -> tuple[tuple[int, float], ...]:
    """Return the people about whom the solution is clearest, with its distance from undecided, 1 for an end."""
    clarity = np.abs(np.clip(found, *span) - sum(span) / 2) / ((span[1] - span[0]) / 2)
    order = np.argsort(-clarity, kind="stable")[:_SHOWN]
    return tuple((int(place), float(clarity[place])) for place in order if not np.isnan(clarity[place]))
