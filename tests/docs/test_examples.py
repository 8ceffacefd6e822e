from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from cloister.hub.services.registry import service_registry
from tests.docs import markdown

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted(path for path in (ROOT / "src" / "cloister").rglob("*.py") if ">>> " in path.read_text("utf-8"))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.no_cover  # tracing would double their time; the tests of each package reach the same lines
@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_the_examples_of_a_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = path.read_text("utf-8")
    assert markdown.escaped_fences(text) == []
    assert markdown.run_page(path) == text.count("\n```python\n") + text.count("\n```console\n")


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_the_examples_of_docstrings(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.fixture(scope="module")
def guest_list() -> list[str]:
    """The services that there were before the examples of this module registered theirs."""
    return list(service_registry)


@pytest.mark.parametrize("turn", ["first", "second"])
def test_what_an_example_registers_is_gone_before_the_next_test(
    turn: str, guest_list: list[str], tmp_path: Path
) -> None:
    assert list(service_registry) == guest_list
    register = "from cloister.hub.services.registry import service_registry as known\n"
    register += "known.register('example.guest')(object())\n"
    assert markdown.run_page(_page(tmp_path, f"```python\n{register}```\n")) == 1
    assert "example.guest" in service_registry


def _page(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_a_wrong_output_is_found(tmp_path: Path) -> None:
    page = _page(tmp_path, "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(markdown.ExampleError, match="shows"):
        markdown.run_page(page)


def test_dots_stand_for_anything(tmp_path: Path) -> None:
    page = _page(tmp_path, "```python\nprint('noise 17.3')\n```\n\n```text\nnoise ...\n```\n")
    assert markdown.run_page(page) == 1


def test_text_after_a_paragraph_is_not_compared(tmp_path: Path) -> None:
    page = _page(tmp_path, "```python\nx = 1\n```\n\nwords\n\n```text\n3\n```\n\n```python\nassert x == 1\n```\n")
    assert markdown.run_page(page) == 2


def test_a_failing_command_is_found(tmp_path: Path) -> None:
    page = _page(tmp_path, "```console\n$ make demo\n$ cloister --nonsense\n```\n")
    with pytest.raises(markdown.ExampleError, match="ended with 2"):
        markdown.run_page(page)


def test_a_command_is_compared_with_what_is_shown(tmp_path: Path) -> None:
    page = _page(tmp_path, "```console\n$ cloister \\\n  --version\ncloister, version ...\n```\n")
    assert markdown.run_page(page) == 1
    with pytest.raises(markdown.ExampleError, match="but the example prints"):
        markdown.run_page(_page(tmp_path, "```console\n$ cloister --version\nsomething else\n```\n"))


def test_an_indented_example_does_not_escape() -> None:
    assert markdown.escaped_fences("- list\n    ```python\n    1 / 0\n    ```\n") == ["    ```python"]
