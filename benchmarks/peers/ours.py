"""cloister itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloister as cl

SQL = "SELECT grp, COUNT(*) AS n, SUM(value) AS s, AVG(value) AS m FROM data GROUP BY grp"


def prepare(
    source: Any, *, groups: int, limit: int | None, share: float | None = None
) -> Callable[[float], dict[str, list[float]]]:
    """Open a path or a Spark data frame. Every question asks for fresh noise, or it would be answered for free.

    With ``share``, that much of epsilon is spent on choosing the limit, and the answers have it as ``limit``.
    """
    table = cl.open_table(source, schema=schema(groups))
    unit = {"unit": "row"} if limit is None else {"unit": "person", "max_rows_per_unit": limit}

    private = cl.PrivateTable(table, dataset="bench", budget=cl.Budget(epsilon=1000), **unit)

    def ask(epsilon: float) -> dict[str, list[float]]:
        if share is None:
            return _answers(private, epsilon=epsilon)
        left = epsilon - share
        chosen = private.choose_limit(groups=groups, for_epsilon=left / 2, highest=1000, epsilon=share)
        most = max(1, round(chosen.value))
        return {**_answers(private.with_limit(most), epsilon=left), "limit": [most]}

    return ask


def _answers(private: cl.PrivateTable, *, epsilon: float) -> dict[str, list[float]]:
    frame = private.sql(f"{SQL} ORDER BY grp", epsilon=epsilon, fresh=True)
    return {name: frame[name].tolist() for name in "nsm"}


def schema(groups: int) -> cl.Schema:
    """Return what is public: the groups and the bounds of the value."""
    return cl.Schema(
        [
            cl.Column(name="grp", kind="nominal", categories=tuple(range(groups))),
            cl.Column(name="person", role="identifier"),
            cl.Column(name="value", kind="numeric", bounds=(0, 100)),
        ]
    )
