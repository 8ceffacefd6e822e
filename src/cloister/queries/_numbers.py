"""Single numbers about protected rows: counts, sums, means, deviations and quantiles, each at a price of its own."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cloister.core import validation
from cloister.core.exact import Interval, Number
from cloister.core.random import RandomState
from cloister.errors import ParameterError
from cloister.queries._aggregates import (
    Aggregate,
    CountDistinct,
    CountNotNull,
    CountRows,
    CountUnits,
    Extreme,
    Mean,
    Quantile,
    StandardDeviation,
    Total,
    Variance,
    share,
)
from cloister.queries._budgeted_table import AnswerTerms, BudgetedTable
from cloister.queries._question import FixedPointNumber, GroupKey, Question
from cloister.queries.answers import Answer
from cloister.queries.catalog import column_number, present_value

__all__ = ["NumberAnswers"]


@validation.refuse_unknown_options
class NumberAnswers(BudgetedTable):
    """The part of a private table that answers with one number."""

    def count(
        self,
        where: str | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return how many rows there are, or meet a condition.

        Args:
            where: a condition in SQL, such as ``"age > 50"``; by default all rows.
            epsilon: what the answer costs.
            delta: a slack beside epsilon or rho, which allows Gaussian noise.
            rho: what it costs as zero-concentrated differential privacy, in place of epsilon.
            noise: "laplace", "gaussian", or "auto" for the one that errs less.
            fresh: whether to pay for new noise where a stored answer exists.
            random_state: for tests only.
        """
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        return self._number("count", CountRows(), where, terms)

    def count_units(
        self,
        where: str | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return how many persons there are, or have a row that meets a condition; rows where rows are the unit."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        return self._number(f"number of {self._contribution.unit}", CountUnits(), where, terms)

    def count_present(
        self,
        column: str,
        where: str | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return in how many rows a column is not missing."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        return self._number(
            f"rows with {column}", CountNotNull(present_value(self._table, column), column), where, terms
        )

    def count_distinct(
        self,
        column: str,
        where: str | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return how many different values a column has."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        of = present_value(self._table, column)
        return self._number(f"different values of {column}", CountDistinct(of, column), where, terms)

    def sum(
        self,
        column: str,
        where: str | None = None,
        *,
        bounds: Interval | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return the sum of a column, each value clamped to public bounds."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        return self._number(f"sum of {column}", Total(self._bounded(column, bounds)), where, terms)

    def mean(
        self,
        column: str,
        where: str | None = None,
        *,
        bounds: Interval | None = None,
        within: Interval | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return the mean of a column, each value clamped to public bounds.

        The way is chosen by what is public. With a public size, or an attested minimum, and no condition, noise is
        added to the mean itself; ``within=(low, high)`` then also says that only a mean in there is of interest.
        Otherwise it is a noisy sum around the middle of the bounds over a noisy count.
        """
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        number = self._bounded(column, bounds)
        interval = None if within is None else validation.check_bounds(within)
        is_pure = not rho and not delta
        if where is None and self._size is not None and self._person is None and is_pure:
            return self._sized_mean(column, number, interval, terms)
        if interval is not None:
            raise ParameterError(
                "within= needs a table whose size is public or attested, and no condition.",
                fix="open the table with min_size=... or public_size=..., or leave within out.",
            )
        return self._number(f"mean of {column}", Mean(number), where, terms)

    def variance(
        self,
        column: str,
        where: str | None = None,
        *,
        bounds: Interval | None = None,
        sample: bool = True,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return the variance of a column: of a sample, or of a population with ``sample=False``."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        of = self._bounded(column, bounds, is_squared=True)
        return self._number(f"variance of {column}", Variance(of, sample), where, terms)

    def std(
        self,
        column: str,
        where: str | None = None,
        *,
        bounds: Interval | None = None,
        sample: bool = True,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return the standard deviation of a column."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        of = self._bounded(column, bounds, is_squared=True)
        return self._number(f"standard deviation of {column}", StandardDeviation(of, sample), where, terms)

    def quantile(
        self,
        column: str,
        q: Number,
        where: str | None = None,
        *,
        bounds: Interval | None = None,
        granularity: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return a value below which a fraction ``q`` of the rows lies."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        of = column_number(self._table, column, bounds=bounds, granularity=granularity)
        return self._number(f"{float(share(q)):g} quantile of {column}", Quantile(of, share(q)), where, terms)

    def median(
        self,
        column: str,
        where: str | None = None,
        *,
        bounds: Interval | None = None,
        granularity: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return a value in the middle of the rows."""
        return self.quantile(
            column,
            Fraction(1, 2),
            where,
            bounds=bounds,
            granularity=granularity,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            noise=noise,
            fresh=fresh,
            random_state=random_state,
        )

    def min(
        self,
        column: str,
        where: str | None = None,
        *,
        bounds: Interval | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return a value that only a few rows lie below."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        of = self._bounded(column, bounds)
        return self._number(f"minimum of {column}", Extreme(of, largest=False), where, terms)

    def max(
        self,
        column: str,
        where: str | None = None,
        *,
        bounds: Interval | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: str = "auto",
        fresh: bool = False,
        random_state: RandomState = None,
    ) -> Answer:
        """Return a value that only a few rows lie above."""
        terms = AnswerTerms(epsilon=epsilon, delta=delta, rho=rho, noise=noise, fresh=fresh, random_state=random_state)
        of = self._bounded(column, bounds)
        return self._number(f"maximum of {column}", Extreme(of, largest=True), where, terms)

    def _number(self, name: str, aggregate: Aggregate, where: str | None, terms: AnswerTerms) -> Answer:
        purpose = name if where is None else f"{name} where {where}"
        return self.answer(self._question([aggregate], where), name=name, terms=terms, purpose=purpose)

    def _question(self, aggregates: Sequence[Aggregate], where: str | None, keys: Sequence[GroupKey] = ()) -> Question:
        return Question(rows=self._rows(where), aggregates=tuple(aggregates), keys=tuple(keys))

    def _bounded(self, column: str, bounds: object, *, is_squared: bool = False) -> FixedPointNumber:
        return column_number(self._table, column, bounds=bounds, is_squared=is_squared)
