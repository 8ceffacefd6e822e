"""The examples of the documentation and of docstrings, checked as a user's scripts by two type checkers.

A page is one script that is read from top to bottom, and so is each docstring. Both checkers run once over all scripts
and know nothing of this repository's own settings.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
import subprocess
import sys
import types
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cloister as cl
from tests.docs import markdown

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted(path for path in (ROOT / "src" / "cloister").rglob("*.py") if ">>> " in path.read_text("utf-8"))

# These packages ship no types, which is not the library's to mend: what comes from them is unknown to the checkers.
# Nothing else is loosened.
MYPY = """\
[mypy]
strict = true

[mypy-pandas.*,pyarrow.*,sklearn.*]
ignore_missing_imports = true
"""
PYRIGHT = {
    "typeCheckingMode": "strict",
    "reportMissingTypeStubs": "none",
    **dict.fromkeys((f"reportUnknown{what}Type" for what in ("Argument", "Lambda", "Member", "Variable")), "none"),
    # An example shows what an expression gives, and may be one of a private function.
    "reportUnusedExpression": "none",
    "reportPrivateUsage": "none",
}

_WRONG = """\
import cloister as cl
cl.Budget(epsilon=[1])
cl.anonymize("adult.csv", models=3)
cl.Nothing
cl.learn.Nothing
"""


def _place(lines: list[str], added: Iterable[str], line: int) -> None:
    """Append lines so that the first of them stands where it stands in its file, `line` lines below the top."""
    lines += [""] * (line - len(lines))
    lines += added


def _script_of_page(path: Path) -> list[str]:
    lines: list[str] = []
    for block in markdown.blocks(path.read_text("utf-8")):
        if block.language == "python":
            _place(lines, block.body.splitlines(), block.line)
    return lines


def _script_of_module(path: Path) -> list[str]:
    """Return each docstring as a function of its own, after the names that `doctest` gives it."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    found = doctest.DocTestFinder().find(module)
    tests = sorted((test for test in found if test.examples), key=lambda test: test.lineno or 0)
    lines = ["; ".join(_imports(path, module, [example.source for test in tests for example in test.examples]))]
    for test in tests:
        _place(lines, ["def _() -> None:"], test.lineno or 0)
        for example in test.examples:
            body = [f"    {line}" for line in example.source.splitlines()]
            _place(lines, body, (test.lineno or 0) + example.lineno)
    return lines


def _imports(path: Path, module: types.ModuleType, sources: list[str]) -> Iterator[str]:
    """Yield imports of the names that examples find in their module, each from where the module has it."""
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    used = {node.id for node in nodes if isinstance(node, ast.Name)} & vars(module).keys()
    used -= {name for node in nodes for name in _imported(node)}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom) and used & _imported(node).keys():
            node.names = [one for name, one in _imported(node).items() if name in used]
            used -= _imported(node).keys()
            yield ast.unparse(node)
    if used:
        yield f"from {module.__name__} import {', '.join(sorted(used))}"


def _imported(node: ast.AST) -> dict[str, ast.alias]:
    is_import = isinstance(node, ast.Import | ast.ImportFrom)
    return {one.asname or one.name: one for one in node.names} if is_import else {}


def _script_of_names() -> list[str]:
    """Return every public name of the library and of its packages, as a user who asks an editor for them sees it."""
    packages = {name: found for name in dir(cl) if isinstance(found := getattr(cl, name), types.ModuleType)}
    inner = [f"cl.{package}.{name}" for package, found in packages.items() for name in getattr(found, "__all__", ())]
    return ["import cloister as cl", *(f"cl.{name}" for name in dir(cl)), *inner]


def _write_scripts(folder: Path) -> dict[str, str]:
    """Write the script of each page and of each module with examples; return what each script was made of."""
    (folder / "names.py").write_text("\n".join(_script_of_names()) + "\n", encoding="utf-8")
    made = {"names.py": "the public names"}
    scripts = {path: _script_of_page(path) for path in PAGES} | {path: _script_of_module(path) for path in MODULES}
    for path, lines in scripts.items():
        if lines:
            source = path.relative_to(ROOT).as_posix()
            script = f"{re.sub('[^0-9a-z]', '_', source.lower())}.py"
            (folder / script).write_text("\n".join(lines) + "\n", encoding="utf-8")
            made[script] = source
    return made


def _refused_by_mypy(folder: Path, made: dict[str, str]) -> list[str]:
    (folder / "mypy.ini").write_text(MYPY, encoding="utf-8")
    # What is known of the library and of others is kept from run to run, as `make lint` keeps it.
    kept = ["--cache-dir", str(ROOT / ".mypy_cache" / "examples")]
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-color-output", "--no-error-summary"]
    done = subprocess.run([*command, *kept, *made], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = re.findall(r"^([^:\n]+)(:\d+: error: .*)$", done.stdout, re.MULTILINE)
    return [made.get(script, script) + sentence for script, sentence in found]


def _refused_by_pyright(folder: Path, made: dict[str, str]) -> list[str]:
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--level", "error", "--outputjson"]
    done = subprocess.run([*command, "."], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [
        f"{made[Path(one['file']).name]}:{one['range']['start']['line'] + 1}: error: {one['message']}" for one in found
    ]


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What each checker says about all scripts, and about one that is wrong."""
    folder = tmp_path_factory.mktemp("scripts")
    made = _write_scripts(folder)
    assert {"README.md", "docs/how-to/add-noise.md", "src/cloister/mechanisms/selection.py"} <= set(made.values())
    (folder / "wrong.py").write_text(_WRONG, encoding="utf-8")
    made["wrong.py"] = "wrong.py"
    with ThreadPoolExecutor() as pool:
        mypy, pyright = (pool.submit(run, folder, made) for run in (_refused_by_mypy, _refused_by_pyright))
    return {"mypy": mypy.result(), "pyright": pyright.result()}


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_examples_pass(checker: str, refused: dict[str, list[str]]) -> None:
    found = [line for line in refused[checker] if not line.startswith("wrong.py:")]
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_wrong_example_is_found(checker: str, refused: dict[str, list[str]]) -> None:
    found = {line.split(": ")[0] for line in refused[checker] if line.startswith("wrong.py:")}
    assert found == {f"wrong.py:{line}" for line in (2, 3, 4, 5)}


def test_lines_of_a_script_stand_where_the_reader_finds_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\n```\n\n```console\n$ ls\n```\n\n```python\ny = x\n```\n")
    assert _script_of_page(page) == ["", "", "", "x = 1", *[""] * 7, "y = x"]
    module = ROOT / "src" / "cloister" / "mechanisms" / "selection.py"
    lines, source = _script_of_module(module), module.read_text("utf-8").splitlines()
    shared = [(mine, theirs) for mine, theirs in zip(lines, source, strict=False) if mine.startswith("    ")]
    assert shared
    assert all(theirs == f"    >>> {mine[4:]}" for mine, theirs in shared)
