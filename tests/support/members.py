"""What the tests of single members of a family say about them, for tests that insist on every member."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).parents[1]


def gather(folder: str, name: str) -> dict[str, Any]:
    """Return the mappings called ``name`` of all test modules of a folder as one; two may not name the same member."""
    found: dict[str, Any] = {}
    for path in sorted((_TESTS / folder).glob("test_*.py")):
        if f"\n{name}" in path.read_text("utf-8"):
            module = importlib.import_module(f"tests.{folder.replace('/', '.')}.{path.stem}")
            said = getattr(module, name)
            assert not found.keys() & said.keys(), path
            found |= said
    return found
