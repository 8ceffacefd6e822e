from __future__ import annotations

import json

import pytest

from cloister.errors import ArtifactError, SourceNotFoundError
from cloister.hub.domain.algorithms import Artifact
from cloister.hub.sandbox.folders import read_folder
from cloister.hub.sandbox.review import FindingLevel, check_artifact, scan
from tests.support.foreign import unhurried_k_means


def changed(code: str, *, manifest: tuple[str, str] = ("", "")) -> Artifact:
    files = dict(unhurried_k_means().files)
    files["clustering.py"] = code.encode()
    files["manifest.yaml"] = files["manifest.yaml"].decode().replace(*manifest).encode()
    return Artifact.from_files(files)


def test_the_example_passes() -> None:
    report = check_artifact(unhurried_k_means())
    assert report.passed, report
    assert report.isolation
    assert report.digest == unhurried_k_means().digest
    assert json.loads(json.dumps(report.to_dict()))["passed"] is True
    assert "such blocks count with the default" in str(report)


def test_raw_rows_are_rejected_by_the_output_gate() -> None:
    """An algorithm that declares epsilon 1 and returns its input does not get past the checks."""
    raw = "def fit(inputs, parameters, bounds):\n    return {'centers': inputs['features']}\n"
    report = check_artifact(changed(raw, manifest=("epsilon: asked", "epsilon: 1")))
    assert not report.passed
    assert 'The output "centers" has shape (200, 1); (3, 1) is declared.' in str(report)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("    return {'centers': [[0.0]], 'rows': 1}", "exactly the declared outputs"),
        ("    return 'everything'", "exactly the declared outputs"),
        ("    return {'centers': 'text'}", "could not convert"),
        ("    import requests", "No module named 'requests'"),
        ("    import socket; socket.socket()", "PermissionError"),
        ("    return {'centers': open('/etc/passwd').read()}", "Error"),
        ("    return {'centers': [[0]] * parameters['rounds']}", "is declared"),
    ],
)
def test_what_the_runs_on_made_up_data_find(code: str, words: str) -> None:
    report = check_artifact(changed(f"def fit(inputs, parameters, bounds):\n{code}\n"))
    assert not report.passed
    assert words in str(report)


def test_numbers_out_of_bounds_are_warned_of() -> None:
    code = (
        "import numpy as np\n"
        "def fit(inputs, parameters, bounds):\n"
        "    found = np.full((parameters['groups'], inputs['features'].shape[1]), 1e9)\n"
        "    found[0, 0] = np.nan\n"
        "    return {'centers': found}\n"
    )
    report = check_artifact(changed(code))
    assert report.passed
    assert "outside of their bounds" in str(report)
    assert "undefined" in str(report)


def test_the_scan_warns_and_does_not_forbid() -> None:
    code = (
        "import os, requests\nfrom subprocess import run\nfrom math import sqrt\nimport clustering\n"
        "def fit(inputs, parameters, bounds):\n"
        "    eval('1')\n    ().__class__.__subclasses__()\n    getattr(sqrt, '__globals__')\n"
    )
    findings = scan(changed(code))
    text = "\n".join(map(str, findings))
    assert {finding.level for finding in findings} == {FindingLevel.WARNING}
    for words in ("imports os", "imports requests, which is not offered", "imports subprocess", "uses eval"):
        assert words in text
    assert "__subclasses__" in text
    assert "__globals__" in text
    assert "math" not in text
    assert "line 2" in text


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def fit(:\n", "not valid Python"),
        ("def fit(inputs):\n    pass\n", "three arguments"),
    ],
)
def test_the_scan_finds_errors(code: str, words: str) -> None:
    report = check_artifact(changed(code))
    assert not report.passed
    assert report.isolation == ()
    assert words in str(report)


def test_an_entry_point_that_is_made_elsewhere_is_only_warned_of() -> None:
    findings = scan(changed("from math import hypot as fit\n"))
    assert [finding.level for finding in findings] == [FindingLevel.WARNING]


def test_folders_with_links_or_nothing_are_refused(tmp_path: object) -> None:
    from pathlib import Path

    base = Path(str(tmp_path))
    with pytest.raises(SourceNotFoundError, match="manifest.yaml"):
        read_folder(base / "none")
    (base / "manifest.yaml").symlink_to("/etc/passwd")
    with pytest.raises(ArtifactError, match="plain files"):
        read_folder(base)
