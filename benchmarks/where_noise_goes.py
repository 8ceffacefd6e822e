"""The four places to put noise, compared on one task: accuracy over epsilon on Adult.

``python -m benchmarks.where_noise_goes --out docs/assets`` prints a table and draws ``where-noise-goes.svg``. The task
is the income class from five numbers and six categories, with public bounds and values; delta is 1e-5. Every model
takes its default settings and never sees the test file. The folder of the data is CLOISTER_DATA, by default
``../shared/data``.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cloister import plotting
from cloister.learn import PrivateLinearRegression, PrivateLogisticRegression

DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[2] / "shared" / "data"))
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = 1e-5
BOUNDS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 100_000),
    "capital-loss": (0, 4500),
    "hours-per-week": (1, 100),
}
CATEGORIES = ("workclass", "marital-status", "occupation", "relationship", "race", "sex")
METHODS = {"algorithm": "gradient", "output": "output", "objective": "objective"}
INPUT = "input"


def read(path: Path) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return the features and whether the income is the higher one."""
    with path.open(encoding="utf-8") as lines:
        rows = [{key: value.strip() for key, value in row.items()} for row in csv.DictReader(lines)]
    frame = pd.DataFrame({name: [float(row[name]) for row in rows] for name in BOUNDS})
    for name in CATEGORIES:
        frame[name] = [row[name] for row in rows]
    return frame, np.array([row["salary-class"].startswith(">") for row in rows]).astype(int)


def accuracy(place: str, epsilon: float, known: Any, unknown: Any, domain: dict[str, list[str]]) -> float:
    """Return the share of the test file that one model gets right."""
    given = {"epsilon": epsilon, "delta": DELTA, "bounds": BOUNDS, "domain": domain}
    if place == INPUT:
        line = PrivateLinearRegression(**given, target_bounds=(0, 1)).fit(*known)
        return float(((line.predict(unknown[0]) > 0.5) == unknown[1]).mean())
    model = PrivateLogisticRegression(**given, method=METHODS[place], classes=[0, 1])
    return float(model.fit(*known).score(*unknown))


def measure(data: Path, *, runs: int, epsilons: Sequence[float] = EPSILONS) -> dict[str, list[tuple[float, float]]]:
    """Return for each place the median accuracy at each epsilon."""
    known, unknown = (read(data / "adult" / name) for name in ("adult.csv", "adult_test.csv"))
    # Adult's values are documented with the data set, so that reading them from both files gives nothing away.
    domain = {name: sorted({*known[0][name], *unknown[0][name]}) for name in CATEGORIES}
    return {
        place: [
            (epsilon, statistics.median(accuracy(place, epsilon, known, unknown, domain) for _ in range(runs)))
            for epsilon in epsilons
        ]
        for place in (INPUT, *METHODS)
    }


def draw(found: dict[str, list[tuple[float, float]]], runs: int) -> plotting.Figure:
    """Return the chart."""
    return plotting.lines(
        found,
        title="Where the noise goes",
        subtitle=f"Adult, 32,561 rows, 49 columns, delta 1e-5, median of {runs} runs; 0.851 without privacy",
        x="epsilon",
        y="accuracy on the test file",
        legend="place",
        log_x=True,
        from_zero=False,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and, if asked to, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args(arguments)
    found = measure(options.data, runs=options.runs)
    print("| place | " + " | ".join(f"{epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---" * (len(EPSILONS) + 1) + "|")
    for place, points in found.items():
        print(f"| {place} | " + " | ".join(f"{value:.3f}" for _, value in points) + " |")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        draw(found, options.runs).save(options.out / "where-noise-goes.svg")


if __name__ == "__main__":
    main()
