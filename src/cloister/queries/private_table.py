"""`PrivateTable`: questions about protected rows, answered with noise and charged to a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from cloister.core import validation
from cloister.core.exact import Interval, Number
from cloister.core.random import RandomState
from cloister.errors import ParameterError, ParameterTypeError, UnsafeQueryError
from cloister.queries import _contribution as contribution
from cloister.queries._aggregates import Aggregate, AggregateOperand, CountRows, Quantile, aggregates, share
from cloister.queries._budgeted_table import AnswerTerms
from cloister.queries._numbers import NumberAnswers
from cloister.queries._question import GroupKey
from cloister.queries._uncertainty import Unknown
from cloister.queries.answers import Answer, Estimate, Frame
from cloister.queries.catalog import column_key, present_value
from cloister.queries.choices import Choice
from cloister.queries.preview import Preview, preview

__all__ = ["PrivateTable"]

DATA = "data"
"""What SQL calls the table."""


@validation.refuse_unknown_options
class PrivateTable(NumberAnswers):
    """Protected rows that can be asked, not looked at.

    Every answer is charged to one account of a ledger before the rows are read, carries its guarantee and its margin of
    error, and is stored, so that the same question costs nothing when it is asked again.

    Args:
        table: the rows, opened with `cloister.open_table`, with a schema whose domains are confirmed.
        dataset: the account in the ledger; required with a ledger that is kept.
        budget: what may be spent in all; the first to open the account sets it. None uses an account that exists.
        unit: what is protected: "row", or the column that names a person, whose rows are then protected together; by
            default the subject of the schema, or the row where it names none.
        ledger: where spending is recorded; by default in memory, for this object alone.
        adjacency: "add_remove" or "replace", for rows; persons come and go with all their rows.
        max_rows_per_unit: how many rows a person counts for; see `choose_limit`.
        max_rows_per_group: how many of them in one group, if fewer.
        max_groups_per_unit: in how many groups a person is counted, where groups are chosen privately or persons are
            counted; by default max_rows_per_unit.
        bounding: how the limit is kept: "weight", "truncate" or "sample".
        order_by: the column by which "truncate" takes the first rows.
        analyst: who asks; a limit set for them in the ledger applies as well.
        policy: shares of the budget for questions that name no price, see `cloister.accounting.planner`.
        min_size: a number of rows that the owner attests the table, and any neighbor of it, to have.
        public_size: the number of rows, where it is public (under replace only).
        public: tables that everybody may see, which SQL may join by name.
        others: further private tables of the same persons, which SQL may join on the person by name.
        version: which version of the data this is; answers to other versions are not reused.
    """

    # Tables ----------------------------------------------------------------------------------------------------------

    def quantiles(
        self,
        column: str,
        qs: Sequence[Number],
        where: str | None = None,
        *,
        bounds: Interval | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Frame:
        """Return several quantiles in one release, in ascending order, sharing the price."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        of = self._bounded(column, bounds)
        if isinstance(qs, str) or not isinstance(qs, Iterable):
            raise ParameterTypeError("The quantiles are not a list.", fix="write for example [0.25, 0.5, 0.75].")
        wanted = sorted({share(q) for q in qs})
        if not wanted:
            raise ParameterError("There are no quantiles to find.", fix="write for example qs=[0.25, 0.5, 0.75].")
        frame = self._ask(self._question([Quantile(of, q) for q in wanted], where), f"quantiles of {column}", terms)
        # Quantiles that are chosen one by one can cross; putting them in order is free, and never makes the
        # largest error larger.
        values = np.sort([found.values[0] for found in frame.columns])
        found = Estimate(name=column, values=values, error=Unknown(len(values)))
        return replace(frame, columns=(Estimate.key("quantile", [float(q) for q in wanted]), found))

    def histogram(
        self,
        column: str,
        where: str | None = None,
        *,
        bins: Sequence[Any] | None = None,
        values: Sequence[Any] | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Frame:
        """Return how many rows there are in each public bin or category, also in empty ones.

        Args:
            column: what to count.
            where: which rows.
            bins: public edges of half-open bins; values outside are not counted; use infinities for overflow.
            values: public values, in place of the schema's categories.
            epsilon: what the answer costs.
            delta: as for `count`.
            rho: as for `count`.
            noise: as for `count`.
            fresh: as for `count`.
            random_state: for tests only.
        """
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        key = self._grouped(column, bins=bins, values=values)
        return self._counted([key], f"histogram of {column}", where, terms)

    def histogram_2d(
        self,
        columns: tuple[str, str],
        where: str | None = None,
        *,
        bins: Mapping[str, Sequence[Any]] | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Frame:
        """Return how many rows there are in each combination of the bins or categories of two columns."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        edges, names = dict(bins or {}), _names(columns)
        if len(names) != 2:
            raise ParameterError("This histogram is of two columns.", fix='write for example ("sex", "age").')
        keys = [self._grouped(name, bins=edges.get(name)) for name in names]
        return self._counted(keys, f"histogram of {' and '.join(names)}", where, terms)

    def grid(
        self,
        latitude: str,
        longitude: str,
        where: str | None = None,
        *,
        box: tuple[tuple[float, float], tuple[float, float]],
        cells: tuple[int, int],
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Frame:
        """Return how many rows lie in each cell of a public grid over a public box; rows outside are not counted.

        Args:
            latitude: the column of latitudes.
            longitude: the column of longitudes.
            where: which rows.
            box: ((south, north), (west, east)).
            cells: how many rows and columns of cells.
            epsilon: what the answer costs.
            delta: as for `count`.
            rho: as for `count`.
            noise: as for `count`.
            fresh: as for `count`.
            random_state: for tests only.
        """
        bins = {
            name: _even_edges(side, number)
            for name, side, number in zip((latitude, longitude), box, cells, strict=True)
        }
        return self.histogram_2d(
            (latitude, longitude),
            where,
            bins=bins,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            noise=noise,
            fresh=fresh,
            random_state=random_state,
        )

    def aggregate(
        self,
        measures: Mapping[str, Any],
        *,
        by: Sequence[str] = (),
        where: str | None = None,
        bins: Mapping[str, Sequence[Any]] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        bounds: Mapping[str, Any] | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Frame:
        """Return several measures, in groups, in one release that shares its price between them.

        Args:
            measures: a name for each: ``"count"``, ``"units"``, or (kind, column) with the kinds sum, mean, variance,
                std, min, max, median, present and distinct, or ("quantile", column, q).
            by: the columns to group by.
            where: which rows.
            bins: public edges for columns to group by.
            keys: public values for columns to group by. Without bins, values or categories, groups are chosen
                privately, which needs ``delta=``.
            bounds: public bounds of columns that are measured, in place of the schema's.
            epsilon: what the answer costs.
            delta: as for `count`.
            rho: as for `count`.
            noise: as for `count`.
            fresh: as for `count`.
            random_state: for tests only.
        """
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        names = _names(by)
        if not measures or not hasattr(measures, "items"):
            raise ParameterError(
                "There is nothing to measure, or it has no name.", fix='write for example measures={"n": "count"}.'
            )
        for option, given in (("bins", bins), ("keys", keys), ("measures", measures)):
            _check_names(option, given or {}, names)
        groups = [self._grouped(name, bins=(bins or {}).get(name), values=(keys or {}).get(name)) for name in names]
        wanted = {name: self._measure(name, kind, bounds or {}) for name, kind in measures.items()}
        frame = self._ask(self._question(list(wanted.values()), where, groups), _purpose(wanted, names), terms)
        named = zip([*names, *wanted], frame.columns, strict=True)
        return replace(frame, columns=tuple(column.named(name) for name, column in named))

    def sql(
        self,
        query: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Frame:
        """Answer a SQL query about ``data``, at a price as for `count`.

        Raises:
            UnsafeQueryError: if it cannot be answered privately, with the nearest query that can.
        """
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        compiled = self.compile_query(query)
        return self._ask(compiled.question, query, terms, present=compiled.presentation.present)

    # Choices ---------------------------------------------------------------------------------------------------------

    def top_k(
        self,
        column: str,
        k: int,
        where: str | None = None,
        *,
        values: Sequence[Any] | None = None,
        method: str = "permute_and_flip",
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Choice:
        """Return the k most common categories, without their counts."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, fresh=fresh, random_state=random_state)
        return self._choose(
            column,
            validation.check_count(k, name="k", at_least=1),
            where=where,
            values=values,
            method=method,
            terms=terms,
        )

    def most_common(
        self,
        column: str,
        where: str | None = None,
        *,
        values: Sequence[Any] | None = None,
        method: str = "permute_and_flip",
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Choice:
        """Return the most common category, without its count."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, fresh=fresh, random_state=random_state)
        return self._choose(column, 1, where=where, values=values, method=method, terms=terms)

    def vote(
        self,
        column: str,
        where: str | None = None,
        *,
        values: Sequence[Any] | None = None,
        method: str = "permute_and_flip",
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Choice:
        """Return the winner of a vote: the alternative that most units chose."""
        return self.most_common(
            column,
            where,
            values=values,
            method=method,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            fresh=fresh,
            random_state=random_state,
        )

    # Limits and prices -----------------------------------------------------------------------------------------------

    def choose_limit(
        self,
        *,
        groups: int = 1,
        for_epsilon: Number = 1,
        highest: int = 10_000,
        where: str | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return a limit on the rows of a person that balances what it cuts off with the noise that it needs.

        Args:
            groups: in how many groups the later counts will be.
            for_epsilon: what a later count will cost.
            highest: the largest limit to consider.
            where: which rows.
            epsilon: what the answer costs, a small share of the budget.
            delta: as for `count`.
            rho: as for `count`.
            noise: as for `count`.
            fresh: as for `count`.
            random_state: for tests only.
        """
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        if self._person is None:
            raise ParameterError(
                "Rows are the unit of privacy, so there is nothing to limit.", fix='open the table with unit="..." .'
            )
        return contribution.choose_limit(
            self, self._rows(where), groups=groups, for_epsilon=for_epsilon, highest=highest, terms=terms
        )

    def preview(
        self,
        query: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        error: Number | None = None,
        rows: int | None = None,
        confidence: Number = 0.95,
        noise: str = "auto",
    ) -> Preview:
        """Return what answering SQL would cost, and how far off it would be, without reading the data.

        Args:
            query: the SQL.
            epsilon: the price whose error is wanted; so are delta and rho.
            delta: as for `count`.
            rho: as for `count`.
            error: the half-width whose price is wanted, in place of epsilon and rho.
            rows: a guess of the rows in each group, which means and deviations depend on.
            confidence: how sure the margin is.
            noise: as for `count`.
        """
        compiled = self.compile_query(query)
        return preview(
            compiled.question,
            self._limited(compiled.question),
            present=compiled.presentation.columns,
            remaining=self.remaining,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            error=error,
            rows=rows,
            confidence=confidence,
            noise=noise,
        )

    def _counted(self, keys: list[GroupKey], name: str, where: str | None, terms: AnswerTerms) -> Frame:
        frame = self._ask(self._question([CountRows()], where, keys), name, terms)
        return replace(frame, columns=(*frame.columns[:-1], frame.columns[-1].named("count")))

    # Parts of questions ----------------------------------------------------------------------------------------------

    def _grouped(self, name: str, **domain: Any) -> GroupKey:
        if name == self._person:
            raise UnsafeQueryError(
                f'"{name}" names the persons: a group for each would show single persons.',
                fix="group by another column, or count the persons with count_units.",
            )
        return column_key(self._table, name, **domain)

    def _measure(self, name: str, measure: Any, limits: Mapping[str, Any]) -> Aggregate:
        kind, *arguments = (measure,) if isinstance(measure, str) else tuple(measure) or ("",)
        found = next((one for known, one in aggregates.items() if known == kind), None)
        if found is None or len(arguments) != (found.operand is not AggregateOperand.ROWS) + len(found.examples):
            raise ParameterError(
                f'The measure "{name}" is not understood.',
                fix=f'write "count", "units", or (kind, column) with one of the kinds {", ".join(_kinds())}.',
            )
        match found.operand:
            case AggregateOperand.ROWS:
                return found.make()
            case AggregateOperand.VALUE:
                return found.make(present_value(self._table, arguments[0]), arguments[0])
        column, *further = arguments
        return found.make(self._bounded(column, limits.get(column), is_squared=found.is_squared), *further)


def _kinds() -> list[str]:
    """Return the kinds of measures that have a column, those of numbers first."""
    named = [(kind.operand, name) for name, kind in aggregates.items()]
    return [
        name
        for wanted in (AggregateOperand.NUMBER, AggregateOperand.VALUE)
        for operand, name in named
        if operand is wanted
    ]


def _names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ParameterTypeError("The columns are not a list of names.", fix='write for example ["sex"].')
    names = list(columns)
    if len(set(names)) < len(names):
        raise ParameterError("A column is listed twice.", fix="list each column once.")
    return names


def _check_names(option: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise if bins or keys are for a column that is not grouped by, or a measure is called like one that is."""
    for name in given:
        if option == "measures" and name in names:
            raise ParameterError(
                f'"{name}" is a column to group by and the name of a measure.', fix="give the measure another name."
            )
        if option != "measures" and name not in names:
            raise ParameterError(f'{option} are given for "{name}", which is not grouped by.', fix="add it to by=.")


def _even_edges(side: tuple[float, float], number: int) -> list[Fraction | float]:
    low, high = validation.check_bounds(side)
    count = validation.check_count(number, name="cells", at_least=1)
    edges: list[Fraction | float] = [float(low + (high - low) * step / count) for step in range(count + 1)]
    if any(first >= second for first, second in pairwise(edges)):
        raise ParameterError("The cells of the grid are too small.", fix="use fewer cells or a larger box.")
    return edges


def _purpose(wanted: Mapping[str, Any], by: Sequence[str]) -> str:
    return f"{', '.join(wanted)} by {', '.join(by)}" if by else ", ".join(wanted)
