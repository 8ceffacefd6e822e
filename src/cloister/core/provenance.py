"""Where things come from: the version and the account behind a model, and how a release was made.

The kinds of releases are the words of certificates, of the gate and of the hub. They are here so that commands can name
them without loading what signs.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Self

from cloister import _version
from cloister.errors import ModelError

__all__ = ["ANONYMIZED", "CERTIFIED_KINDS", "SYNTHETIC", "TWO_TABLES", "Provenance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The version that trained a model, the day, and the account that paid.

    >>> Provenance.of_today(dataset="hospital-2026").dataset
    'hospital-2026'
    """

    cloister: str
    date: str
    dataset: str | None

    @classmethod
    def of_today(cls, *, dataset: str | None) -> Self:
        """Return the provenance of a model that is trained now."""
        today = dt.datetime.now(tz=dt.UTC).date().isoformat()
        return cls(cloister=_version.__version__, date=today, dataset=dataset)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"cloister": self.cloister, "date": self.date, "dataset": self.dataset}

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Return what `to_dict` wrote.

        Raises:
            ModelError: if it is something else.
        """
        whole = isinstance(values, dict) and values.keys() == {"cloister", "date", "dataset"}
        if not whole or not isinstance(values["cloister"], str) or not isinstance(values["dataset"], str | None):
            raise _unknown()
        try:
            day = dt.date.fromisoformat(values["date"])
        except (TypeError, ValueError):
            raise _unknown() from None
        return cls(cloister=values["cloister"], date=day.isoformat(), dataset=values["dataset"])


def _unknown() -> ModelError:
    return ModelError(
        "The saved model does not say where it comes from.", fix="use the file as save() wrote it, or train again."
    )


ANONYMIZED = "anonymized table"
TWO_TABLES = "two tables"
SYNTHETIC = "synthetic table"
CERTIFIED_KINDS = (ANONYMIZED, TWO_TABLES, SYNTHETIC)
