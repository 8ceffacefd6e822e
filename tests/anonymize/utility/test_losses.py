from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.assessment import assess
from cloister.anonymize.utility import ReleaseUtility
from cloister.testing import check_golden, load_golden

GOLDEN = Path(__file__).parents[2] / "golden" / "anonymize" / "utility"
WORK = cl.Hierarchy.from_levels(
    {
        "State-gov": ["Government", "Workclass"],
        "Local-gov": ["Government", "Workclass"],
        "Federal-gov": ["Government", "Workclass"],
        "Private": ["Private", "Workclass"],
        "inc": ["Self-employed", "Workclass"],
        "not-inc": ["Self-employed", "Workclass"],
        "without-pay": ["Unemployed", "Workclass"],
        "never-worked": ["Unemployed", "Workclass"],
    }
)
AGE = cl.Hierarchy.from_levels({age: ["30-35" if age < 35 else "35-40", "30-40"] for age in range(30, 40)})
JOBS = cl.Hierarchy.taxonomy({"Professional": ["Engineer", "Lawyer"], "Artist": ["Writer", "Dancer"]})


def _compared(raw: dict[str, list[object]], shown: dict[str, list[object]], schema: cl.Schema) -> ReleaseUtility:
    original = cl.open_table(pa.table(raw), schema=schema)
    utility = assess(cl.open_table(pa.table(shown)), original=original).utility
    assert utility is not None
    return utility


def test_worked_examples_of_lm() -> None:
    schema = cl.Schema(
        [
            cl.Column(name="work", hierarchy=WORK, weight=6),
            cl.Column(name="age", kind="numeric", hierarchy=AGE, weight=4),
        ]
    )

    def lost(rows: list[list[str]]) -> float:
        raw = {"work": ["State-gov", "Private"][: len(rows)], "age": [30, 38][: len(rows)]}
        shown = {"work": [row[0] for row in rows], "age": [row[1] for row in rows]}
        return _compared(raw, shown, schema).losses.lm

    check_golden(load_golden(GOLDEN / "losses.toml"), lost)


def test_distortion_counts_the_levels_climbed() -> None:
    ages = cl.Hierarchy.intervals((30, 39), widths=[5])
    schema = cl.Schema([cl.Column(name="job", hierarchy=JOBS), cl.Column(name="age", kind="numeric", hierarchy=ages)])
    raw = {
        "job": ["Engineer", "Engineer", "Lawyer", "Writer", "Writer", "Dancer", "Dancer"],
        "age": [35, 38, 38, 30, 30, 30, 30],
    }
    jobs = ["Professional"] * 3 + ["Artist"] * 4
    coarse = _compared(raw, {"job": jobs, "age": ["[35, 40)"] * 3 + ["[30, 35)"] * 4}, schema)
    fine = _compared(raw, {"job": jobs, "age": ["[35, 40)"] * 3 + ["30"] * 4}, schema)
    assert coarse.losses.distortion == 14
    assert fine.losses.distortion == 10
    assert coarse.losses.precision == pytest.approx(0.5)
    assert fine.losses.ncp < coarse.losses.ncp


def test_suppressed_rows_lose_everything() -> None:
    schema = cl.Schema([cl.Column(name="job", hierarchy=JOBS)])
    raw = {"job": ["Engineer", "Lawyer", "Writer", "Dancer"]}
    dropped = _compared(raw, {"job": ["Engineer", "Lawyer", "Writer"]}, schema).losses
    starred = _compared(raw, {"job": ["Engineer", "Lawyer", "Writer", "*"]}, schema).losses
    for losses in (dropped, starred):
        assert losses.ncp == 0.25
        assert losses.distortion == 2
        assert losses.suppressed == 0.25
        assert losses.discernibility == 3 + 4
        assert losses.entropy == pytest.approx(0.25)
        assert losses.by_column == {"job": 0.25}


def test_discernibility_and_average_class() -> None:
    schema = cl.Schema([cl.Column(name="job", hierarchy=JOBS)])
    raw = {"job": ["Engineer", "Lawyer", "Writer", "Dancer", "Dancer"]}
    losses = _compared(raw, {"job": ["Professional"] * 2 + ["Artist"] * 3}, schema).losses
    assert losses.discernibility == 4 + 9
    assert losses.average_class == pytest.approx(2.5 / 2)
    assert losses.to_dict()["lm"] == pytest.approx(5 / 3)


def test_the_entropy_left_inside_labels() -> None:
    """Inside Professional 1 bit of 2 is untold; inside Artist likewise."""
    schema = cl.Schema([cl.Column(name="job", hierarchy=JOBS)])
    raw = {"job": ["Engineer", "Lawyer", "Writer", "Dancer"]}
    losses = _compared(raw, {"job": ["Professional"] * 2 + ["Artist"] * 2}, schema).losses
    assert losses.entropy == pytest.approx(0.5)


def test_a_column_with_one_value_has_no_entropy_to_lose() -> None:
    schema = cl.Schema([cl.Column(name="job", hierarchy=JOBS)])
    assert _compared({"job": ["Writer"] * 3}, {"job": ["Artist"] * 3}, schema).losses.entropy == 0
