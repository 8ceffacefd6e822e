"""Follows a page that says how to add a member to a family, to the letter, in a copy of the tree.

A fence with a title is a step of the recipe, and the title is the file that it changes. In any language but ``diff`` it
is a new file, whole. A ``diff`` is an edit: lines that begin with a space, or are empty, are there already and one
after the other, lines with a plus are added, lines with a minus are taken out. The commands of its console blocks are
then run in the copy: ``make generated``, and ``.venv/bin/python -m pytest …``.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_STEP = re.compile(
    r'^```(?P<language>[\w-]+) title="(?P<path>[^"]+)"\n(?P<body>.*?)^```[ \t]*$', re.MULTILINE | re.DOTALL
)
_COMMAND = re.compile(r"^\$ (?P<command>(?:make generated|\.venv/bin/python -m pytest) ?.*)$", re.MULTILINE)
# What was compiled is copied too: it stays valid with the times of the files, and to compile takes longer than tests.
# But not what other tests are writing at this moment, which is gone when it is copied.
_NOT_COPIED = shutil.ignore_patterns(".*", "*.pyc.*", "site", "build", "dist")


_FEW_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p pytest_cov"}
"""The tests of a recipe need the markers of one plugin; to load the others takes seconds."""


class RecipeError(AssertionError):
    """A page cannot be followed, or what it says does not work."""


@dataclass(frozen=True)
class Step:
    """One file that a recipe makes or changes."""

    path: str
    language: str
    body: str


def steps(text: str) -> list[Step]:
    """Return the steps of a page from top to bottom."""
    return [Step(found["path"], found["language"], found["body"]) for found in _STEP.finditer(text)]


def commands(text: str) -> list[list[str]]:
    """Return what a page has its reader run."""
    return [shlex.split(found["command"]) for found in _COMMAND.finditer(text)]


def places(text: str) -> set[str]:
    """Return the files that a recipe touches."""
    return {step.path for step in steps(text)}


def follow(page: Path, folder: Path) -> list[str]:
    """Follow a page in a copy of the tree inside of a folder, and return what its commands printed."""
    text = page.read_text("utf-8")
    if ["make", "generated"] not in commands(text):
        raise RecipeError("whoever follows the page leaves the generated pages behind as they were")
    root = folder / "tree"
    shutil.copytree(ROOT, root, ignore=_NOT_COPIED)
    for step in steps(text):
        _apply(step, root)
    return [_run(command, root) for command in commands(text)]


def _apply(step: Step, root: Path) -> None:
    target = root / step.path
    if step.language == "diff":
        if not target.exists():
            raise RecipeError(f"{step.path} is not there to be edited")
        target.write_text(_edited(target.read_text("utf-8"), step), encoding="utf-8")
        return
    if target.exists():
        raise RecipeError(f"{step.path} is there already")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(step.body, encoding="utf-8")


def _edited(text: str, step: Step) -> str:
    """Return a file after the edit of a step; every hunk, with a line ``@@`` before it, is found exactly once."""
    for hunk in re.split(r"^@@.*\n", step.body, flags=re.MULTILINE):
        lines = hunk.splitlines()
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        if not lines:
            continue
        # A look ahead, because two places may overlap.
        if len(re.findall(f"(?=\n{re.escape(before)})", f"\n{text}")) != 1:
            raise RecipeError(f"the lines to edit in {step.path} are not there exactly once:\n{before}")
        text = f"\n{text}".replace(f"\n{before}", f"\n{after}", 1)[1:]
    return text


def _run(command: list[str], root: Path) -> str:
    arguments = ["docs/generated.py"] if command[0] == "make" else command[1:]
    if "pytest" in command:
        arguments = [*arguments, "-p", "no:cacheprovider", "-q"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={**kept, "PYTHONPATH": str(root / "src"), "CLOISTER_DATA": _data(), **_FEW_PLUGINS},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RecipeError(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout[-6000:]}{done.stderr}")
    return done.stdout.strip()


def _data() -> str:
    return os.environ.get("CLOISTER_DATA", str(ROOT.parent / "shared" / "data"))
