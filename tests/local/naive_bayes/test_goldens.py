from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cloister.local import Bins
from cloister.local.naive_bayes._class_means import ClassVector
from cloister.local.naive_bayes._joint_tables import JointTable, project_probabilities
from cloister.local.naive_bayes._questions import JointCoding
from cloister.local.naive_bayes.gaussian_model import class_means
from cloister.testing import check_golden, load_golden, load_goldens

FOLDER = Path(__file__).parents[2] / "golden" / "local" / "naive_bayes"


def binned(numbers: list[float], count: int, kind: str) -> list[list[float]]:
    bins = (
        Bins.equal_width((min(numbers), max(numbers)), count=count)
        if kind == "equal_width"
        else Bins.equal_frequency(numbers, count=count)
    )
    codes = bins.codes(numbers)
    return [[number for number, code in zip(numbers, codes, strict=True) if code == place] for place in range(count)]


def noiseless_means(labels: list[int], numbers: list[float]) -> dict[str, list[float]]:
    protocol = ClassVector(classes=2, epsilon=1, steps=10)
    codes = protocol.code(np.array(labels), np.array(numbers))
    vectors = np.zeros((len(codes), 2), dtype=np.int64)
    vectors[np.arange(len(codes)), codes[:, 0]] = codes[:, 1]
    products = protocol.products(protocol.output_space.rows(y=vectors)).products
    shares = np.bincount(labels) / len(labels)
    return {"products": products.tolist(), "means": class_means(products, shares).tolist()}


def conditionals(counts: list[int], classes: int) -> list[list[float]]:
    coding = JointCoding((len(counts) // classes,), classes)
    table = JointTable(coding.table(np.array(counts), 0), sum(counts), 0.0, 1.0)
    return [row.tolist() for row in project_probabilities(table, smoothing=0)]


def joint_code(value: int, label: int, *, classes: int) -> int:
    return int(JointCoding((value,), classes).encode([np.array([value - 1])], np.array([label - 1]))[0]) + 1


FUNCTIONS = {"joint_codes": joint_code, "bins": binned, "class_means": noiseless_means, "conditionals": conditionals}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_worked_example(name: str) -> None:
    """LDP-13 (codes) and LDP-14 (bins)."""
    check_golden(load_golden(FOLDER / f"{name}.toml"), FUNCTIONS[name])


def test_every_worked_example_is_checked() -> None:
    assert len(load_goldens(FOLDER)) == len(FUNCTIONS)
