"""Recipes: a list of operations in a file, so that a release can be repeated, reviewed and explained.

A recipe is YAML with the marker ``cloister.recipe/1``::

    schema: cloister.recipe/1
    operations:
      - {operation: drop_column, columns: [name]}
      - {operation: generalize, column: age, intervals: ["0-39", "40-110"]}
      - {operation: pseudonymize, column: id, domain: patient/study, key: {env: STUDY_KEY}}
    anonymize: {algorithm: mondrian, models: [{k: 5}]}

Secrets are referred to and never written. Deterministic operations give the same result each time; random ones draw
anew, as they should, unless a seed is given, which is for tests only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloister.anonymize.operations.base import (
    Operation,
    OperationContext,
    StepLog,
    operations,
    restate_schema,
)
from cloister.core.atomic_files import write_text
from cloister.core.guarantees import Caveat
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.data.schema_file import check_keys, dump_yaml, load_yaml
from cloister.data.sources import ensure_open, open_table
from cloister.data.table import Table
from cloister.data.text_files import read_text
from cloister.errors import CloisterError, ParameterError, ParameterTypeError, SchemaError

VERSION = "cloister.recipe/1"
_KEYS = ("schema", "operations", "anonymize")
_STEP_KEYS = (
    "models",
    "algorithm",
    "suppression_limit",
    "quasi_identifiers",
    "sensitive",
    "values",
    "loss",
    "weights",
    "search",
    "node_limit",
    "budget",
    "recoding",
    "mode",
    "split",
    "score",
    "keep_rest",
    "passes",
    "block_size",
)
_EXAMPLE = "write for example\n  operations:\n    - {operation: drop_column, columns: [name]}"
_HEADER = "# What is done to the table, step by step. Keys are named, never written.\n"

Anonymizer = Callable[..., Any]
"""What runs the last step: called with the table, and the step's settings by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A table after a recipe, and what was done. The counts in the log are protected: keep them with the data.

    Attributes:
        table: the table; after anatomy, its quasi-identifiers, beside ``release.sensitive``.
        log: what each operation did.
        caveats: what taints the result, such as a seed.
        release: what the last step gave, if there was one.
    """

    table: Table
    log: tuple[StepLog, ...]
    caveats: tuple[Caveat, ...] = ()
    release: Any = field(default=None, repr=False)

    @property
    def truthful(self) -> bool:
        """Return whether every released cell is still true, if less precise."""
        return all(step.truthful for step in self.log)

    @property
    def label(self) -> str:
        """Return what must be said beside the table wherever it is published."""
        cautions = list(dict.fromkeys(step.caution for step in self.log if step.caution))
        cautions += [caveat.text for caveat in self.caveats]
        start = "Truthful: cells were made less precise or left out" if self.truthful else "NOT truthful"
        return "; ".join([start, *cautions]) + "."

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        steps = ((f"step {number}", str(step)) for number, step in enumerate(self.log, 1))
        return (*steps, ("label", self.label))

    def to_dict(self) -> dict[str, Any]:
        """Return what was done as JSON-ready values, without the table."""
        return {
            "schema": "cloister.prepared/1",
            "truthful": self.truthful,
            "label": self.label,
            "log": [step.to_dict() for step in self.log],
        }


@dataclass(frozen=True, slots=True)
class Recipe:
    """Operations in order, and perhaps settings for anonymizing the result.

    Attributes:
        operations: the operations.
        anonymize: settings of the last step (models, algorithm, suppression_limit, weights), handed on as they are.
    """

    operations: tuple[Operation, ...]
    anonymize: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(self.operations))
        if not all(isinstance(operation, Operation) for operation in self.operations):
            raise ParameterTypeError("A recipe has operations only.", fix='write for example DropColumn(["name"]).')
        if self.anonymize is not None:
            object.__setattr__(self, "anonymize", _check_step(self.anonymize))
        if not self.operations and self.anonymize is None:
            raise ParameterError("The recipe has no operations.", fix=f"{_EXAMPLE}.")

    def run(self, table: Any, *, anonymizer: Anonymizer | None = None, random_state: RandomState = None) -> Prepared:
        """Return the table after all steps, and what was done.

        Args:
            table: a `Table`, or anything that `cloister.open_table` opens. Its rows are brought into memory.
            anonymizer: what runs the last step if the recipe has one, such as ``cloister.anonymize``: called with the
                table, and the step's settings by name.
            random_state: None for the operating system's randomness; an integer in tests only, which taints the result.

        Raises:
            CloisterError: if a step fails; the message says which.
        """
        if self.anonymize is not None and anonymizer is None:
            raise ParameterError(
                "The recipe ends with an anonymize step, and nothing was given to run it.",
                fix="give anonymizer=cloister.anonymize, or delete the step.",
            )
        opened = ensure_open(table)
        is_random = any(operation.is_random for operation in self.operations)
        # A seed taints only what draws: a recipe without chance stays clean.
        source = random_source(random_state if is_random else None)
        rows, schema = opened.to_arrow(), opened.schema
        log = []
        for number, operation in enumerate(self.operations, 1):
            with _naming(number, operation.name):
                after = operation.transform(rows, OperationContext(schema=schema, source=source))
            log.append(operation.describe(rows, after))
            rows, schema = after, restate_schema(schema, operation, after)
        prepared, release = open_table(rows, schema=schema), None
        if self.anonymize is not None and anonymizer is not None:
            release = anonymizer(prepared, **self.anonymize)
            prepared = _find_protected(release)
        return Prepared(table=prepared, log=tuple(log), caveats=caveats_of(source), release=release)

    def apply(self, table: Any, *, anonymizer: Anonymizer | None = None, random_state: RandomState = None) -> Table:
        """Return the table after all steps; `run` also says what was done, and how the result must be labelled."""
        return self.run(table, anonymizer=anonymizer, random_state=random_state).table

    @classmethod
    def read(cls, path: str | Path) -> Recipe:
        """Read a recipe file; names of hierarchy and key files count from its folder.

        Raises:
            SourceNotFoundError: if there is no such file.
            SchemaError: if the file is not a recipe, with what to change.
        """
        text = read_text(path, what="recipe")
        try:
            return cls.from_dict(load_yaml(text, what="recipe", example=_EXAMPLE), folder=Path(path).absolute().parent)
        except CloisterError as error:
            raise SchemaError(f"{error.problem} (recipe file {path})", fix=error.fix) from None

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a recipe file that `read` gives back equal; keys are named, never written."""
        write_text(path, self.to_yaml(folder=Path(path).absolute().parent), overwrite=overwrite)

    def to_yaml(self, *, folder: Path | None = None) -> str:
        """Return the text of the recipe file; names of other files count from the folder."""
        return _HEADER + dump_yaml(self.to_dict(folder=folder))

    @classmethod
    def from_dict(cls, data: Any, *, folder: Path | None = None) -> Recipe:  # from outside, hence anything
        """Build from plain values; without a folder no file is opened, for values that a stranger sent.

        Raises:
            SchemaError: if they are no recipe.
            ParameterError: if an operation, or a setting of it, is unknown.
        """
        if not isinstance(data, Mapping):
            raise SchemaError("The recipe is empty or not a mapping.", fix=f"{_EXAMPLE}.")
        check_keys(data, _KEYS, where="The recipe")
        if data.get("schema") != VERSION:
            raise SchemaError(
                "The recipe does not have a version marker that this cloister reads.", fix=f"write schema: {VERSION}."
            )
        listed = data.get("operations") or []
        if not isinstance(listed, list):
            raise SchemaError("operations is not a list.", fix=f"{_EXAMPLE}.")
        return cls(
            tuple(_operation(item, number, folder) for number, item in enumerate(listed, 1)), data.get("anonymize")
        )

    def to_dict(self, *, folder: Path | None = None) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; secrets are named, never written."""
        steps = [operation.to_dict(folder=folder) for operation in self.operations]
        last = {} if self.anonymize is None else {"anonymize": dict(self.anonymize)}
        return {"schema": VERSION, "operations": steps, **last}


class _naming:  # noqa: N801  # reads as a verb
    """Says in which step something is wrong."""

    def __init__(self, number: int, name: str) -> None:
        self._where = f"Step {number} ({name})"

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, CloisterError):
            error.args = (f"{self._where}: {error.problem}",)
            error.problem = f"{self._where}: {error.problem}"


def _find_protected(release: Any) -> Table:  # what an anonymizer gave
    """Return the rows that a last step protected; never those that it was given."""
    for name in ("table", "quasi"):
        found = getattr(release, name, None)
        if isinstance(found, Table):
            return found
    raise ParameterTypeError(
        "What the anonymizer gave has no protected table.", fix="give anonymizer=cloister.anonymize."
    )


def _operation(item: Any, number: int, folder: Path | None) -> Operation:  # from outside, hence anything
    if not isinstance(item, Mapping) or not isinstance(item.get("operation"), str):
        raise SchemaError(f"Step {number} of the recipe does not name its operation.", fix=f"{_EXAMPLE}.")
    with _naming(number, item["operation"]):
        return operations.get(item["operation"]).from_dict(item, folder=folder)


def _check_step(settings: Any) -> Mapping[str, Any]:  # from outside, hence anything
    if not isinstance(settings, Mapping):
        raise SchemaError("anonymize is not a mapping of settings.", fix="write anonymize: {algorithm: mondrian}.")
    check_keys(settings, _STEP_KEYS, where="The anonymize step")
    return dict(settings)
