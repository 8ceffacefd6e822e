"""Sweeps of k, l, t and algorithms, and the points worth choosing."""

from __future__ import annotations

import json
from typing import Any

import pytest

import cloister as cl
from cloister.anonymize.frontier import Frontier
from cloister.errors import ParameterError, UnsatisfiableError
from tests.anonymize.people import people


@pytest.fixture(scope="module")
def swept() -> Frontier:
    return cl.anonymize.frontier(people(), k=(2, 6, 12), algorithms=("optimal", "mondrian"))


def test_every_combination_is_a_release_that_holds(swept: Frontier) -> None:
    assert [(point.algorithm, point.label) for point in swept.points] == [
        (algorithm, f"k = {k}") for algorithm in ("optimal", "mondrian") for k in (2, 6, 12)
    ]
    for point in swept.points:
        assert point.release.classes.rows.min() >= point.models[0].k  # type: ignore[attr-defined]
        assert point.risk == 1 / point.release.classes.rows.min()
        assert point.loss == point.release.regions.loss()
        assert point.suppressed == 0


def test_the_best_points_are_beaten_by_none(swept: Frontier) -> None:
    best = swept.best
    assert [point.risk for point in best] == sorted(point.risk for point in best)
    assert [point.loss for point in best] == sorted((point.loss for point in best), reverse=True)
    for point in swept.points:
        assert any(other.risk <= point.risk and other.loss <= point.loss for other in best)


def test_a_point_is_picked_by_its_risk(swept: Frontier) -> None:
    release = swept.pick(risk=1 / 6)
    assert release.classes.rows.min() >= 6
    assert release.regions.loss() == min(point.loss for point in swept.points if point.risk <= 1 / 6)
    with pytest.raises(ParameterError, match="sweep larger k"):
        swept.pick(risk=0.001)


def test_a_sweep_is_told_as_text_json_and_chart(swept: Frontier) -> None:
    assert str(swept) == f"6 releases, {len(swept.best)} of them on the frontier"
    assert len(swept.summary()) == 6
    assert any("(on the frontier)" in text for _, text in swept.summary())
    written = json.loads(json.dumps(swept.to_dict()))
    assert written["schema"] == "cloister.frontier/1"
    assert len(written["points"]) == 6
    assert "What protection costs" in json.dumps(swept.plot().to_dict())


def test_l_and_t_are_about_a_column() -> None:
    told: list[float] = []
    found = cl.anonymize.frontier(
        people(),
        k=[2],
        l=[2],
        t=["0.5"],
        attribute="disease",
        algorithms=["mondrian"],
        progress=lambda share, what: told.append(share),
    )
    assert found.points[0].label == "k = 2, l = 2 (disease), t = 0.5 (disease)"
    assert told[0] == 0
    assert told[-1] == 1
    with pytest.raises(ParameterError, match='attribute="disease"'):
        cl.anonymize.frontier(people(), l=[2])


def test_kinds_and_several_columns_are_swept_as_asked() -> None:
    how: dict[str, Any] = {"attribute": ["disease", "pay"], "l_kind": "recursive", "c": 9, "t_kind": "equal"}
    found = cl.anonymize.frontier(people(), k=2, l=2, t="0.9", algorithms="mondrian", **how)
    models = found.points[0].models
    assert [model.brief() for model in models[1:3]] == ["c = 9, l = 2 (disease) per row", "t = 0.9 (disease) per row"]
    assert [getattr(model, "attribute", None) for model in models] == [None, "disease", "disease", "pay", "pay"]
    ordered = cl.anonymize.frontier(people(), k=2, t="0.5", attribute="pay", t_kind="ordered", algorithms="mondrian")
    assert ordered.points[0].models[1] == cl.TCloseness("pay", t="0.5", kind="ordered")


def test_what_cannot_be_satisfied_is_listed() -> None:
    found = cl.anonymize.frontier(people(), k=(2, 100), algorithms=["mondrian"])
    assert len(found.points) == 1
    assert found.impossible[0].startswith("mondrian, k = 100 per row: No release can satisfy")
    with pytest.raises(UnsatisfiableError, match="sweep weaker models"):
        cl.anonymize.frontier(people(), k=[100], algorithms=["mondrian"])


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"k": []}, "at least one k"),
        ({"algorithms": []}, "one algorithm"),
        ({"k": [1], "l": [2], "attribute": "disease", "algorithms": ["anatomy"]}, "leave anatomy out"),
    ],
)
def test_sweeps_of_nothing_and_of_two_tables_are_refused(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        cl.anonymize.frontier(people(), **options)
