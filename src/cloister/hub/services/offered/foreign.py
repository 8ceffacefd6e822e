"""Runs of algorithms of outside providers, on blocks of persons in the sandbox, with the platform's own noise.

Price, promise and running time come from the manifest, the schema and the choices alone. The code that runs is exactly
what the dataset's owner allowed; it is compared with the allowed digest before anything is paid, and again in the
worker before any row is read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import Field
from sqlalchemy.orm import Session

from cloister.core.guarantees import Adjacency
from cloister.data.columns import Column, Kind, Role
from cloister.data.schema import Schema
from cloister.errors import ConflictError, ParameterError
from cloister.hub.domain import rules
from cloister.hub.domain.algorithms import State
from cloister.hub.domain.column_rules import ALL_USES, Use
from cloister.hub.domain.columns import ColumnRights
from cloister.hub.domain.policy import Operation
from cloister.hub.domain.views import View
from cloister.hub.sandbox import planning, running
from cloister.hub.sandbox.blocks import Block
from cloister.hub.sandbox.runner import BlockRunner, Outcome as BlockOutcome, Runner
from cloister.hub.services.algorithms.allowing import check_runnable
from cloister.hub.services.algorithms.isolating import require_isolation
from cloister.hub.services.algorithms.sources import Sources, find_version, open_sources
from cloister.hub.services.algorithms.usage import RUN
from cloister.hub.services.exporting import csv_file
from cloister.hub.services.offered.foreign_answers import rows_of, told, words_of
from cloister.hub.services.registry import Material, Outcome, Parameters, Plan, Work, algorithms

MOST_SECONDS = 3600
"""How long a run may take: only one foreign algorithm runs on a machine at a time."""

_USES = (Use.FILTER, Use.GROUP_BY, Use.MEASURE)

Name = Annotated[str, Field(max_length=200)]


class ForeignRun(Parameters):
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
    operation: ClassVar[Operation] = Operation.ALGO_RUN
    modes: ClassVar[frozenset[str]] = frozenset({"dp"})
    parameters: ClassVar[type[Parameters]] = ForeignRun
    needs_approval: ClassVar[bool] = False
    owners_only: ClassVar[bool] = False
    page: ClassVar[str] = "service.html"

    def bring(self, session: Session, dataset_id: str, parameters: ForeignRun) -> Material:
        """Return the version that is asked for; whether it may run is checked after the policy was asked."""
        version = find_version(session, parameters.algorithm)
        name, _, number = parameters.algorithm.partition("@")

        def opened(hub: Any) -> Sources:  # a Hub
            if version is None:
                raise ConflictError("There is no such version.", fix="choose one that the dataset's owner allows.")
            return open_sources(hub, version)

        return Material(
            used=rules.Algorithm(name, number, None if version is None else version.digest),
            check=lambda: check_runnable(session, dataset_id, version),
            open=opened,
        )

    def plan(self, work: Work, parameters: ForeignRun) -> Plan:
        """Say what a run promises and how long it takes; refuse where the sandbox is not to be had."""
        require_isolation()
        planned = _planned(work, parameters)
        if planned.seconds > MOST_SECONDS:
            raise ParameterError(
                f"The run would take {float(planned.seconds):,.0f} seconds; {MOST_SECONDS:,} are the most.",
                fix="choose fewer blocks.",
            )
        question = {name: value for name, value in planned.to_dict().items() if name in _SAME}
        warnings = [
            f"It takes {float(planned.seconds):g} seconds: every block has a slot of fixed length, whatever is in it."
        ]
        if work.material.state is State.DEPRECATED:
            warnings.append("Its provider has deprecated this version; ask the owner for a newer one.")
        return Plan(
            guarantee=planned.guarantee,
            event=planned.event,
            key=None if parameters.fresh else json.dumps(question, sort_keys=True),
            preview={**planned.to_dict(), "text": told(planned)},
            warnings=tuple(warnings),
        )

    def run(self, work: Work, parameters: ForeignRun) -> Outcome:
        """Pay from the reservation, then run each block in a process of its own and aggregate."""
        planned = _planned(work, parameters)
        work.ledger.spend(work.account, guarantee=planned.guarantee, event=planned.event)
        work.progress(0.01, "reading the rows")
        with Runner(work.material.artifact) as runner:
            rows = _rows(work, planned)
            answer = running.run(planned, rows, runner=_Reporting(runner, work, planned.blocks))
        found = rows_of(planned, answer)
        return Outcome(
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
    work: Work
    blocks: int
    begun: int = 0

    def run(self, block: Block) -> BlockOutcome:
        self.begun += 1
        self.work.progress(0.02 + 0.96 * (self.begun - 1) / self.blocks, f"block {self.begun} of {self.blocks}")
        return self.runner.run(block)


def _planned(work: Work, parameters: ForeignRun) -> planning.Plan:
    """Return the plan of a run from public facts.

    Raises:
        UnknownColumnError: if a column does not exist for the person.
        ForbiddenError: if one may not be used in every way: foreign code can do with it what it likes.
    """
    for column in (name for columns in parameters.inputs.values() for name in columns):
        for use in _USES:
            work.rights.check(column, use)
    account = work.ledger.account(work.account)
    key = account.unit if account.adjacency is Adjacency.USER else None
    return planning.plan(
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


def _rows(work: Work, planned: planning.Plan) -> pa.Table:
    """Return the columns of the view that the run needs, and no others."""
    chosen = tuple((name, ALL_USES) for name in planned.needed_columns if name != planned.key)
    return View(rights=ColumnRights(chosen), kept=planned.key).applied(work.table).to_arrow()


algorithms.register(RunAlgorithm.name)(RunAlgorithm())
