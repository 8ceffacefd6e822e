from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from cloister import attacks
from cloister.attacks.details import HELD, AttackDetails, fact, join_names
from cloister.errors import LawViolatedError, ParameterError, PrivacyRefutedError
from cloister.report import Facts
from cloister.testing.attack_laws import AttackLaws
from cloister.testing.laws import Law
from tests.attacks.result_samples import RESULTS, SHARED

PINNED = json.loads((Path(__file__).parent / "result_documents.json").read_text("utf-8"))
"""What every kind of result wrote when each had a class of its own: readers of old documents rely on it."""


@pytest.mark.parametrize("name", PINNED)
def test_documents_and_summaries_stay_as_they_were(name: str) -> None:
    result, pinned = RESULTS[name], PINNED[name]
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == pinned["json"]
    assert [list(row) for row in result.summary()] == pinned["summary"]
    assert str(result) == pinned["text"]


def test_every_pinned_kind_of_details_is_still_there() -> None:
    assert set(RESULTS) == set(PINNED) <= set(attacks.__all__)


@pytest.mark.parametrize(
    "law",
    [
        Law(f"{name}: {law}", law.check)
        for name, result in RESULTS.items()
        for law in AttackLaws(broken=lambda result=result: result)
    ],
    ids=str,
)
def test_results_obey_the_laws_of_attacks(law: Law) -> None:
    law.verify()


@pytest.mark.parametrize("name", RESULTS)
def test_facts_are_read_from_the_result_as_well(name: str) -> None:
    result = RESULTS[name]
    for stated in fields(result.details):
        assert getattr(result, stated.name) is getattr(result.details, stated.name)
        assert stated.name in dir(result)
    assert not hasattr(result, "no_such_fact")


def test_results_are_copied_and_kept() -> None:
    result = RESULTS["OneRunDetails"]
    assert copy.deepcopy(result) == pickle.loads(pickle.dumps(result)) == result


ODD = "a*b`c\\d"


@pytest.mark.parametrize(
    "result",
    [
        replace(RESULTS["LinkageDetails"], details=replace(RESULTS["LinkageDetails"].details, columns=(ODD,))),
        replace(RESULTS["DisclosureDetails"], details=replace(RESULTS["DisclosureDetails"].details, column=ODD)),
        replace(RESULTS["StoredRecordsDetails"], details=attacks.StoredRecordsDetails(places=(ODD,), found=1)),
    ],
    ids=lambda result: type(result.details).__name__,
)
def test_odd_names_are_shown_as_they_are(result: attacks.AttackResult) -> None:
    assert ODD in {text for _, text in result.summary()}
    (section,) = result.sections()
    shown = [cell for block in section.blocks if isinstance(block, Facts) for row in block.rows for cell in row]
    assert ODD in shown
    page = result.report().to_html()
    assert "a*b`c\\d" in page
    assert "\\*" not in page


def test_a_claim_is_verified_only_where_there_is_one() -> None:
    for name in ("AuditDetails", "OneRunDetails"):
        with pytest.raises(PrivacyRefutedError, match="claim epsilon >="):
            RESULTS[name].verify()
    with pytest.raises(ParameterError, match="audit_dp"):
        RESULTS["LinkageDetails"].verify()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial(AttackDetails):
    names: tuple[str, ...] = field(metadata=fact("names", join_names))
    secret: int = field(metadata=HELD)


def _trial(**changes: Any) -> attacks.AttackResult:
    given = {"details": _Trial(names=("a", "b"), secret=7), **SHARED, **changes}
    return attacks.AttackResult(**given)


class _Telling(AttackDetails):
    def tell(self, result: attacks.AttackResult, /) -> list[tuple[str, str]]:
        return [("who", str(result.worst))]


@pytest.mark.parametrize(
    ("law", "result"),
    [
        ("works_on_what_is_broken", _trial(interval=(0.1, 0.95))),
        ("success_is_never_a_bare_percentage", _trial(success=0.99)),
        ("success_is_never_a_bare_percentage", _trial(assumption="")),
        ("keeps_records_to_the_custodian", _trial(details=_Telling())),
    ],
)
def test_the_laws_can_be_broken(law: str, result: attacks.AttackResult) -> None:
    laws = {each.name: each for each in AttackLaws(broken=lambda: result)}
    with pytest.raises(LawViolatedError):
        laws[law].verify()


def test_an_attack_that_works_on_what_is_harmless_breaks_a_law() -> None:
    laws = {each.name: each for each in AttackLaws(broken=_trial, harmless=_trial)}
    with pytest.raises(LawViolatedError, match="baseline"):
        laws["finds_nothing_in_what_is_harmless"].verify()


def test_labeled_facts_are_told_and_held_ones_are_not() -> None:
    result = _trial()
    assert ("names", "a, b") in result.summary()
    assert result.to_dict()["names"] == ["a", "b"]
    assert "secret" not in result.to_dict()
    assert ("names", "") not in _trial(details=_Trial(names=(), secret=7)).summary()
