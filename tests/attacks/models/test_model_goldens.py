from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from sklearn.tree import DecisionTreeClassifier

from cloister.anonymize.operations.noise import uniforms
from cloister.attacks import membership, model_extraction, model_inversion
from cloister.core.random import RandomSource, SeededRandomSource, integers_below
from cloister.testing import check_golden, load_golden

FOLDER = Path(__file__).parents[2] / "golden" / "attacks"
MODELS: dict[str, Callable[[int], Any]] = {
    "logistic": lambda _: LogisticRegression(C=0.01, max_iter=1000),
    "forest": lambda seed: RandomForestClassifier(n_estimators=200, random_state=seed),
    "tree": lambda seed: DecisionTreeClassifier(random_state=seed),
}


@cache
def digits() -> tuple[Any, Any]:
    images, labels = load_digits(return_X_y=True)
    return images / 16, labels


def _wrong(labels: Any, share: float, source: RandomSource) -> Any:
    moved = uniforms(source, len(labels)) < share
    return np.where(moved, (labels + 1 + integers_below(source, 9, len(labels))) % 10, labels)


@cache
def _on_digits(model: str, noise: float) -> dict[str, float]:
    figures = []
    images, labels = digits()
    for seed in range(3):
        said = _wrong(labels, noise, SeededRandomSource(seed))
        inside, outside, known, others = train_test_split(
            images, said, test_size=0.5, random_state=seed, stratify=labels
        )
        fitted = MODELS[model](seed).fit(inside, known)
        found = membership(fitted, (inside, known), (outside, others), kind="confidence")
        gap = fitted.score(inside, known) - fitted.score(outside, others)
        figures.append((found.auc, found.largest_gap, found.rate_at_1_percent, gap))
    return dict(zip(("area", "gap", "found", "accuracy_gap"), np.mean(figures, axis=0).tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["membership_on_digits", "membership_rate_on_digits"])
def test_membership_on_digits(name: str) -> None:
    golden = load_golden(FOLDER / f"{name}.toml")
    wanted = {case.inputs["model"] + str(case.inputs["noise"]): set(case.expected) for case in golden.cases}

    def figures(model: str, noise: float) -> dict[str, float]:
        return {name: value for name, value in _on_digits(model, noise).items() if name in wanted[model + str(noise)]}

    check_golden(golden, figures)


def _inverted(strength: float) -> dict[str, float]:
    model = LogisticRegression(C=0.03, max_iter=1000).fit(*digits())
    found = model_inversion(model, digits(), bounds=(0, 1), strength=strength)
    return {"least": min(found.correlations), "mean": found.mean_correlation, "right": found.success}


def _extracted(questions: list[int], decimals: int | None = None) -> dict[str, Any]:
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = scale(rows)
    model = LogisticRegression(max_iter=1000).fit(rows, labels)
    found = model_extraction(
        model, bounds=(-1, 1), queries=questions, decimals=decimals, test=rows, random_state=SeededRandomSource(1)
    )
    assert found.queries == questions[-1]
    exact = found.coefficient_error is not None and found.coefficient_error < 1e-12
    return {"agreement": [share for _, share in found.fidelity], "is_exact": exact}


def test_inversion_of_digits() -> None:
    check_golden(load_golden(FOLDER / "inversion_of_digits.toml"), _inverted)


def test_extraction_of_30_features() -> None:
    check_golden(load_golden(FOLDER / "extraction_of_30_features.toml"), _extracted)
