"""How near to the truth a sample's estimate of the population's uniqueness comes.

The truth is the share of a made-up population's persons who have a combination of attributes of their own, counted.
Each figure is a mean over random samples; the error is the mean distance from the truth. ARX does not run here: its
rule is applied to the published estimates, programmed from the papers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import synthetic_population, uniqueness_models
from cloister.anonymize.risk.population import estimate_population
from cloister.core.random import SeededRandomSource

TITLE = "Population uniqueness from a sample"
SHARES = (0.01, 0.05, 0.1, 0.3)
SAMPLES = 5

Estimate = Callable[[np.ndarray, int], float]
PUBLISHED: dict[str, Estimate] = {
    "ARX's rule": uniqueness_models.decision_rule,
    "Pitman": uniqueness_models.pitman,
    "Zayatz": uniqueness_models.zayatz,
    "slide negative binomial": uniqueness_models.slide_negative_binomial,
}


def main(people: int = synthetic_population.PEOPLE, samples: int = SAMPLES) -> list[dict[str, Any]]:
    """Return, for each sampling share, our estimate beside the published ones."""
    codes = synthetic_population.people(people)
    truth = synthetic_population.uniqueness(codes)
    rows = [{"name": "truth: unique share of the population", "ours": truth, "unit": "share"}]
    for share in SHARES:
        rows += _compared(codes, truth, share, samples)
    return rows


def _compared(codes: np.ndarray, truth: float, share: float, samples: int) -> list[dict[str, Any]]:
    source = SeededRandomSource(round(1000 * share))
    drawn = [synthetic_population.classes(synthetic_population.sample(codes, share, source)) for _ in range(samples)]
    ours = [estimate_population(counts, population=len(codes), codes=cells) for cells, counts in drawn]
    values = np.array([found.uniqueness for found in ours])
    row = {"name": f"{share:.0%} sample: estimate", "ours": float(values.mean()), "unit": "share"}
    rows = []
    error = float(np.abs(values - truth).mean())
    for name, estimate in PUBLISHED.items():
        theirs = np.array([estimate(counts, len(codes)) for _, counts in drawn])
        rows.append({**row, "peer": float(theirs.mean()), "peer_name": name})
        if name == "ARX's rule":
            rows.append(_judged(share, error, float(np.abs(theirs - truth).mean())))
    covered = np.mean([found.interval[0] <= truth <= found.interval[1] for found in ours])
    return [*rows, {"name": f"{share:.0%} sample: 95% intervals that hold the truth", "ours": float(covered)}]


def _judged(share: float, error: float, theirs: float) -> dict[str, Any]:
    return {
        "name": f"{share:.0%} sample: error",
        "ours": error,
        "peer": theirs,
        "peer_name": "ARX's rule",
        "ratio": theirs / error,
        "unit": "share",
        "target": "below ARX's rule",
        "met": error < theirs,
    }
