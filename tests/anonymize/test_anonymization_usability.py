"""What a custodian types first, and what they are told."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize import Release
from cloister.errors import ParameterError, ParameterTypeError

VISITS = pa.table(
    {
        "patient": [f"P{number}" for number in range(12)],
        "age": [30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41],
        "sex": ["F", "M"] * 6,
        "born": [f"{day}.1.1990" for day in range(12)],
        "disease": ["flu", "flu", "asthma"] * 4,
    }
)


def _release(**options: Any) -> Release:
    asked = {"models": [cl.KAnonymity(k=3)], "quasi_identifiers": ["age", "sex"], "sensitive": ["disease"], **options}
    made = cl.anonymize(cl.open_table(VISITS), **asked)
    assert isinstance(made, Release)
    return made


def _codes(release: Release) -> dict[str, str]:
    return {pitfall.code: pitfall.sentence for pitfall in release.pitfalls}


def test_columns_that_nobody_described_are_left_out_and_named() -> None:
    release = _release()
    assert release.table.columns == ("age", "sex", "disease")
    assert _codes(release)["undescribed_columns"].startswith('"patient", "born" were left out')


def test_described_columns_are_not_reported_as_left_out() -> None:
    table = cl.open_table(VISITS, schema=cl.Schema.infer(cl.open_table(VISITS)))
    release = cl.anonymize(table, models=[cl.KAnonymity(k=3)], quasi_identifiers=["age"], sensitive=["disease"])
    assert "undescribed_columns" not in {pitfall.code for pitfall in release.pitfalls}


def test_days_written_as_text_are_warned_of() -> None:
    assert _codes(_release(quasi_identifiers=["born"]))["listed_values"].startswith('"born" has mostly different')
    assert "listed_values" not in _codes(_release())


def test_one_model_need_not_be_in_a_list() -> None:
    assert _release(models=cl.KAnonymity(k=3)).settings == _release(models={"k": 3}).settings


@pytest.mark.parametrize("models", [5, "k=5", 2.0])
def test_models_that_are_no_list_are_refused(models: Any) -> None:
    with pytest.raises(ParameterTypeError, match=r"Fix: give models=\[cl\.KAnonymity\(k=5\)\]"):
        _release(models=models)


def test_columns_that_are_no_list_are_refused() -> None:
    with pytest.raises(ParameterTypeError, match=r'Fix: write for example quasi_identifiers=\["age", "zip"\]'):
        _release(quasi_identifiers=5)
    with pytest.raises(ParameterTypeError, match=r'Fix: write sensitive=\["disease"\]'):
        _release(sensitive="disease")


def test_weights_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(ParameterTypeError, match=r'Fix: write for example weights=\{"age": 2\}'):
        _release(weights=[1, 2])


def test_progress_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match=r"Fix: give a function of two arguments"):
        _release(progress=3)


def test_an_original_that_is_not_open_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match=r"Fix: open it first: original=cloister\.open_table"):
        cl.assess(_release().table, original=VISITS)


def test_a_sweep_takes_one_number_and_one_name() -> None:
    swept = cl.anonymize.frontier(
        cl.open_table(VISITS), k=3, algorithms="mondrian", quasi_identifiers=["age"], sensitive=["disease"]
    )
    assert [point.algorithm for point in swept.points] == ["mondrian"]
    with pytest.raises(ParameterError, match="risk must be between 0 and 1"):
        swept.pick(risk=20)


def test_the_signature_starts_with_the_table() -> None:
    assert list(inspect.signature(cl.anonymize).parameters)[:2] == ["table", "models"]


def test_completion_offers_public_names_only() -> None:
    assert {"frontier", "Recipe", "assess"} <= set(dir(cl.anonymize))
    assert not {"sys", "Any"} & set(dir(cl.anonymize))


def test_texts_for_a_notebook_show_no_rows_and_no_counts() -> None:
    release = _release()
    assert repr(release) == f"Release({release})"
    assert repr(release.assessment).startswith("Assessment(k = ")
    assert repr(release.partition) == f"Partition(('age', 'sex'), {release.partition.size} classes)"
    assert repr(release.classes) == f"Classes(('age', 'sex'), {release.classes.size} classes)"


def test_a_large_k_is_written_out() -> None:
    with pytest.raises(cl.CloisterError, match="k = 1000000 per row"):
        _release(models=cl.KAnonymity(k=1_000_000))
