"""SmartNoise SQL over a pandas data frame: rows per person are sampled down to the limit.

Its epsilon is that of one measured column; the query has three, so each gets a third.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from snsql import Privacy, from_df

SQL = "SELECT grp, COUNT(*) AS n, SUM(value) AS s, AVG(value) AS m FROM bench.data GROUP BY grp"


def prepare(path: str, *, groups: int, limit: int | None) -> Callable[[float], dict[str, list[float]]]:
    rows = pd.read_parquet(path)
    metadata = {"": {"bench": {"data": _table(len(rows), limit)}}}

    def ask(epsilon: float) -> dict[str, list[float]]:
        reader = from_df(rows, privacy=Privacy(epsilon=epsilon / 3, delta=1e-9), metadata=metadata)
        spent, _ = reader.get_privacy_cost(SQL)
        if abs(spent - epsilon) > 1e-6:
            raise ValueError(f"the query costs {spent}, not {epsilon}")
        found = {int(row[0]): row[1:] for row in reader.execute(SQL)[1:]}
        return {name: [found[group][place] for group in range(groups)] for place, name in enumerate("nsm")}

    return ask


def _table(rows: int, limit: int | None) -> dict[str, object]:
    """Return the metadata: groups are public, so none is censored."""
    unit = {"row_privacy": True} if limit is None else {"max_ids": limit, "sample_max_ids": True}
    return unit | {
        "censor_dims": False,
        "clamp_counts": False,
        "clamp_columns": True,
        "rows": rows,
        "person": {"type": "int", "private_id": limit is not None},
        "grp": {"type": "int"},
        "value": {"type": "float", "lower": 0.0, "upper": 100.0},
    }
