"""Attacks on synthetic tables beside Anonymeter and sdmetrics, and audits in one run.

Adult's training file without education-num (14 columns), dealt out at random into an original and a control of 16,280
rows each. The synthetic table is a spanning tree's at epsilon 1, delta 1e-9; the table "with copies" has a tenth of
its rows replaced by rows of the original. Both tools make 2,000 attacks of each kind on the same tables with the same
known columns. Rates agree if their 95 % intervals meet (ours exact, Anonymeter's after Wilson). A table with copies is
told apart if the attack succeeds on it at 95 % confidence and does not on the clean one; for Anonymeter, if the
interval of the residual risk is above 0.

Distances to the closest record are of 20,000 synthetic to 20,000 original rows; sdmetrics, whose time grows with the
product of both, is given 3,000 of each. CPU seconds are of the attack, one
thread, from data frames in memory, after a first call on few rows.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import harness
from benchmarks.synth_data import BINS, BOUNDS, adult_cells
from benchmarks.usage import cpu_seconds
from cloister import attacks, synth
from cloister.core.random import SeededRandomSource, bits, permutation, random_source
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.mechanisms import DiscreteLaplace

TITLE = "Attacks on synthetic tables: Adult, 14 columns, spanning tree at epsilon 1"
PEERS = ("anonymeter==1.1.0", "sdmetrics==0.32.0")
HALF = 16_280
CLOSEST = 20_000
FEWER = 3_000
ATTACKS = 2_000
SECRET = "occupation"
KNOWN = (
    ["age", "fnlwgt", "education", "marital-status", "race", "capital-gain", "native-country"],
    ["workclass", "occupation", "relationship", "sex", "capital-loss", "hours-per-week", "salary-class"],
)
EPSILON, CANARIES, RUNS = 4.4, 1_000, 200
_ROOT = str(Path(__file__).parents[1])
_PEER = """
import json, sys
sys.path.insert(0, {root!r})
from benchmarks.peers import {tool} as tool
print(json.dumps(tool.run({folder!r})))
"""

Tables = dict[str, pd.DataFrame]


def main() -> list[dict[str, Any]]:
    """Return the rows of the results."""
    tables = _tables()
    return [*_attacked(tables), *_closest(), *_one_run()]


def _adult() -> pd.DataFrame:
    from benchmarks.learn_data import DATA

    return pd.read_csv(DATA / "adult" / "adult.csv", keep_default_na=False).drop(columns="education-num")


def _made(rows: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return a synthetic table about some rows."""
    cells = adult_cells()
    schema = Schema(
        Column(name=name, kind="numeric", bounds=BOUNDS[name])
        if name in BOUNDS
        else Column(name=name, kind="nominal", categories=tuple(cells.values[name]))
        for name in cells.names
    )
    tree = synth.SpanningTree(epsilon=1, delta=1e-9, bins=BINS, complete=True)
    return tree.fit(open_table(rows, schema=schema)).sample(count).to_pandas()


def _tables() -> Tables:
    whole = _adult()
    order = permutation(SeededRandomSource(1), len(whole))
    original, control = (whole.iloc[order[start : start + HALF]].reset_index(drop=True) for start in (0, HALF))
    clean = _made(original, HALF)
    copied = pd.concat([clean.iloc[HALF // 10 :], original.iloc[: HALF // 10]], ignore_index=True).astype(clean.dtypes)
    return {"original": original, "control": control, "clean": clean, "copied": copied}


def _ours(tables: Tables, made: str) -> dict[str, Callable[[], attacks.AttackResult[attacks.SyntheticDetails]]]:
    original, synthetic, control = tables["original"], tables[made], tables["control"]
    shared: dict[str, Any] = {"control": control, "attacks": ATTACKS}
    return {
        "univariate singling out": lambda: attacks.synthetic_singling_out(
            original, synthetic, kind="univariate", **shared
        ),
        "multivariate singling out": lambda: attacks.synthetic_singling_out(
            original, synthetic, kind="multivariate", **shared
        ),
        "linkability": lambda: attacks.synthetic_linkability(original, synthetic, known=KNOWN, **shared),
        "inference": lambda: attacks.synthetic_inference(original, synthetic, secret=SECRET, **shared),
        "singling out of whole rows": lambda: attacks.synthetic_singling_out(original, synthetic, **shared),
    }


def _attacked(tables: Tables) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables.items():
            table.to_parquet(Path(folder) / f"{name}.parquet")
        asked = {"attacks": ATTACKS, "secret": SECRET, "known": KNOWN, "made": ["clean", "copied"]}
        (Path(folder) / "asked.json").write_text(json.dumps(asked))
        code = _PEER.format(root=_ROOT, tool="anonymeter_attacks", folder=folder)
        theirs = harness.run_peer(code, *PEERS)
    rows: list[dict[str, Any]] = []
    for name in _ours(tables, "clean"):
        found = {made: _timed(_ours(tables, made)[name]) for made in ("clean", "copied")}
        rows += _compared(name, found, {made: theirs[made].get(name) for made in found})
    return rows


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = cpu_seconds()
    return call(), cpu_seconds() - start


def _compared(name: str, found: dict[str, Any], theirs: dict[str, Any]) -> list[dict[str, Any]]:
    (clean, seconds), (copied, _) = found["clean"], found["copied"]
    peer = theirs["clean"]
    rows: list[dict[str, Any]] = []
    if peer is not None:
        rows += [
            _rate(f"{name}: on the original", clean.success, clean.interval, peer["success"]),
            _rate(f"{name}: on the control", clean.control, clean.control_interval, peer["control"]),
        ]
    told = copied.succeeded and not clean.succeeded
    rows.append({"name": f"{name}: tells 10 % copies apart", "ours": "yes" if told else "no"})
    if name not in {"univariate singling out", "multivariate singling out"}:
        rows[-1] |= {"target": "yes", "met": told}
    if peer is not None:
        apart = theirs["copied"]["risk"][1] > 0 and peer["risk"][1] <= 0
        rows[-1] |= {"peer": "yes" if apart else "no", "peer_name": "Anonymeter"}
    rows.append({"name": f"{name}: time", "ours": seconds, "unit": "CPU s"})
    if peer is not None:
        ratio = peer["seconds"] / seconds
        rows[-1] |= {
            "peer": round(peer["seconds"], 3),
            "peer_name": "Anonymeter",
            "ratio": ratio,
            "target": "below Anonymeter",
            "met": ratio > 1,
        }
    return rows


def _rate(name: str, value: float, interval: tuple[float, float], peer: list[float]) -> dict[str, Any]:
    low, high = peer[0] - peer[1], peer[0] + peer[1]
    return {
        "name": name,
        "ours": f"{value:.4f} ({interval[0]:.4f} to {interval[1]:.4f})",
        "peer": f"{peer[0]:.4f} ({max(low, 0):.4f} to {high:.4f})",
        "peer_name": "Anonymeter",
        "target": "intervals meet",
        "met": interval[0] <= high and low <= interval[1],
    }


def _closest() -> list[dict[str, Any]]:
    original = _adult().sample(CLOSEST, random_state=1).reset_index(drop=True)
    synthetic = _made(original, CLOSEST)
    _, seconds = _timed(lambda: attacks.distance_to_closest_record(original, synthetic))
    few = original.head(FEWER), synthetic.head(FEWER)
    bounds = {name: (int(few[0][name].min()), int(few[0][name].max())) for name in BOUNDS}
    found, fewer = _timed(lambda: attacks.distance_to_closest_record(*few, bounds=bounds))
    with tempfile.TemporaryDirectory() as folder:
        for name, table in zip(("original", "synthetic"), few, strict=True):
            table.to_parquet(Path(folder) / f"{name}.parquet")
        peer = harness.run_peer(_PEER.format(root=_ROOT, tool="sdmetrics_distances", folder=folder), *PEERS)
    return [
        {
            "name": f"closest record, {CLOSEST:,} x {CLOSEST:,}: time",
            "ours": seconds,
            "unit": "CPU s",
            "target": "< 10",
            "met": seconds < 10,
        },
        {
            "name": f"closest record, {FEWER:,} x {FEWER:,}: time",
            "ours": fewer,
            "peer": round(peer["seconds"], 1),
            "peer_name": "sdmetrics",
            "ratio": peer["seconds"] / fewer,
            "unit": "CPU s",
        },
        {
            "name": f"closest record, {FEWER:,} x {FEWER:,}: median distance",
            "ours": f"{found.to_original.median:.5f}",
            "peer": f"{peer['median']:.5f}",
            "peer_name": "sdmetrics",
            "target": "the same to 0.001",
            "met": abs(found.to_original.median - peer["median"]) < 1e-3,
        },
    ]


def _one_run() -> list[dict[str, Any]]:
    mechanism = DiscreteLaplace(sensitivity=1, epsilon=str(EPSILON))
    lows = np.empty(RUNS)
    for place in range(RUNS):
        included = bits(random_source(), CANARIES)
        lows[place] = attacks.audit_one_run(included, mechanism.release(included.astype(np.int64)).value).epsilon_lower
    name = f"one-run audit, true epsilon {EPSILON:g}, {CANARIES:,} canaries, {RUNS} runs"
    least, above = float(lows.min()), float((lows > EPSILON).mean())
    return [
        {
            "name": f"{name}: mean bound",
            "ours": float(lows.mean()),
            "target": ">= 1.9",
            "met": float(lows.mean()) >= 1.9,
        },
        {"name": f"{name}: smallest bound", "ours": least, "target": ">= 1.9", "met": least >= 1.9},
        {"name": f"{name}: share above the truth", "ours": above, "target": "<= 0.05", "met": above <= 0.05},
    ]
