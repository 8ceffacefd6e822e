from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests learn from a few rows without being told that these are few; `test_outlook` is about being told."""
    expected = "ignore:.* to learn anything:cloister.errors.PrivacyParameterWarning"
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(expected), append=False)
