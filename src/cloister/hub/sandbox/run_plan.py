"""What a run of a foreign algorithm will cost and take, decided from public facts: the manifest, the schema, choices.

No data is needed, so that prices, previews and refusals cannot depend on any.

Nor does the time that a run takes, by fixed time slots: what a block does with its time is visible neither to later
blocks nor to anybody outside. Blocks run one after the other, never two at a time, since two could measure each other's
load. Each starts at a fixed distance from the first, however long the one before took: else a block could tell a later
one, who reads the clock, that it was there. The run ends with the last slot. So a run of m blocks takes m slots,
whatever is in the data.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from cloister.accounting.events import Event
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, DifferentialPrivacy
from cloister.data.columns import Category, Kind
from cloister.data.schema import Schema
from cloister.errors import ParameterError, SchemaError, UnknownColumnError, did_you_mean
from cloister.hub.domain.algorithms import Artifact, Input, Manifest, OutputLayout
from cloister.hub.sandbox.sample_and_aggregate import Aggregation, Values, choose_aggregation

__all__ = ["MARGIN_SECONDS", "ForeignRunPlan", "Slots", "alone_on_this_machine", "plan", "slot_seconds"]


MARGIN_SECONDS = Fraction(1, 4)
"""What starting and ending a process may take besides its own time."""


def slot_seconds(wall_seconds: Fraction) -> Fraction:
    """Return how long a slot is for blocks with a time limit."""
    return wall_seconds + MARGIN_SECONDS


class Slots:
    """The clock that blocks are run by."""

    def __init__(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds, self._clock, self._sleep = seconds, clock, sleep

    def each(self, count: int) -> Iterator[int]:
        """Yield the number of each block when its slot begins, and end when the last slot ends.

        A slot that was overrun, on a machine that is too busy, costs whole slots.
        """
        begin, place = self._clock(), 0
        for number in range(count):
            self._wait_until(begin + place * self._seconds)
            yield number
            place = max(place + 1, math.ceil((self._clock() - begin) / self._seconds))
        self._wait_until(begin + place * self._seconds)

    def _wait_until(self, moment: float) -> None:
        left = moment - self._clock()
        if left > 0:
            self._sleep(left)


@contextlib.contextmanager
def alone_on_this_machine() -> Iterator[None]:
    """Wait until no other foreign algorithm of this account runs here, and keep others waiting meanwhile."""
    path = Path(tempfile.gettempdir()) / f"cloister-sandbox-{os.getuid()}.lock"
    # The folder is everybody's: a link that somebody has put there must not be followed.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


ASSUMPTION = (
    "blocks of the foreign algorithm cannot tell each other anything: the sandbox closes files, network, processes and "
    "running time, but not the processor's caches"
)
_MOST_NUMBERS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRunPlan:
    """One run: the algorithm, the public choices, and what it promises.

    Attributes:
        manifest: the algorithm.
        digest: of its artifact.
        columns: the chosen columns of each input.
        categories: the public categories of the columns of each input that takes categories.
        bounds: the public bounds of each input's columns; for categories, of their places.
        parameters: the chosen values.
        blocks: how many blocks there are.
        key: the column that names the person, None where rows are protected.
        layout: the outputs with their shapes and public sets.
        aggregation: what is done to them.
    """

    manifest: Manifest
    digest: str
    columns: Mapping[str, tuple[str, ...]]
    categories: Mapping[str, list[tuple[Category, ...]]]
    bounds: Mapping[str, list[tuple[float, float]]]
    parameters: Mapping[str, object]
    blocks: int
    key: str | None
    layout: OutputLayout
    aggregation: Aggregation

    @property
    def guarantee(self) -> DifferentialPrivacy:
        """Return what the run promises, with what that assumes."""
        return self.aggregation.guarantee.with_assumption(ASSUMPTION)

    @property
    def event(self) -> Event:
        """Return what the run is for the accountants."""
        return self.aggregation.event

    @property
    def seconds(self) -> Fraction:
        """Return how long the run takes, whatever is in the data."""
        return self.blocks * slot_seconds(self.manifest.resources.wall_seconds)

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """Return the columns that the run reads, each once."""
        chosen = [name for columns in self.columns.values() for name in columns]
        return tuple(dict.fromkeys([*chosen, *([self.key] if self.key is not None else [])]))

    def margins(self, confidence: Number = 0.95) -> Values:
        """Return the half-widths that cover the noise on single numbers with a probability; none for medians."""
        return self.aggregation.margins(confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return what is public about the run as JSON-ready values."""
        return {
            "schema": "cloister.foreign_plan/1",
            "algorithm": self.manifest.id,
            "version": str(self.manifest.version),
            "digest": self.digest,
            "columns": {name: list(columns) for name, columns in self.columns.items()},
            "parameters": dict(self.parameters),
            "blocks": self.blocks,
            "seconds": float(self.seconds),
            "outputs": {clip.name: list(clip.shape) for clip in self.layout.clips},
            "margins": {name: values.tolist() for name, values in self.margins().items()},
            "guarantee": self.guarantee.to_dict(),
            "event": self.event.to_dict(),
        }


def plan(
    artifact: Artifact,
    *,
    schema: Schema,
    inputs: Mapping[str, Sequence[str]],
    parameters: Mapping[str, object] | None = None,
    epsilon: object = None,
    delta: object = None,
    blocks: int | None = None,
    key: str | None = None,
    unit: str | None = None,
    adjacency: Adjacency | str | None = None,
) -> ForeignRunPlan:
    """Return a checked plan of one run.

    Args:
        artifact: the algorithm.
        schema: what the owner states about the columns; bounds and categories must be confirmed.
        inputs: the columns for each input of the algorithm.
        parameters: values for its parameters; others keep their defaults.
        epsilon: the price, where the manifest lets the user name it.
        delta: likewise, for Gaussian noise.
        blocks: how many blocks; by default what the manifest says.
        key: the column that names the person; without it single rows are protected.
        unit: what the guarantee calls the protected unit; by default "row", or the key.
        adjacency: the neighbor relation; by default add_remove for rows and user for persons.

    Raises:
        ParameterError: if a choice is not allowed.
        SchemaError: if a column is unknown, or its bounds or categories are missing or guessed.
    """
    manifest = artifact.manifest
    relation = Adjacency(adjacency or (Adjacency.ADD_REMOVE if key is None else Adjacency.USER))
    if (relation is Adjacency.USER) != (key is not None):
        raise ParameterError(
            "Persons need a column that names them, and only persons do.",
            fix='give key="patient_id" with adjacency "user", or neither.',
        )
    manifest.privacy.require_unit(unit_is_person=key is not None, adjacency=relation)
    columns = _choose_columns(manifest.inputs, inputs)
    for name in (*(column for chosen in columns.values() for column in chosen), *([key] if key else [])):
        if name not in schema:
            raise UnknownColumnError(name, schema.names)
    categories = {
        item.name: [schema.categories_of(name) for name in columns[item.name]]
        for item in manifest.inputs
        if item.kind == "category"
    }
    bounds = {item.name: [_bounds(schema, item, name) for name in columns[item.name]] for item in manifest.inputs}
    chosen = manifest.choose(parameters or {})
    layout = manifest.layout(chosen, bounds)
    count = manifest.privacy.number_of_blocks(blocks)
    if count * layout.size > _MOST_NUMBERS:
        raise ParameterError("The run would have too many numbers.", fix="choose fewer blocks, columns or groups.")
    price = manifest.privacy.price(epsilon=epsilon, delta=delta)
    return ForeignRunPlan(
        manifest=manifest,
        digest=artifact.digest,
        columns=columns,
        categories=categories,
        bounds=bounds,
        parameters=chosen,
        blocks=count,
        key=key,
        layout=layout,
        aggregation=choose_aggregation(
            manifest.privacy,
            layout,
            blocks=count,
            epsilon=price[0],
            delta=price[1],
            adjacency=relation,
            unit=unit or key or "row",
        ),
    )


def _choose_columns(declared: tuple[Input, ...], given: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    known = [item.name for item in declared]
    for name in given:
        if name not in known:
            raise ParameterError(
                f'There is no input "{str(name)[:40]}".{did_you_mean(str(name)[:40], known)}',
                fix=f"use {', '.join(known)}.",
            )
    return {item.name: item.check(given.get(item.name, ())) for item in declared}


def _bounds(schema: Schema, declared: Input, name: str) -> tuple[float, float]:
    if declared.kind == "category":
        return 0.0, float(max(len(schema.categories_of(name)) - 1, 1))
    if schema[name].kind not in (Kind.NUMERIC, Kind.ORDINAL):
        raise SchemaError(f'Column "{name}" does not hold numbers.', fix="choose numeric columns for this input.")
    low, high = (float(end) for end in schema.bounds_of(name) if isinstance(end, Fraction))
    if not low < high:
        raise SchemaError(f'The bounds of column "{name}" are too near.', fix="state wider bounds in the schema.")
    return low, high
