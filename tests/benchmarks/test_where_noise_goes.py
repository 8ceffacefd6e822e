from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import where_noise_goes

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines


@pytest.mark.slow
def test_every_place_of_noise_is_measured_and_drawn(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(where_noise_goes, "EPSILONS", (1.0,))
    monkeypatch.setattr(where_noise_goes.measure, "__kwdefaults__", {"epsilons": (1.0,)})
    where_noise_goes.main(["--data", str(shared_data), "--runs", "1", "--out", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].split(":")[0].strip() for line in lines[2:]] == [
        "input",
        "algorithm",
        "output",
        "objective",
    ]
    assert all(0.8 < float(line.split("|")[2]) < 0.86 for line in lines[2:])
    assert (tmp_path / "where-noise-goes.svg").read_text(encoding="utf-8").startswith("<svg")
