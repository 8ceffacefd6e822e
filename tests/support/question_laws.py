"""The laws of kinds of questions: what is asked, reported, planned and rehearsed fits, in Python and in browsers."""

from __future__ import annotations

import json
import subprocess
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cloister.core.random import ListedRandomSource, SystemRandomSource
from cloister.errors import DataWarning
from cloister.local.survey import OFF, Collector, Survey, SurveyQuestion, plan_survey, simulate
from cloister.local.survey.levels import read_levels
from cloister.local.survey.typed_answers import read_typed
from cloister.testing.laws import Laws, law_violation, must_refuse
from tests.support import tools

_SCRIPTS = Path(__file__).parents[1] / "local" / "survey" / "js"
_DAY = "2026-05-04"
_PEOPLE = 300
_WORDS = 200
_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLaws(Laws):
    """The laws of a question of some kind.

    Attributes:
        question: what is asked.
        answers: answers that can be given, each also as a text at a terminal.
        outside: what must be refused, and not be quoted.
    """

    question: SurveyQuestion
    answers: tuple[tuple[Any, str], ...]
    outside: tuple[Any, ...]

    def law_a_saved_survey_is_the_same_survey(self) -> None:
        """A question survives JSON, and so does the fingerprint of its survey."""
        survey = self._survey()
        opened = Survey.from_dict(json.loads(json.dumps(survey.to_dict())))
        if opened != survey or opened.fingerprint != survey.fingerprint:
            raise law_violation("A saved question is another one", "put every fact that it has among its facts.")

    def law_answers_are_reported(self) -> None:
        """Every answer, given or typed, is a value of the protocol at every level."""
        survey = self._survey()
        for level in survey.levels_of(self.question.id):
            for given, typed in self.answers if level != OFF else ():
                said = self.question.rules.read_answer(self.question, given)
                told = self.question.rules.read_answer(self.question, read_typed(self.question, typed))
                if said != told:
                    raise law_violation("A typed answer is another one", "let spell and read_answer agree.")
                survey.protocol(self.question.id, level).randomize(said)

    def law_what_is_no_answer_is_refused_and_not_told(self) -> None:
        """What cannot be an answer is refused on the device, with words that do not repeat it."""
        for value in self.outside:
            error = must_refuse(partial(self._survey().answer, {self.question.id: value}), "what is no answer")
            if isinstance(value, str) and value in str(error):
                raise law_violation("An error quotes an answer", "say what may be answered instead.")

    def law_a_rehearsal_is_collected_whole(self) -> None:
        """Made-up people answer as real ones may, and their shares or their mean are those that are estimated."""
        survey = self._survey()
        made = simulate(survey, respondents=_PEOPLE, mix={"low": 1})
        collector = Collector(survey)
        if collector.add_lines(made.lines()).accepted != _PEOPLE:
            raise law_violation("Made-up people are refused", "draw what read_answer takes.")
        found, truth = collector.estimate()[self.question.id], made.truth[self.question.id]
        if list(found.raw) != list(truth):
            raise law_violation("The truth is about other answers than the estimate", "let answers name them.")
        # At epsilon 15 hardly any report is a lie, so that an estimate far from the truth is about something else.
        far = [name for name, share in truth.items() if abs(found.raw[name] - share) > 0.25 * self._width()]
        if far:
            raise law_violation("The estimate is not about the truth", "encode answers as the browser does.")

    def law_it_can_be_planned_and_prompted(self) -> None:
        """A plan has a finite number of people, and a terminal says what may be answered."""
        if not all(row.worst >= row.usual > 0 for row in plan_survey(self._survey(), margin=5).rows):
            raise law_violation("The plan has no variance", "state the usual and the worst one.")
        if not self.question.rules.prompt(self.question).strip():
            raise law_violation("Nothing says what may be answered", "write a prompt.")

    def law_a_browser_sends_what_python_sends(self) -> None:
        """From the same random words, the browser's half makes the same submission."""
        if lacking := tools.missing("node"):
            tools.skip_or_fail(lacking)
        survey, source = self._survey(), SystemRandomSource()
        tasks, expected = [], []
        for given, _ in self.answers * _ROUNDS:
            words = [int(word) for word in source.words(_WORDS)]
            answers = {self.question.id: given}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                made = survey.answer(answers, day=_DAY, random_state=ListedRandomSource(words))
            expected.append(made.to_dict())
            listed = [str(word) for word in words]
            tasks.append({"answers": answers, "levels": {}, "options": {"day": _DAY}, "words": listed})
        tasks += [{"answers": {self.question.id: value}, "options": {"day": _DAY}} for value in self._sendable()]
        told = _run_browser({"page": survey.to_browser(), "tasks": tasks})["sent"]
        if [one.get("submission") for one in told[: len(expected)]] != expected:
            raise law_violation("The browser reports another value", "let `reported` do what read_answer does.")
        if any("submission" in one for one in told[len(expected) :]):
            raise law_violation("The browser reports what is no answer", "refuse it in `reported`.")

    def _survey(self) -> Survey:
        levels = read_levels({"off": None, "low": 15, "high": 1})
        return Survey(id="laws", title="?", collector="Example Institute", levels=levels, questions=(self.question,))

    def _width(self) -> float:
        low, high = self.question.bounds or (0, 1)
        return float(high - low) if self.question.is_mean else 1.0

    def _sendable(self) -> list[Any]:
        return [value for value in self.outside if isinstance(value, str | int | list)]


def _run_browser(argument: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        ["node", _SCRIPTS / "node.mjs", _SCRIPTS / "take.mjs"],
        input=json.dumps(argument),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))
