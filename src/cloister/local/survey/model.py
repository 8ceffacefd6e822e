"""A survey: its questions, the levels that respondents choose from, and the protocol of every question and level.

A survey is frozen and public. Respondents' devices and the collector work from the same one; its fingerprint says so.

Which protocol a question gets at which epsilon is a public rule, the same for every respondent:

| question | protocol |
|---|---|
| yes_no | randomized response |
| single_choice, number with bins | direct encoding for few answers, optimized unary encoding for many |
| multiple_choice | one coin for each option, with ``epsilon / (2 most)`` each |
| number | the hybrid of the piecewise mechanism and Duchi's |
| rating | as for a single choice; ``protocol: pram`` for a matrix in which lies stay near the truth |

Each kind of question says so itself, see `kinds`.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from cloister.core.construction import construct
from cloister.core.digests import canonical
from cloister.core.exact import Number
from cloister.core.random import RandomState, random_source
from cloister.errors import DataWarning, OutsideDomainError, ParameterError, did_you_mean
from cloister.local.protocol import Protocol
from cloister.local.reports import LocalReport
from cloister.local.survey import _documents as documents
from cloister.local.survey._texts import check_text
from cloister.local.survey.levels import (
    DEFAULT_LEVELS,
    OFF,
    Statement,
    SurveyLevel,
    check_name,
    middle_level,
    read_levels,
    total_statement,
)
from cloister.local.survey.questions import SurveyQuestion
from cloister.local.survey.submissions import Submission, SurveyTerms, check_day, new_id, token_id

__all__ = ["Survey", "protocol_for"]


@lru_cache(maxsize=4096)
def protocol_for(question: SurveyQuestion, epsilon: Fraction) -> Protocol:
    """Return the protocol of a question at an epsilon.

    Raises:
        ParameterError: if the question names a protocol that does not fit it.
    """
    return question.rules.protocol(question, epsilon)


MOST_QUESTIONS = 200


@dataclass(frozen=True, kw_only=True)
class Survey:
    """Questions that people answer without trusting whoever collects the answers.

    Attributes:
        id: its name for machines.
        title: its name for people.
        collector: who collects the reports, and how to reach them.
        purpose: what for, perhaps empty.
        questions: in the order in which they are asked.
        levels: what respondents choose from where a question does not say otherwise.
        default_level: what is preselected; None for the middle level.
        terms: on what terms answers are taken, once it is published in a hub.

    >>> survey = Survey(
    ...     id="demo", title="Demo", collector="Example Institute",
    ...     questions=[SurveyQuestion(id="married", kind="yes_no", text="Are you married?")],
    ... )
    >>> print(survey.statement("married", "high"))
    Whatever you answer, the collector's odds about your true answer can change by at most a factor 1.29.
    """

    schema: ClassVar[str] = documents.VERSION

    id: str
    title: str
    collector: str
    questions: tuple[SurveyQuestion, ...]
    purpose: str = ""
    levels: tuple[SurveyLevel, ...] = DEFAULT_LEVELS
    default_level: str | None = None
    terms: SurveyTerms | None = None

    def __init__(
        self,
        *,
        id: str,  # noqa: A002  # the name that surveys' files use
        title: str,
        collector: str,
        questions: Iterable[SurveyQuestion],
        purpose: str = "",
        levels: Mapping[str, Number | None] | tuple[SurveyLevel, ...] = DEFAULT_LEVELS,
        default_level: str | None = None,
        terms: SurveyTerms | None = None,
    ) -> None:
        construct(
            self,
            id=id,
            title=title,
            collector=collector,
            questions=questions,
            purpose=purpose,
            levels=levels,
            default_level=default_level,
            terms=terms,
        )

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        check_name(self.id, what="survey")
        for name in ("title", "collector", "purpose"):
            set_(self, name, check_text(getattr(self, name), name=name, empty=name == "purpose"))
        set_(self, "levels", read_levels(self.levels))
        set_(self, "questions", tuple(self.questions))
        self._check_questions()
        # Every protocol is made once now: a survey that cannot be asked must fail before it is published.
        for question in self.questions:
            self.default_of(question.id)
            for level in self.levels_of(question.id).values():
                if level.epsilon is not None:
                    protocol_for(question, level.epsilon)

    def _check_questions(self) -> None:
        if not all(isinstance(question, SurveyQuestion) for question in self.questions):
            raise ParameterError("Something among the questions is none.", fix="give questions=[Question(...), ...].")
        names = [question.id for question in self.questions]
        if not 1 <= len(names) <= MOST_QUESTIONS:
            raise ParameterError(
                f"A survey has from 1 to {MOST_QUESTIONS} questions, this one has {len(names)}.",
                fix="write a list of questions.",
            )
        for name, count in Counter(names).items():
            if count > 1:
                raise ParameterError(f'Two questions have the id "{name}".', fix="give each an id of its own.")

    @classmethod
    def read(cls, path: str | Path) -> Survey:
        """Return the survey of a YAML or JSON file.

        Raises:
            SchemaError: if the file is neither, or has unknown parts.
        """
        return documents.read_file(path, cls)

    @classmethod
    def from_dict(cls, values: Any) -> Survey:  # JSON-ready values
        """Return the survey of the values that `to_dict` gave, or of an equal file."""
        return cls(**documents.parts_of(values))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker."""
        return {"schema": self.schema, **documents.plain_survey(self)}

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the survey to a YAML or JSON file."""
        documents.write_file(path, self.to_dict(), overwrite=overwrite)

    @cached_property
    def definition(self) -> str:
        """Return everything that respondents see or their devices do, as the JSON text that the fingerprint is of."""
        record = {
            **{key: value for key, value in self.to_dict().items() if key != "questions"},
            "questions": [
                {
                    **documents.plain_question(question, rehearsal=False),
                    "preselected": self.default_of(question.id).name,
                    "protocols": self._fingerprints(question),
                }
                for question in self.questions
            ],
        }
        return canonical(record)

    @cached_property
    def fingerprint(self) -> str:
        """Return the hash of the definition; rehearsals do not count."""
        return hashlib.sha256(self.definition.encode()).hexdigest()

    def question(self, name: str) -> SurveyQuestion:
        """Return a question by its id."""
        for question in self.questions:
            if question.id == name:
                return question
        names = [question.id for question in self.questions]
        raise ParameterError(
            f"The survey does not have this question.{did_you_mean(str(name), names)}", fix=f"use {', '.join(names)}."
        )

    def levels_of(self, name: str) -> dict[str, SurveyLevel]:
        """Return the levels of a question by name, in their order."""
        question = self.question(name)
        found = self.levels if question.levels is None else question.levels
        if question.coins is not None:
            found = (SurveyLevel(OFF, None), SurveyLevel("coins", question.coin_epsilon))
        return {level.name: level for level in found}

    def level(self, name: str, level: object) -> SurveyLevel:
        """Return a level of a question."""
        found = self.levels_of(name)
        if not isinstance(level, str) or level not in found:
            raise ParameterError(
                f'Question "{name}" does not have the {_quote_level(level)}.{_hint(level, found)}',
                fix=f"use {', '.join(found)}.",
            )
        return found[level]

    def default_of(self, name: str) -> SurveyLevel:
        """Return the level that is preselected for a question."""
        question = self.question(name)
        stated: object = question.default_level
        if stated is None and question.levels is None and question.coins is None:
            stated = self.default_level
        levels = self.levels_of(name)
        if stated is None:
            return middle_level(tuple(levels.values()))
        if not isinstance(stated, str) or stated not in levels:
            raise ParameterError(
                f'The default_{_quote_level(stated)} is not a level of question "{name}".{_hint(stated, levels)}',
                fix=f"use {', '.join(levels)}.",
            )
        return levels[stated]

    def protocol(self, name: str, level: str) -> Protocol:
        """Return the protocol of a question at a level: what devices do, and what the collector reads.

        Raises:
            ParameterError: if there is no such question or level, or nothing is answered at that level.
        """
        chosen = self.level(name, level)
        if chosen.epsilon is None:
            raise ParameterError(f'At the level "{OFF}" nothing is sent.', fix="choose another level.")
        return protocol_for(self.question(name), chosen.epsilon)

    def statement(self, name: str, level: str) -> Statement:
        """Return what a respondent is told about a question at a level."""
        return Statement(self.level(name, level).loss)

    def total(self, levels: Mapping[str, str] | str | None = None) -> Statement:
        """Return what a respondent is told about all answers together.

        Args:
            levels: a level for each question, one for all, or None for the preselected ones.
        """
        chosen = self.choice(levels)
        return total_statement(self.level(name, level).loss for name, level in chosen.items())

    def choice(self, levels: Mapping[str, str] | str | None = None) -> dict[str, str]:
        """Return the level of every question: as chosen, else the preselected one."""
        if isinstance(levels, str):
            levels = {question.id: levels for question in self.questions}
        chosen = {question.id: self.default_of(question.id).name for question in self.questions}
        for name, level in (levels or {}).items():
            chosen[self.question(name).id] = self.level(name, level).name
        return chosen

    def answer(
        self,
        answers: Mapping[str, Any],
        *,
        levels: Mapping[str, str] | str | None = None,
        token: str | None = None,
        day: object = None,
        random_state: RandomState = None,
    ) -> Submission:
        """Return the submission of one person. This runs on that person's device; only what is returned leaves it.

        A number outside of its bounds counts as the nearer bound. A `DataWarning` says so on the device; `notes` tells
        it beforehand.

        Args:
            answers: the true answer to each question, or its text as a form gives it; those left out are not answered.
            levels: a level for each question, one for all, or None for the preselected ones.
            token: the one-time token of an invitation; None makes a random id.
            day: the date, without a time; None is that of the terms, else today's in UTC.
            random_state: for tests only.

        Raises:
            OutsideDomainError: if an answer is not among the declared ones.
            ParameterError: if a question that must be answered is not.
        """
        source = random_source(random_state)
        chosen = self.choice(levels)
        for name in answers:
            self.question(name)
        given = [name for name, level in chosen.items() if name in answers and level != OFF]
        for name in chosen.keys() - set(given):
            if OFF not in self.levels_of(name):
                raise ParameterError(f'Question "{name}" must be answered.', fix="answer it, at any of its levels.")
        for note in self.notes({name: answers[name] for name in given}):
            warnings.warn(note, DataWarning, stacklevel=2)
        reports = [self._report(name, chosen[name], answers[name], source) for name in given]
        return Submission(
            survey=self.id,
            fingerprint=self.fingerprint,
            id=new_id(source) if token is None else token_id(token),
            day=self.stated_day(day),
            reports=tuple(reports),
        )

    def stated_day(self, day: object = None) -> str:
        """Return the day that a submission states: the one of the terms, where there are any, and no other."""
        if self.terms is None:
            return check_day(day)
        if day is not None and check_day(day) != self.terms.day:
            raise ParameterError(
                "Every submission to this survey states the same day.", fix=f'leave day out, or say "{self.terms.day}".'
            )
        return self.terms.day

    def notes(self, answers: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what a respondent should know before sending: which answers count as another one.

        The notes are for the respondent's eyes; nothing of them is sent.
        """
        asked = ((self.question(name), value) for name, value in answers.items())
        found = (question.rules.note(question, value) for question, value in asked)
        return tuple(note for note in found if note is not None)

    def _report(self, name: str, level: str, value: Any, source: Any) -> dict[str, Any]:
        question = self.question(name)
        said = question.rules.read_answer(question, value)
        made = self.protocol(name, level).randomize(said, random_state=source)
        if not isinstance(made, LocalReport):
            raise OutsideDomainError(
                f'Question "{name}": There are several answers, or none.', fix="give one answer of one person."
            )
        return {"survey": self.id, "question": name, "level": level, **made.to_dicts()[0]}

    def _fingerprints(self, question: SurveyQuestion) -> dict[str, str]:
        levels = self.levels_of(question.id).values()
        return {level.name: self.protocol(question.id, level.name).fingerprint for level in levels if level.epsilon}

    def check_browsers(self) -> None:
        """Refuse a survey that browsers cannot ask, before anybody is sent to it.

        Raises:
            ParameterError: if the kind of a question or a protocol has no code for browsers.
        """
        documents.check_browsers(self)

    def to_browser(self) -> dict[str, Any]:
        """Return everything that a page needs to ask the questions and to make a submission; see `page_of`."""
        return documents.page_of(self)


def _quote_level(level: object) -> str:
    """Return a level that is not there, quoted if it is a name."""
    return f'level "{level[:40]}"' if isinstance(level, str) else "level, which is not a name,"


def _hint(level: object, known: Iterable[str]) -> str:
    return did_you_mean(level, known) if isinstance(level, str) else ""
