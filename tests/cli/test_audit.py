from __future__ import annotations

import json
from typing import Any

import pytest

from cloister import attacks
from cloister.cli import app


def test_one_mechanism_is_audited(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["audit", "laplace", "--family", "mechanism", "--seconds", "5"]) == 0
    assert "laplace" in capsys.readouterr().out


def test_a_refuted_promise_ends_with_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuting(**options: Any) -> attacks.AuditsOfEverything:
        assert options["families"] == ("synthesizer",)
        subject = AuditedAlgorithm(family="synthesizer", name="toy", outcome="refuted", epsilon_lower=3.0)
        return attacks.AuditsOfEverything(subjects=(subject,), confidence=0.999)

    from cloister.attacks.auditing.registry_audit import AuditedAlgorithm

    monkeypatch.setattr(attacks, "audit_everything", refuting)
    assert app.run(["audit", "--family", "synthesizer", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["schema"] == "cloister.audits/1"


def test_what_is_not_registered_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["audit", "laplas"]) == 2
    assert "Fix:" in capsys.readouterr().err
