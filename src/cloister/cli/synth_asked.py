"""The options of ``cloister synth`` as its parts understand them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.cli.opening import Payer, payer_of, refuse_without_ledger
from cloister.cli.targets import check_target
from cloister.errors import ParameterError, SourceNotFoundError

if TYPE_CHECKING:
    from cloister.data.table import Table
    from cloister.synth.base import Synthesizer

_TABLES = (".csv", ".parquet", ".pq")
_MODELS = (".cloister", ".json")
_CONSTRAINTS = "- at_most: [admitted, discharged]\n- impossible: {sex: male, diagnosis: pregnancy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a fit; numbers are still text, so that they stay exact."""

    data: str
    schema: str
    epsilon: str
    delta: str | None
    method: str
    settings: tuple[str, ...]
    rows: int | None
    columns: str | None
    bins: tuple[str, ...]
    complete: str | None
    constraints: str | None
    expected_rows: int | None
    unit: str | None
    max_rows: int | None
    ledger: str | None
    dataset: str | None
    budget_epsilon: str | None
    budget_delta: str | None
    analyst: str | None
    preview: bool
    target: str | None
    report: str | None
    card: str | None
    model: str | None
    force: bool
    signing_key: str | None
    no_certificate: bool
    encoding: str | None
    missing: tuple[str, ...]

    def check(self) -> None:
        """Refuse options that do not belong together, and files that could not be written."""
        if not self.preview and self.target is None:
            raise ParameterError("Nothing says where to write the rows.", fix="add -o made-up.csv.")
        inputs = [self.data, self.schema, self.constraints]
        check_target(self.target, inputs=inputs, force=self.force, endings=_TABLES)
        check_target(self.model, inputs=inputs, force=self.force, endings=_MODELS)
        for page in (self.report, self.card):
            check_target(page, inputs=inputs, force=self.force)
        written = [Path(path).resolve() for path in (self.target, self.model, self.report, self.card) if path]
        if len(set(written)) < len(written):
            raise ParameterError("Two files to write have the same name.", fix="give each a name of its own.")
        if self.ledger is None:
            refuse_without_ledger(dataset=self.dataset, analyst=self.analyst, budget_epsilon=self.budget_epsilon)
        self._paying()

    @property
    def payer(self) -> Payer:
        """Return which account pays; there is a ledger."""
        found = self._paying()
        if found is None:  # pragma: no cover  # asked only with a ledger
            raise ParameterError("There is no ledger.", fix="add --ledger.")
        return found

    def _paying(self) -> Payer | None:
        return payer_of(
            ledger=self.ledger,
            dataset=self.dataset,
            budget_epsilon=self.budget_epsilon,
            budget_delta=self.budget_delta,
        )

    @property
    def name(self) -> str:
        """Return what the data are called on a report."""
        return Path(self.data).name

    def synthesizer(self, table: Table) -> Synthesizer:
        """Return the synthesizer that is asked for; it protects who is asked for, else the schema's person."""
        from cloister.synth.choosing import make_synthesizer

        return make_synthesizer(
            self.method,
            settings=self.settings,
            epsilon=self.epsilon,
            delta=self.delta or 0,
            columns=None if self.columns is None else _listed(self.columns),
            bins=_bins(self.bins),
            complete=self.complete == "all" or _listed(self.complete or ""),
            constraints=_constraints(self.constraints),
            expected_rows=self.expected_rows,
            analyst=self.analyst,
            unit=self.unit or table.schema.subject or "row",
            max_rows_per_unit=self.max_rows or 1,
        )


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _bins(given: tuple[str, ...]) -> Any:
    """Return one number for all columns, or numbers and edges by column."""
    if not given:
        return None
    try:
        if len(given) == 1 and "=" not in given[0]:
            return int(given[0])
        pairs = [item.partition("=") for item in given]
        return {name: _edges(text) if "," in text else int(text) for name, _, text in pairs}
    except ValueError:
        raise ParameterError(
            "--bins is not a number.",
            fix="write --bins 32 for all columns, --bins age=10 for some, or --bins age=0,18,65,111 for edges.",
        ) from None


def _edges(text: str) -> list[Any]:
    """Return the edges of bins: numbers, or dates."""
    return [dt.date.fromisoformat(part) if part.count("-") == 2 else float(part) for part in _listed(text)]


def _constraints(path: str | None) -> tuple[Any, ...]:
    if path is None:
        return ()
    from cloister.data.schema_file import load_yaml
    from cloister.synth.constraints import constraint_from_dict

    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise SourceNotFoundError(f'"{path}" cannot be read.', fix="check the path of the constraints.") from None
    listed = load_yaml(text, what="list of constraints", example=_CONSTRAINTS)
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise ParameterError(f'"{path}" is not a list of constraints.', fix=f"write for example\n{_CONSTRAINTS}")
    return tuple(constraint_from_dict(item) for item in listed)
