"""Synthetic tables of five other public data sets at epsilon 1, delta 1e-6, with everything as it comes.

Values of categories and ranges of numbers are taken for public from the files, as their documentation lists them. A
tenth of the rows is held out; as many rows are drawn as were fitted. Accuracy is the best of several models trained on
synthetic rows, on the held-out real ones; the peer is the same trained on real rows. "nothing learned" is the share of
the most frequent class.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from benchmarks.learn_data import DATA
from cloister import synth
from cloister.core.random import SeededRandomSource, permutation
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table

TITLE = "Synthetic tables: five other data sets, epsilon 1, delta 1e-6"
SETS = ("nursery", "mushroom", "car", "german", "chess/kr-vs-kp")
FEW = 40


def main() -> list[dict[str, Any]]:
    """Return the rows of the results."""
    return [row for name in SETS for row in _judged(name)]


def _judged(name: str) -> list[dict[str, Any]]:
    folder, _, file = name.partition("/")
    rows = pacsv.read_csv(DATA / folder / f"{file or folder}.csv")
    order = permutation(SeededRandomSource(1), rows.num_rows)
    held, kept = np.split(order, [rows.num_rows // 10])
    schema, target = _schema(rows), rows.column_names[-1]
    real, holdout = (open_table(rows.take(pa.array(part)), schema=schema) for part in (kept, held))
    start = time.process_time()
    made = synth.AdaptiveMarginals(epsilon=1, delta=1e-6, expected_rows=len(kept))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(real)
        drawn = made.sample(len(kept))
        seconds = time.process_time() - start
        found = synth.evaluate(real, drawn, holdout=holdout, target=target, promise=made).to_dict()
    return _rows(folder, seconds, found)


def _schema(rows: pa.Table) -> Schema:
    columns = []
    for name in rows.column_names:
        values = sorted(set(rows[name].drop_null().to_pylist()))
        is_number = not pa.types.is_string(rows[name].type) and len(values) > FEW
        facts: dict[str, Any] = {"bounds": (values[0], values[-1])} if is_number else {"categories": tuple(values)}
        columns.append(Column(name=name, kind="numeric" if is_number else "nominal", **facts))
    return Schema(columns)


def _rows(name: str, seconds: float, found: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"name": f"{name}: fit and draw", "ours": round(seconds, 2), "unit": "CPU s"}]
    rows += [
        {
            "name": f"{name}: mean distance over {item['ways']} column{'s'[: item['ways'] > 1]}",
            "ours": round(item["mean"], 4),
            "peer": round(item["resampled"], 4),
            "peer_name": "real rows drawn again",
            "unit": "total variation",
        }
        for item in found["fidelity"]["marginals"]
    ]
    models = found["training"]["models"]
    rows.append(
        {
            "name": f"{name}: best model ({found['training']['baseline']:.3f} with nothing learned)",
            "ours": round(max(item["synthetic"] for item in models), 3),
            "peer": round(max(item["real"] for item in models), 3),
            "peer_name": "trained on real rows",
            "unit": "accuracy",
        }
    )
    return rows
