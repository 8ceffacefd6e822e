"""What every kind of question says: its facts, what may be answered, how answers are reported, planned and rehearsed.

A kind is the half of it that runs in Python. Its other half, under the same name in ``local/js/kinds``, asks the
question in a browser; both report an answer as the same value of the same protocol. What a kind must say is abstract
here, so that a kind that forgets something cannot be made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.random import RandomSource, integers_below
from cloister.core.registry import Registry
from cloister.core.wordings import a_or_an
from cloister.data.columns import Category
from cloister.errors import ParameterError, UnsafeMechanismError, did_you_mean
from cloister.local.estimates import ByValue, MeanEstimate
from cloister.local.frequency.support import FrequencyProtocol
from cloister.local.protocol import Protocol, protocols
from cloister.local.recommendation import recommend
from cloister.local.reports import Reports
from cloister.local.survey.sample_size import AnswerVariance, share_variance

if TYPE_CHECKING:
    from cloister.local.survey.questions import SurveyQuestion

__all__ = ["ABSENT", "QuestionKind", "choice_protocols", "find_kind", "list_kinds", "register", "uniform"]

Floats: TypeAlias = NDArray[np.float64]
_K = TypeVar("_K", bound="type[QuestionKind]")

ABSENT: dict[str, Any] = {"options": (), "most": None, "bounds": None, "whole": False, "bins": (), "coins": None}
"""The facts that a question may have besides its texts, and what stands for one that it does not have."""

_FREE_TEXT = frozenset({"text", "free_text", "free-text", "open", "comment", "textarea", "email", "name", "date"})
_STEPS = 2**53

_kinds: Registry[QuestionKind] = Registry("kind of question")


class QuestionKind(ABC):
    """What a kind of question says; the questions themselves are given to each method.

    Attributes:
        name: its name in survey files.
        words: its name for people who write a survey.
        facts: those of `ABSENT` that its questions have.
        rank: where lists have it; kinds of the same rank stand in the order of their names.
        usual: facts that an empty form is filled with.
        options_help: what a form says about the list of options.
        pretend_example: what a rehearsal may state, as in a survey file.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    facts: ClassVar[tuple[str, ...]]
    rank: ClassVar[int] = 100
    usual: ClassVar[Mapping[str, Any]] = {}
    options_help: ClassVar[str] = "All possible answers, one per line."
    pretend_example: ClassVar[str] = "{first option: 0.3, second option: 0.7}"

    @property
    def form_facts(self) -> tuple[str, ...]:
        """Return the facts that a form asks for; the others are for survey files."""
        return self.facts

    @property
    def in_browsers(self) -> bool:
        """Return whether a browser can ask such questions: whether the kind has its other half."""
        return resources.files("cloister.local").joinpath("js", "kinds", f"{self.name}.js").is_file()

    @abstractmethod
    def clean(self, question: SurveyQuestion) -> Mapping[str, Any]:
        """Return the facts of a question as it keeps them.

        Raises:
            ParameterError: if they are not those of a question that can be asked.
        """

    @abstractmethod
    def answers(self, question: SurveyQuestion) -> tuple[Category, ...]:
        """Return what reports are about, in the order of the protocol's domain; nothing where a mean is estimated."""

    @abstractmethod
    def protocols(self, question: SurveyQuestion) -> tuple[str, ...]:
        """Return the names of the protocols that a question may ask for, the usual one first."""

    @abstractmethod
    def read_answer(self, question: SurveyQuestion, value: Any) -> Any:  # an answer as the question's protocol takes it
        """Return an answer, or the text of one as a form gives it, as the protocol takes it.

        Raises:
            OutsideDomainError: if it cannot be an answer to the question; the answer is not repeated.
        """

    @abstractmethod
    def prompt(self, question: SurveyQuestion) -> str:
        """Return what may be answered, for a person at a terminal."""

    @abstractmethod
    def pretend_names(self, question: SurveyQuestion) -> tuple[Any, ...]:
        """Return what a rehearsal states numbers of, such as the options."""

    @abstractmethod
    def check_pretend(self, question: SurveyQuestion, stated: Mapping[str, float]) -> None:
        """Refuse numbers of a rehearsal that do not fit the question."""

    @abstractmethod
    def usual_pretend(self, question: SurveyQuestion) -> tuple[float, ...]:
        """Return the numbers of a rehearsal where none are stated."""

    @abstractmethod
    def draw(self, question: SurveyQuestion, count: int, source: RandomSource) -> list[Any]:
        """Return made-up answers of so many people, by the numbers of the rehearsal."""

    def encode(self, question: SurveyQuestion, values: Any) -> Any:  # noqa: ARG002  # one answer or many
        """Return answers as the question's protocol takes them."""
        return values

    def note(self, question: SurveyQuestion, value: Any) -> str | None:  # noqa: ARG002  # an answer
        """Return what a respondent should know about how an answer counts; None where it counts as it is."""
        return None

    def spell(self, question: SurveyQuestion, given: Any, *, numbered: bool = False) -> Any:  # noqa: ARG002
        """Return an answer from a terminal or a file as `read_answer` takes it.

        Args:
            question: what was asked.
            given: a text, or a value from a file.
            numbered: whether options may be named by their place.
        """
        return given

    def read_typed(self, question: SurveyQuestion, text: str) -> Any:  # an answer
        """Return an answer that was typed, as `read_answer` takes it."""
        return self.spell(question, text, numbered=True)

    def make_protocol(self, question: SurveyQuestion, name: str, epsilon: Fraction) -> Protocol:
        """Return the protocol of that name for a question."""
        given = {"bounds": question.bounds} if self.is_mean(question) else {"domain": self.answers(question)}
        return protocols.get(name)(**given, epsilon=epsilon)

    def mean(self, question: SurveyQuestion, reports: Reports) -> MeanEstimate | None:  # noqa: ARG002
        """Return the mean that is told beside the shares, where answers have one."""
        return None

    def variance(self, question: SurveyQuestion, protocol: Protocol) -> AnswerVariance:
        """Return how far one respondent's part of the estimate spreads, for planning."""
        if isinstance(protocol, FrequencyProtocol):
            return AnswerVariance(
                usual=share_variance(protocol, 0), worst=share_variance(protocol, "worst"), scale=100.0, unit="points"
            )
        low, high = map(float, question.bounds or (0, 1))
        spread = float(protocol.spread()) / (high - low) ** 2  # type: ignore[attr-defined]  # a protocol for a number
        return AnswerVariance(usual=spread, worst=spread, scale=high - low, unit="")

    def truth(self, question: SurveyQuestion, answers: list[Any]) -> ByValue:
        """Return the true shares of made-up answers, or their mean under "mean"."""
        if self.is_mean(question):
            return ByValue({"mean": float(np.mean(answers))})
        names = {name: place for place, name in enumerate(self.answers(question))}
        counts = np.bincount([names[name] for name in self.single_answers(question, answers)], minlength=len(names))
        return ByValue(zip(names, (counts / len(answers)).tolist(), strict=True))

    def single_answers(self, question: SurveyQuestion, answers: list[Any]) -> list[Any]:
        """Return every value that the made-up answers of people hold."""
        found: list[Any] = self.encode(question, answers)
        return found

    def is_mean(self, question: SurveyQuestion) -> bool:
        """Return whether the estimate is a mean; otherwise it is shares of answers."""
        return not self.answers(question)

    def protocol(self, question: SurveyQuestion, epsilon: Fraction) -> Protocol:
        """Return the protocol of a question at an epsilon: the one that it names, or the best for it.

        Raises:
            ParameterError: if the question names a protocol that does not fit it.
        """
        allowed = self.protocols(question)
        if question.protocol not in ("auto", *allowed):
            raise ParameterError(
                f'Question "{question.id}": the protocol "{question.protocol[:40]}" is not for '
                f"{a_or_an(question.kind)} question.{did_you_mean(question.protocol, allowed)}",
                fix=f"leave protocol out, or use {', '.join(allowed)}.",
            )
        name = question.protocol
        if name == "auto":
            is_given = len(allowed) == 1 or self.is_mean(question)
            name = allowed[0] if is_given else recommend(len(self.answers(question)), epsilon).protocol.name
        return self.make_protocol(question, name, epsilon)

    def read_pretend(self, question: SurveyQuestion, values: Any) -> tuple[float, ...]:  # from a file
        """Return what a rehearsal pretends: a number for each of `pretend_names`.

        Raises:
            ParameterError: if it does not fit the question.
        """
        if not values:
            return ()
        if isinstance(values, tuple):
            return values
        names = tuple(map(str, self.pretend_names(question)))
        if not isinstance(values, Mapping) or not {str(key) for key in values} <= set(names):
            raise ParameterError(
                "pretend does not fit the question.", fix=f"write for example pretend: {self.pretend_example}."
            )
        stated = {str(key): float(exact.number(value, name="pretend")) for key, value in values.items()}
        self.check_pretend(question, stated)
        return tuple(stated.get(name, 0.0) for name in names)

    def stated_pretend(self, question: SurveyQuestion) -> tuple[float, ...]:
        """Return what is pretended: as stated, or else the usual."""
        return question.pretend or self.usual_pretend(question)


def register(kind: _K) -> _K:
    """Enter a kind of question under its name."""
    _kinds.register(kind.name)(kind())
    return kind


def list_kinds() -> tuple[QuestionKind, ...]:
    """Return all kinds, those that are simpler to ask first."""
    return tuple(sorted((kind for _, kind in _kinds.items()), key=lambda kind: (kind.rank, kind.name)))


def find_kind(name: object) -> QuestionKind:
    """Return a kind by its name.

    Raises:
        UnsafeMechanismError: if it would ask for free text.
        ParameterError: if there is no such kind.
    """
    text = name if isinstance(name, str) else ""
    if text in _kinds:
        return _kinds.get(text)
    if text in _FREE_TEXT:
        raise UnsafeMechanismError(
            "Free text cannot be asked for: people write who they are into it, and no noise can hide words that are "
            "not among a declared list.",
            fix="ask a single_choice or multiple_choice question with declared options, one of them such as "
            '"something else".',
        )
    known = [kind.name for kind in list_kinds()]
    raise ParameterError(
        f'There is no kind of question "{text[:40]}".{did_you_mean(text, known)}', fix=f"use {', '.join(known)}."
    )


def choice_protocols() -> tuple[str, ...]:
    """Return the protocols that a question with one of several answers may name."""
    return tuple(sorted(name for name, kind in protocols.items() if kind.fits_choices))


def uniform(source: RandomSource, count: int) -> Floats:
    """Return numbers strictly between 0 and 1."""
    # Half a step keeps 0 and 1 out, where logarithms and quantiles are infinite.
    return np.asarray((integers_below(source, _STEPS, count) + 0.5) / _STEPS)
