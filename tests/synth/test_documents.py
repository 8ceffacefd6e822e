from __future__ import annotations

import json
from pathlib import Path

import pytest

from cloister.synth import load
from cloister.synth.documents import document_of

SAVED = Path(__file__).parents[1] / "golden" / "synth" / "saved"
EXPECTED = json.loads((SAVED / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_files_that_an_earlier_version_saved_are_read(name: str) -> None:
    """One file of each synthesizer, with rows that the version which saved it drew from a seed."""
    made = load(SAVED / f"{name}.cloister")
    assert document_of(made) == json.loads((SAVED / f"{name}.cloister").read_text("utf-8"))
    drawn = made.sample(4, random_state=11).to_arrow().to_pylist()
    assert [row.keys() for row in drawn] == [row.keys() for row in EXPECTED[name]]
    for row, told in zip(drawn, EXPECTED[name], strict=True):
        for column, value in told.items():
            assert row[column] == (pytest.approx(value) if isinstance(value, float) else value)
