"""Tumult Analytics on Spark in local mode: each person keeps a limited number of rows, chosen by hash.

Count and sum get half of epsilon each and the mean is divided by hand: its own mean takes longer and is less accurate.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Callable

from pyspark.sql import SparkSession
from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session

_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)


def prepare(path: str, *, groups: int, limit: int) -> Callable[[float], dict[str, list[float]]]:
    rows = _spark().read.parquet(path)
    keys = KeySet.from_dict({"grp": list(range(groups))})

    def ask(epsilon: float) -> dict[str, list[float]]:
        unit = AddRowsWithID("person")
        session = Session.from_dataframe(PureDPBudget(epsilon), "data", rows, protected_change=unit)
        query = QueryBuilder("data").enforce(MaxRowsPerID(limit)).groupby(keys)
        half = PureDPBudget(epsilon / 2)
        counts = session.evaluate(query.count(name="n"), half).toPandas().sort_values("grp")["n"].to_numpy()
        sums = session.evaluate(query.sum("value", 0, 100, name="s"), half).toPandas()
        sums = sums.sort_values("grp")["s"].to_numpy()
        return {"n": counts.tolist(), "s": sums.tolist(), "m": (sums / counts).tolist()}

    return ask


def _spark() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": _folder.name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
