"""PipelineDP on its local runner: rows per person are sampled down to the limit."""

from __future__ import annotations

from collections.abc import Callable

import pipeline_dp
import pyarrow.parquet as pq


def prepare(path: str, *, groups: int, limit: int) -> Callable[[float], dict[str, list[float]]]:
    table = pq.read_table(path)
    rows = list(zip(*(table[name].to_pylist() for name in ("person", "grp", "value")), strict=True))

    def ask(epsilon: float) -> dict[str, list[float]]:
        budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=0)
        engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
        found = engine.aggregate(rows, _parameters(limit), _extractors(), public_partitions=list(range(groups)))
        budget.compute_budgets()
        answers = [answer for _, answer in sorted(found)]
        return {name: [getattr(answer, what) for answer in answers] for name, what in _MEASURES.items()}

    return ask


_MEASURES = {"n": "count", "s": "sum", "m": "mean"}


def _parameters(limit: int) -> pipeline_dp.AggregateParams:
    return pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM, pipeline_dp.Metrics.MEAN],
        max_contributions=limit,
        min_value=0,
        max_value=100,
    )


def _extractors() -> pipeline_dp.DataExtractors:
    return pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
