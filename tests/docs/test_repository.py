from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SKIPPED = {".git", ".venv", "site", "build", "dist", "__pycache__", ".hypothesis", ".venv-peers"}
TEXT = {".py", ".md", ".toml", ".yml", ".yaml", ".cff", ".sh", ".csv", ".json", ".html", ".js", ".css", ""}
# The brackets keep this file from finding itself.
FORBIDDEN = {
    "a path of somebody's machine": r"(?<![\w.])/(?:wo[r]k|fa[r]m|ho[m]e|Use[r]s|ro[o]t|tmp/w[t])/|[A-Z]:\\Use[r]s",
    "a number of a tracker": r"\bissue[ ]?#|\bissue \d+\b",
    "a package registry": r"py[p]i\.org|python[h]osted|registry\.np[m]js|np[m]js\.com",
    "an unfinished place": r"\bTO[D]O\b|\bFIX[M]E\b",
}


def _files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if not SKIPPED & set(path.relative_to(ROOT).parts)]
    return [path for path in found if path.is_file() and path.suffix in TEXT]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_repository_speaks_of_the_project_alone(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    hits = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _files()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert hits == [], f"{what} is in {hits}"


def test_no_source_file_is_too_long() -> None:
    lengths = {path: path.read_text("utf-8").count("\n") for path in _files() if path.suffix == ".py"}
    assert {str(path) for path, lines in lengths.items() if lines > 600} == set()
    assert lengths
