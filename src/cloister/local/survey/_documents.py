"""A survey as a document: the file that it is written in, as YAML or JSON, and what a browser gets.

The file: plain values in and out. Numbers stay exact: 0.1 in a file is one tenth. An unknown part is an error, since it
would be asked for and not heeded.

The page: questions, options, levels, statements and protocol records, as one JSON document. It shows the questions,
perturbs with the record of the chosen level (``local/js`` checks every record before it is used), and sends a
submission. Nothing else about a respondent is needed, and nothing else is accepted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.core import exact
from cloister.core.atomic_files import write_text
from cloister.core.exact import to_plain_number
from cloister.data.schema_file import check_keys, dump_yaml, load_yaml
from cloister.data.text_files import read_text
from cloister.errors import CloisterError, ParameterError, SchemaError
from cloister.local.survey.levels import LEVELS_ARE_VISIBLE, OFF, Statement, SurveyLevel, check_name, read_levels
from cloister.local.survey.questions import SurveyQuestion
from cloister.local.survey.submissions import SCHEMA as SUBMISSION, SurveyTerms

if TYPE_CHECKING:
    from cloister.local.survey.model import Survey

__all__ = ["VERSION", "check_browsers", "page_of"]


_PAGE_SCHEMA = "cloister.survey_page/1"


def page_of(survey: Survey) -> dict[str, Any]:
    """Return everything that a page needs, as JSON-ready values.

    A number with bins is reported as the label of its bin: the bin whose lower edge is the last one that is not above
    the number; numbers outside of the bounds belong to the first or the last bin. Edges are exact texts. The definition
    is the text that the fingerprint is the hash of, so that a browser can check that it was given what was published.

    Raises:
        ParameterError: if a browser cannot ask a question, or cannot protect its answer.
    """
    check_browsers(survey)
    return {
        "schema": _PAGE_SCHEMA,
        "survey": survey.id,
        "fingerprint": survey.fingerprint,
        "definition": survey.definition,
        "title": survey.title,
        "collector": survey.collector,
        "purpose": survey.purpose,
        "notice": LEVELS_ARE_VISIBLE,
        "total": {"epsilon": exact.text(survey.total().epsilon), **survey.total().to_dict()},
        "terms": None if survey.terms is None else asdict(survey.terms),
        "submission": {"schema": SUBMISSION, "survey": survey.id, "fingerprint": survey.fingerprint},
        "questions": [_page_question(survey, question) for question in survey.questions],
    }


def check_browsers(survey: Survey) -> None:
    """Refuse a survey that browsers cannot ask, before anybody is sent to it.

    Raises:
        ParameterError: if the kind of a question or a protocol has no code for browsers.
    """
    for question in survey.questions:
        levels = [level.name for level in survey.levels_of(question.id).values() if level.epsilon is not None]
        made = [survey.protocol(question.id, level) for level in levels]
        unknown = [f'the protocol "{one.name}"' for one in made if not one.in_browsers]
        unknown += [] if question.rules.in_browsers else [f'the kind "{question.kind}"']
        if unknown:
            raise ParameterError(
                f'Question "{question.id}": browsers do not know {unknown[0]}.',
                fix="leave protocol out, or ask another kind of question; or have people answer with "
                "`cloister survey answer`.",
            )


def _page_question(survey: Survey, question: SurveyQuestion) -> dict[str, Any]:
    levels = survey.levels_of(question.id)
    return {
        "id": question.id,
        "kind": str(question.kind),
        "text": question.text,
        "help": question.help,
        "options": list(question.options),
        "most": question.most,
        "bounds": None if question.bounds is None else [exact.text(end) for end in question.bounds],
        "whole": question.whole,
        "bins": None if not question.bins else _page_bins(question),
        "optional": OFF in levels,
        "default_level": survey.default_of(question.id).name,
        "levels": [_page_level(survey, question, level) for level in levels.values()],
    }


def _page_bins(question: SurveyQuestion) -> dict[str, list[str]]:
    return {"edges": [exact.text(edge) for edge in question.bins], "labels": list(question.bin_labels)}


def _page_level(survey: Survey, question: SurveyQuestion, level: SurveyLevel) -> dict[str, Any]:
    record = None if level.epsilon is None else survey.protocol(question.id, level.name).to_dict()
    return {
        "name": level.name,
        "epsilon": exact.text(level.loss),
        **Statement(level.loss).to_dict(),
        "protocol": record,
    }


VERSION = "cloister.survey/1"
_TOP = ("schema", "id", "title", "collector", "purpose", "levels", "default_level", "terms", "questions")
_NEEDED = ("id", "title", "collector", "questions")
_QUESTION = (
    "id",
    "kind",
    "text",
    "help",
    "options",
    "most",
    "bounds",
    "whole",
    "bins",
    "coins",
    "protocol",
    "levels",
    "default_level",
    "pretend",
)
_EXAMPLE = 'write a survey with "cloister survey new survey.yaml", and change that'
_MOST_CHARACTERS = 4_000_000
_LISTS = ("options", "bounds", "bins", "coins")


def read_file(path: str | Path, make: Callable[..., Survey]) -> Survey:
    """Return what is made of the parts of a survey file."""
    text = read_text(path, what="survey")
    if len(text) > _MOST_CHARACTERS:
        raise SchemaError(
            f"The survey file {path} is longer than {_MOST_CHARACTERS:,} characters.",
            fix="ask fewer questions, with fewer options.",
        )
    try:
        return make(**parts_of(_parse_text(text, is_json=Path(path).suffix.lower() == ".json")))
    except CloisterError as error:
        kind = type(error) if isinstance(error, ParameterError) else SchemaError
        raise kind(f"{error.problem} (survey file {path})", fix=error.fix) from None


def write_file(path: str | Path, values: Mapping[str, Any], *, overwrite: bool) -> None:
    """Write the plain values of a survey, as JSON where the name says so."""
    is_json = Path(path).suffix.lower() == ".json"
    text = json.dumps(values, ensure_ascii=False, indent=2) + "\n" if is_json else dump_yaml(values)
    write_text(path, text, overwrite=overwrite)


def parts_of(values: Any) -> dict[str, Any]:  # plain values
    """Return the arguments of a survey from plain values.

    Raises:
        SchemaError: if parts are missing or unknown, or the version is another one.
    """
    if not isinstance(values, Mapping):
        raise SchemaError("The survey is empty or not a mapping.", fix=f"{_EXAMPLE}.")
    check_keys(values, _TOP, where="The survey", noun="part")
    if values.get("schema") != VERSION:
        raise SchemaError(
            "The survey has no version marker, or one that this cloister does not read.",
            fix=f"write schema: {VERSION} as its first line, or update cloister.",
        )
    missing = [name for name in _NEEDED if values.get(name) is None]
    if missing:
        raise SchemaError(f"The survey has no {missing[0]}.", fix=f"{_EXAMPLE}.")
    questions = values["questions"]
    if not isinstance(questions, Sequence) or isinstance(questions, str):
        raise SchemaError("The questions are not a list.", fix=f"{_EXAMPLE}.")
    found = {name: value for name, value in values.items() if name not in ("schema", "questions") and value is not None}
    if "levels" in found:
        found["levels"] = read_levels(found["levels"])
    if "terms" in found:
        found["terms"] = SurveyTerms.from_dict(found["terms"])
    return found | {"questions": tuple(_read_question(one, place) for place, one in enumerate(questions, start=1))}


def plain_survey(survey: Survey) -> dict[str, Any]:
    """Return a survey as plain values."""
    return _present(
        {
            "id": survey.id,
            "title": survey.title,
            "collector": survey.collector,
            "purpose": survey.purpose,
            "levels": _plain_levels(survey.levels),
            "default_level": survey.default_level,
            "terms": None if survey.terms is None else survey.terms.to_dict(),
            "questions": [plain_question(question) for question in survey.questions],
        }
    )


def plain_question(question: SurveyQuestion, *, rehearsal: bool = True) -> dict[str, Any]:
    """Return a question as plain values, with or without what rehearsals make up."""
    facts: dict[str, Any] = {
        "id": question.id,
        "kind": str(question.kind),
        "text": question.text,
        "help": question.help,
        "options": list(question.options),
        "most": question.most,
        "bounds": [plain_number(end) for end in question.bounds or ()],
        "whole": question.whole,
        "bins": [plain_number(edge) for edge in question.bins],
        "coins": None
        if question.coins is None
        else dict(zip(("truth", "second"), map(plain_number, question.coins), strict=True)),
        "protocol": None if question.protocol == "auto" else question.protocol,
        "levels": None if question.levels is None else _plain_levels(question.levels),
        "default_level": question.default_level,
        "pretend": _plain_pretend(question) if rehearsal else None,
    }
    return _present(facts)


def plain_number(value: Fraction) -> int | float | str:
    """Return a rational as a number where that is exact for devices, too, else as text."""
    return to_plain_number(value, for_browsers=True)


def _parse_text(text: str, *, is_json: bool) -> Any:
    if not is_json:
        return load_yaml(text, what="survey", example=_EXAMPLE)
    try:
        # One tenth must stay one tenth, and of a name that comes twice two readers could take different ones.
        return json.loads(text, parse_float=Decimal, object_pairs_hook=_once)
    except SchemaError:
        raise
    except (ValueError, RecursionError):
        raise SchemaError("The survey is not valid JSON.", fix=f"mend it; {_EXAMPLE}.") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object, none of them twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise SchemaError(f'"{twice[:40]}" is there twice.', fix=f'keep one "{twice[:40]}", and delete the other.')
    return found


def _read_question(values: Any, place: int) -> SurveyQuestion:  # plain values
    where = f"Question {place}"
    if not isinstance(values, Mapping):
        raise SchemaError(f"{where} is not a mapping.", fix=f"{_EXAMPLE}.")
    check_keys(values, _QUESTION, where=where, noun="part")
    for name in ("id", "kind", "text"):
        if values.get(name) is None:
            raise SchemaError(f"{where} has no {name}.", fix=f"{_EXAMPLE}.")
    given = {name: value for name, value in values.items() if value is not None}
    for name in _LISTS:
        if isinstance(given.get(name), list):
            given[name] = tuple(given[name])
    check_name(given["id"], what="question", where=f"{where}: ")
    return SurveyQuestion(**given)


def _plain_levels(levels: tuple[SurveyLevel, ...]) -> dict[str, Any]:
    return {level.name: None if level.epsilon is None else plain_number(level.epsilon) for level in levels}


def _plain_pretend(question: SurveyQuestion) -> dict[str, float]:
    names = map(str, question.rules.pretend_names(question))
    return dict(zip(names, question.pretend, strict=False))


def _present(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value not in (None, "", [], {}, False)}
