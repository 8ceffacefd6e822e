"""What every anonymization algorithm is given and gives back, and the algorithms by name.

An algorithm is a function ``(task) -> AlgorithmOutcome``, loaded when it is first asked for. It need not be trusted:
`cloister.anonymize` checks every class of the outcome against every model again, and that check decides.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from cloister.anonymize._partition import Partition
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import ModelCheck
from cloister.anonymize.regions import Values
from cloister.errors import ParameterError, did_you_mean

Progress = Callable[[float, str], None]


def no_progress(share: float, what: str) -> None:
    """Say nothing."""
    del share, what


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What is to be anonymized.

    Attributes:
        cells: the frequency table.
        checks: what every class must satisfy.
        suppression_limit: the share of rows that may be suppressed.
        loss: the name of the loss to minimize.
        values: how classes are written down.
        options: what else the algorithm was told.
        progress: called with the share that is done and what is being done.
    """

    cells: CodedCells
    checks: tuple[ModelCheck, ...]
    suppression_limit: Fraction = Fraction(0)
    loss: str = "ncp"
    values: Values = Values.HIERARCHY
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = no_progress

    @property
    def allowed(self) -> int:
        """Return how many rows may be suppressed: never all, since a table without rows is no release."""
        return max(0, min(int(self.suppression_limit * self.cells.total), self.cells.total - 1))

    @property
    def k(self) -> int:
        """Return a number of rows that every class needs at least (persons are at most rows, values too)."""
        models = [check.model for check in self.checks if not check.needs_population]
        needed = [max(int(getattr(model, "k", 1)), ceil(getattr(model, "l", 1))) for model in models]
        return max(needed, default=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class AlgorithmOutcome:
    """What an algorithm found.

    Attributes:
        partition: the classes.
        values: how they are written down.
        notes: what a reader of the release should know, such as whether the result is proven best.
        facts: numbers about the search, such as how many nodes were looked at.
    """

    partition: Partition
    values: Values = Values.HIERARCHY
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmEntry:
    """One algorithm: where it is, what it may be told, and how it writes classes down unless told."""

    module: str
    options: frozenset[str] = frozenset()
    values: tuple[Values, ...] = (Values.HIERARCHY,)
    describe: str

    def load(self, name: str) -> Callable[[Task], AlgorithmOutcome]:
        """Return the function."""
        found: Callable[[Task], AlgorithmOutcome] = getattr(importlib.import_module(self.module), name)
        return found


_HOME = "cloister.anonymize.algorithms"
ALGORITHMS: Mapping[str, AlgorithmEntry] = {
    "optimal": AlgorithmEntry(
        module=f"{_HOME}.lattice",
        options=frozenset({"search", "node_limit", "budget", "recoding"}),
        describe="the best full-domain recoding of all, one level per column",
    ),
    "mondrian": AlgorithmEntry(
        module=f"{_HOME}.mondrian",
        options=frozenset({"mode", "split"}),
        values=(Values.SETS, Values.HIERARCHY, Values.CENTERS),
        describe="halves classes at medians as long as both halves satisfy the models",
    ),
    "top_down": AlgorithmEntry(
        module=f"{_HOME}.top_down",
        options=frozenset({"score", "keep_rest"}),
        describe="specializes class by class along the hierarchies",
    ),
    "clustering": AlgorithmEntry(
        module=f"{_HOME}.clustering",
        options=frozenset({"passes"}),
        values=(Values.HIERARCHY, Values.SETS, Values.CENTERS),
        describe="groups the rows that are most alike: the least loss",
    ),
    "mdav": AlgorithmEntry(
        module=f"{_HOME}.mdav",
        options=frozenset({"block_size"}),
        values=(Values.CENTERS, Values.SETS, Values.HIERARCHY),
        describe="micro-aggregation: classes of about k rows, shown as their centers",
    ),
}


def entry_of(name: str) -> AlgorithmEntry:
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
