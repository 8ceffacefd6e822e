from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import recipes

PAGES = sorted((recipes.ROOT / "docs" / "contributing").glob("add-*.md"))
MOST = 4
"""One new module, one registration, one test, one page."""


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_works_to_the_letter(page: Path, tmp_path: Path) -> None:
    printed = recipes.follow(page, tmp_path)
    assert sum(int(number) for text in printed for number in re.findall(r"(\d+) passed", text)) > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_member_touches_few_places(page: Path) -> None:
    assert 0 < len(recipes.places(page.read_text("utf-8"))) <= MOST


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_recipe_passes_the_linter(page: Path) -> None:
    for step in recipes.steps(page.read_text("utf-8")):
        if step.language != "python":
            continue
        for action in (["check", "--quiet"], ["format", "--check", "--quiet"]):
            done = subprocess.run(
                [sys.executable, "-m", "ruff", *action, "--stdin-filename", str(recipes.ROOT / step.path), "-"],
                input=step.body,
                capture_output=True,
                text=True,
                check=False,
                cwd=recipes.ROOT,
            )
            assert done.returncode == 0, f"{step.path}: {done.stdout}{done.stderr}"


def test_an_edit_adds_and_takes_out_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n\nz = 3\n", encoding="utf-8")
    (step,) = recipes.steps('```diff title="a.py"\n x = 1\n-y = 2\n+y = 4\n \n@@\n z = 3\n+w = 5\n```\n')
    recipes._apply(step, tmp_path)
    assert (tmp_path / "a.py").read_text("utf-8") == "x = 1\ny = 4\n\nz = 3\nw = 5\n"


def test_an_edit_that_fits_nowhere_or_twice_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n", encoding="utf-8")
    for body in (" y = 1\n+z = 2\n", " x = 1\n+z = 2\n"):
        (step,) = recipes.steps(f'```diff title="a.py"\n{body}```\n')
        with pytest.raises(recipes.RecipeError, match="exactly once"):
            recipes._apply(step, tmp_path)


def test_a_new_file_replaces_nothing(tmp_path: Path) -> None:
    (step,) = recipes.steps('```python title="a.py"\nx = 1\n```\n')
    recipes._apply(step, tmp_path)
    with pytest.raises(recipes.RecipeError, match="there already"):
        recipes._apply(step, tmp_path)
