"""What was spent and what is left: events, composition, accountants, budgets and the ledger.

Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloister.accounting.accountants import (
        Accountant as Accountant,
        GaussianAccountant as GaussianAccountant,
        NumericalAccountant as NumericalAccountant,
        PureAccountant as PureAccountant,
        RenyiAccountant as RenyiAccountant,
        ZeroConcentratedAccountant as ZeroConcentratedAccountant,
        compare as compare,
        compose as compose,
    )
    from cloister.accounting.amplification import (
        poisson_subsampling as poisson_subsampling,
        shuffling as shuffling,
        subsampling_without_replacement as subsampling_without_replacement,
    )
    from cloister.accounting.budget import Budget as Budget
    from cloister.accounting.composition import (
        advanced as advanced,
        group as group,
        parallel as parallel,
        sequential as sequential,
        to_replace as to_replace,
    )
    from cloister.accounting.conversions import (
        pure_to_zero_concentrated as pure_to_zero_concentrated,
        zero_concentrated_to_approx as zero_concentrated_to_approx,
    )
    from cloister.accounting.events import (
        ApproxEvent as ApproxEvent,
        DiscreteGaussianEvent as DiscreteGaussianEvent,
        DiscreteLaplaceEvent as DiscreteLaplaceEvent,
        Event as Event,
        GaussianEvent as GaussianEvent,
        LaplaceEvent as LaplaceEvent,
        PureEvent as PureEvent,
        RepeatedEvent as RepeatedEvent,
        SequenceEvent as SequenceEvent,
        SubsampledEvent as SubsampledEvent,
        ZeroConcentratedEvent as ZeroConcentratedEvent,
        event_from_dict as event_from_dict,
    )
    from cloister.accounting.ledger import Ledger as Ledger, open_ledger as open_ledger
    from cloister.accounting.payment import failure_count as failure_count, show_failures as show_failures
    from cloister.accounting.planner import (
        explicit as explicit,
        geometric as geometric,
        uniform as uniform,
        zero_concentrated_share as zero_concentrated_share,
    )

_HOMES = {
    "accountants": (
        "Accountant",
        "GaussianAccountant",
        "NumericalAccountant",
        "PureAccountant",
        "RenyiAccountant",
        "ZeroConcentratedAccountant",
        "compare",
        "compose",
    ),
    "amplification": ("poisson_subsampling", "shuffling", "subsampling_without_replacement"),
    "budget": ("Budget",),
    "composition": ("advanced", "group", "parallel", "sequential", "to_replace"),
    "conversions": ("pure_to_zero_concentrated", "zero_concentrated_to_approx"),
    "events": (
        "ApproxEvent",
        "DiscreteGaussianEvent",
        "DiscreteLaplaceEvent",
        "Event",
        "GaussianEvent",
        "LaplaceEvent",
        "PureEvent",
        "RepeatedEvent",
        "SequenceEvent",
        "SubsampledEvent",
        "ZeroConcentratedEvent",
        "event_from_dict",
    ),
    "payment": ("failure_count", "show_failures"),
    "ledger": ("Ledger", "open_ledger"),
    "planner": ("explicit", "geometric", "uniform", "zero_concentrated_share"),
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_WHERE]  # noqa: PLE0604  # names come from the table above


def _load(name: str) -> Any:  # any public object
    if name not in _WHERE:
        raise AttributeError(f"module 'cloister.accounting' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"cloister.accounting.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:
    # Type checkers read the imports above; a function that gives any name would hide misspelled ones from them.
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted(__all__)
