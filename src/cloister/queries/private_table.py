"""`PrivateTable`: questions about protected rows, answered with noise and charged to a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from cloister.core import exact, validation
from cloister.errors import ParameterError, ParameterTypeError, UnsafeQueryError
from cloister.queries import limits
from cloister.queries.answers import Answer, Estimate, Frame
from cloister.queries.asking import Asking
from cloister.queries.choices import Choice
from cloister.queries.columns import column_key, column_number, present_value
from cloister.queries.preview import Preview, preview
from cloister.queries.question import (
    Aggregate,
    CountDistinct,
    CountPresent,
    CountRows,
    CountUnits,
    Extreme,
    Key,
    Mean,
    Number,
    Quantile,
    Question,
    StandardDeviation,
    Total,
    Variance,
)
from cloister.queries.uncertainty import Unknown

__all__ = ["PrivateTable"]

DATA = "data"
"""What SQL calls the table."""


class PrivateTable(Asking):
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

    # Numbers ---------------------------------------------------------------------------------------------------------

    def count(self, where: str | None = None, **price: Any) -> Answer:
        """Return how many rows there are, or meet a condition.

        ``price`` is ``epsilon=``, ``epsilon=`` with ``delta=``, or ``rho=``; further options are those of `ask`.
        """
        return self._number("count", CountRows(), where, price)

    def count_units(self, where: str | None = None, **price: Any) -> Answer:
        """Return how many persons there are, or have a row that meets a condition; rows where rows are the unit."""
        return self._number(f"number of {self._contribution.unit}", CountUnits(), where, price)

    def count_present(self, column: str, where: str | None = None, **price: Any) -> Answer:
        """Return in how many rows a column is not missing."""
        return self._number(
            f"rows with {column}", CountPresent(present_value(self._table, column), column), where, price
        )

    def count_distinct(self, column: str, where: str | None = None, **price: Any) -> Answer:
        """Return how many different values a column has."""
        of = present_value(self._table, column)
        return self._number(f"different values of {column}", CountDistinct(of, column), where, price)

    def sum(self, column: str, where: str | None = None, *, bounds: object = None, **price: Any) -> Answer:
        """Return the sum of a column, each value clamped to public bounds."""
        return self._number(f"sum of {column}", Total(self._bounded(column, bounds)), where, price)

    def mean(
        self,
        column: str,
        where: str | None = None,
        *,
        bounds: object = None,
        within: object = None,
        **price: Any,
    ) -> Answer:
        """Return the mean of a column, each value clamped to public bounds.

        The way is chosen by what is public. With a public size, or an attested minimum, and no condition, noise is
        added to the mean itself; ``within=(low, high)`` then also says that only a mean in there is of interest.
        Otherwise it is a noisy sum around the middle of the bounds over a noisy count.
        """
        number = self._bounded(column, bounds)
        interval = None if within is None else validation.check_bounds(within)
        is_pure = not price.get("rho") and not price.get("delta")
        if where is None and self._size is not None and self._person is None and is_pure:
            return self._sized_mean(column, number, interval, price)
        if interval is not None:
            raise ParameterError(
                "within= needs a table whose size is public or attested, and no condition.",
                fix="open the table with min_size=... or public_size=..., or leave within out.",
            )
        return self._number(f"mean of {column}", Mean(number), where, price)

    def variance(
        self, column: str, where: str | None = None, *, bounds: object = None, sample: bool = True, **price: Any
    ) -> Answer:
        """Return the variance of a column: of a sample, or of a population with ``sample=False``."""
        of = self._bounded(column, bounds, is_squared=True)
        return self._number(f"variance of {column}", Variance(of, sample), where, price)

    def std(
        self, column: str, where: str | None = None, *, bounds: object = None, sample: bool = True, **price: Any
    ) -> Answer:
        """Return the standard deviation of a column."""
        of = self._bounded(column, bounds, is_squared=True)
        return self._number(f"standard deviation of {column}", StandardDeviation(of, sample), where, price)

    def quantile(
        self,
        column: str,
        q: object,
        where: str | None = None,
        *,
        bounds: object = None,
        granularity: object = None,
        **price: Any,
    ) -> Answer:
        """Return a value below which a fraction ``q`` of the rows lies."""
        of = column_number(self._table, column, bounds=bounds, granularity=granularity)
        return self._number(f"{float(_share(q)):g} quantile of {column}", Quantile(of, _share(q)), where, price)

    def median(self, column: str, where: str | None = None, **options: Any) -> Answer:
        """Return a value in the middle of the rows."""
        return self.quantile(column, Fraction(1, 2), where, **options)

    def min(self, column: str, where: str | None = None, *, bounds: object = None, **price: Any) -> Answer:
        """Return a value that only a few rows lie below."""
        of = self._bounded(column, bounds)
        return self._number(f"minimum of {column}", Extreme(of, largest=False), where, price)

    def max(self, column: str, where: str | None = None, *, bounds: object = None, **price: Any) -> Answer:
        """Return a value that only a few rows lie above."""
        of = self._bounded(column, bounds)
        return self._number(f"maximum of {column}", Extreme(of, largest=True), where, price)

    # Tables ----------------------------------------------------------------------------------------------------------

    def quantiles(
        self, column: str, qs: Sequence[object], where: str | None = None, *, bounds: object = None, **price: Any
    ) -> Frame:
        """Return several quantiles in one release, in ascending order, sharing the price."""
        of = self._bounded(column, bounds)
        if isinstance(qs, str) or not isinstance(qs, Iterable):
            raise ParameterTypeError("The quantiles are not a list.", fix="write for example [0.25, 0.5, 0.75].")
        wanted = sorted({_share(q) for q in qs})
        if not wanted:
            raise ParameterError("There are no quantiles to find.", fix="write for example qs=[0.25, 0.5, 0.75].")
        frame = self._ask(self._question([Quantile(of, q) for q in wanted], where), f"quantiles of {column}", price)
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
        **price: Any,
    ) -> Frame:
        """Return how many rows there are in each public bin or category, also in empty ones.

        Args:
            column: what to count.
            where: which rows.
            bins: public edges of half-open bins; values outside are not counted; use infinities for overflow.
            values: public values, in place of the schema's categories.
            price: ``epsilon=``, and options of `ask`.
        """
        key = self._grouped(column, bins=bins, values=values)
        return self._counted([key], f"histogram of {column}", where, price)

    def histogram_2d(
        self,
        columns: tuple[str, str],
        where: str | None = None,
        *,
        bins: Mapping[str, Sequence[Any]] | None = None,
        **price: Any,
    ) -> Frame:
        """Return how many rows there are in each combination of the bins or categories of two columns."""
        edges, names = dict(bins or {}), _names(columns)
        if len(names) != 2:
            raise ParameterError("This histogram is of two columns.", fix='write for example ("sex", "age").')
        keys = [self._grouped(name, bins=edges.get(name)) for name in names]
        return self._counted(keys, f"histogram of {' and '.join(names)}", where, price)

    def grid(
        self,
        latitude: str,
        longitude: str,
        where: str | None = None,
        *,
        box: tuple[tuple[float, float], tuple[float, float]],
        cells: tuple[int, int],
        **price: Any,
    ) -> Frame:
        """Return how many rows lie in each cell of a public grid over a public box; rows outside are not counted.

        Args:
            latitude: the column of latitudes.
            longitude: the column of longitudes.
            where: which rows.
            box: ((south, north), (west, east)).
            cells: how many rows and columns of cells.
            price: ``epsilon=``, and options of `ask`.
        """
        bins = {
            name: _even_edges(side, number)
            for name, side, number in zip((latitude, longitude), box, cells, strict=True)
        }
        return self.histogram_2d((latitude, longitude), where, bins=bins, **price)

    def aggregate(
        self,
        measures: Mapping[str, Any],
        *,
        by: Sequence[str] = (),
        where: str | None = None,
        bins: Mapping[str, Sequence[Any]] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        bounds: Mapping[str, Any] | None = None,
        **price: Any,
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
            price: ``epsilon=``, and options of `ask`.
        """
        names = _names(by)
        if not measures or not hasattr(measures, "items"):
            raise ParameterError(
                "There is nothing to measure, or it has no name.", fix='write for example measures={"n": "count"}.'
            )
        for option, given in (("bins", bins), ("keys", keys), ("measures", measures)):
            _check_names(option, given or {}, names)
        groups = [self._grouped(name, bins=(bins or {}).get(name), values=(keys or {}).get(name)) for name in names]
        wanted = {name: self._measure(name, kind, bounds or {}) for name, kind in measures.items()}
        frame = self._ask(self._question(list(wanted.values()), where, groups), _purpose(wanted, names), price)
        named = zip([*names, *wanted], frame.columns, strict=True)
        return replace(frame, columns=tuple(column.named(name) for name, column in named))

    def sql(self, query: str, **price: Any) -> Frame:
        """Answer a SQL query about ``data``; ``price`` as for `count`.

        Raises:
            UnsafeQueryError: if it cannot be answered privately, with the nearest query that can.
        """
        compiled = self._compiled(query)
        return self._ask(compiled.question, query, price, present=compiled.presentation.present)

    # Choices ---------------------------------------------------------------------------------------------------------

    def top_k(
        self,
        column: str,
        k: int,
        where: str | None = None,
        *,
        values: Sequence[Any] | None = None,
        method: str = "permute_and_flip",
        **price: Any,
    ) -> Choice:
        """Return the k most common categories, without their counts."""
        return self._choose(
            column,
            validation.check_count(k, name="k", at_least=1),
            where=where,
            values=values,
            method=method,
            price=price,
        )

    def most_common(
        self,
        column: str,
        where: str | None = None,
        *,
        values: Sequence[Any] | None = None,
        method: str = "permute_and_flip",
        **price: Any,
    ) -> Choice:
        """Return the most common category, without its count."""
        return self._choose(column, 1, where=where, values=values, method=method, price=price)

    def vote(self, column: str, where: str | None = None, **options: Any) -> Choice:
        """Return the winner of a vote: the alternative that most units chose."""
        return self.most_common(column, where, **options)

    # Limits and prices -----------------------------------------------------------------------------------------------

    def choose_limit(
        self, *, groups: int = 1, for_epsilon: object = 1, highest: int = 10_000, where: str | None = None, **price: Any
    ) -> Answer:
        """Return a limit on the rows of a person that balances what it cuts off with the noise that it needs.

        Args:
            groups: in how many groups the later counts will be.
            for_epsilon: what a later count will cost.
            highest: the largest limit to consider.
            where: which rows.
            price: ``epsilon=``, a small share of the budget, and options of `ask`.
        """
        if self._person is None:
            raise ParameterError(
                "Rows are the unit of privacy, so there is nothing to limit.", fix='open the table with unit="..." .'
            )
        return limits.choose_limit(
            self, self._rows(where), groups=groups, for_epsilon=for_epsilon, highest=highest, price=price
        )

    def preview(self, query: str, *, noise: str = "auto", **wanted: Any) -> Preview:
        """Return what answering SQL would cost, and how far off it would be, without reading the data.

        Args:
            query: the SQL.
            noise: as for `ask`.
            wanted: ``epsilon=`` (``delta=``, ``rho=``) for the error at a price, ``error=`` for the price of an error;
                ``rows=`` is a guess of the rows in each group, which means and deviations depend on.
        """
        compiled = self._compiled(query)
        return preview(
            compiled.question,
            self._limited(compiled.question),
            present=compiled.presentation.columns,
            noise=noise,
            remaining=self.remaining,
            **wanted,
        )

    def _number(self, name: str, aggregate: Aggregate, where: str | None, price: Mapping[str, Any]) -> Answer:
        purpose = name if where is None else f"{name} where {where}"
        return self.answer(self._question([aggregate], where), name=name, price=price, purpose=purpose)

    def _counted(self, keys: list[Key], name: str, where: str | None, price: Mapping[str, Any]) -> Frame:
        frame = self._ask(self._question([CountRows()], where, keys), name, price)
        return replace(frame, columns=(*frame.columns[:-1], frame.columns[-1].named("count")))

    # Parts of questions ----------------------------------------------------------------------------------------------

    def _question(self, aggregates: Sequence[Aggregate], where: str | None, keys: Sequence[Key] = ()) -> Question:
        return Question(rows=self._rows(where), aggregates=tuple(aggregates), keys=tuple(keys))

    def _bounded(self, column: str, bounds: object, *, is_squared: bool = False) -> Number:
        return column_number(self._table, column, bounds=bounds, is_squared=is_squared)

    def _grouped(self, name: str, **domain: Any) -> Key:
        if name == self._person:
            raise UnsafeQueryError(
                f'"{name}" names the persons: a group for each would show single persons.',
                fix="group by another column, or count the persons with count_units.",
            )
        return column_key(self._table, name, **domain)

    def _measure(self, name: str, kind: Any, limits: Mapping[str, Any]) -> Aggregate:
        parts = (kind,) if isinstance(kind, str) else tuple(kind)
        simple: dict[str, Callable[[], Aggregate]] = {"count": CountRows, "units": CountUnits}
        if len(parts) == 1 and parts[0] in simple:
            return simple[parts[0]]()

        def number(*, is_squared: bool = False) -> Number:
            return self._bounded(parts[1], limits.get(parts[1]), is_squared=is_squared)

        made: dict[str, Callable[[], Aggregate]] = {
            "sum": lambda: Total(number()),
            "mean": lambda: Mean(number()),
            "variance": lambda: Variance(number(is_squared=True)),
            "std": lambda: StandardDeviation(number(is_squared=True)),
            "min": lambda: Extreme(number(), largest=False),
            "max": lambda: Extreme(number(), largest=True),
            "median": lambda: Quantile(number(), Fraction(1, 2)),
            "quantile": lambda: Quantile(number(), _share(parts[2])),
            "present": lambda: CountPresent(present_value(self._table, parts[1]), parts[1]),
            "distinct": lambda: CountDistinct(present_value(self._table, parts[1]), parts[1]),
        }
        if parts[0] not in made or len(parts) != (3 if parts[0] == "quantile" else 2):
            raise ParameterError(
                f'The measure "{name}" is not understood.',
                fix=f'write "count", "units", or (kind, column) with one of the kinds {", ".join(made)}.',
            )
        return made[parts[0]]()


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


def _share(q: object) -> Fraction:
    share = exact.number(q, name="q")
    if not 0 < share < 1:
        raise ParameterError("A quantile lies strictly between 0 and 1.", fix="use q=0.5; or min and max for the ends.")
    if share.denominator > 10**6:
        raise ParameterError("q has too many digits.", fix="round q to six digits.")
    return share


def _even_edges(side: tuple[float, float], number: int) -> list[Fraction | float]:
    low, high = validation.check_bounds(side)
    count = validation.check_count(number, name="cells", at_least=1)
    edges: list[Fraction | float] = [float(low + (high - low) * step / count) for step in range(count + 1)]
    if any(first >= second for first, second in pairwise(edges)):
        raise ParameterError("The cells of the grid are too small.", fix="use fewer cells or a larger box.")
    return edges


def _purpose(wanted: Mapping[str, Any], by: Sequence[str]) -> str:
    return f"{', '.join(wanted)} by {', '.join(by)}" if by else ", ".join(wanted)
