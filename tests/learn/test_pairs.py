"""The two ways to the same counts: from arrays, and from the groups that an engine counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cloister as cl
from cloister.errors import CloisterError
from cloister.learn import PrivateCategoricalNB, PrivateGaussianNB
from cloister.learn._rows import Pairs
from tests.learn.quiet_naive_bayes import exact_vector, without_noise

FRAME = pd.DataFrame(
    {
        "color": ["red", "blue", None, "green", "red", "blue", "red", "red"] * 3,
        "rooms": [1, 2, 3, 9, 2, 2, 1, 1] * 3,
        "age": [17, 29, 30, 44, 45, 60, 95, -4] * 3,
        "height": [1.5, 1.75, float("nan"), 2.5, 0.5, 1.25, 1.75, 1.749999] * 3,
        "member": [True, False, True, True, False, False, True, True] * 3,
        "label": ["yes", "no", "yes", "no", "no", "yes", "no", "yes"] * 3,
    }
)
OPTIONS: dict[str, Any] = {
    "domain": {"color": ["blue", "red"], "rooms": [1, 2, 3], "member": [False, True]},
    "bins": {"age": [17, 30, 44.5, 90], "height": 4},
    "bounds": {"height": (1, 2)},
    "classes": ["no", "yes"],
}


def by_hand(frame: pd.DataFrame) -> list[list[int]]:
    """Count with pandas."""
    cuts = {
        "age": pd.cut(frame["age"].clip(17, 90), [17, 30, 44.5, 91], right=False, labels=False),
        "height": pd.cut(frame["height"].clip(1, 2), [1, 1.25, 1.5, 1.75, 2.1], right=False, labels=False),
    }
    cells = [*(("color", item) for item in ("blue", "red")), *(("rooms", item) for item in (1, 2, 3))]
    cells += [*(("age", item) for item in range(3)), *(("height", item) for item in range(4))]
    cells += [("member", False), ("member", True)]
    return [
        [int(((cuts.get(name, frame[name]) == item) & (frame["label"] == label)).sum()) for name, item in cells]
        for label in ("no", "yes")
    ]


@pytest.mark.filterwarnings("ignore::cloister.errors.DataWarning")
def test_frames_and_tables_give_the_same_exact_counts(tmp_path: Path) -> None:
    expected = by_hand(FRAME)
    X, y = FRAME.drop(columns="label"), FRAME["label"]
    assert exact_vector(PrivateCategoricalNB(**OPTIONS), X, y).tolist() == expected
    assert exact_vector(PrivateCategoricalNB(**OPTIONS), cl.open_table(FRAME), "label").tolist() == expected
    FRAME.to_parquet(tmp_path / "rows.parquet")
    stored = cl.open_table(tmp_path / "rows.parquet")
    assert exact_vector(PrivateCategoricalNB(**OPTIONS), stored, "label").tolist() == expected


@pytest.mark.filterwarnings("ignore::cloister.errors.DataWarning")
def test_tables_are_predicted_as_frames_are() -> None:
    with without_noise():
        model = PrivateCategoricalNB(**OPTIONS).fit(cl.open_table(FRAME), "label")
    X = FRAME.drop(columns="label")
    assert (model.predict_log_proba(cl.open_table(X)) == model.predict_log_proba(X)).all()
    assert model.n_features_in_ == 5


def test_rows_with_another_target_are_left_out_of_tables() -> None:
    frame = FRAME.assign(label=["yes", None, "maybe", "no"] * 6)
    known = frame["label"].isin(["yes", "no"])
    found = exact_vector(PrivateCategoricalNB(**OPTIONS), cl.open_table(frame), "label")
    assert found.tolist() == by_hand(frame[known])


def test_a_schema_declares_what_the_estimator_does_not() -> None:
    schema = cl.Schema.from_dict(
        {
            "columns": {
                "color": {"kind": "nominal", "categories": ["blue", "red"]},
                "height": {"kind": "numeric", "bounds": [1, 2]},
                "label": {"kind": "nominal", "categories": ["no", "yes"]},
            }
        }
    )
    frame = FRAME[["color", "height", "label"]]
    tabled = exact_vector(PrivateCategoricalNB(bins=4), cl.open_table(frame, schema=schema), "label")
    with pytest.warns(cl.errors.DataWarning):
        framed = exact_vector(PrivateCategoricalNB(bins=4, schema=schema), frame[["color", "height"]], frame["label"])
    assert tabled.tolist() == framed.tolist()
    assert tabled.shape == (2, 6)


def test_the_engine_is_asked_for_pairs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    counting = cl.Table.frequencies

    def frequencies(self: Any, columns: Any, **options: Any) -> Any:
        asked.append(tuple(columns))
        return counting(self, columns, **options)

    monkeypatch.setattr(cl.Table, "frequencies", frequencies)
    PrivateCategoricalNB(**OPTIONS).fit(cl.open_table(FRAME), "label")
    assert asked == [(name, "label") for name in ("color", "rooms", "age", "height", "member")]


def test_gaussian_models_of_frames_and_tables_meet_the_same_numbers() -> None:
    frame = FRAME[["rooms", "label"]]
    model = PrivateGaussianNB(bounds={"rooms": (0, 10)}, classes=["no", "yes"])
    framed = exact_vector(model, frame[["rooms"]], frame["label"])
    assert framed.tolist() == exact_vector(model, cl.open_table(frame), "label").tolist()


@pytest.mark.filterwarnings("ignore::cloister.errors.DataWarning")
@pytest.mark.parametrize("kind", ["Int64", "Float64", "int64[pyarrow]", "object"])
def test_numbers_that_pandas_knows_to_be_missing_are_in_no_count(kind: str) -> None:
    frame = pd.DataFrame(
        {"age": pd.array([20, None, 40, 40], dtype=kind), "rooms": pd.array([1, 2, None, 9], dtype=kind)}
    )
    model = PrivateCategoricalNB(domain={"rooms": [1, 2]}, bins={"age": [18, 30, 60]}, classes=[0, 1])
    assert exact_vector(model, frame, [0, 0, 1, 1]).tolist() == [[1, 0, 1, 1], [0, 2, 0, 0]]


def test_pairs_do_not_show_what_they_hold() -> None:
    assert repr(Pairs((np.array([[12345]]),))) == "Pairs(features=1)"


def test_texts_in_bins_are_refused() -> None:
    for X, y in ((cl.open_table(FRAME[["color", "label"]]), "label"), (FRAME[["color"]], FRAME["label"])):
        with pytest.raises(CloisterError, match="Fix: "):
            PrivateCategoricalNB(bins={"color": [0, 1]}, classes=["no", "yes"]).fit(X, y)
