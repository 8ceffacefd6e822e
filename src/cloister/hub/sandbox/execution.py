"""One run of a foreign algorithm: columns become matrices, persons blocks, blocks processes, results one answer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.accounting.payment import finish
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.result import Result
from cloister.errors import DataError
from cloister.hub.sandbox.run_plan import ForeignRunPlan, Slots, alone_on_this_machine, slot_seconds
from cloister.hub.sandbox.runner import BlockRunner
from cloister.hub.sandbox.sample_and_aggregate import (
    SandboxBlock,
    Values,
    assign,
    category_column,
    numeric_column,
    persons_of,
    split,
)

__all__ = ["ForeignAnswer", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignAnswer(Result):
    """What a foreign algorithm found, as a private mean or median over blocks."""

    schema: ClassVar[str] = "cloister.foreign_answer/1"

    values: Values
    margins: Values
    algorithm: str
    version: str
    digest: str
    blocks: int
    parameters: Mapping[str, object]
    event: Event = field(repr=False)

    def __str__(self) -> str:
        names = ", ".join(f"{name} {list(value.shape)}" for name, value in self.values.items())
        return f"{self.algorithm} {self.version}: {names} from {self.blocks} blocks, {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "version": self.version,
            "digest": self.digest,
            "blocks": self.blocks,
            "parameters": dict(self.parameters),
            "values": {name: value.tolist() for name, value in self.values.items()},
            "margins": {name: value.tolist() for name, value in self.margins.items()},
            "event": self.event.to_dict(),
        }


def run(
    plan: ForeignRunPlan,
    table: pa.Table,
    *,
    runner: BlockRunner,
    slots: Slots | None = None,
    random_state: RandomState = None,
) -> ForeignAnswer:
    """Return the private answer of one planned run. The caller has paid for it before.

    Args:
        plan: what to run.
        table: the protected rows; needs the plan's columns.
        runner: where foreign code runs.
        slots: the clock that blocks are run by; by default real time.
        random_state: for tests only; taints the guarantee.

    Raises:
        DataError: if a column is not there or of another type than the schema says.
    """
    source = random_source(random_state)
    missing = [name for name in plan.needed_columns if name not in table.column_names]
    if missing:
        raise DataError(f'The table has no column "{missing[0]}".', fix="use a table that fits the schema.")
    inputs = {name: _matrix(plan, table, name) for name in plan.columns}
    persons = table.num_rows if plan.key is None else persons_of(table.column(plan.key))
    owners = assign(persons, plan.blocks, source)
    clock = slots or Slots(float(slot_seconds(plan.manifest.resources.wall_seconds)))
    parts = split(inputs, owners, plan.blocks)
    steps = np.empty((plan.blocks, plan.layout.size), dtype=np.int64)
    with alone_on_this_machine() if slots is None else nullcontext():
        for number in clock.each(plan.blocks):
            steps[number] = plan.layout.to_steps(_values(runner, _block(plan, next(parts))))
    values = plan.aggregation.release(steps, random_state=source)
    return ForeignAnswer(
        guarantee=plan.guarantee.with_caveat(*caveats_of(source)),
        values=values,
        margins=plan.margins(),
        algorithm=plan.manifest.id,
        version=str(plan.manifest.version),
        digest=plan.digest,
        blocks=plan.blocks,
        parameters=plan.parameters,
        event=plan.event,
    )


def _values(runner: BlockRunner, block: SandboxBlock) -> NDArray[np.float64] | None:
    """Return what a block gives; one for which no walls could be built gives what one gives that failed in them."""
    return finish(lambda: runner.run(block).values, nothing=lambda: None)


def _matrix(plan: ForeignRunPlan, table: pa.Table, name: str) -> NDArray[np.float64]:
    columns = [
        category_column(table.column(column), plan.categories[name][place])
        if name in plan.categories
        else numeric_column(table.column(column), plan.bounds[name][place])
        for place, column in enumerate(plan.columns[name])
    ]
    return np.column_stack(columns)


def _block(plan: ForeignRunPlan, inputs: Mapping[str, NDArray[np.float64]]) -> SandboxBlock:
    return SandboxBlock(
        inputs=inputs,
        parameters=plan.parameters,
        bounds=plan.bounds,
        outputs=tuple((clip.name, clip.shape) for clip in plan.layout.clips),
        entrypoint=plan.manifest.entrypoint,
    )
