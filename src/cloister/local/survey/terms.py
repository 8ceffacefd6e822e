"""On what terms answers are taken: who may answer and by which proof, and the day that every submission states.

They are part of a survey's definition, and so of its fingerprint: whoever publishes a survey cannot ask one person for
a proof that others do not give, or give everybody another day or key to be recognized by, without another fingerprint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from cloister.errors import ParameterError, SchemaError
from cloister.local.survey.levels import check_name
from cloister.local.survey.questions import check_text
from cloister.local.survey.submissions import check_day

__all__ = ["Terms"]

_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
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
    def from_dict(cls, values: Any) -> Terms:  # JSON-ready values
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
