"""A protected table with a budget: the account that pays, the limits that hold, and the three kinds of release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
from sqlglot import exp

from cloister.accounting.budget import Budget
from cloister.accounting.events import PureEvent
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.core import validation
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, DifferentialPrivacy
from cloister.core.random import RandomSource, RandomState, caveats_of, random_source
from cloister.data.table import Table
from cloister.errors import DataError, ParameterError, ParameterTypeError
from cloister.queries import _query_plan as query_plan
from cloister.queries._contribution import Contribution
from cloister.queries._query_plan import QueryPlan, plan
from cloister.queries._question import QueryRows, Question
from cloister.queries._release import Noisy, estimate, measure
from cloister.queries._sized_mean import SizedMean
from cloister.queries._uncertainty import Linear
from cloister.queries.answers import Answer, Estimate, Frame
from cloister.queries.catalog import Catalog, column_key, person_value, present_value
from cloister.queries.choices import Choice, Chooser
from cloister.queries.payment import AnalystSession
from cloister.queries.sql import Compiled, compile_condition, compile_sql

__all__ = ["AnswerTerms", "BudgetedTable"]


_MOST_QUERIES = 100

DATA = "data"
"""What SQL calls the table."""


Present: TypeAlias = "Callable[[list[Estimate], list[Estimate]], Sequence[Estimate]]"
"""What is done with the columns of an answer before they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTerms:
    """At what price and how an answer is wanted, as the caller wrote it; see `BudgetedTable.ask`."""

    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None
    noise: str = "auto"
    fresh: bool = False
    random_state: RandomState = None


class BudgetedTable:
    """The part of a private table that opens its account and pays for answers.

    A private table is written in three files, each one step: this one pays, `NumberAnswers` asks for one number, and
    `PrivateTable` asks for tables. Together they would be one class of more than a thousand lines.
    """

    def __init__(
        self,
        table: Table,
        *,
        dataset: str | None = None,
        budget: Budget | None = None,
        unit: str | None = None,
        ledger: Ledger | None = None,
        adjacency: str = "add_remove",
        max_rows_per_unit: int | None = None,
        max_rows_per_group: int | None = None,
        max_groups_per_unit: int | None = None,
        bounding: str = "weight",
        order_by: str | None = None,
        analyst: str | None = None,
        policy: Iterator[Budget] | None = None,
        min_size: int | None = None,
        public_size: int | None = None,
        public: Mapping[str, Any] | None = None,
        others: Mapping[str, Table] | None = None,
        version: str = "",
    ) -> None:
        if not isinstance(table, Table):
            raise ParameterTypeError(
                f"This is not an open table but of type {type(table).__name__}.",
                fix='open it first: cloister.open_table("visits.csv", schema="visits.schema.yaml").',
            )
        self._table, self._version = table, str(version)
        protected = _unit(table, unit)
        self._person = None if protected == "row" else protected
        if self._person is not None:
            person_value(table, self._person)
        self._limit = max_rows_per_unit
        self._contribution = Contribution(
            adjacency=_relation(adjacency, is_person=self._person is not None),
            unit=protected,
            limit=1 if max_rows_per_unit is None else max_rows_per_unit,
            per_group=max_rows_per_group,
            groups=max_groups_per_unit,
            bounding=bounding,
            order=None if order_by is None else present_value(table, order_by),
            ordered=table.engine.source(),
            assumptions=_collect_assumptions(table, *(others or {}).values()),
        )
        self._check_limits(order_by)
        self._catalog = Catalog(
            private={DATA: table, **{name: other.beside(table) for name, other in (others or {}).items()}},
            person=self._person,
            public={name: _arrow(name, frame) for name, frame in (public or {}).items()},
        )
        self._queries: dict[str, Compiled] = {}
        self._size = self._attested(min_size=min_size, public_size=public_size)
        self._session = self._open(ledger, dataset, budget, analyst, policy)

    # What is known ---------------------------------------------------------------------------------------------------

    @property
    def remaining(self) -> Budget:
        """Return what is left of the budget."""
        return self._session.remaining

    @property
    def ledger(self) -> Ledger:
        """Return the ledger that is charged."""
        return self._session.ledger

    @property
    def dataset(self) -> str:
        """Return the account that is charged."""
        return self._session.dataset

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return self._table.columns if self._table.schema is None else tuple(self._table.schema.names)

    def __repr__(self) -> str:
        return f'PrivateTable(dataset="{self.dataset}", unit="{self._contribution.unit}", columns={list(self.columns)})'

    def with_limit(self, max_rows_per_unit: int) -> Self:
        """Return the same table and account with another limit on the rows of a person."""
        limit = validation.check_count(max_rows_per_unit, name="max_rows_per_unit", at_least=1)
        self._check_limits(limit)
        changed = copy(self)
        vars(changed).update(_limit=limit, _contribution=replace(self._contribution, limit=limit))
        return changed

    # Asking ----------------------------------------------------------------------------------------------------------

    def ask(
        self,
        question: Question,
        *,
        purpose: str = "",
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
        present: Present | None = None,
    ) -> Frame:
        """Answer a question: charge its price, then read the data; or repeat a stored answer for nothing.

        Args:
            question: what is asked.
            purpose: a sentence for the owner, kept in the ledger.
            epsilon: the price.
            delta: a slack that allows Gaussian noise and groups that are not public.
            rho: the price as zero-concentrated differential privacy, in place of epsilon.
            noise: "laplace", "gaussian", or "auto" for the one that errs less.
            fresh: whether to pay for new noise where a stored answer exists.
            random_state: for tests only.
            present: what to do with the columns; by default they are shown as they are.
        """
        contribution = self._limited(question)
        offer = self._session.price(epsilon=epsilon, rho=rho, delta=delta)
        # Whatever can be refused is refused here, from public facts, before anything is paid or read.
        planned = plan(question, contribution, offer, noise=noise)
        price = planned.price
        source = random_source(random_state)
        paid = self._session.release(
            key=self._key(replace(question, rows=self._named(question.rows)).canonical(), contribution, noise),
            purpose=purpose,
            guarantee=planned.guarantee,
            price=price,
            event=planned.event,
            source=source,
            fresh=fresh,
            run=lambda rows: measure(planned, contribution, source, rows=rows).to_dict(),
            rows=question.rows,
        )
        # A stored answer may have been made at a higher price, and its errors are those of that price.
        made = planned if paid.price == price else plan(question, contribution, paid.price, noise=noise)
        keys, aggregates = estimate(made, Noisy.from_dict(paid.payload, question.keys))
        columns = [*keys, *aggregates] if present is None else present(keys, aggregates)
        return Frame(
            columns=tuple(columns),
            guarantee=_add_caveats(made, caveats_of(source)),
            event=made.event,
            cost=paid.cost,
            notes=query_plan.notes_on_plan(made, contribution),
        )

    def _ask(self, question: Question, purpose: str, terms: AnswerTerms, *, present: Present | None = None) -> Frame:
        return self.ask(
            question,
            purpose=purpose,
            epsilon=terms.epsilon,
            delta=terms.delta,
            rho=terms.rho,
            noise=terms.noise,
            fresh=terms.fresh,
            random_state=terms.random_state,
            present=present,
        )

    def answer(self, question: Question, *, name: str, terms: AnswerTerms, purpose: str = "") -> Answer:
        """Answer a question that has one aggregate and no groups, as a single number."""
        frame = self._ask(question, purpose or name, terms)
        column = frame.columns[0]
        return Answer(
            name=name,
            value=_single(column.values[0]),
            guarantee=frame.guarantee,
            cost=frame.cost,
            event=frame.event,
            notes=frame.notes,
            error=column.error,
        )

    def _choose(
        self,
        column: str,
        k: int,
        *,
        where: str | None,
        values: Sequence[Any] | None,
        method: str,
        terms: AnswerTerms,
    ) -> Choice:
        offer, source = self._offer(terms)
        chooser = Chooser(
            rows=self._rows(where),
            key=column_key(self._table, column, values=values),
            k=k,
            epsilon=offer.amount,
            method=method,
            contribution=self._contribution,
        )
        guarantee, event = self._pure(offer, f"the categories of {column} are public"), PureEvent(epsilon=offer.amount)
        paid = self._session.release(
            key=self._key(replace(chooser, rows=self._named(chooser.rows)).canonical(), self._contribution, "choice"),
            purpose=f"{k} most common of {column}",
            guarantee=guarantee,
            price=offer,
            event=event,
            source=source,
            run=lambda rows: replace(chooser, rows=rows).measure(source),
            rows=chooser.rows,
            fresh=terms.fresh,
        )
        made = replace(chooser, epsilon=paid.price.amount)
        return Choice(
            name=column,
            choices=tuple(chooser.labels[index] for index in paid.payload),
            shortfall=made.shortfall,
            guarantee=self._pure(paid.price, f"the categories of {column} are public").with_caveat(*caveats_of(source)),
            cost=paid.cost,
            event=PureEvent(epsilon=paid.price.amount),
        )

    def _sized_mean(
        self, column: str, number: Any, interval: tuple[Fraction, Fraction] | None, terms: AnswerTerms
    ) -> Answer:
        offer, source = self._offer(terms)
        size, is_exact = self._size or (1, False)
        asked = SizedMean(
            rows=self._rows(None),
            number=number,
            size=size,
            is_exact_size=is_exact,
            interval=interval,
            epsilon=offer.amount,
            contribution=self._contribution,
        )
        attested = f"the table has {'exactly' if is_exact else 'at least'} {size:,} rows"
        paid = self._session.release(
            key=self._key(replace(asked, rows=self._named(asked.rows)).canonical(), self._contribution, "sized mean"),
            purpose=f"mean of {column}",
            guarantee=self._pure(offer, attested),
            price=offer,
            event=asked.noise.event,
            source=source,
            run=lambda rows: replace(asked, rows=rows).measure(source),
            rows=asked.rows,
            fresh=terms.fresh,
        )
        made = replace(asked, epsilon=paid.price.amount)
        return Answer(
            name=f"mean of {column}",
            value=made.value(paid.payload),
            guarantee=self._pure(paid.price, attested).with_caveat(*caveats_of(source)),
            cost=paid.cost,
            event=made.noise.event,
            notes=query_plan.notes_on_sized_mean(made),
            error=Linear((made.law,), 1),
        )

    def _rows(self, where: str | None) -> QueryRows:
        engine = self._table.engine
        person = None if self._person is None else person_value(self._table, self._person)
        condition = None
        if where is not None:
            condition = compile_condition(where, self._table, name=DATA, person=self._person)
        return QueryRows(engine=engine, source=engine.source(), condition=condition, person=person)

    def _limited(self, question: Question) -> Contribution:
        """Return the limits, which a person unit must have unless persons have one row each."""
        # Without groups a person counts once, whatever the number of rows, so that no limit is needed.
        counts_persons = not question.keys and not any(item.needs_limit for item in question.aggregates)
        known = counts_persons or question.rows.rows_per_person is not None
        if self._person is not None and self._limit is None and not known:
            raise ParameterError(
                f'How many rows a "{self._person}" counts for is not stated.',
                fix="open the table with max_rows_per_unit=..., a number known without looking; "
                "private.choose_limit(...) finds one at a small price.",
            )
        return self._contribution

    # Opening ---------------------------------------------------------------------------------------------------------

    def _open(
        self,
        ledger: Ledger | None,
        dataset: str | None,
        budget: Budget | None,
        analyst: str | None,
        policy: Iterator[Budget] | None,
    ) -> AnalystSession:
        if ledger is not None and dataset is None:
            raise ParameterError(
                "With a ledger, the table needs a name for its account.", fix='write dataset="hospital-2026".'
            )
        account = "data" if dataset is None else dataset
        chosen = open_ledger("memory:") if ledger is None else ledger
        if budget is None and ledger is None:
            raise ParameterError("There is no budget.", fix="write budget=Budget(epsilon=1).")
        allowed = chosen.account(account).budget if budget is None else budget
        chosen.open_account(
            account, budget=allowed, unit=self._contribution.unit, adjacency=self._contribution.adjacency
        )
        return AnalystSession(chosen, account, analyst=analyst, policy=policy)

    def _check_limits(self, other: object) -> None:
        limits_given = (self._limit, self._contribution.per_group, self._contribution.groups, other)
        if self._person is None and any(item is not None for item in limits_given):
            raise ParameterError(
                "Limits on the rows of a unit make sense for persons, not for single rows.",
                fix='name the column of the person, such as unit="patient_id", or leave the limits out.',
            )

    def _attested(self, *, min_size: int | None, public_size: int | None) -> tuple[int, bool] | None:
        """Return the size that the owner states, after comparing it with the table once."""
        if min_size is None and public_size is None:
            return None
        if public_size is not None and self._contribution.adjacency is not Adjacency.REPLACE:
            raise ParameterError(
                "A public number of rows contradicts neighbors of different size.",
                fix='use adjacency="replace", or state min_size.',
            )
        stated = validation.check_count(min_size if public_size is None else public_size, name="the size", at_least=1)
        rows = self._table.count()
        # The statement has to hold for a neighbor with a row less as well.
        fewest = rows - 1 if self._contribution.adjacency is Adjacency.ADD_REMOVE else rows
        if fewest < stated or (public_size is not None and rows != stated):
            raise DataError(
                "The table does not have the size that is stated, so means calibrated to it would not be private.",
                fix="state a size that holds for the table and its neighbors, or none.",
            )
        return stated, public_size is not None

    def _offer(self, terms: AnswerTerms) -> tuple[Budget, RandomSource]:
        offer = self._session.price(epsilon=terms.epsilon, rho=terms.rho, delta=terms.delta)
        if offer.epsilon is None or offer.delta:
            raise ParameterError(
                "This answer is paid in epsilon alone.", fix="write epsilon=0.1, without delta or rho."
            )
        return offer, random_source(terms.random_state)

    def _pure(self, price: Budget, *assumptions: str) -> DifferentialPrivacy:
        adjacency, unit = self._contribution.adjacency, self._contribution.unit
        return price.guarantee(
            adjacency=adjacency, unit=unit, assumptions=(*assumptions, *self._contribution.assumptions)
        )

    def _key(self, canonical: str, contribution: Contribution, kind: str) -> str:
        """Return the text under which an answer is found again: the same tables and the same question."""
        return f"{self._version} || {self._catalog.canonical()} || {contribution.canonical()} || {kind} || {canonical}"

    def compile_query(self, query: str) -> Compiled:
        """Return what a query in SQL asks, at no cost; a query that was asked before is not parsed again."""
        known = self._queries.get(str(query))
        if known is None:
            known = compile_sql(query, self._catalog)
            if len(self._queries) >= _MOST_QUERIES:
                self._queries.clear()
            self._queries[query] = known
        return known

    def _named(self, rows: QueryRows) -> QueryRows:
        """Return rows whose tables are called as queries call them; names inside an engine may change with each run."""
        names = {table.engine.source().name: f"table {name}" for name, table in self._catalog.private.items()}
        source = rows.source.copy()
        for table in list(source.find_all(exp.Table)):
            if table.name in names:
                table.set("this", exp.to_identifier(names[table.name], quoted=True))
        return replace(rows, source=source)


def _add_caveats(made: QueryPlan, caveats: tuple[Any, ...]) -> DifferentialPrivacy:
    return made.guarantee.with_caveat(*caveats)


def _collect_assumptions(*tables: Table) -> tuple[str, ...]:
    """Return what is assumed if a row can change the type of a column, and with it what may be asked."""
    return tuple(dict.fromkeys(sentence for table in tables for sentence in table.assumptions))


def _single(value: Any) -> Any:  # a NumPy scalar, or a whole number beyond 64 bits
    return value.item() if isinstance(value, np.generic) else value


def _unit(table: Table, unit: str | None) -> str:
    """Return what is protected: what is asked for, else the person that the schema names, else the row."""
    subject = None if table.schema is None else table.schema.subject
    return unit or subject or "row"


def _relation(adjacency: str, *, is_person: bool) -> Adjacency:
    relation = Adjacency(validation.check_choice(adjacency, name="adjacency", allowed=("add_remove", "replace")))
    if is_person and relation is not Adjacency.ADD_REMOVE:
        raise ParameterError(
            "Persons come and go with all their rows; they are not replaced.", fix='use adjacency="add_remove".'
        )
    return Adjacency.USER if is_person else relation


def _arrow(name: str, frame: Any) -> pa.Table:
    """Return a public table, given as Arrow, pandas, polars or a mapping of columns."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, Table):
        return frame.to_arrow()
    if isinstance(frame, Mapping):
        return pa.table(dict(frame))
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (AttributeError, TypeError, pa.ArrowException):
        raise ParameterTypeError(
            f'The public table "{name}" is not a table.', fix="give a data frame, an Arrow table or a dictionary."
        ) from None
