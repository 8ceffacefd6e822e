from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import compressive, harness
from cloister.core.random import SeededRandomSource
from cloister.learn.compressive.utility import svm
from tests.learn.compressive import worked

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines


def test_it_is_a_benchmark() -> None:
    assert "compressive" in harness.names()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("Diabetes", (768, 8)),
        ("Breast cancer", (683, 9)),
        ("Australian", (690, 14)),
        ("German", (1000, 24)),
        ("Ionosphere", (351, 34)),
    ],
)
def test_the_data_are_as_stated(
    name: str, shape: tuple[int, int], shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressive, "DATA", shared_data)
    X, y = compressive.load(name)
    assert X.shape == shape
    assert len(np.unique(y)) == 2


def test_a_row_tells_what_is_far_from_the_published_figure(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressive, "DATA", shared_data)
    monkeypatch.setitem(compressive.PUBLISHED, "Ionosphere", 50.0)
    row = compressive._published("Ionosphere", tests=3)
    assert row["met"] is False
    assert "(+" in row["ours"]
    assert "met" not in compressive._as_it_comes("Ionosphere", tests=2, learner=svm())


@pytest.mark.slow
def test_the_digits_meet_their_targets() -> None:
    X, y = worked.digits()
    rows = [*compressive._errors(X, y), *compressive._held_out(X, y, splits=2, source=SeededRandomSource(3))]
    assert [row["name"] for row in rows if row.get("met") is False] == []
    assert len(compressive._accuracies(X[:400], y[:400], splits=2)) == 8
