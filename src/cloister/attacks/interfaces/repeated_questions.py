"""Averaging: ask the same question again and again, and let the noise cancel out.

The mean of m answers with fresh noise of standard deviation s is off by ``s / sqrt(m)``, so that any noise can be
averaged away by somebody who may ask for ever. Two defenses belong together: an answer that was given once is given
again without fresh noise, and fresh answers are paid for from a budget that ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.attacks.details import fact, keyed
from cloister.attacks.interfaces.query_interface import (
    Guess,
    Interface,
    InterfaceDetails,
    Knowledge,
    Numbers,
    Refusal,
)
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import Floats
from cloister.core.exact import Number
from cloister.core.wordings import percent
from cloister.errors import BudgetExceededError

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["AveragingDetails", "averaging"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingDetails(InterfaceDetails):
    """What averaging found; the control is an attacker who uses the first answer only.

    Attributes:
        errors: (answers averaged, root mean square error), for more and more answers; falls as one over the square root
            of their number where noise is fresh.
        unchanged: how many questions were answered more than once and always the same.
    """

    errors: tuple[tuple[int, float], ...] = field(repr=False, metadata=fact(write=keyed("answers", "error")))
    unchanged: int

    def judge(self, result: AttackResult, /) -> bool:
        """Return whether repeating is, at the stated confidence, better than guessing and than asking once."""
        return result.interval[0] > max(result.baseline, result.control or 0)

    def conclude(self, result: AttackResult, /) -> str:
        """Return what repeating gained."""
        once = percent(result.control or 0)
        rates = f"near the exact answer in {percent(result.success)} of cases, {once} with one answer"
        found = f"Repeating works: {rates}." if result.succeeded else f"Repeating gained nothing certain: {rates}."
        same = f" {self.unchanged:,} of {result.trials:,} questions were answered the same every time."
        return found + (same if self.unchanged else "") + self.remark(result)

    def draw(self, result: AttackResult, /) -> Figure:
        """Return a chart of the error against the number of answers, beside what fresh noise would give."""
        from cloister.plotting import lines

        series = {"this interface": list(self.errors)}
        if self.errors:
            first = self.errors[0][1]
            series["fresh noise"] = [(answers, first / math.sqrt(answers)) for answers, _ in self.errors]
        return lines(
            series,
            title="Error of the average of repeated answers",
            x="answers to the same question",
            y="error (root mean square)",
            log_x=True,
            log_y=all(error > 0 for _, error in self.errors),
            subtitle=f"{result.trials:,} questions",
        )


def averaging(
    ask: Callable[[Any], Any],
    *,
    questions: Sequence[Any],
    truth: Numbers,
    repeats: int = 100,
    tolerance: object = 0.5,
    guess: Guess = None,
    refusal: Refusal = BudgetExceededError,
    confidence: Number = 0.95,
) -> AttackResult[AveragingDetails]:
    """Return how often the mean of repeated answers gives the exact answer away.

    Args:
        ask: the interface: returns a number for a question.
        questions: what to ask, each of them ``repeats`` times; any one refusal ends a question.
        truth: the exact answer, for every question; used for scoring only.
        repeats: how often to ask each question.
        tolerance: an estimate that is nearer to the truth than this counts as knowing it.
        guess: what to say without any answer, for all questions or for each; the baseline. By default the baseline is
            the best single guess in hindsight, and a question without answers is a miss.
        refusal: the errors by which the interface refuses; others are raised.
        confidence: the confidence of the interval of the success.
    """
    known = Knowledge.of(truth, targets=len(questions), tolerance=tolerance, guess=guess)
    times = validation.check_count(repeats, name="repeats", at_least=1)
    interface = Interface(ask=ask, refusal=refusal)
    answers = [_ask_again_and_again(interface, question, times) for question in questions]
    details = partial(
        AveragingDetails,
        errors=_errors(answers, known.truth, times),
        unchanged=sum(len(given) > 1 and len(set(given)) == 1 for given in answers),
    )
    return AttackResult(
        attack="averaging",
        assumption=f"asks the same question up to {times:,} times and averages the answers",
        control=known.hits(known.sharpen(_means(answers, 1))) / len(answers),
        mitigation=("give a repeated question its old answer", "let fresh answers use up a budget"),
        **known.score(_means(answers, times), [interface], confidence=confidence, details=details),
    )


def _ask_again_and_again(interface: Interface, question: Any, times: int) -> list[float]:
    answers: list[float] = []
    for _ in range(times):
        answer = interface.number(question)
        if answer is None:
            break
        answers.append(answer)
    return answers


def _means(answers: Sequence[Sequence[float]], most: int) -> Floats:
    return np.array([np.mean(given[:most]) if given else np.nan for given in answers], dtype=np.float64)


def _errors(answers: Sequence[Sequence[float]], truth: Floats, times: int) -> tuple[tuple[int, float], ...]:
    """Return the error after 1, 2, 4, ... and all answers, over the questions that were answered so often."""
    longest = max(map(len, answers))
    steps = sorted({2**power for power in range(times.bit_length())} | {times, max(longest, 1)})
    found = []
    for step in steps:
        off = [np.mean(given[:step]) - true for given, true in zip(answers, truth, strict=True) if len(given) >= step]
        if off:
            found.append((step, float(np.sqrt(np.mean(np.square(off))))))
    return tuple(found)
