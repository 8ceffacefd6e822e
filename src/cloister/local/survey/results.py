"""What everybody together answered: an estimate for each question, with margins, and what it cost the respondents.

Estimates are stratified over the levels that people chose. Raw shares are unbiased and may be negative; the mended ones
are not, at the price of a small bias. Margins of shares are about the people who answered; `QuestionResult.wider` are
those for everybody whom they stand for, if they are a random sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.core.exact import Number
from cloister.core.guarantees import ApproxDP, LocalDP
from cloister.core.result import Result
from cloister.core.wordings import format_count
from cloister.data.columns import Category
from cloister.errors import TooFewReportsError
from cloister.local.collection.levels import LEVEL_IS_VISIBLE
from cloister.local.collection.shuffle_model import central_guarantee
from cloister.local.collection.stratification import LeveledEstimate, combine
from cloister.local.estimates import ByValue, FrequencyEstimate, MeanEstimate, enough, z_of
from cloister.local.poisoning import ReportCheck
from cloister.local.protocol import FOLLOWED, Protocol
from cloister.local.reports import Reports
from cloister.local.survey._fake_reports import FALSE_ALARM, Movement, check_all, movement
from cloister.local.survey.levels import Statement
from cloister.local.survey.questions import SurveyQuestion

if TYPE_CHECKING:
    from cloister.local.survey.model import Survey
    from cloister.plotting import Figure
    from cloister.report import Report

__all__ = ["LevelResult", "QuestionResult", "SurveyResult", "estimate_survey"]

TOO_FEW = "too few reports to say anything"

SLACK = Fraction(1, 10**6)
"""The delta at which shuffled reports are priced."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelResult:
    """The reports of one question at one level.

    Attributes:
        name: the level.
        protocol: what the devices did.
        reports: how many there are.
        estimate: from these reports alone; None without reports.
        shuffled: what anybody could learn from the reports after somebody trusted shuffled them; None where there are
            too few for the bound.
        mean: of a rating in numbers, from these reports alone.
        check: whether the reports look like the work of the survey's devices; None without reports.
    """

    name: str
    protocol: Protocol
    reports: int
    estimate: FrequencyEstimate | MeanEstimate | None
    shuffled: ApproxDP | None
    mean: MeanEstimate | None = None
    check: ReportCheck | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "level": self.name,
            "protocol": self.protocol.name,
            "guarantee": self.protocol.guarantee.to_dict(),
            "reports": self.reports,
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
            "shuffled": None if self.shuffled is None else self.shuffled.to_dict(),
            "check": None if self.check is None else self.check.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuestionResult(Result):
    """What the people who answered a question said together.

    Attributes:
        question: what was asked.
        together: the estimates over all levels, stratified and pooled.
        levels: one part for each level.
        mean: of a rating in numbers, the mean as well.
        poisoning: how far 1 fake person in 100 could move a raw share or the mean.
    """

    schema: ClassVar[str] = "cloister.survey_question/1"

    question: SurveyQuestion
    together: LeveledEstimate[FrequencyEstimate | MeanEstimate]
    levels: tuple[LevelResult, ...]
    poisoning: Movement
    mean: MeanEstimate | None = None

    @property
    def estimate(self) -> FrequencyEstimate | MeanEstimate:
        """Return the raw estimate: unbiased, levels weighed by their numbers of reports."""
        return self.together.stratified

    @property
    def reports(self) -> int:
        """Return how many people answered."""
        return self.estimate.reports

    @property
    def off(self) -> int:
        """Return how many people did not answer."""
        return self.together.skipped

    @property
    def difference(self) -> float | None:
        """Return how likely such differences between levels are if answers do not depend on levels; None for one."""
        return None if self.together.heterogeneity is None else self.together.heterogeneity.p_value

    @property
    def alarms(self) -> tuple[tuple[str, str], ...]:
        """Return the level and the reason wherever reports do not look like those of the survey's devices."""
        checks = ((level.name, level.check) for level in self.levels if level.check is not None)
        return tuple((name, reason) for name, check in checks for reason in check.reasons)

    @property
    def is_mean(self) -> bool:
        """Return whether the estimate is a mean."""
        return isinstance(self.estimate, MeanEstimate)

    @property
    def raw(self) -> ByValue:
        """Return the unbiased shares of the answers, or the mean under "mean"."""
        return values_of(self.estimate)

    @property
    def mended(self) -> ByValue:
        """Return what is possible: shares of at least 0, adding up to 1 for a single answer; a mean within bounds."""
        return mend_estimate(self.estimate)

    def margins(self, confidence: Number = 0.95) -> ByValue:
        """Return the half-widths of the intervals around `raw`, for the people who answered."""
        return margins_of(self.estimate, confidence)

    def wider(self, confidence: Number = 0.95) -> ByValue:
        """Return the half-widths for everybody whom the people who answered stand for, as a random sample would."""
        margins, z = self.margins(confidence), z_of(confidence)
        if self.is_mean:
            return margins
        likely = {name: min(max(share, 0.0), 1.0) for name, share in self.raw.items()}
        return ByValue(
            (name, math.sqrt(margins[name] ** 2 + z**2 * share * (1 - share) / self.reports))
            for name, share in likely.items()
        )

    def telling(self) -> dict[Category, bool]:
        """Return whether the margin of each value leaves anything to say: at most half of what is possible."""
        widest = possible_width(self.estimate) / 2
        return {name: margin <= widest for name, margin in self.margins().items()}

    def intervals(self, confidence: Number = 0.95) -> dict[Category, tuple[float, float]]:
        """Return (low, high) around the raw shares, or the raw mean."""
        margins = self.margins(confidence)
        return {name: (value - margins[name], value + margins[name]) for name, value in self.raw.items()}

    def __str__(self) -> str:
        return f"{self.question.id}: {self.estimate}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        margins = self.margins()
        rows = [(str(name), self.format_value(value, margins[name])) for name, value in self.raw.items()]
        return (*rows, ("people who answered", f"{self.reports:,}"), ("promise", self.guarantee.explain()))

    def format_value(self, value: float, margin: float) -> str:
        """Return a value of this question with its margin in words."""
        return " ± ".join(self.parts(value, margin))

    def parts(self, value: float, margin: float) -> tuple[str, str]:
        """Return a value and its margin in words, with the digits that the margin deserves, as charts have them."""
        from cloister.plotting.inputs import number_with_margin

        scale, unit = (1, "") if self.is_mean else (100, "%")
        shown, around = number_with_margin(scale * value, scale * margin).split(" ± ")
        return f"{shown}{unit}", around

    def estimated(self) -> dict[Category, str]:
        """Return each mended value in words; where the margin leaves nothing to say, that."""
        margins, mended, telling = self.margins(), self.mended, self.telling()
        return {name: self.parts(mended[name], margins[name])[0] if telling[name] else TOO_FEW for name in telling}

    def plot(self, *, raw: bool = False) -> Figure:
        """Return a chart of the mended estimate, or of the raw one, with its 95% margins."""
        from cloister.local.survey._result_report import question_chart

        return question_chart(self, raw=raw)

    def _fields(self) -> dict[str, Any]:
        margins, wider, mended = self.margins(), self.wider(), self.mended
        return {
            "question": self.question.id,
            "kind": str(self.question.kind),
            "reports": self.reports,
            "off": self.off,
            "values": [
                {
                    "value": name,
                    "raw": raw,
                    "margin": margins[name],
                    "wider_margin": wider[name],
                    "mended": mended[name],
                }
                for name, raw in self.raw.items()
            ],
            "together": self.together.to_dict(),
            "mean": None if self.mean is None else self.mean.to_dict(),
            "poisoning": self.poisoning.to_dict(),
            "levels": [level.to_dict() for level in self.levels],
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SurveyResult(Result):
    """The results of a survey.

    Attributes:
        survey: what was asked.
        submissions: how many people took part.
        questions: the results of those questions that somebody answered.
        unanswered: the ids of the others.
        days: how many submissions came on which day.
        refused: how many submissions were refused for which reason.
    """

    schema: ClassVar[str] = "cloister.survey_result/1"

    survey: Survey = field(repr=False)
    submissions: int
    questions: tuple[QuestionResult, ...] = field(repr=False)
    unanswered: tuple[str, ...]
    days: Mapping[str, int]
    refused: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> QuestionResult:
        """Return the result of a question by its id.

        Raises:
            TooFewReportsError: if nobody answered it.
        """
        question = self.survey.question(name)
        for result in self.questions:
            if result.question.id == question.id:
                return result
        raise TooFewReportsError("Nobody answered this question.", fix="collect more reports first.")

    def __str__(self) -> str:
        questions = format_count(len(self.questions), "question")
        return f"{self.survey.title}: {format_count(self.submissions, 'submission')}, {questions} answered"

    @property
    def is_plausible(self) -> bool:
        """Return whether all reports look like those of the survey's devices; that does not prove it."""
        return not any(result.alarms for result in self.questions)

    def statement(self) -> Statement:
        """Return what the collector could learn at most about somebody who answered everything at the weakest level."""
        largest = (max(level.loss for level in self.survey.levels_of(one.id).values()) for one in self.survey.questions)
        return Statement(sum(largest, Fraction(0)), several=True)

    def plot(self, name: str, *, raw: bool = False) -> Figure:
        """Return the chart of a question."""
        return self[name].plot(raw=raw)

    def report(self, path: str | Path | None = None, *, overwrite: bool = True) -> Report:
        """Return the report, and write it where a path is given: .html, .md or .json."""
        from cloister.local.survey._result_report import report_of

        made = report_of(self)
        if path is not None:
            made.write(path, overwrite=overwrite)
        return made

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        lines = [(result.question.id, str(result.estimate)) for result in self.questions]
        return (("submissions", f"{self.submissions:,}"), *lines)

    def _fields(self) -> dict[str, Any]:
        return {
            "survey": self.survey.id,
            "fingerprint": self.survey.fingerprint,
            "submissions": self.submissions,
            "refused": dict(self.refused),
            "days": dict(sorted(self.days.items())),
            "plausible": self.is_plausible,
            "false_alarm": float(FALSE_ALARM),
            "questions": [result.to_dict() for result in self.questions],
            "unanswered": list(self.unanswered),
        }


def estimate_survey(
    survey: Survey,
    *,
    reports: Mapping[tuple[str, str], Reports],
    counts: Mapping[str, Mapping[str, int]],
    days: Mapping[str, int],
    refused: Mapping[str, int],
) -> SurveyResult:
    """Return the results of all questions.

    Raises:
        TooFewReportsError: if there is no submission.
    """
    submissions = enough(sum(days.values()))
    checks = check_all(reports)
    found = []
    for question in survey.questions:
        levels = [
            _level(question, place[1], kept, checks.get(place))
            for place, kept in reports.items()
            if place[0] == question.id
        ]
        if any(level.reports for level in levels):
            moved = movement(survey, question.id)
            found.append(_question(question, levels, moved, off=counts[question.id]["off"]))
    answered = {result.question.id for result in found}
    together = sum((_loss(result.guarantee) for result in found), Fraction(0))
    return SurveyResult(
        survey=survey,
        submissions=submissions,
        questions=tuple(found),
        unanswered=tuple(question.id for question in survey.questions if question.id not in answered),
        days=dict(days),
        refused=dict(refused),
        guarantee=LocalDP(epsilon=together, unit="person", assumptions=(FOLLOWED,), caveats=(LEVEL_IS_VISIBLE,)),
    )


def _question(question: SurveyQuestion, levels: Sequence[LevelResult], moved: Movement, *, off: int) -> QuestionResult:
    protocols = {level.name: level.protocol for level in levels}
    strata = {level.name: level.estimate for level in levels if level.estimate is not None}
    means: dict[str, FrequencyEstimate | MeanEstimate] = {
        level.name: level.mean for level in levels if level.mean is not None
    }
    # People of all levels are in this estimate, so that it promises what whoever chose the weakest was promised.
    highest = max(protocols[name].epsilon for name in strata)
    promise = LocalDP(epsilon=highest, assumptions=(FOLLOWED,), caveats=(LEVEL_IS_VISIBLE,))
    together = combine(strata, protocols=protocols, guarantee=promise, skipped=off)
    mean = combine(means, protocols=protocols, guarantee=promise).stratified if means.keys() == strata.keys() else None
    return QuestionResult(
        question=question,
        together=together,
        levels=tuple(levels),
        poisoning=moved,
        mean=mean if isinstance(mean, MeanEstimate) else None,
        guarantee=promise,
    )


def _level(question: SurveyQuestion, name: str, reports: Reports, check: ReportCheck | None) -> LevelResult:
    protocol = reports.protocol
    return LevelResult(
        name=name,
        protocol=protocol,
        reports=len(reports),
        estimate=_estimate(protocol, reports) if len(reports) else None,
        shuffled=central_guarantee(protocol.guarantee, reports=len(reports), delta=SLACK)[0],
        mean=question.rules.mean(question, reports),
        check=check,
    )


def _estimate(protocol: Protocol, reports: Reports) -> FrequencyEstimate | MeanEstimate:
    try:
        found: FrequencyEstimate | MeanEstimate = protocol.estimate(reports)
    except TooFewReportsError:
        return _single(protocol, reports)
    return found


def _single(protocol: Any, reports: Reports) -> MeanEstimate:  # a protocol for a number
    """Return the mean of one report: its reading, with the widest error that one can have."""
    return MeanEstimate(
        value=float(protocol.debias(reports)[0]),
        standard_error=float(protocol.spread()) ** 0.5,
        reports=1,
        bounds=protocol.grid.ends,
        protocol=protocol.name,
        guarantee=protocol.guarantee_of(reports),
    )


def values_of(estimate: FrequencyEstimate | MeanEstimate) -> ByValue:
    """Return the shares of an estimate, or its mean under "mean"."""
    return ByValue({"mean": estimate.value}) if isinstance(estimate, MeanEstimate) else estimate.frequencies


def mend_estimate(estimate: FrequencyEstimate | MeanEstimate) -> ByValue:
    """Return what is possible: shares of at least 0, adding up to 1 for a single answer; a mean within bounds."""
    if isinstance(estimate, MeanEstimate):
        low, high = estimate.bounds
        return ByValue({"mean": min(max(estimate.value, low), high)})
    return estimate.consistent().frequencies


def margins_of(estimate: FrequencyEstimate | MeanEstimate, confidence: Number = 0.95) -> ByValue:
    """Return the half-widths of the intervals around `values_of`."""
    if isinstance(estimate, MeanEstimate):
        return ByValue({"mean": estimate.margin(confidence)})
    margins = estimate.margins(confidence)
    return ByValue((name, margin / estimate.reports) for name, margin in margins.items())


def format_mean(mean: MeanEstimate) -> str:
    """Return a mean with its margin in words, or that the margin leaves nothing to say."""
    from cloister.plotting.inputs import number_with_margin

    margin = mean.margin()
    return (
        number_with_margin(mean.value, margin) if margin <= possible_width(mean) / 2 else f"{TOO_FEW} (± {margin:.2g})"
    )


def possible_width(estimate: FrequencyEstimate | MeanEstimate) -> float:
    """Return how far two possible values of an estimate can be apart."""
    return float(estimate.bounds[1] - estimate.bounds[0]) if isinstance(estimate, MeanEstimate) else 1.0


def _loss(guarantee: Any) -> Fraction:  # a LocalDP
    return Fraction(guarantee.epsilon)
