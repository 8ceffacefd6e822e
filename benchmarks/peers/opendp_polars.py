"""OpenDP through its Polars interface: rows per person are sampled down to the limit.

Asked for a mean, it measures one more sum and one more count, so each of the four gets a quarter of epsilon. With
``divide`` the mean is divided by hand, which a person who knows this would do.
"""

from __future__ import annotations

from collections.abc import Callable

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def prepare(
    path: str, *, groups: int, limit: int | None, divide: bool = False
) -> Callable[[float], dict[str, list[float]]]:
    rows = pl.scan_parquet(path)
    unit = dp.unit_of(contributions=1, **({} if limit is None else {"identifier": pl.col("person")}))
    margin = dp.polars.Margin(by=["grp"], max_length=20_000, max_groups=groups)
    keys = pl.LazyFrame({"grp": list(range(groups))})

    def ask(epsilon: float) -> dict[str, list[float]]:
        loss = dp.loss_of(epsilon=epsilon)
        context = dp.Context.compositor(
            data=rows, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1, margins=[margin]
        )
        query = context.query() if limit is None else context.query().truncate_per_group(limit)
        grouped = query.group_by("grp").agg(*_measures(divide=divide)).with_keys(keys)
        frame = grouped.release().collect().sort("grp")
        frame = frame.with_columns(m=pl.col("s") / pl.col("n")) if divide else frame
        return {name: frame[name].to_list() for name in "nsm"}

    return ask


def _measures(*, divide: bool) -> list[pl.Expr]:
    value = pl.col("value").fill_null(0.0).fill_nan(0.0)
    bounds = (0.0, 100.0)
    two = [dp.len(signed=True).alias("n"), value.dp.sum(bounds).alias("s")]
    return two if divide else [*two, value.dp.mean(bounds).alias("m")]
