from __future__ import annotations

from pathlib import Path

import numpy as np

from cloister.anonymize.utility.losses import SquaredError, squared_error
from cloister.testing import check_golden, load_golden

GOLDEN = Path(__file__).parents[2] / "golden" / "anonymize" / "utility" / "microaggregation.toml"


def test_the_worked_example() -> None:
    def measured(clusters: list[list[int]]) -> dict[str, float]:
        original = np.array([value for cluster in clusters for value in cluster], dtype=float)
        released = np.array([np.mean(cluster) for cluster in clusters for _ in cluster])
        found = squared_error("salary", original, released, np.ones(len(original), dtype=np.int64))
        return {"sse": found.sse, "sst": found.sst, "loss_in_ten_thousandths": 10_000 * found.loss}

    check_golden(load_golden(GOLDEN), measured)


def test_a_constant_column_loses_nothing() -> None:
    assert SquaredError(column="x", sse=0.0, sst=0.0).loss == 0
    assert SquaredError(column="x", sse=1.0, sst=4.0).to_dict()["loss"] == 0.25
