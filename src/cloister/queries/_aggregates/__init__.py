"""The aggregates of queries: one module for each kind, entered here. Importing this package fills their registry."""

from cloister.queries._aggregates.base import Aggregate, AggregateKind, AggregateOperand, aggregates, sql_functions
from cloister.queries._aggregates.counts import CountDistinct, CountNotNull, CountRows, CountUnits
from cloister.queries._aggregates.moments import Mean, StandardDeviation, Total, Variance
from cloister.queries._aggregates.order_statistics import Extreme, Quantile, share

__all__ = [
    "Aggregate",
    "AggregateKind",
    "AggregateOperand",
    "CountDistinct",
    "CountNotNull",
    "CountRows",
    "CountUnits",
    "Extreme",
    "Mean",
    "Quantile",
    "StandardDeviation",
    "Total",
    "Variance",
    "aggregates",
    "share",
    "sql_functions",
]
