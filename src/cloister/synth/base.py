"""What every synthesizer is: public facts, a fit that pays before it looks, and rows that cost nothing.

The constructor stores its parameters. `fit` checks, pays, measures and returns the synthesizer, in the order of every
`PaidFit`; it is the only call that touches protected rows. `sample` draws from what was measured: any number of rows,
any number of times, free. The cells of every column, and whatever holds between columns, are public and never read
from the data.

Being synthetic protects nobody by itself: what protects is the guarantee, and a synthetic row may equal a real one by
chance. No row is compared with the data after the fit, since dropping equal ones would tell who is in the data.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from cloister.accounting.events import Event
from cloister.core.guarantees import Guarantee
from cloister.core.provenance import SYNTHETIC
from cloister.core.random import RandomSource, RandomState, SeededRandomSource, random_source
from cloister.core.registry import Registry
from cloister.core.validation import check_count
from cloister.crypto.certificates import certify
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import (
    ModelError,
    ParameterError,
    ParameterTypeError,
    PrivacyParameterWarning,
    UnknownColumnError,
)
from cloister.mechanisms.paid_fit import PaidFit, PricedFit
from cloister.synth._cell_counts import person_rows
from cloister.synth._domain import TableDomain, declare_domain, public_schema
from cloister.synth.constraints import AtMost, Constraint, Determines, SumOf, check_columns, derived_columns, zeros_of
from cloister.synth.expectation import Expectation, SynthesisPreview, warn_of_noise

if TYPE_CHECKING:
    from cloister.crypto.signatures import SigningKey
    from cloister.mechanisms.saved_fits import SavedFits
    from cloister.report import Report

__all__ = ["Progress", "SynthesisFacts", "Synthesizer", "synthesizers"]

synthesizers: Registry[type[Any]] = Registry("synthesizer")
"""Every synthesizer by name."""

Progress = Callable[[float, str], None]

_MOST_ROWS = 100_000_000
PUBLIC_FACTS = "bounds, categories and constraints were known without looking at the data"


def no_progress(share: float, what: str) -> None:
    """Say nothing."""
    del share, what


@dataclass(frozen=True)
class SynthesisFacts:
    """What is public about a table before anybody looks.

    Attributes:
        domain: the cells of the columns that are modeled.
        schema: what is known of all columns of the result.
        order: the columns of the result, in order.
        derived: the storage of the columns that follow from others.
        constraints: what holds between columns.
        assumptions: what a promise about the rows assumes.
    """

    domain: TableDomain
    schema: Schema
    order: tuple[str, ...]
    derived: Mapping[str, Any]
    constraints: tuple[Constraint, ...]
    assumptions: tuple[str, ...] = ()


@dataclass(kw_only=True, eq=False, repr=False)
class Synthesizer(PaidFit):
    """The base of all synthesizers.

    Args:
        columns: which columns; without it, all that the schema describes but identifiers.
        bins: into how many bins numbers, dates and times are cut, or at which edges: for all, or by column.
        complete: the columns that never have missing values, which is public knowledge; or True for all.
        constraints: what is publicly known to hold between columns.
        expected_rows: about how many rows there are, if that is public: for warnings, and for what a network can bear.
        progress: called now and then with the share that is done and what is being done.

    What a fit costs, who pays and whom it protects are parameters of `PaidFit`; its ``schema`` is the table's own by
    default.
    """

    purpose: ClassVar[str] = "synthesize with"
    always_shown: ClassVar[tuple[str, ...]] = ("epsilon",)

    columns: Any = None
    bins: Any = None
    complete: Any = ()
    constraints: Any = ()
    expected_rows: int | None = None
    progress: Progress | None = None

    facts_: SynthesisFacts = field(init=False)
    rows_: float = field(init=False)

    def __repr__(self) -> str:
        shown = [item.name for item in fields(self) if item.init and item.name not in ("ledger", "schema", "progress")]
        told = [name for name in shown if name in self.always_shown or getattr(self, name) != _default(self, name)]
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in told)
        return f"{type(self).__name__}({given})"

    # Fitting ---------------------------------------------------------------------------------------------------------

    def fit(self, table: Any) -> Self:
        """Measure protected rows, for the price of epsilon and delta.

        Args:
            table: a `cloister.Table` with a confirmed schema, or what `cloister.open_table` takes.

        Raises:
            MissingBoundsError: if nothing public is known of a column. Nothing is paid.
            UnconfirmedSchemaError: if what is known is a guess. Nothing is paid.
            BudgetExceededError: if the ledger has less left.
        """
        opened = self._opened(table)
        facts = self.declared(opened)
        guarantee, event = self._promise(facts)
        self._expect(facts)
        source = random_source(self.random_state)

        def learn(rows: Table, source: RandomSource) -> None:
            self.facts_ = facts
            self._learn(facts, person_rows(rows, facts.domain, unit=self.unit, limit=self.max_rows_per_unit), source)

        fit = PricedFit(guarantee=guarantee, event=event, rows=lambda: opened, nobody=opened.without_rows, learn=learn)
        self._pay_and_look(fit, source)
        return self

    def declared(self, table: Table) -> SynthesisFacts:
        """Return what is public about a table, which is not looked at, or refuse what a fit could not do."""
        known = table.schema if self.schema is None else self.schema
        constraints = check_columns(self.constraints, table.columns) if self.constraints else ()
        derived = derived_columns(constraints)
        domain = declare_domain(
            table,
            schema=known,
            columns=self.columns,
            bins=self.bins,
            complete=self.complete,
            apart=(*derived, self.unit),
        )
        for name in derived:
            if name in domain.names:
                raise ParameterError(
                    f'"{name}" follows from other columns by a constraint, and is not modeled.',
                    fix="leave it out of columns; it is in the result all the same.",
                )
        if self.unit != "row" and self.unit not in table.columns:
            raise UnknownColumnError(str(self.unit), table.columns)
        self._warn_of_persons(known)
        # Called for what it refuses, as long as nothing is paid.
        zeros_of(constraints, domain)
        order = tuple(name for name in table.columns if name in domain.names or name in derived)
        return SynthesisFacts(
            domain=domain,
            schema=public_schema(known, order),
            order=order,
            derived={name: table.types[name] for name in derived},
            constraints=constraints,
            assumptions=(PUBLIC_FACTS, *table.assumptions),
        )

    def expected(self, table: Any) -> tuple[Expectation, ...]:
        """Return how exact the measured marginals would be, from public facts; nothing is learned or paid.

        Args:
            table: as for `fit`; it is not looked at.
        """
        return self._expectations(self.declared(self._opened(table)))

    def preview(self, table: Any) -> SynthesisPreview:
        """Return what a fit would cost and how exact it would be; nothing is learned or paid.

        Args:
            table: as for `fit`; it is not looked at.
        """
        facts = self.declared(self._opened(table))
        guarantee, event = self._promise(facts)
        expectations = self._expectations(facts)
        return SynthesisPreview(guarantee=guarantee, event=event, columns=facts.order, expectations=expectations)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Return how exact the marginals that a fit measured are by the noise alone.

        Raises:
            ModelError: if there was no fit.
        """
        return self._expectations(self.fitted_facts)

    def _expect(self, facts: SynthesisFacts) -> None:
        warn_of_noise(self._expectations(facts), self.expected_rows)

    def _opened(self, table: Any) -> Table:
        if isinstance(table, Table):
            return table
        return open_table(table, schema=self.schema)

    def _warn_of_persons(self, schema: Schema) -> None:
        if self.unit == "row" and schema.subject is not None:
            warnings.warn(
                f'The schema says that "{schema.subject}" names a person, but single rows are protected: '
                f'write unit="{schema.subject}" and max_rows_per_unit to protect whole persons.',
                PrivacyParameterWarning,
                stacklevel=5,
            )

    def _tell(self, share: float, what: str) -> None:
        (self.progress or no_progress)(share, what)

    # Sampling --------------------------------------------------------------------------------------------------------

    def sample(
        self, n: int | None = None, *, conditions: Mapping[str, Any] | None = None, random_state: RandomState = None
    ) -> Table:
        """Return synthetic rows as a table with the same columns; costs nothing, as often as wanted.

        Args:
            n: how many; without it, about as many as the data have, as far as the fit could tell.
            conditions: for some columns the value, a list of values, or a pair (low, high) of numbers or dates that
                every row must have.
            random_state: an integer gives the same rows again; the promise is not touched.
        """
        facts = self.fitted_facts
        count = check_count(round(self.rows_) if n is None else n, name="n")
        if count > _MOST_ROWS:
            raise ParameterError(
                f"{count:,} rows are too many at once.",
                fix=f"draw up to {_MOST_ROWS:,} at a time, for nothing.",
            )
        # Drawing is post-processing: a seed repeats rows here, and breaks no promise.
        source = SeededRandomSource(random_state) if isinstance(random_state, int) else random_source(random_state)
        columns = self._draw(count, self._wanted(conditions), source)
        for item in facts.constraints:
            if isinstance(item, AtMost):
                item.settle(columns)
            elif isinstance(item, Determines | SumOf):
                columns[item.derives] = item.derive(columns, facts.derived[item.derives])
        listing = pa.table({name: columns[name] for name in facts.order})
        return open_table(listing, schema=facts.schema)

    def _wanted(self, conditions: Any) -> dict[str, Any]:
        """Return conditions that are about modeled columns, or refuse them."""
        if not isinstance(conditions, Mapping | None):
            raise ParameterTypeError(
                "conditions is not a mapping.", fix='write for example conditions={"sex": "F", "age": (30, 40)}.'
            )
        wanted = dict(conditions or {})
        derived = next((name for name in wanted if name in self.fitted_facts.derived), None)
        if derived is not None:
            raise ParameterError(
                f'"{derived}" follows from other columns by a constraint, and cannot be asked for.',
                fix="ask for the columns that it follows from.",
            )
        return wanted

    @property
    def fitted_facts(self) -> SynthesisFacts:
        """Return what is public about the table that was fitted.

        Raises:
            ModelError: if there was no fit.
        """
        if "facts_" not in vars(self):
            raise ModelError(f"This {type(self).__name__} has not been fitted.", fix="call fit(table) first.")
        return self.facts_

    @property
    def fewest_rows(self) -> int:
        """Return the smallest number of rows that `sample` gives, other than none."""
        return 1

    def _check_fitted(self) -> None:
        _ = self.fitted_facts

    def _files(self) -> SavedFits[Any]:
        from cloister.synth.documents import SAVED_SYNTHESIZERS

        return SAVED_SYNTHESIZERS

    def certify(
        self,
        path: str | Path,
        *,
        signing_key: SigningKey,
        conditions: Sequence[str] = (),
        overwrite: bool = False,
    ) -> Path:
        """Write a certificate beside a file of rows that were drawn, and return where: the promise, how, and a digest.

        Args:
            path: the file with the rows.
            signing_key: who signs it.
            conditions: what was asked of the rows, as ``sex=F``.
            overwrite: whether a certificate that is there may be replaced.
        """
        recipe = self._files().recipe_of(self) | ({"conditions": list(conditions)} if conditions else {})
        return certify(
            [path],
            kind=SYNTHETIC,
            guarantee=self.guarantee_,
            recipe=recipe,
            key=signing_key,
            overwrite=overwrite,
        )

    def report(self, path: str | Path | None = None, *, title: str = "A synthetic table") -> Report:
        """Return what is promised, what was measured and how exactly; with a path, it is written there as well."""
        from cloister.synth._synthesizer_report import report_of

        report = report_of(self, title=title)
        if path is not None:
            report.write(path)
        return report

    # What each synthesizer says --------------------------------------------------------------------------------------

    @abstractmethod
    def _promise(self, facts: SynthesisFacts) -> tuple[Guarantee, Event | None]:
        """Return what a fit promises, and what it is for the accountants: None where nothing is private."""

    @abstractmethod
    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        """Return how exact a fit will be, from public facts; refuse what cannot be done before anything is paid."""

    @abstractmethod
    def _learn(self, facts: SynthesisFacts, rows: Table, source: RandomSource) -> None:
        """Set the learned attributes, ``rows_`` and ``steps_`` among them, from the rows through noise only."""

    @abstractmethod
    def _draw(self, count: int, conditions: dict[str, Any], source: RandomSource) -> dict[str, Any]:
        """Return an Arrow array for each modeled column."""


def _default(synthesizer: Synthesizer, name: str) -> Any:
    return next(item.default for item in fields(synthesizer) if item.name == name)
