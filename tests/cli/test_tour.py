from __future__ import annotations

import json

import pytest

from cloister.cli import app, tour


def _document(capsys: pytest.CaptureFixture[str]) -> dict:
    assert app.run(["tour", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_tour_answers_with_price_margin_and_promise(capsys: pytest.CaptureFixture[str]) -> None:
    document = _document(capsys)
    assert document["schema"] == "cloister.tour/1"
    first, second = document["answers"]
    assert first["cost"]["epsilon"] == "1/5"
    assert first["answer"]["guarantee"]["unit"] == "patient"
    assert first["answer"]["guarantee"]["holds"]
    assert first["answer"]["margin"]["half_width"] > 0
    assert len(second["answer"]["value"]) == len(tour.VISITS)
    assert document["remaining"]["epsilon"] == "1/2"


def test_the_tour_is_near_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    from cloister.data.examples import hospital_table

    table = hospital_table()
    document = _document(capsys)
    # Ten times the 95% margin is exceeded with a probability below exp(-29).
    for question, answered in zip(tour._questions(), document["answers"], strict=True):
        truth = question.compute(table)
        noisy = answered["answer"]["value"]
        far = 10 * answered["answer"]["margin"]["half_width"]
        pairs = [(truth, noisy)] if isinstance(truth, int) else zip(truth, noisy, strict=True)
        assert all(abs(int(true) - got) <= far for true, got in pairs)


def test_two_runs_differ(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [json.dumps([answered["answer"]["value"] for answered in _document(capsys)["answers"]]) for _ in range(6)]
    assert len(set(runs)) > 1


def test_the_tour_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["tour"]) == 0
    shown = capsys.readouterr().out
    for words in ("made up", "give or take", "19 times out of 20", "What was promised", "Epsilon 0.5 of 1", "Next"):
        assert words in shown


def test_the_price_is_paid_before_the_table_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.accounting.budget import Budget
    from cloister.accounting.ledger import open_ledger
    from cloister.cli.commands import CommandOutput

    def fail(table: object) -> int:
        raise RuntimeError("the disk is broken")

    ledger = open_ledger("memory:")
    ledger.open_account(tour.DATASET, budget=Budget(epsilon=1), unit="patient")
    with pytest.raises(RuntimeError, match="broken"):
        tour._ask(CommandOutput(as_json=True), ledger, None, tour.TourQuestion("Broken?", "0.2", fail))
    assert ledger.remaining(tour.DATASET) == Budget(epsilon="0.8")
