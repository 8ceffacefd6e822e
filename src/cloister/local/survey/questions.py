"""Questions: what is asked, what may be answered, and nothing that would carry free text.

Everything about a question is public and stated before anybody answers: the options in their order, the bounds of a
number, the bins of a histogram. Options or bounds that were read from answers would leak them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.construction import construct
from cloister.core.exact import Interval, Number
from cloister.core.validation import check_bounds, check_count
from cloister.data.columns import Category, clean_categories
from cloister.data.values import text_of_number
from cloister.errors import (
    CloisterError,
    MissingBoundsError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
    UnsafeMechanismError,
    a_or_an,
    did_you_mean,
)
from cloister.local.frequency.randomized_response import RandomizedResponse
from cloister.local.survey._answer_distribution import read_pretend
from cloister.local.survey.levels import SurveyLevel, check_name, read_levels

__all__ = ["QuestionKind", "SurveyQuestion"]

MOST_OPTIONS = 1000
MOST_CHARACTERS = 1000
_FREE_TEXT = frozenset({"text", "free_text", "free-text", "open", "comment", "textarea", "email", "name", "date"})
_FORCED = frozenset({"forced_yes", "forced-yes", "forced_response", "forced-response", "forced"})


class QuestionKind(StrEnum):
    """What a question asks for."""

    YES_NO = "yes_no"
    SINGLE_CHOICE = "single_choice"
    MULTIPLE_CHOICE = "multiple_choice"
    NUMBER = "number"
    RATING = "rating"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyQuestion:
    """One question of a survey.

    Attributes:
        id: its name for machines.
        kind: what it asks for.
        text: what people read.
        help: a further sentence for people, perhaps empty.
        options: the answers in their order: two for yes_no, any number for a choice; for a rating from low to high.
        most: for multiple_choice: how many options one person may pick.
        bounds: for number: the smallest and the largest answer; answers outside count as the nearer of them.
        whole: for number: whether people are asked for whole numbers.
        bins: for number: the edges of a histogram, from the lower to the upper bound. Without them, the mean is
            estimated.
        coins: for yes_no: (truth, second), the two coins of a classical design, in place of levels.
        protocol: the name of a protocol, or "auto".
        levels: the levels of this question, or None for those of the survey.
        default_level: the level that is preselected, or None for that of the survey.
        pretend: what `simulate` makes up: shares of options, or (mean, spread) of a number. Respondents never see it.
    """

    id: str
    kind: QuestionKind
    text: str
    help: str = ""
    options: tuple[Category, ...] = ()
    most: int | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    whole: bool = False
    bins: tuple[Fraction, ...] = ()
    coins: tuple[Fraction, Fraction] | None = None
    protocol: str = "auto"
    levels: tuple[SurveyLevel, ...] | None = None
    default_level: str | None = None
    pretend: tuple[float, ...] = field(default=(), compare=False)

    def __init__(
        self,
        *,
        id: str,  # noqa: A002  # the name that surveys' files use
        kind: QuestionKind | str,
        text: str,
        help: str = "",  # noqa: A002  # the name that surveys' files use
        options: Sequence[Category] = (),
        most: int | None = None,
        bounds: Interval | None = None,
        whole: bool = False,
        bins: Sequence[Number] | int = (),
        coins: Mapping[str, Number] | Sequence[Number] | None = None,
        protocol: str = "auto",
        levels: Mapping[str, Number | None] | tuple[SurveyLevel, ...] | None = None,
        default_level: str | None = None,
        pretend: Mapping[Any, Number] | tuple[float, ...] = (),  # options, or "mean" and "spread"
    ) -> None:
        construct(
            self,
            id=id,
            kind=kind,
            text=text,
            help=help,
            options=options,
            most=most,
            bounds=bounds,
            whole=whole,
            bins=bins,
            coins=coins,
            protocol=protocol,
            levels=levels,
            default_level=default_level,
            pretend=pretend,
        )

    def __post_init__(self) -> None:
        check_name(self.id, what="question")
        try:
            self._clean()
        except CloisterError as error:
            raise _about(self.id, error) from None

    @property
    def is_number(self) -> bool:
        """Return whether people are asked for a number."""
        return self.kind is QuestionKind.NUMBER

    @property
    def is_mean(self) -> bool:
        """Return whether the estimate is a mean; otherwise it is shares of answers."""
        return self.kind is QuestionKind.NUMBER and not self.bins

    @property
    def answers(self) -> tuple[Category, ...]:
        """Return what reports are about: the options, or the bins of a histogram; nothing for a mean."""
        return self.bin_labels if self.bins else self.options

    @property
    def bin_labels(self) -> tuple[str, ...]:
        """Return the bins in words.

        >>> edges = (0, 18, 65, 99)
        >>> ages = SurveyQuestion(id="age", kind="number", text="Age?", bounds=(0, 99), whole=True, bins=edges)
        >>> ages.bin_labels
        ('0 to 17', '18 to 64', '65 to 99')
        """
        pairs = list(pairwise(self.bins))
        return tuple(
            self._bin_label(low, high, is_last=place == len(pairs) - 1) for place, (low, high) in enumerate(pairs)
        )

    def _bin_label(self, low: Fraction, high: Fraction, *, is_last: bool) -> str:
        if not self.whole:
            return f"{_format_number(low)} to {'' if is_last else 'under '}{_format_number(high)}"
        last = int(high) if is_last else int(high) - 1
        return f"{int(low)} to {last}" if last > low else str(last)

    @property
    def coin_epsilon(self) -> Fraction:
        """Return the epsilon of a classical design."""
        truth, second = self.coins or (None, None)
        return RandomizedResponse(truth=truth, second=second).epsilon

    def encode_answers(self, values: Any) -> Any:  # one answer or many
        """Return answers as the question's protocol takes them: numbers of a histogram become their bins."""
        if not self.bins:
            return values
        many = _numbers(values)
        inner = np.array([float(edge) for edge in self.bins[1:-1]])
        labels = np.array(self.bin_labels, dtype=object)[np.searchsorted(inner, many, side="right")].tolist()
        return labels[0] if np.ndim(values) == 0 else labels

    def _clean(self) -> None:
        set_ = object.__setattr__
        set_(self, "kind", _kind(self.kind))
        set_(self, "text", check_text(self.text, name="text"))
        set_(self, "help", check_text(self.help, name="help", empty=True))
        _check_protocol(self.protocol)
        if not isinstance(self.whole, bool):
            raise ParameterTypeError("whole is not true or false.", fix="write whole: true, or leave it out.")
        self._refuse_foreign()
        _CLEAN[self.kind](self)
        set_(self, "pretend", read_pretend(self, self.pretend))
        if self.levels is not None:
            set_(self, "levels", read_levels(self.levels))

    def _refuse_foreign(self) -> None:
        """Refuse facts that mean nothing for this kind, rather than pass over them."""
        for name, absent in _ABSENT.items():
            if name in _FACTS[self.kind]:
                continue
            if getattr(self, name) not in (absent, ()):
                raise ParameterError(
                    f"{a_or_an(self.kind).capitalize()} question has no {name}.", fix=f"leave {name} out."
                )
            object.__setattr__(self, name, absent)
        if self.coins is not None and (self.levels is not None or self.default_level is not None):
            raise ParameterError("With coins, the coins are the only level.", fix="leave levels or coins out.")


def _clean_yes_no(question: SurveyQuestion) -> None:
    options = _options(question.options or ("no", "yes"))
    if len(options) != 2:
        raise ParameterError("A yes_no question has two options.", fix='write options: ["no", "yes"], or leave it out.')
    object.__setattr__(question, "options", options)
    if question.coins is not None:
        object.__setattr__(question, "coins", _coins(question.coins))


def _clean_choice(question: SurveyQuestion) -> None:
    object.__setattr__(question, "options", _options(question.options))


def _clean_picks(question: SurveyQuestion) -> None:
    options = _options(question.options)
    object.__setattr__(question, "options", options)
    if question.most is None:
        raise ParameterError(
            "Nothing says how many options a person may pick, and protection has to be shared among them.",
            fix="write for example most: 3.",
        )
    if check_count(question.most, name="most", at_least=1) > len(options):
        raise ParameterError("most is larger than the number of options.", fix=f"write most: {len(options)} or less.")


def _clean_number(question: SurveyQuestion) -> None:
    if question.bounds is None:
        raise MissingBoundsError(
            "The smallest and the largest answer are not declared, and reading them from answers would not be private.",
            fix="write for example bounds: [0, 120].",
        )
    bounds = check_bounds(question.bounds)
    object.__setattr__(question, "bounds", bounds)
    object.__setattr__(question, "bins", _bins(question.bins, bounds, whole=question.whole))


_CLEAN = {
    QuestionKind.YES_NO: _clean_yes_no,
    QuestionKind.SINGLE_CHOICE: _clean_choice,
    QuestionKind.MULTIPLE_CHOICE: _clean_picks,
    QuestionKind.NUMBER: _clean_number,
    QuestionKind.RATING: _clean_choice,
}
_ABSENT = {"options": (), "most": None, "bounds": None, "whole": False, "bins": (), "coins": None}
_FACTS: dict[QuestionKind, tuple[str, ...]] = {
    QuestionKind.YES_NO: ("options", "coins"),
    QuestionKind.SINGLE_CHOICE: ("options",),
    QuestionKind.MULTIPLE_CHOICE: ("options", "most"),
    QuestionKind.NUMBER: ("bounds", "whole", "bins"),
    QuestionKind.RATING: ("options",),
}


def _about(name: str, error: CloisterError) -> CloisterError:
    kind = (
        type(error) if isinstance(error, ParameterError | ParameterTypeError | UnsafeMechanismError) else ParameterError
    )
    return kind(f'Question "{name}": {error.problem}', fix=_as_in_a_file(error.fix))


def _as_in_a_file(fix: str) -> str:
    """Return advice for callers as advice for those who write a survey file.

    >>> _as_in_a_file("write for example bounds=(0, 110).")
    'write for example bounds: [0, 110].'
    """
    return re.sub(r"\b([a-z]+)=(?=\S)", r"\1: ", re.sub(r"\(([^()\s]+, [^()\s]+)\)", r"[\1]", fix))


def _kind(value: object) -> QuestionKind:
    name = value if isinstance(value, str) else ""
    if name in _FREE_TEXT:
        raise UnsafeMechanismError(
            "Free text cannot be asked for: people write who they are into it, and no noise can hide words that are "
            "not among a declared list.",
            fix="ask a single_choice or multiple_choice question with declared options, one of them such as "
            '"something else".',
        )
    if name not in tuple(QuestionKind):
        raise ParameterError(
            f'There is no kind of question "{name[:40]}".{did_you_mean(name, tuple(QuestionKind))}',
            fix=f"use {', '.join(QuestionKind)}.",
        )
    return QuestionKind(name)


def _check_protocol(name: object) -> None:
    if isinstance(name, str) and name in _FORCED:
        raise UnsafeMechanismError(
            'A forced yes ("heads: say yes, tails: tell the truth") protects nobody who says no: a "no" is then '
            "certainly the truth, and epsilon is infinite.",
            fix="leave protocol out: the coins are then tossed so that yes and no are protected alike.",
        )
    if not isinstance(name, str):
        raise ParameterTypeError("protocol is not a name.", fix="leave protocol out, or write protocol: auto.")


def _numbers(values: Any) -> NDArray[Any]:  # one number or many
    try:
        found = np.atleast_1d(np.asarray(values))
    except (ValueError, OverflowError):
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        raise OutsideDomainError("The answer is not a number.", fix="answer with a number within the bounds.")
    return found


def _options(values: Any) -> tuple[Category, ...]:  # a list from a file
    if not values:
        raise MissingBoundsError(
            "The possible answers are not declared, and reading them from answers would not be private.",
            fix='write for example options: ["nurse", "teacher", "something else"].',
        )
    found = _categories(values)
    if not 2 <= len(found) <= MOST_OPTIONS or not all(_is_written(str(option)) for option in found):
        raise ParameterError(
            f"A question has from 2 to {MOST_OPTIONS:,} options of up to {MOST_CHARACTERS:,} characters.",
            fix="list every possible answer once.",
        )
    if any(str(option) != str(option).strip() or has_commands(str(option)) for option in found):
        raise ParameterError(
            "An option is blank, begins or ends with a space, or holds characters that command a terminal.",
            fix="write options as people should read them.",
        )
    return found


def _categories(values: Any) -> tuple[Category, ...]:  # a list from a file
    try:
        return clean_categories(values)
    except CloisterError as error:
        problem, fix = (
            text.replace("categories", "options").replace("a category", "an option").replace("category", "option")
            for text in (error.problem, error.fix)
        )
        raise ParameterError(problem, fix=fix) from None


def _coins(values: Any) -> tuple[Fraction, Fraction]:  # a mapping or a pair
    if isinstance(values, Mapping) and set(values) == {"truth", "second"}:
        values = (values["truth"], values["second"])
    if not isinstance(values, tuple | list) or len(values) != 2:
        raise ParameterTypeError("coins are not two probabilities.", fix="write coins: {truth: 0.5, second: 0.5}.")
    truth, second = (exact.number(value, name="each coin") for value in values)
    RandomizedResponse(truth=truth, second=second)
    return truth, second


def _bins(values: Any, bounds: tuple[Fraction, Fraction], *, whole: bool) -> tuple[Fraction, ...]:  # edges, or a count
    if isinstance(values, int) and not isinstance(values, bool):
        count = check_count(values, name="bins", at_least=2)
        if count > MOST_OPTIONS:
            raise ParameterError("There are too many bins.", fix=f"use at most {MOST_OPTIONS:,}.")
        step = (bounds[1] - bounds[0]) / count
        return _bins([bounds[0] + step * place for place in range(count + 1)], bounds, whole=whole)
    if not isinstance(values, tuple | list):
        raise ParameterTypeError("bins are not a list of edges.", fix="write for example bins: [0, 18, 65, 120].")
    edges = tuple(exact.number(edge, name="each edge") for edge in values)
    if not edges:
        return ()
    if len(edges) < 3 or (edges[0], edges[-1]) != bounds or any(low >= high for low, high in pairwise(edges)):
        raise ParameterError(
            "The bins do not lead from the lower bound to the upper bound in at least two steps.",
            fix=f"write rising edges, the first {_format_number(bounds[0])} and the last {_format_number(bounds[1])}.",
        )
    if len(edges) > MOST_OPTIONS or (whole and any(edge.denominator != 1 for edge in edges)):
        raise ParameterError("There are too many bins, or edges that are not whole.", fix="use fewer, whole edges.")
    return edges


_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def check_text(value: object, *, name: str, empty: bool = False) -> str:
    """Return a text for people, not too long, on one line, and without characters that would change what is shown."""
    if not isinstance(value, str) or not _is_written(value) or not (empty or value.strip()):
        raise ParameterError(
            f"{name} is not a text of up to {MOST_CHARACTERS:,} characters.", fix=f"write {name} in quotes."
        )
    shown = " ".join(value.split())
    if has_commands(shown):
        raise ParameterError(
            f"{name} holds characters that command a terminal or turn the direction of text.",
            fix="delete them: people must see what is written.",
        )
    return shown


def has_commands(text: str) -> bool:
    """Return whether a text holds control characters, or overrides of the direction of writing."""
    return any(unicodedata.category(character) == "Cc" or character in _TURNING for character in text)


def _is_written(text: str) -> bool:
    """Return whether a text is not too long, and can be written to a file."""
    return len(text) <= MOST_CHARACTERS and not any("\ud800" <= character <= "\udfff" for character in text)


def _format_number(value: Fraction) -> str:
    return text_of_number(value)
