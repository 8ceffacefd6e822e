"""Outside tools that some tests need, and the one rule for their absence.

On a user's machine a missing tool skips the test with a sentence. Where CLOISTER_REQUIRE_TOOLS is set, as in CI,
every such skip is a failure.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

REQUIRED = "CLOISTER_REQUIRE_TOOLS"


def postgres_binary(name: str) -> str | None:
    """Return the path of a PostgreSQL server program, also where Debian hides it."""
    candidates = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return str(candidates[0]) if candidates else shutil.which(name)


def chromium() -> str | None:
    """Return the path of Chromium or Chrome."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


_NEEDS: dict[str, tuple[Callable[[], str | None], str]] = {
    "spark": (lambda: shutil.which("java"), "Spark needs Java 17 or newer: install a JDK to run this test."),
    "postgres": (
        lambda: postgres_binary("initdb"),
        "No PostgreSQL server is installed: install postgresql to run this test.",
    ),
    "chromium": (chromium, "Chromium is not installed: install chromium to run this test."),
    "node": (lambda: shutil.which("node"), "Node.js is not installed: install nodejs to run this test."),
}


def missing(marker: str) -> str | None:
    """Return the sentence that says what is missing for a marker, or None."""
    if marker not in _NEEDS:
        return None
    find, sentence = _NEEDS[marker]
    return None if find() else sentence


def skip_or_fail(sentence: str) -> None:
    """Skip on a user's machine, fail where every tool is required."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set. {sentence}")
    pytest.skip(sentence)


def shared_data() -> Path:
    """Return the folder of public data sets, or skip."""
    folder = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not folder.is_dir():
        skip_or_fail("The public data sets are missing: set CLOISTER_DATA to their folder.")
    return folder
