from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.walks import WALKS

PAGE = Path(__file__).parents[2] / "docs" / "contributing" / "architecture.md"


def _steps(title: str) -> list[str]:
    """Return the functions that a walk of the page names, in order."""
    _, _, rest = PAGE.read_text("utf-8").partition(f"\n### {title}\n")
    walk = re.split(r"\n##", rest)[0]
    return re.findall(r"^\d+\. `([\w.]+)`", walk, re.MULTILINE)


def test_every_walk_of_the_page_is_walked() -> None:
    _, _, walks = PAGE.read_text("utf-8").partition("\n## Four walks\n")
    assert re.findall(r"^### (.+)$", walks.partition("\n## ")[0], re.MULTILINE) == list(WALKS)


@pytest.mark.slow
@pytest.mark.no_cover  # they are recorded, which does not go together with tracing
@pytest.mark.parametrize("title", WALKS)
def test_the_functions_of_a_walk_are_called_in_its_order(title: str, tmp_path: Path) -> None:
    steps, called = _steps(title), WALKS[title](tmp_path)
    assert len(steps) >= 10
    missing = [step for step in steps if step not in called]
    assert missing == [], "docs/contributing/architecture.md names functions that are not called (any more)"
    assert sorted(steps, key=called.index) == steps, "docs/contributing/architecture.md names them in another order"
