"""Auditing everything that is registered: nothing is left out in silence, and what breaks its promise is found."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cloister.attacks import audit_everything
from cloister.attacks.auditing import registry_audit
from cloister.attacks.auditing._audit_subjects import AuditSubject, NotAuditedError, claim_of, subjects
from cloister.core.guarantees import ApproxDP, KAnonymity, PureDP, ZeroConcentratedDP
from cloister.core.random import SystemRandomSource, bits
from cloister.errors import ParameterError, PrivacyRefutedError
from cloister.learn.catalog import load_all
from cloister.mechanisms import mechanisms
from cloister.synth import synthesizers


def _tells(dataset: int) -> int:
    """Tell which neighbor it is, but for one time in eight."""
    return dataset if bits(SystemRandomSource(), 3).any() else 1 - dataset


def _subject(draw: Any, name: str = "leaky") -> AuditSubject:
    return AuditSubject(family="mechanism", name=name, prepare=lambda: (draw, (1, 0), PureDP(epsilon=Fraction(1))))


def test_everything_registered_is_listed() -> None:
    found = {(item.family, item.name) for item in subjects(Fraction(1))}
    assert {name for family, name in found if family == "mechanism"} == set(mechanisms)
    assert {name for family, name in found if family == "estimator"} == set(load_all())
    assert {name for family, name in found if family == "synthesizer"} == set(synthesizers)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cloister.errors.CloisterWarning")
def test_everything_registered_can_be_prepared_at_its_epsilon() -> None:
    apart = []
    for item in subjects(Fraction(1)):
        try:
            draw, pair, guarantee = item.prepare()
        except NotAuditedError:
            apart.append(item.name)
            continue
        draw(pair[1])
        epsilon, delta = claim_of(guarantee)
        assert 0 < epsilon <= 1
        assert delta <= Fraction(1, 10**6)
    assert apart == ["k_anonymous"]


def test_some_are_audited_in_little_time(tmp_path: Path) -> None:
    told: list[str] = []
    found = audit_everything(
        seconds=3,
        names=["discrete_laplace", "k_anonymous"],
        confidence=1 - 1e-9,
        progress=lambda share, what: told.append(f"{share:.1f} {what}"),
    )
    found.verify()
    assert [item.outcome for item in found.subjects] == ["not refuted", "not audited"]
    assert found.subjects[0].samples >= 200
    assert found.subjects[0].claim == "epsilon = 1 per row"
    assert found.subjects[1].reason == "It promises k-anonymity."
    assert told == ["0.0 mechanism discrete_laplace", "0.5 synthesizer k_anonymous", "1.0 done"]
    assert found.to_dict()["schema"] == "cloister.audits/1"
    assert "1 were not audited" in str(found)
    assert dict(found.summary())["synthesizer k_anonymous"] == "not audited: It promises k-anonymity."
    report = found.report(tmp_path / "audits.html")
    assert report.verdict is not None
    assert report.verdict.status == "attention"
    assert "discrete_laplace" in (tmp_path / "audits.html").read_text(encoding="utf-8")


def test_what_breaks_its_promise_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_audit, "subjects", lambda _: [_subject(_tells), _subject(lambda _: 0, "silent")])
    found = audit_everything(seconds=4)
    assert [item.outcome for item in found.subjects] == ["refuted", "not refuted"]
    assert found.subjects[0].reason.startswith("outputs with ")
    assert "1 of 2 claims are refuted: leaky" in found.verdict
    with pytest.raises(PrivacyRefutedError, match="Fix: correct these algorithms"):
        found.verify()


def test_what_takes_too_long_is_said_not_to_be_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(float(second) for second in range(10**6))
    monkeypatch.setattr(registry_audit.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(registry_audit, "subjects", lambda _: [_subject(_tells)])
    (found,) = audit_everything(seconds=20).subjects
    assert found.outcome == "not audited"
    assert "longer than there is time for" in found.reason


def test_claims_are_read_from_guarantees() -> None:
    assert claim_of(PureDP(epsilon=Fraction(2))) == (2, 0)
    assert claim_of(ApproxDP(epsilon=Fraction(2), delta=Fraction(1, 100))) == (2, Fraction(1, 100))
    assert 0 < claim_of(ZeroConcentratedDP(rho=Fraction(1, 60)))[0] <= 1
    with pytest.raises(NotAuditedError, match="Fix: attack what it releases"):
        claim_of(KAnonymity(k=5))


@pytest.mark.parametrize(
    ("options", "fix"),
    [({"families": ["oracle"]}, "use one of"), ({"names": ["laplce"]}, "use one of"), ({"families": []}, "name some")],
    ids=["family", "name", "nothing"],
)
def test_unknown_names_are_refused(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=f"Fix: {fix}"):
        audit_everything(seconds=1, **options)
