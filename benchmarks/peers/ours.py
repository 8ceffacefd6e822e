"""cloister itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloister as cl

SQL = "SELECT grp, COUNT(*) AS n, SUM(value) AS s, AVG(value) AS m FROM data GROUP BY grp"


def prepare(
    path: str, *, groups: int, limit: int | None, share: float | None = None
) -> Callable[[float], dict[str, list[float]]]:
    """With ``share``, that much of epsilon is spent on choosing the limit, and the answers have it as ``limit``."""
    private = private_table(path, groups=groups, limit=limit)

    def ask(epsilon: float) -> dict[str, list[float]]:
        if share is None:
            return answers(private, epsilon=epsilon)
        left = epsilon - share
        chosen = private.choose_limit(groups=groups, for_epsilon=left / 2, highest=1000, epsilon=share)
        most = max(1, round(chosen.value))
        return {**answers(private.with_limit(most), epsilon=left), "limit": [most]}

    return ask


def private_table(source: Any, *, groups: int, limit: int | None) -> cl.PrivateTable:
    """Return the table behind its budget; ``source`` is a path or a Spark data frame."""
    unit = {"unit": "row"} if limit is None else {"unit": "person", "max_rows_per_unit": limit}
    table = cl.open_table(source, schema=schema(groups))
    return cl.PrivateTable(table, dataset="bench", budget=cl.Budget(epsilon=1000), **unit)


def answers(private: cl.PrivateTable, *, epsilon: float) -> dict[str, list[float]]:
    """Return one private answer in the order of the groups."""
    frame = private.sql(SQL, epsilon=epsilon).to_pandas().sort_values("grp")
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
