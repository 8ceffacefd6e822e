"""The gate on four releases of Adult, three of which nobody should publish.

A 5-anonymous table without anything about its sensitive column, the same people in two tables (Anatomy, l = 2), a
synthetic table of which a tenth of the rows was copied from the original, and the clean synthetic table (spanning tree,
epsilon 1, delta 1e-6). A third of the rows is held back as the control of the synthetic tables. The folder of the data
is CLOISTER_DATA, by default ``../shared/data``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

import cloister as cl
from cloister.core.random import SystemRandomSource, permutation

TITLE = "The gate on four releases of Adult"
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[2] / "shared" / "data"))
QUASI = ("age", "sex", "race", "workclass", "relationship")
SECRET = "occupation"
PUBLISH, KEEP = "publish", "do not publish"


def main() -> list[dict[str, Any]]:
    """Return one row per release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [_judged(*case) for case in _cases()]


def _judged(name: str, expected: str, found: cl.attacks.GateResult) -> dict[str, Any]:
    broken = [finding.attack for finding in found.findings if finding.blocks]
    decision = PUBLISH if found.publish else f"{KEEP} ({', '.join(broken)})"
    return {
        "name": name,
        "ours": decision,
        "unit": f"in {found.seconds:.1f} s",
        "target": expected,
        "met": found.publish is (expected == PUBLISH),
    }


def _cases() -> Iterator[tuple[str, str, cl.attacks.GateResult]]:
    rows = pacsv.read_csv(DATA / "adult" / "adult.csv")
    rows = rows.filter(pa.array(~_has_missing(rows)))
    table = _described(rows.select([*QUASI, SECRET]))
    models = [cl.KAnonymity(k=5)]
    yield (
        "5-anonymous, some classes of one occupation",
        KEEP,
        cl.attacks.gate(cl.anonymize(table, models=models, algorithm="mondrian")),
    )
    yield (
        "Anatomy, l = 2",
        KEEP,
        cl.attacks.gate(
            cl.anonymize(table, models=[cl.LDiversity(SECRET, l=2, kind="frequency")], algorithm="anatomy")
        ),
    )
    order = permutation(SystemRandomSource(), rows.num_rows)
    held, kept = np.split(order, [rows.num_rows // 3])
    whole = _described(rows)
    real, control = (_described(rows.take(pa.array(part)), like=whole) for part in (kept, held))
    model = cl.synth.SpanningTree(epsilon=1, delta=1e-6).fit(real)
    made = model.sample(len(kept)).to_arrow()
    copied = pa.concat_tables(
        [made.slice(len(kept) // 10), real.to_arrow().slice(0, len(kept) // 10).cast(made.schema)]
    )
    asked: dict[str, Any] = {"original": real, "control": control, "kind": "synthetic table"}
    yield "synthetic, a tenth of the rows copied", KEEP, cl.attacks.gate(cl.open_table(copied), **asked)
    yield "synthetic, epsilon 1", PUBLISH, cl.attacks.gate(cl.open_table(made), guarantee=model.guarantee_, **asked)


def _has_missing(rows: pa.Table) -> np.ndarray:
    return np.any([np.array(rows[name].to_pylist(), dtype=object) == "?" for name in rows.column_names], axis=0)


def _described(rows: pa.Table, *, like: Any = None) -> Any:
    table = cl.open_table(rows)
    if like is not None:
        return table.with_schema(like.schema)
    schema = cl.Schema.infer(table).confirm()
    for name in rows.column_names:
        schema = schema.with_role(name, "quasi" if name in QUASI else "insensitive")
    return table.with_schema(schema.with_role(SECRET, "sensitive"))
