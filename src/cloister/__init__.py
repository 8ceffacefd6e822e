"""cloister: use sensitive data without exposing the people in it.

Names are loaded when they are first used, so that ``import cloister`` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cloister._version import __version__

if TYPE_CHECKING:
    from cloister import (
        accounting as accounting,
        attacks as attacks,
        data as data,
        learn as learn,
        local as local,
        mechanisms as mechanisms,
        plotting as plotting,
        protocols as protocols,
        queries as queries,
        report as report,
        synth as synth,
        testing as testing,
    )
    from cloister.accounting.budget import Budget as Budget
    from cloister.accounting.ledger import open_ledger as open_ledger
    from cloister.anonymize import CallablePackage as _CallablePackage
    from cloister.anonymize.assessment import assess as assess
    from cloister.core.guarantees import (
        Adjacency as Adjacency,
        AlphaKAnonymity as AlphaKAnonymity,
        ApproxDP as ApproxDP,
        BetaLikeness as BetaLikeness,
        DeltaPresence as DeltaPresence,
        KAnonymity as KAnonymity,
        KMap as KMap,
        LDiversity as LDiversity,
        LocalDP as LocalDP,
        NoGuarantee as NoGuarantee,
        PSensitivity as PSensitivity,
        PureDP as PureDP,
        RenyiDP as RenyiDP,
        TCloseness as TCloseness,
        ZeroConcentratedDP as ZeroConcentratedDP,
    )
    from cloister.data.columns import Column as Column, Kind as Kind, Role as Role
    from cloister.data.frequency import FrequencyTable as FrequencyTable
    from cloister.data.hierarchy import Hierarchy as Hierarchy
    from cloister.data.measures import CountPresent as CountPresent, Sum as Sum, SumOfSquares as SumOfSquares
    from cloister.data.schema import Schema as Schema
    from cloister.data.sources import open_table as open_table
    from cloister.data.table import Table as Table
    from cloister.errors import CloisterError as CloisterError, CloisterWarning as CloisterWarning
    from cloister.queries.private_table import PrivateTable as PrivateTable

    anonymize: _CallablePackage

_HOMES = {
    "cloister.anonymize.assessment": ("assess",),
    "cloister.accounting.budget": ("Budget",),
    "cloister.accounting.ledger": ("open_ledger",),
    "cloister.core.guarantees": (
        "Adjacency",
        "AlphaKAnonymity",
        "ApproxDP",
        "BetaLikeness",
        "DeltaPresence",
        "KAnonymity",
        "KMap",
        "LDiversity",
        "LocalDP",
        "NoGuarantee",
        "PSensitivity",
        "PureDP",
        "RenyiDP",
        "TCloseness",
        "ZeroConcentratedDP",
    ),
    "cloister.data.columns": ("Column", "Kind", "Role"),
    "cloister.data.frequency": ("FrequencyTable",),
    "cloister.data.hierarchy": ("Hierarchy",),
    "cloister.data.measures": ("CountPresent", "Sum", "SumOfSquares"),
    "cloister.data.schema": ("Schema",),
    "cloister.data.sources": ("open_table",),
    "cloister.data.table": ("Table",),
    "cloister.queries.private_table": ("PrivateTable",),
    "cloister.errors": ("CloisterError", "CloisterWarning"),
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}
_PACKAGES = (
    "accounting",
    "anonymize",
    "attacks",
    "data",
    "learn",
    "local",
    "mechanisms",
    "plotting",
    "protocols",
    "queries",
    "report",
    "synth",
    "testing",
)

__all__ = ["__version__", *_WHERE, *_PACKAGES]  # noqa: PLE0604  # names come from the table above


def _load(name: str) -> Any:  # any public object
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    elif name in _PACKAGES:
        value = importlib.import_module(f"cloister.{name}")
    else:
        raise AttributeError(f"module 'cloister' has no attribute {name!r}")
    globals()[name] = value
    return value


if not TYPE_CHECKING:
    # Type checkers read the imports above; a function that gives any name would hide misspelled ones from them.
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted(__all__)
