"""The examples of the documentation, checked as a user's scripts by the two type checkers that users have."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import markdown

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# A page is read from top to bottom like a notebook: a later block may use a name again for something else, and helper
# functions of a block carry no annotations. Packages that ship no types are not the library's to check.
MYPY = """\
[mypy]
strict = true
ignore_missing_imports = true
allow_redefinition = true
disallow_untyped_defs = false
disallow_untyped_calls = false
"""
PYRIGHT = {
    "typeCheckingMode": "standard",
    "reportMissingImports": "none",
    "reportMissingModuleSource": "none",
    "reportMissingTypeStubs": "none",
}

TO_MEND = {
    "docs/how-to/add-a-service.md",
    "docs/how-to/add-noise.md",
    "docs/how-to/anonymize-a-table.md",
    "docs/how-to/ask-in-the-browser.md",
    "docs/how-to/attack-a-query-interface.md",
    "docs/how-to/collect-reports-locally.md",
    "docs/how-to/collect-several-answers.md",
    "docs/how-to/compose-releases.md",
    "docs/how-to/compressive-privacy.md",
    "docs/how-to/evaluate-synthetic-data.md",
    "docs/how-to/keep-a-ledger.md",
    "docs/how-to/measure-risk.md",
    "docs/how-to/noise-graphs.md",
    "docs/how-to/plots.md",
    "docs/how-to/private-clusters-and-components.md",
    "docs/how-to/private-neural-networks.md",
    "docs/how-to/private-trees.md",
    "docs/how-to/run-a-survey-in-the-hub.md",
    "docs/how-to/test-a-mechanism.md",
    "docs/reference/hub-policies.md",
    "docs/reference/protocols.md",
    "docs/tutorials/algorithm-provider.md",
    "docs/tutorials/respondent.md",
}
"""Pages with an example that a type checker refuses; a page that is mended has to leave this list."""


def _scripts(folder: Path) -> dict[str, str]:
    """Write the Python blocks of each page as one script, its lines where the page has them; name the pages."""
    pages = {}
    for page in PAGES:
        lines: list[str] = []
        for block in markdown.blocks(page.read_text("utf-8")):
            if block.language == "python":
                lines += [""] * (block.line - len(lines)) + block.body.splitlines()
        if lines:
            name = page.relative_to(ROOT).as_posix()
            script = f"{re.sub('[^0-9a-z]', '_', name.removesuffix('.md').lower())}.py"
            (folder / script).write_text("\n".join(lines) + "\n", encoding="utf-8")
            pages[script] = name
    return pages


def _judge(found: dict[str, list[str]]) -> None:
    unexpected = [line for page, lines in sorted(found.items()) if page not in TO_MEND for line in lines]
    assert not unexpected, "\n".join(unexpected)


def _refused_by_mypy(folder: Path, pages: dict[str, str]) -> dict[str, list[str]]:
    (folder / "mypy.ini").write_text(MYPY, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-color-output", "--no-error-summary"]
    done = subprocess.run([*command, *pages], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, list[str]] = {}
    for script, line, sentence in re.findall(r"^([^:\n]+):(\d+): error: (.*)$", done.stdout, re.MULTILINE):
        found.setdefault(pages.get(script, script), []).append(f"{pages.get(script, script)}:{line}: {sentence}")
    return found


def _refused_by_pyright(folder: Path, pages: dict[str, str]) -> dict[str, list[str]]:
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--level", "error", "--outputjson"]
    done = subprocess.run([*command, "."], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, list[str]] = {}
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        page = pages[Path(item["file"]).name]
        found.setdefault(page, []).append(f"{page}:{item['range']['start']['line'] + 1}: {item['message']}")
    return found


@pytest.mark.slow
def test_the_examples_pass_mypy_and_pyright(tmp_path: Path) -> None:
    pages = _scripts(tmp_path)
    refused = [_refused_by_mypy(tmp_path, pages), _refused_by_pyright(tmp_path, pages)]
    for found in refused:
        _judge(found)
    assert set().union(*refused) == TO_MEND


@pytest.mark.slow
def test_a_wrong_example_is_found(tmp_path: Path) -> None:
    example = 'import cloister as cl\n\ncl.Budget(epsilon=[1])\ncl.anonymize("adult.csv", models=3)\n'
    (tmp_path / "wrong.py").write_text(example, encoding="utf-8")
    for refused in (_refused_by_mypy, _refused_by_pyright):
        found = refused(tmp_path, {"wrong.py": "docs/wrong.md"})
        assert next(line.split(":")[1] for line in found["docs/wrong.md"]) == "3"
        assert {line.split(":")[1] for line in found["docs/wrong.md"]} == {"3", "4"}
