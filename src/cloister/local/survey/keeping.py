"""What stays at rest: one file of reports without ids, and one of used ids without reports.

Both are sorted, so that neither tells in which order people came, and nothing connects a line of one with a line of the
other. Keep them in different places, with different readers, where that is possible.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.core.files import write_text
from cloister.data.files import read_text
from cloister.errors import CloisterError, DataError
from cloister.local.output_space import Payload
from cloister.local.reports import Reports
from cloister.local.survey.submissions import is_day

if TYPE_CHECKING:
    from cloister.local.survey.model import Survey

__all__ = ["REPORTS", "USED", "damaged", "prepare", "read_bags", "read_used", "write_bags", "write_used"]

REPORTS = "reports.json"
USED = "used-ids.json"
_BAGS_SCHEMA = "cloister.collected_reports/1"
_USED_SCHEMA = "cloister.used_ids/1"


def prepare(folder: str | Path, *, overwrite: bool) -> None:
    """Make the folder if need be, and refuse it if a file is in the way."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f'The folder "{folder}" cannot be made: {error.strerror}.', fix="choose a folder that you may write to."
        ) from None
    taken = [name for name in (USED, REPORTS) if not overwrite and (Path(folder) / name).exists()]
    if taken:
        raise DataError(
            f'There is a file "{taken[0]}" in "{folder}" already.', fix="choose another folder, or say overwrite=True."
        )


def write_bags(
    folder: str | Path,
    survey: Survey,
    bags: Mapping[tuple[str, str], Reports],
    days: Mapping[str, int],
    *,
    overwrite: bool,
) -> None:
    """Write the reports of each question and level, and how many submissions came on which day."""
    packed = [
        {"question": question, "level": level, "reports": base64.b64encode(reports.to_bytes()).decode()}
        for (question, level), reports in sorted(bags.items())
    ]
    _write(folder, REPORTS, survey, {"days": dict(sorted(days.items())), "bags": packed}, overwrite=overwrite)


def read_bags(folder: str | Path, survey: Survey) -> tuple[dict[tuple[str, str], Payload], Counter[str]]:
    """Return the rows of each question and level, each checked anew, and the days."""
    values = _read(folder, REPORTS, survey)
    try:
        read = [
            (
                (bag["question"], bag["level"]),
                survey.protocol(bag["question"], bag["level"]).read(base64.b64decode(bag["reports"], validate=True)),
            )
            for bag in values["bags"]
        ]
        days = {day: _count(day, count) for day, count in values["days"].items()}
    except (CloisterError, KeyError, TypeError, AttributeError, ValueError, binascii.Error):
        raise damaged(REPORTS) from None
    bags = {place: reports.payload for place, reports in read}
    if len(bags) < len(read):
        raise damaged(REPORTS)
    return bags, Counter(days)


def _count(day: object, count: object) -> int:
    if not is_day(day) or type(count) is not int or not 1 <= count < 2**53:
        raise ValueError
    return count


def write_used(folder: str | Path, survey: Survey, used: Collection[str], *, overwrite: bool) -> None:
    """Write the hashes of used ids."""
    _write(folder, USED, survey, {"used": sorted(used)}, overwrite=overwrite)


def read_used(folder: str | Path, survey: Survey) -> set[str]:
    """Return the hashes of used ids."""
    used = _read(folder, USED, survey).get("used")
    if not isinstance(used, list) or not all(isinstance(digest, str) for digest in used):
        raise damaged(USED)
    return set(used)


def _write(folder: str | Path, name: str, survey: Survey, values: Mapping[str, Any], *, overwrite: bool) -> None:
    document = {"schema": _schema(name), "survey": survey.id, "fingerprint": survey.fingerprint, **values}
    write_text(Path(folder) / name, json.dumps(document, indent=1) + "\n", overwrite=overwrite)


def _read(folder: str | Path, name: str, survey: Survey) -> dict[str, Any]:
    text = read_text(Path(folder) / name, what="collection")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise damaged(name) from None
    head = {"schema": _schema(name), "survey": survey.id, "fingerprint": survey.fingerprint}
    if not isinstance(values, dict) or any(values.get(key) != value for key, value in head.items()):
        raise DataError(
            f"{name} is of another survey, or of another version of this one.",
            fix="use the survey as it was published when the reports were collected.",
        )
    return values


def _schema(name: str) -> str:
    return _BAGS_SCHEMA if name == REPORTS else _USED_SCHEMA


def damaged(name: str) -> DataError:
    """Return the error for a file that does not hold what was written."""
    return DataError(f"{name} is damaged.", fix="take it from a backup.")
