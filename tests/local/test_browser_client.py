from __future__ import annotations

import importlib.resources
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import ForeignReportError
from cloister.local import DirectEncoding, open_protocol, protocols
from tests.support import browser, local_reference as reference, local_vectors as vectors
from tests.support.thoroughness import examples

HERE = Path(__file__).parent
CLIENT = Path(str(importlib.resources.files("cloister"))) / "local" / "js"
FOLDERS = {"/tests/local/js": HERE / "js", "/src/cloister/local/js": CLIENT}


RANDOM_WORDS = examples(10, usual=4)


@pytest.fixture(scope="module")
def shipped() -> list[dict[str, Any]]:
    return vectors.cases(vectors.shipped_records(), vectors.shipped_device, random_words=RANDOM_WORDS)


@pytest.fixture(scope="module")
def cases(shipped: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return shipped + vectors.cases(reference.records(), vectors.reference_device, random_words=RANDOM_WORDS)


def test_the_client_is_part_of_the_package_and_needs_nothing_else() -> None:
    modules = {path: path.read_text("utf-8") for path in CLIENT.rglob("*.js")}
    assert CLIENT / "index.js" in modules
    for path, text in modules.items():
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        imported = re.findall(r'(?:from|import) "([^"]*)"', code)
        assert {(path.parent / name).resolve() for name in imported} <= set(modules)
        # Only what is named in the code itself may run: the files that people compare are then all of it.
        assert not re.search(r"import\(|Math\.random|\beval\b|\bfetch\b|XMLHttpRequest|localStorage|document\.", code)


def test_every_protocol_that_a_browser_knows_is_compared() -> None:
    known = set(re.findall(r'^  \["(\w+)", \{ takes', (CLIENT / "protocol.js").read_text("utf-8"), re.MULTILINE))
    assert {record["name"] for record in reference.records()} == known
    assert {record["name"] for record in vectors.shipped_records()} == known & set(protocols)
    assert {name for name, kind in protocols.items() if kind.in_browsers} == known


@pytest.mark.slow
def test_two_devices_in_python_make_the_same_reports(shipped: list[dict[str, Any]]) -> None:
    compared = 0
    for case in shipped:
        for draw in case["draws"]:
            words = [int(word) for word in draw["words"]]
            found = vectors.reference_device(case["record"], draw["value"], words)
            assert found == (draw["report"], draw["used"]), (case["record"], draw)
            compared += 1
    assert compared > 1000


@pytest.mark.node
@pytest.mark.slow
def test_node_runs_the_client(cases: list[dict[str, Any]], tmp_path: Path) -> None:
    """LDP-19."""
    place = tmp_path / "vectors.json"
    place.write_text(json.dumps(cases), "utf-8")
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap", *sorted(map(str, (HERE / "js").glob("*.test.mjs")))],
        env={**os.environ, "CLOISTER_VECTORS": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    counts = dict(re.findall(r"^# (\w+) (\d+)$", done.stdout, re.MULTILINE))
    assert int(counts["pass"]) == int(counts["tests"]) >= 40


@pytest.mark.chromium
@pytest.mark.slow
def test_the_browser_makes_the_same_reports(cases: list[dict[str, Any]]) -> None:
    """LDP-19."""
    told = browser.run_module("/tests/local/js/replay.mjs", cases, folders=FOLDERS)
    assert told["differences"] == []
    assert told["compared"] == sum(len(case["draws"]) for case in cases) > 1000


@pytest.mark.chromium
@pytest.mark.slow
def test_a_wrong_report_would_be_seen(cases: list[dict[str, Any]]) -> None:
    """Swap the thresholds' side in one vector: the comparison must notice."""
    case = cases[0]
    draw = {**case["draws"][0]}
    draw["report"] = {**draw["report"], "y": 1 - draw["report"]["y"]}
    told = browser.run_module("/tests/local/js/replay.mjs", [{**case, "draws": [draw]}], folders=FOLDERS)
    assert len(told["differences"]) == 1


@pytest.mark.chromium
@pytest.mark.slow
def test_the_collector_reads_what_browsers_make() -> None:
    tasks = [{"record": record, "value": vectors.values(record)[0]} for record in vectors.shipped_records()]
    made = browser.run_module("/tests/local/js/sample.mjs", {"tasks": tasks, "count": 50}, folders=FOLDERS)
    for task, reports in zip(tasks, made, strict=True):
        protocol = open_protocol(task["record"])
        assert len(protocol.read(reports)) == len(protocol.read("\n".join(map(json.dumps, reports)))) == 50
        with pytest.raises(ForeignReportError, match="another protocol"):
            protocol.read([{**reports[0], "fingerprint": "0" * 64}])


@pytest.mark.chromium
@pytest.mark.slow
def test_the_browser_refuses_what_it_must() -> None:
    record = DirectEncoding(domain=["never", "sometimes", "often"], epsilon=1).to_dict()
    weaker = DirectEncoding(domain=record["domain"], epsilon="1.000001").to_dict()["params"]
    wrong = [
        (reference.sealed({**record, "params": weaker}), "The protocol protects less than it states."),
        ({**record, "params": weaker}, "The protocol protects less than it states."),
        ({**record, "domain": ["often", "never", "sometimes"]}, "The protocol does not have its stated hashes."),
        ({**record, "fingerprint": "0" * 64}, "The protocol does not have its stated hashes."),
        (reference.sealed({**record, "version": 2}), "The protocol or its version is unknown."),
        (reference.sealed({**record, "name": "plain"}), "The protocol or its version is unknown."),
        (reference.sealed({**record, "output_space": {"fields": []}}), "The output space is not that of the protocol."),
    ]
    task = {"record": record, "records": [each for each, _ in wrong], "values": ["Often", 0, None]}
    told = browser.run_module("/tests/local/js/refusals.mjs", task, folders=FOLDERS)
    assert told == [
        *(reason for _, reason in wrong),
        *["The answer is missing or not among the declared ones."] * 3,
        "This is not an output of the protocol.",
        "This browser offers no secure randomness, so the answer cannot be protected.",
        "The randomness of this browser does not work, so the answer cannot be protected.",
        "This page cannot check the question, because it was not loaded over a secure connection.",
    ]


@pytest.mark.chromium
@pytest.mark.slow
def test_the_page_of_the_how_to_works(tmp_path: Path) -> None:
    page = (HERE.parents[1] / "docs" / "how-to" / "ask-in-the-browser.md").read_text("utf-8")
    script = re.search(r"^```js\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert script is not None
    protocol = DirectEncoding(domain=["never", "sometimes", "often"], epsilon=1)
    (tmp_path / "question.js").write_text(script[1], "utf-8")
    (tmp_path / "protocol.json").write_text(json.dumps(protocol.to_dict()), "utf-8")
    folders = {"/tests/local/js": HERE / "js", "/page/cloister": CLIENT, "/page": tmp_path}
    told = browser.run_module("/tests/local/js/respondent.mjs", "often", folders=folders)
    assert (told["method"], told["address"]) == ("POST", "reports")
    assert f"> {told['promise']}\n" in page
    assert len(protocol.read(told["report"])) == 1
