"""Questions: what is asked, what may be answered, and nothing that would carry free text.

Everything about a question is public and stated before anybody answers: the options in their order, the bounds of a
number, the bins of a histogram. Options or bounds that were read from answers would leak them. What a kind of question
makes of these facts is in `kinds`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from cloister.core.construction import construct
from cloister.core.exact import Interval, Number
from cloister.core.wordings import a_or_an
from cloister.data.columns import Category
from cloister.errors import CloisterError, ParameterError, ParameterTypeError, UnsafeMechanismError
from cloister.local.frequency.randomized_response import RandomizedResponse
from cloister.local.survey._texts import check_text
from cloister.local.survey.kinds import QuestionKind, find_kind
from cloister.local.survey.kinds.base import ABSENT
from cloister.local.survey.levels import SurveyLevel, check_name, read_levels

__all__ = ["SurveyQuestion"]

_FORCED = frozenset({"forced_yes", "forced-yes", "forced_response", "forced-response", "forced"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyQuestion:
    """One question of a survey.

    Attributes:
        id: its name for machines.
        kind: what it asks for: the name of a kind, see `kinds`.
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
    kind: str
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
    def rules(self) -> QuestionKind:
        """Return what its kind says about questions."""
        return find_kind(self.kind)

    @property
    def is_mean(self) -> bool:
        """Return whether the estimate is a mean; otherwise it is shares of answers."""
        return self.rules.is_mean(self)

    @property
    def answers(self) -> tuple[Category, ...]:
        """Return what reports are about: the options, or the bins of a histogram; nothing for a mean."""
        return self.rules.answers(self)

    @property
    def bin_labels(self) -> tuple[str, ...]:
        """Return the bins in words.

        >>> edges = (0, 18, 65, 99)
        >>> ages = SurveyQuestion(id="age", kind="number", text="Age?", bounds=(0, 99), whole=True, bins=edges)
        >>> ages.bin_labels
        ('0 to 17', '18 to 64', '65 to 99')
        """
        return tuple(map(str, self.answers)) if self.bins else ()

    @property
    def coin_epsilon(self) -> Fraction:
        """Return the epsilon of a classical design."""
        truth, second = self.coins or (None, None)
        return RandomizedResponse(truth=truth, second=second).epsilon

    def encode_answers(self, values: Any) -> Any:  # one answer or many
        """Return answers as the question's protocol takes them: numbers of a histogram become their bins."""
        return self.rules.encode(self, values)

    def _clean(self) -> None:
        set_ = object.__setattr__
        set_(self, "kind", find_kind(self.kind).name)
        set_(self, "text", check_text(self.text, name="text"))
        set_(self, "help", check_text(self.help, name="help", empty=True))
        _check_protocol(self.protocol)
        if not isinstance(self.whole, bool):
            raise ParameterTypeError("whole is not true or false.", fix="write whole: true, or leave it out.")
        self._refuse_foreign()
        for name, value in self.rules.clean(self).items():
            set_(self, name, value)
        set_(self, "pretend", self.rules.read_pretend(self, self.pretend))
        if self.levels is not None:
            set_(self, "levels", read_levels(self.levels))

    def _refuse_foreign(self) -> None:
        """Refuse facts that mean nothing for this kind, rather than pass over them."""
        for name, absent in ABSENT.items():
            if name in self.rules.facts:
                continue
            if getattr(self, name) not in (absent, ()):
                raise ParameterError(
                    f"{a_or_an(self.kind).capitalize()} question has no {name}.", fix=f"leave {name} out."
                )
            object.__setattr__(self, name, absent)
        if self.coins is not None and (self.levels is not None or self.default_level is not None):
            raise ParameterError("With coins, the coins are the only level.", fix="leave levels or coins out.")


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


def _check_protocol(name: object) -> None:
    if isinstance(name, str) and name in _FORCED:
        raise UnsafeMechanismError(
            'A forced yes ("heads: say yes, tails: tell the truth") protects nobody who says no: a "no" is then '
            "certainly the truth, and epsilon is infinite.",
            fix="leave protocol out: the coins are then tossed so that yes and no are protected alike.",
        )
    if not isinstance(name, str):
        raise ParameterTypeError("protocol is not a name.", fix="leave protocol out, or write protocol: auto.")
