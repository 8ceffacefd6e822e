"""Submissions: what one respondent sends, made on the device, and read by the collector with suspicion.

A submission names the survey, carries a one-time id, a day without a time, and one report for each answered question.
It holds no free text, no moment and no address. `Survey.answer` makes one in Python, a page makes one in the browser;
`parse` is the collector's side, and refuses everything that is not exactly of this form.

Submissions are taken on terms: who may answer and by which proof, and the day that every submission states. These are
part of a survey's definition, and so of its fingerprint: whoever publishes a survey cannot ask one person for a proof
that others do not give, or give everybody another day or key to be recognized by, without another fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from cloister.core.documents import read_json, refuse_constant
from cloister.core.random import RandomState, random_source
from cloister.errors import (
    DataError,
    MalformedReportError,
    ParameterError,
    ParameterTypeError,
    SchemaError,
    SourceNotFoundError,
)
from cloister.local.survey._texts import check_text
from cloister.local.survey.levels import check_name

__all__ = [
    "MOST_BYTES",
    "SCHEMA",
    "Submission",
    "SurveyTerms",
    "is_day",
    "is_id",
    "new_id",
    "parse",
    "read_lines",
    "submission_error",
    "token_id",
]


SCHEMA = "cloister.submission/1"
MOST_BYTES = 2**20
"""The longest submission that is read."""

_KEYS = frozenset({"schema", "survey", "fingerprint", "id", "day", "reports"})
_ID = re.compile(r"[0-9a-f]{32,64}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIRST_DAY = date(2001, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Submission:
    """What one respondent sends.

    Attributes:
        survey: the survey's id.
        fingerprint: the hash of the survey as the respondent saw it.
        id: a one-time id in hexadecimal digits: random, or the hash of a one-time token.
        day: the date, without a time.
        reports: one for each answered question, as JSON-ready values.
    """

    survey: str
    fingerprint: str
    id: str = field(repr=False)
    day: str
    reports: tuple[Mapping[str, Any], ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the submission as JSON-ready values."""
        return {
            "schema": SCHEMA,
            "survey": self.survey,
            "fingerprint": self.fingerprint,
            "id": self.id,
            "day": self.day,
            "reports": [dict(report) for report in self.reports],
        }

    def to_json(self) -> str:
        """Return the submission as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def parse(source: Any) -> Submission:  # JSON text, bytes, or its values
    """Return a submission in any form, with the form checked; the reports inside are not yet.

    Raises:
        MalformedReportError: if it is too long, truncated, not JSON, or has another form. Nothing of it is repeated.
    """
    if isinstance(source, Submission):
        return source
    if isinstance(source, str | bytes | bytearray):
        source = _from_json(source)
    if not isinstance(source, Mapping) or set(source) != _KEYS or source["schema"] != SCHEMA:
        raise submission_error("has another form or version than is read here")
    survey, fingerprint, identifier, day = (source[key] for key in ("survey", "fingerprint", "id", "day"))
    if not isinstance(survey, str) or not isinstance(fingerprint, str) or not is_id(identifier) or not is_day(day):
        raise submission_error("has an id or a day that is none")
    reports = source["reports"]
    if not isinstance(reports, list) or not all(type(one) is dict or isinstance(one, Mapping) for one in reports):
        raise submission_error("has reports that are none")
    return Submission(survey=survey, fingerprint=fingerprint, id=identifier, day=day, reports=tuple(reports))


def read_lines(path: str | Path) -> Iterator[bytes]:
    """Return the lines of a file of submissions, one after the other; of a line that is too long, only a part.

    Raises:
        SourceNotFoundError: if there is no such file.
        DataError: if it cannot be read.
    """
    try:
        with Path(path).open("rb") as stream:
            while line := stream.readline(MOST_BYTES + 1):
                yield line
                # The rest of a long line is skipped, or its tail would be taken for a submission of its own.
                while len(line) > MOST_BYTES and not line.endswith(b"\n"):
                    line = stream.readline(MOST_BYTES + 1)
    except FileNotFoundError:
        raise SourceNotFoundError(f'There is no file of submissions "{path}".', fix="check the path.") from None
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise DataError(f'"{path}" cannot be read: {reason}.', fix="give the path of a readable file.") from None


def token_id(token: object) -> str:
    """Return the id of a one-time token: a hash, so that the token itself is not sent.

    >>> len(token_id("fern-otter-41"))
    64
    """
    if not isinstance(token, str) or not token.strip():
        raise ParameterTypeError("The token is not a text.", fix="give the token as it was handed out.")
    return hashlib.sha256(b"cloister.token/1\n" + token.strip().encode()).hexdigest()


def new_id(random_state: RandomState = None) -> str:
    """Return a random one-time id of 128 bits."""
    return random_source(random_state).random_bytes(16).hex()


def today() -> str:
    """Return the date in UTC."""
    return datetime.now(UTC).date().isoformat()


def check_day(day: object) -> str:
    """Return a day as text, or raise if it says more or less than a day."""
    if day is None:
        return today()
    if isinstance(day, date) and not isinstance(day, datetime):
        return day.isoformat()
    if not is_day(day):
        raise ParameterError("day is not a date without a time.", fix='write for example day="2026-05-04".')
    return str(day)


def is_id(value: object) -> bool:
    """Return whether this is a one-time id, such as `token_id` gives."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def is_day(value: object) -> bool:
    """Return whether this is a day on which somebody can have answered: in this century, at the latest tomorrow."""
    # Devices east of Greenwich are a day ahead of this clock, and none is further.
    return isinstance(value, str) and _reads_as_day(value) and value <= _tomorrow()


def _tomorrow() -> str:
    return (datetime.now(UTC).date() + timedelta(days=1)).isoformat()


@lru_cache(maxsize=1024)
def _reads_as_day(text: str) -> bool:
    try:
        return bool(_DAY.fullmatch(text) and date.fromisoformat(text) >= _FIRST_DAY)
    except ValueError:
        return False


def _from_json(source: str | bytes | bytearray) -> Any:
    if len(source) > MOST_BYTES:
        raise submission_error("is too long")
    plain = _plainly(source)
    if plain is not None:
        return plain
    try:
        # Names that repeat would let two readers see two submissions, and NaN is a number in no output space.
        return read_json(source)
    except (ValueError, RecursionError):
        raise submission_error("is truncated, or not JSON") from None


def _plainly(source: str | bytes | bytearray) -> dict[str, Any] | None:
    """Return the values of JSON that certainly repeats no name; None where that has to be looked at more closely.

    Every pair of a name and a value is written with a colon. If there are no more colons than names in what was read,
    no name came twice.
    """
    try:
        text = source if isinstance(source, str) else source.decode()
        values = _DECODER.decode(text)
        names = len(values) + sum(map(len, values["reports"]))
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    return values if type(values) is dict and text.count(":") == names else None


_DECODER = json.JSONDecoder(parse_constant=refuse_constant)


def submission_error(what: str) -> MalformedReportError:
    """Return the error for a submission that no device makes."""
    return MalformedReportError(
        f"A submission {what}.", fix="have the respondent's device make it anew from the survey as it is published."
    )


_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyTerms:
    """The terms on which answers are taken.

    Attributes:
        admission: who may answer and by which proof, as a name for machines.
        sentence: the same for people, with what the collector could know from it.
        day: what every submission states as its day, whenever it is made.
        key: the fingerprint of the key that signs blindly, where one does.
    """

    admission: str
    sentence: str
    day: str
    key: str | None = None

    def __post_init__(self) -> None:
        check_name(self.admission, what="admission")
        object.__setattr__(self, "sentence", check_text(self.sentence, name="sentence"))
        object.__setattr__(self, "day", check_day(self.day))
        if self.key is not None and _KEY.fullmatch(str(self.key)) is None:
            raise ParameterError("The key of the terms is not a fingerprint.", fix="give 64 hexadecimal digits.")

    @classmethod
    def from_dict(cls, values: Any) -> SurveyTerms:  # JSON-ready values
        """Return the terms of a survey file.

        Raises:
            SchemaError: if parts are missing or unknown.
        """
        known = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or not known - {"key"} <= set(values) <= known:
            raise SchemaError(
                "The terms of the survey have unknown or missing parts.", fix="write admission, sentence and day."
            )
        return cls(**{str(name): _as_text(value) for name, value in values.items()})

    def to_dict(self) -> dict[str, str]:
        """Return plain values; a key that is not there is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def _as_text(value: Any) -> Any:  # YAML reads a day as a date
    return value.isoformat() if hasattr(value, "isoformat") else value
