"""The algorithms by name, each loaded when it is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cloister.anonymize.algorithms.base import Outcome, Task
from cloister.anonymize.regions import Values
from cloister.errors import ParameterError, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One algorithm: where it is, what it may be told, and how it writes classes down unless told."""

    module: str
    options: frozenset[str] = frozenset()
    values: tuple[Values, ...] = (Values.HIERARCHY,)
    describe: str

    def load(self, name: str) -> Callable[[Task], Outcome]:
        """Return the function."""
        found: Callable[[Task], Outcome] = getattr(importlib.import_module(self.module), name)
        return found


_HOME = "cloister.anonymize.algorithms"
ALGORITHMS: Mapping[str, Entry] = {
    "optimal": Entry(
        module=f"{_HOME}.lattice",
        options=frozenset({"search", "node_limit", "budget", "recoding"}),
        describe="the best full-domain recoding of all, one level per column",
    ),
    "mondrian": Entry(
        module=f"{_HOME}.mondrian",
        options=frozenset({"mode", "split"}),
        values=(Values.SETS, Values.HIERARCHY, Values.CENTERS),
        describe="halves classes at medians as long as both halves satisfy the models",
    ),
    "top_down": Entry(
        module=f"{_HOME}.top_down",
        options=frozenset({"score", "keep_rest"}),
        describe="specializes class by class along the hierarchies",
    ),
    "clustering": Entry(
        module=f"{_HOME}.clustering",
        options=frozenset({"passes"}),
        values=(Values.HIERARCHY, Values.SETS, Values.CENTERS),
        describe="groups the rows that are most alike: the least loss",
    ),
    "mdav": Entry(
        module=f"{_HOME}.mdav",
        options=frozenset({"block_size"}),
        values=(Values.CENTERS, Values.SETS, Values.HIERARCHY),
        describe="micro-aggregation: classes of about k rows, shown as their centers",
    ),
}


def entry_of(name: str) -> Entry:
    """Return an algorithm.

    Raises:
        ParameterError: if there is none of that name.
    """
    if name not in ALGORITHMS:
        names = (*ALGORITHMS, "anatomy")
        raise ParameterError(
            f'There is no algorithm "{name}".{did_you_mean(str(name), names)}', fix=f"use one of {', '.join(names)}."
        )
    return ALGORITHMS[name]


def check_options(name: str, options: Mapping[str, Any], allowed: Collection[str]) -> None:
    """Return nothing when an algorithm knows all options that it was given, else raise."""
    unknown = next((option for option in options if option not in allowed), None)
    if unknown is not None:
        known = f"its options are {', '.join(sorted(allowed))}" if allowed else "it has no options of its own"
        raise ParameterError(
            f'The algorithm {name} has no option "{unknown}".{did_you_mean(unknown, allowed)}', fix=f"{known}."
        )


def values_of(name: str, wanted: str | None) -> Values:
    """Return how an algorithm writes classes down."""
    entry = entry_of(name)
    if wanted is None:
        return entry.values[0]
    if wanted not in entry.values:
        raise ParameterError(
            f'The algorithm {name} cannot show classes as "{wanted}".',
            fix=f"use values={' or '.join(repr(str(item)) for item in entry.values)}.",
        )
    return Values(wanted)
