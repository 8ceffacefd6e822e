from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import cloister as cl
from cloister.errors import (
    DataError,
    MissingBoundsError,
    MissingExtraError,
    ModelError,
    ParameterError,
    ParameterTypeError,
    UnconfirmedSchemaError,
    UnknownColumnError,
)
from cloister.report import Report, Status
from cloister.synth.evaluation._quality_charts import share_chart
from cloister.synth.evaluation._quality_report import MOST_PANELS
from cloister.synth.evaluation._verdict import distance_status, gap_status, verdict_of
from tests.synth.evaluation.small_tables import LETTERS, PEOPLE, Memorizer, letters, people

ROWS = [("x", "red", 0), ("y", "blue", 3), ("z", "red", 1), ("x", "blue", 2)] * 10
QUICK: dict[str, Any] = {"models": ["tree"]}


@pytest.fixture(scope="module")
def people_evaluation() -> cl.synth.Evaluation:
    synthesizer = cl.synth.SpanningTree(epsilon=3).fit(people(1500, seed=1))
    return cl.synth.evaluate(
        people(1500, seed=1), synthesizer.sample(1500), holdout=people(700, seed=2), target="ill", promise=synthesizer
    )


def test_equal_tables_are_not_apart() -> None:
    found = cl.synth.evaluate(letters(ROWS), letters(ROWS[::-1]), target="color", **QUICK)
    assert found.fidelity is not None
    assert [item.worst for item in found.fidelity.marginals] == [0, 0, 0]
    assert found.fidelity.ranges.worst == 0
    assert found.fidelity.associations.mean == 0
    assert [item.pmse for item in found.fidelity.propensity] == pytest.approx([0, 0], abs=1e-9)
    assert found.privacy is not None
    assert found.privacy.copies.share == 1
    assert not found.privacy.has_control
    assert "no control for privacy" in str(found)


def test_the_order_of_rows_does_not_matter() -> None:
    first = cl.synth.evaluate(
        people(300, seed=1), people(300, seed=2), holdout=people(300, seed=3), target="ill", **QUICK
    )
    turned = [people(300, seed=seed).to_arrow().take(pa.array(range(299, -1, -1))) for seed in (1, 2, 3)]
    second = cl.synth.evaluate(turned[0], turned[1], holdout=turned[2], schema=PEOPLE, target="ill", **QUICK)
    assert first.to_dict() == second.to_dict()


def test_leaving_a_part_out_changes_no_other() -> None:
    whole = cl.synth.evaluate(people(200, seed=1), people(200, seed=2), target="ill", **QUICK)
    part = cl.synth.evaluate(people(200, seed=1), people(200, seed=2), parts=["privacy", "fidelity"])
    assert part.privacy == whole.privacy
    assert part.fidelity is not None
    assert whole.fidelity is not None
    assert part.fidelity.marginals == whole.fidelity.marginals
    assert part.fidelity.propensity == ()
    assert (part.training, part.clusters) == (None, None)


def test_who_repeats_rows_is_found_out_and_a_private_synthesizer_is_not() -> None:
    real, holdout = people(800, seed=1), people(800, seed=2)
    alarms = []
    for synthesizer in (Memorizer(), cl.synth.SpanningTree(epsilon=1)):
        made = synthesizer.fit(real).sample(800)
        found = cl.synth.evaluate(real, made, holdout=holdout, promise=synthesizer, parts=["privacy", "fidelity"])
        assert found.privacy is not None
        alarms.append(found.privacy.alarms)
        assert found.privacy.copies.score is not None
        assert found.privacy.nearness.score is not None
        is_repeating = isinstance(synthesizer, Memorizer)
        assert (found.privacy.copies.score > 6) == is_repeating
        assert (found.privacy.nearness.score > 6) == is_repeating
        if is_repeating:
            assert verdict_of(found).status is Status.BAD
            assert verdict_of(found).text.startswith("Do not release")
            assert "Such a table should not be released" in found.report().to_markdown()
    assert len(alarms[0]) >= 2


def test_a_good_table_is_called_good(people_evaluation: cl.synth.Evaluation) -> None:
    assert people_evaluation.fidelity is not None
    one, two, three = people_evaluation.fidelity.marginals
    assert one.mean < two.mean < three.mean < 0.5
    assert people_evaluation.training is not None
    assert people_evaluation.training.gap is not None
    assert people_evaluation.training.gap < 0.6
    assert people_evaluation.made_with == "SpanningTree"
    assert people_evaluation.promise is not None
    assert people_evaluation.promise.holds


def test_it_says_for_whom_it_is(people_evaluation: cl.synth.Evaluation) -> None:
    assert not people_evaluation.guarantee.holds
    assert "not for publication" in dict(people_evaluation.summary())["for whom"]
    values = people_evaluation.to_dict()
    assert next(iter(values)) == "schema"
    assert values["schema"] == "cloister.synthetic_evaluation/1"
    assert values["mode"] == "custodian"
    assert values["privacy"]["evidence_only"] is True
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert "trained on synthetic rows" in str(people_evaluation)
    assert repr(people_evaluation).startswith("Evaluation(mean total variation")


def test_the_report_holds_everything(people_evaluation: cl.synth.Evaluation, tmp_path: Path) -> None:
    report = people_evaluation.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    for words in (
        "For the custodian of the real rows only",
        "What is promised",
        "Column by column",
        "Columns together",
        "simplest guess",
        "holdout (control)",
        "not evidence of differential privacy",
        "The words of this report",
    ):
        assert words in page
    titles = [section.title for section in report.sections]
    assert titles[0] == "What is promised"
    assert Report.from_dict(report.to_dict()).to_dict() == report.to_dict()
    assert people_evaluation.plot().title == "How far apart each pair of columns is"


def test_a_membership_attack_is_in_the_report() -> None:
    table = people(200, seed=1)
    attack = cl.synth.membership(Memorizer(), table, records=20, fits=4)
    found = cl.synth.evaluate(table, people(200, seed=2), membership=attack, parts=["privacy"])
    assert found.to_dict()["privacy"]["membership"]["fits"] == 4
    assert "Finding out who was in the data" in found.report().to_markdown()
    assert dict(found.summary())["membership"] == str(attack)
    with pytest.raises(ParameterError, match='"fidelity" among parts'):
        found.plot()


def test_a_report_without_a_promise_or_a_control_says_so() -> None:
    found = cl.synth.evaluate(letters(ROWS), letters(ROWS), parts="privacy")
    page = found.report().to_markdown()
    assert "nothing is promised here" in page
    assert "There was no holdout" in page
    named = cl.synth.evaluate(letters(ROWS), letters(ROWS), parts="privacy", promise=cl.PureDP(epsilon=2))
    assert "epsilon = 2" in named.report().to_markdown()


def test_regression_and_missing_clusters_are_reported() -> None:
    same = [("x", "red", 0)] * 60
    found = cl.synth.evaluate(letters(ROWS), letters(ROWS), target="size", task="regression", **QUICK)
    assert "Squared error" in found.report().to_markdown()
    assert found.clusters is not None
    few = cl.synth.evaluate(letters(same), letters(same), parts=["clusters"])
    assert few.clusters is None
    assert few.notes == ("No clusters: There are too few different rows for 2 clusters.",)


def test_one_column_is_enough() -> None:
    found = cl.synth.evaluate(letters(ROWS), letters(ROWS), columns=["color"])
    assert found.fidelity is not None
    assert [item.ways for item in found.fidelity.marginals] == [1]
    assert found.fidelity.associations.mean is None
    found.report()


def test_many_columns_are_drawn_as_far_as_there_is_room() -> None:
    names = [f"c{place}" for place in range(45)]
    schema = cl.Schema([cl.Column(name=name, categories=["a", "b"]) for name in names])
    table = cl.open_table(pa.table({name: ["a", "b"] * 10 for name in names}), schema=schema)
    found = cl.synth.evaluate(table, table, parts=["fidelity"])
    assert found.fidelity is not None
    assert found.fidelity.marginals[2].compared == 2000
    assert "2,000 of 14,190" in str(found.summary())
    page = found.report().to_markdown()
    assert f"{45 - MOST_PANELS} further columns" in page
    assert "the 40 columns that differ most" in page


def test_tables_of_any_origin(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=["letter", "color", "size"])
    frame.to_csv(tmp_path / "made.csv", index=False)
    LETTERS.write(tmp_path / "schema.yaml")
    expected = cl.synth.evaluate(letters(ROWS), letters(ROWS[:30]), parts=["fidelity"]).to_dict()
    frame[:30].to_csv(tmp_path / "made.csv", index=False)
    floats = frame[:30].assign(size=frame["size"].astype(float))
    for real, made in (
        (frame, floats),
        (letters(ROWS, schema=None), tmp_path / "made.csv"),
        (frame, pa.table(frame[:30])),
    ):
        found = cl.synth.evaluate(real, made, schema=tmp_path / "schema.yaml", parts=["fidelity"])
        assert found.to_dict() == expected


def test_dates_and_whole_numbers_in_other_types() -> None:
    schema = cl.Schema(
        [
            cl.Column(name="day", kind="datetime", bounds=(dt.date(2026, 1, 1), dt.date(2026, 12, 31))),
            cl.Column(name="weight", kind="numeric", bounds=(0, 10)),
        ]
    )
    days = [dt.date(2026, 1, 1), dt.date(2026, 6, 1), None]
    real = cl.open_table(pa.table({"day": days, "weight": [0.25, 2.0, 3.0]}), schema=schema)
    times = pa.array([None if day is None else dt.datetime(day.year, day.month, 1) for day in days])
    made = pa.table({"day": times, "weight": [0, 2, 3]})
    found = cl.synth.evaluate(real, made, parts=["fidelity"])
    assert found.fidelity is not None
    assert found.fidelity.marginals[1].mean == 0
    assert "missing" in found.report().to_markdown()


@pytest.mark.parametrize(
    ("given", "error", "fix"),
    [
        ({"synthetic": {"letter": ["x"], "size": [1]}}, ParameterError, r"columns=\['letter', 'size'\]"),
        ({"synthetic": {"a": ["x"]}}, ParameterError, "the same columns"),
        ({"synthetic": {"letter": ["x"], "color": ["red"], "size": [1], "b": [1]}}, ParameterError, "columns="),
        ({"synthetic": {"letter": ["x"], "color": ["red"], "size": ["1"]}}, ParameterError, "state the storage"),
        ({"holdout": {"letter": ["x"], "size": [1]}}, ParameterError, r"columns="),
        ({"real": letters([])}, DataError, "give a table with rows"),
        ({"synthetic": letters([])}, DataError, "give a table with rows"),
        ({"holdout": letters([])}, DataError, "give a table with rows"),
        ({"real": letters(ROWS, schema=None)}, MissingBoundsError, "schema"),
        ({"target": "weight"}, UnknownColumnError, "size"),
        ({"columns": ["letter", "weight"]}, UnknownColumnError, "letter"),
        ({"target": "color", "models": "tree"}, ParameterTypeError, r'models=\["tree"\]'),
        ({"parts": []}, ParameterError, "fidelity"),
        ({"parts": ["beauty"]}, ParameterError, "fidelity"),
        ({"clusters": 1}, ParameterError, "2"),
        ({"most_rows": 1}, ParameterError, "10"),
        ({"promise": "trust me"}, ParameterTypeError, "fitted synthesizer"),
        ({"promise": cl.synth.SpanningTree()}, ModelError, "fit"),
        ({"membership": 0.5}, ParameterTypeError, r"cl\.synth\.membership"),
    ],
)
def test_bad_input_is_refused_with_a_fix(given: dict[str, Any], error: type[Exception], fix: str) -> None:
    tables = {
        name: pa.table(given.pop(name)) if isinstance(given.get(name), dict) else given.pop(name, letters(ROWS))
        for name in ("real", "synthetic", "holdout")
    }
    with pytest.raises(error, match=fix) as caught:
        cl.synth.evaluate(tables["real"], tables["synthetic"], holdout=tables["holdout"], **given)
    assert "Fix:" in str(caught.value)


def test_guessed_cells_are_refused() -> None:
    guessed = cl.Schema.infer(letters(ROWS, schema=None))
    with pytest.raises(UnconfirmedSchemaError, match="confirm"):
        cl.synth.evaluate(letters(ROWS, schema=guessed), letters(ROWS))


def test_models_need_an_extra_and_the_rest_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r'pip install "cloister\[learn\]"'):
        cl.synth.evaluate(letters(ROWS), letters(ROWS))
    found = cl.synth.evaluate(letters(ROWS), letters(ROWS), parts=["fidelity", "privacy"])
    assert found.fidelity is not None


def test_progress_is_told() -> None:
    told: list[float] = []
    cl.synth.evaluate(letters(ROWS), letters(ROWS), parts=["fidelity"], progress=lambda share, _: told.append(share))
    assert told == sorted(told)
    assert told[-1] == 1


def test_statuses() -> None:
    assert distance_status(0.04, 0.01) is Status.GOOD
    assert distance_status(0.12, 0.1) is Status.GOOD
    assert distance_status(0.12, 0.01) is Status.ATTENTION
    assert distance_status(0.5, 0.01) is Status.BAD
    assert [gap_status(gap) for gap in (None, 0.1, 0.3, 0.9)] == [
        Status.NEUTRAL,
        Status.GOOD,
        Status.ATTENTION,
        Status.BAD,
    ]


def test_rare_names_are_drawn_together() -> None:
    names = [f"n{place}" for place in range(30)]
    figure = share_chart("job", names, [1 / 30] * 30, [0.5, 0.5, *[0.0] * 28], ordered=False)
    rows = figure.to_table()[1]
    assert len(rows) == 10
    assert rows[-1][0] == "21 others"
    assert rows[-1][1] == "70%"


def test_a_fitted_synthesizer_reports_what_may_be_published() -> None:
    synthesizer = cl.synth.SpanningTree(epsilon=1, delta=1e-6).fit(people(500, seed=1))
    report = synthesizer.report()
    assert [section.title for section in report.sections] == [
        "What is promised",
        "What was measured",
        "How exact that is",
        "What rows are drawn from",
        "Columns",
    ]
    page = report.to_markdown()
    assert "epsilon = 1" in page
    labels = [step.label for step in synthesizer.steps_]
    assert all(label in page for label in labels)
    often = next(label for label in labels if labels.count(label) > 1)
    assert page.count(f"{often}, {labels.count(often)} times") == 1
    assert "in the model" in page
    assert "| real" not in page
    assert report.verdict is not None
    assert report.verdict.status is Status.GOOD
    copying = Memorizer().fit(people(50, seed=1)).report()
    assert copying.verdict is not None
    assert copying.verdict.status is Status.BAD
    assert "neither its rows nor this page are protected" in copying.summary
