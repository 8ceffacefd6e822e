from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """An empty hub on SQLite, whose results appear at once."""
    opened = open_hub(Settings(folder=tmp_path / "hub", workers=0, answer_seconds=0.0))
    yield opened
    opened.close()
