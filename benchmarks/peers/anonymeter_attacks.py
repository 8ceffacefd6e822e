"""Anonymeter: the attacks of a synthetic table that `benchmarks.synthetic_attacks` runs, on the same files."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator


def run(folder: str) -> dict[str, Any]:
    """Attack the tables in a folder; returns rates with their errors, and CPU seconds, by attack."""
    warnings.simplefilter("ignore")
    asked = json.loads((Path(folder) / "asked.json").read_text())
    tables = {
        name: pd.read_parquet(Path(folder) / f"{name}.parquet") for name in ("original", "control", *asked["made"])
    }
    few = {name: table.head(300) for name, table in tables.items()}
    # The first call of each pays for a compiler, which is not measured.
    _attack(few, asked["made"][0], {**asked, "attacks": 20})
    return {name: _attack(tables, name, asked) for name in asked["made"]}


def _attack(tables: dict[str, pd.DataFrame], made: str, asked: dict[str, Any]) -> dict[str, Any]:
    original, control, synthetic = tables["original"], tables["control"], tables[made]
    count, secret = asked["attacks"], asked["secret"]
    shared = {"ori": original, "syn": synthetic, "control": control, "n_attacks": count}
    others = [name for name in original.columns if name != secret]
    calls = {
        "univariate singling out": lambda: SinglingOutEvaluator(**shared).evaluate(mode="univariate"),
        "multivariate singling out": lambda: SinglingOutEvaluator(**shared, n_cols=3).evaluate(mode="multivariate"),
        "linkability": lambda: LinkabilityEvaluator(**shared, aux_cols=asked["known"], n_neighbors=1).evaluate(
            n_jobs=1
        ),
        "inference": lambda: InferenceEvaluator(**shared, aux_cols=others, secret=secret).evaluate(n_jobs=1),
    }
    return {name: _measured(call) for name, call in calls.items()}


def _measured(call: Any) -> dict[str, Any]:
    start = time.process_time()
    evaluated = call()
    seconds = time.process_time() - start
    found = evaluated.results()
    risk = found.risk()
    return {
        "seconds": seconds,
        "success": [found.attack_rate.value, found.attack_rate.error],
        "control": [found.control_rate.value, found.control_rate.error],
        "risk": [risk.value, *risk.ci],
    }
