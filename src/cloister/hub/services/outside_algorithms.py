"""Runs of algorithms of outside providers, on blocks of persons in the sandbox, with the platform's own noise.

Price, promise and running time come from the manifest, the schema and the choices alone. The code that runs is exactly
what the dataset's owner allowed; it is compared with the allowed digest before anything is paid, and again in the
worker before any row is read.

Answers are for people: each number with its place, its margin, and the column that it is about.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import Field
from sqlalchemy.orm import Session

from cloister.core.guarantees import Adjacency
from cloister.core.wordings import format_estimate, format_with_margin
from cloister.data.columns import Column, Kind, Role
from cloister.data.schema import Schema
from cloister.errors import ConflictError, ParameterError
from cloister.hub.domain import policy
from cloister.hub.domain.algorithms import AlgorithmOutput, VersionState
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import ALL_USES, Use
from cloister.hub.domain.views import ColumnRights, View
from cloister.hub.sandbox import execution, run_plan
from cloister.hub.sandbox.execution import ForeignAnswer
from cloister.hub.sandbox.run_plan import ForeignRunPlan
from cloister.hub.sandbox.runner import BlockOutcome, BlockRunner, Runner
from cloister.hub.sandbox.sample_and_aggregate import SandboxBlock
from cloister.hub.services.protected_tables import csv_file
from cloister.hub.services.registry import (
    RunMaterial,
    ServiceOutcome,
    ServiceParameters,
    ServicePlan,
    ServiceWork,
    service_registry,
)
from cloister.hub.use_cases.algorithms.allowances import check_runnable
from cloister.hub.use_cases.algorithms.catalogue import RUN
from cloister.hub.use_cases.algorithms.sandbox_checks import require_isolation
from cloister.hub.use_cases.algorithms.versions import AlgorithmSources, find_version, open_sources

__all__ = ["describe_plan", "rows_of", "words_of"]


_MOST_SHOWN = 60


def describe_plan(planned: ForeignRunPlan) -> str:
    """Return what a run gives and how exact its noise leaves it, before anything is paid."""
    lines = [f"{planned.manifest.title} ({planned.manifest.id} {planned.manifest.version}), {planned.blocks} blocks"]
    margins = planned.margins()
    for clip in planned.layout.clips:
        shape = " x ".join(map(str, clip.shape)) or "one number"
        margin = margins.get(clip.name)
        exactness = (
            "no margin can be told" if margin is None else f"noise of at most ± {margin.max():.3g}, 19 times of 20"
        )
        lines.append(f"{clip.name} ({shape}): {exactness}")
    return "\n".join(lines)


def rows_of(planned: ForeignRunPlan, answer: ForeignAnswer) -> pa.Table:
    """Return a table with one row for each number: the output, the place in it, the value and the margin."""
    outputs, places, values, margins = [], [], [], []
    for output in planned.manifest.outputs:
        found = answer.values[output.name]
        margin = answer.margins.get(output.name)
        for place, words in zip(itertools.product(*map(range, found.shape)), _places(planned, output), strict=True):
            outputs.append(output.name)
            places.append(words)
            values.append(float(found[place]))
            margins.append(None if margin is None else float(margin[place]))
    return pa.table(
        {
            "output": pa.array(outputs, pa.string()),
            "place": pa.array(places, pa.string()),
            "value": pa.array(values, pa.float64()),
            "margin": pa.array(margins, pa.float64()),
        }
    )


def words_of(rows: pa.Table) -> tuple[tuple[str, str], ...]:
    """Return the first numbers as (name, text) for the page."""
    shown = []
    for row in rows.slice(0, _MOST_SHOWN).to_pylist():
        name = f"{row['output']} {row['place']}".strip()
        margin = row["margin"]
        is_exact = not margin or not math.isfinite(margin)
        shown.append((name, (format_estimate if is_exact else format_with_margin)(row["value"], margin)))
    if rows.num_rows > _MOST_SHOWN:
        shown.append(("more", f"{rows.num_rows - _MOST_SHOWN:,} more numbers are in answer.csv"))
    return tuple(shown)


def _places(planned: ForeignRunPlan, output: AlgorithmOutput) -> Iterator[str]:
    """Return what each number of an output is about: its numbers along the axes, or the column on an input's axis."""
    axes = []
    clip = next(clip for clip in planned.layout.clips if clip.name == output.name)
    for axis, length in zip(output.shape, clip.shape, strict=True):
        columns = planned.columns.get(axis) if isinstance(axis, str) else None
        axes.append([str(place + 1) for place in range(length)] if columns is None else list(columns))
    return (", ".join(parts) for parts in itertools.product(*axes))


MOST_SECONDS = 3600
"""How long a run may take: only one foreign algorithm runs on a machine at a time."""

_USES = (Use.FILTER, Use.GROUP_BY, Use.MEASURE)

Name = Annotated[str, Field(max_length=200)]


class ForeignRun(ServiceParameters):
    """What to run: which version, on which columns, with what, for how much."""

    algorithm: str = Field(
        title="Algorithm and version",
        pattern=r"^[a-z0-9-]{1,100}@[0-9A-Za-z.-]{1,60}$",
        description="One that the dataset's owner allows.",
        examples=["k-means@1.0.0"],
    )
    inputs: dict[Name, tuple[Name, ...]] = Field(
        title="Columns of each input", max_length=20, examples=[{"features": ["age"]}]
    )
    parameters: dict[Name, bool | int | float | Name] = Field(
        default_factory=dict, title="Parameters of the algorithm", max_length=50, examples=[{"groups": 3}]
    )
    blocks: int | None = Field(
        default=None, title="Blocks", description="More blocks mean less noise, and fewer people in each."
    )
    epsilon: str | float | None = Field(default=None, title="Price (epsilon)", description="Smaller is more private.")
    delta: str | float | None = Field(default=None, title="Slack (delta)", description="For Gaussian noise only.")
    fresh: bool = Field(
        default=False, title="Pay for new noise", description="Also where somebody paid for the same answer before."
    )


class RunAlgorithm:
    """Foreign algorithms as a service."""

    name: ClassVar[str] = RUN
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Run an algorithm of others"
    summary: ClassVar[str] = "Methods that outside providers wrote and the owner allows; the hub adds the noise."
    operation: ClassVar[PolicyOperation] = PolicyOperation.ALGO_RUN
    modes: ClassVar[frozenset[str]] = frozenset({"dp"})
    parameters: ClassVar[type[ServiceParameters]] = ForeignRun
    needs_approval: ClassVar[bool] = False
    owners_only: ClassVar[bool] = False
    page: ClassVar[str] = "service.html"

    def bring(self, session: Session, dataset_id: str, parameters: ForeignRun) -> RunMaterial:
        """Return the version that is asked for; whether it may run is checked after the policy was asked."""
        version = find_version(session, parameters.algorithm)
        name, _, number = parameters.algorithm.partition("@")

        def opened(hub: Any) -> AlgorithmSources:  # a Hub
            if version is None:
                raise ConflictError("There is no such version.", fix="choose one that the dataset's owner allows.")
            return open_sources(hub, version)

        return RunMaterial(
            used=policy.AlgorithmReference(name, number, None if version is None else version.digest),
            check=lambda: check_runnable(session, dataset_id, version),
            open=opened,
        )

    def plan(self, work: ServiceWork, parameters: ForeignRun) -> ServicePlan:
        """Say what a run promises and how long it takes; refuse where the sandbox is not to be had."""
        require_isolation()
        planned = _make_plan(work, parameters)
        if planned.seconds > MOST_SECONDS:
            raise ParameterError(
                f"The run would take {float(planned.seconds):,.0f} seconds; {MOST_SECONDS:,} are the most.",
                fix="choose fewer blocks.",
            )
        question = {name: value for name, value in planned.to_dict().items() if name in _SAME}
        warnings = [
            f"It takes {float(planned.seconds):g} seconds: every block has a slot of fixed length, whatever is in it."
        ]
        if work.material.state is VersionState.DEPRECATED:
            warnings.append("Its provider has deprecated this version; ask the owner for a newer one.")
        return ServicePlan(
            guarantee=planned.guarantee,
            event=planned.event,
            key=None if parameters.fresh else json.dumps(question, sort_keys=True),
            preview={**planned.to_dict(), "text": describe_plan(planned)},
            warnings=tuple(warnings),
        )

    def run(self, work: ServiceWork, parameters: ForeignRun) -> ServiceOutcome:
        """Pay from the reservation, then run each block in a process of its own and aggregate."""
        planned = _make_plan(work, parameters)
        # Paid before the first row is read.
        work.ledger.spend(work.account, guarantee=planned.guarantee, event=planned.event)
        work.progress(0.01, "reading the rows")
        # The walls stand before any row is read: if they cannot be built, no row has decided that.
        with Runner(work.material.artifact) as runner:
            rows = _rows(work, planned)
            answer = execution.run(planned, rows, runner=_Reporting(runner, work, planned.blocks))
        found = rows_of(planned, answer)
        return ServiceOutcome(
            document=answer.to_dict(),
            summary=words_of(found),
            guarantee=answer.guarantee.to_dict(),
            files=(csv_file("answer.csv", found),),
        )


_SAME = ("algorithm", "version", "digest", "columns", "parameters", "blocks")
"""What makes two runs the same question; the price is the ledger's matter."""


@dataclass(slots=True)
class _Reporting:
    """Says how far a run is, by the slots that have begun, which do not depend on the data."""

    runner: BlockRunner
    work: ServiceWork
    blocks: int
    begun: int = 0

    def run(self, block: SandboxBlock) -> BlockOutcome:
        self.begun += 1
        self.work.progress(0.02 + 0.96 * (self.begun - 1) / self.blocks, f"block {self.begun} of {self.blocks}")
        return self.runner.run(block)


def _make_plan(work: ServiceWork, parameters: ForeignRun) -> run_plan.ForeignRunPlan:
    """Return the plan of a run from public facts.

    Raises:
        UnknownColumnError: if a column does not exist for the person.
        ForbiddenError: if one may not be used in every way: foreign code can do with it what it likes.
    """
    for column in (name for columns in parameters.inputs.values() for name in columns):
        # Foreign code may do anything with a column, so that every use of it has to be allowed.
        for use in _USES:
            work.rights.check(column, use)
    account = work.ledger.account(work.account)
    key = account.unit if account.adjacency is Adjacency.USER else None
    return run_plan.plan(
        work.material.artifact,
        schema=_with_key(work.table.schema, key),
        inputs=parameters.inputs,
        parameters=parameters.parameters,
        epsilon=parameters.epsilon,
        delta=parameters.delta,
        blocks=parameters.blocks,
        key=key,
        unit=account.unit,
        adjacency=account.adjacency,
    )


def _with_key(schema: Schema, key: str | None) -> Schema:
    """Return a schema with the column that names persons, which the person who asks may not see."""
    if key is None or key in schema:
        return schema
    return Schema([*schema.columns.values(), Column(name=key, kind=Kind.NOMINAL, role=Role.IDENTIFIER)])


def _rows(work: ServiceWork, planned: run_plan.ForeignRunPlan) -> pa.Table:
    """Return the columns of the view that the run needs, and no others."""
    chosen = tuple((name, ALL_USES) for name in planned.needed_columns if name != planned.key)
    return View(rights=ColumnRights(chosen), kept=planned.key).apply(work.table).to_arrow()


service_registry.register(RunAlgorithm.name)(RunAlgorithm())
