from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import cloister
from cloister.core import markers

SOURCES = Path(cloister.__file__).parent


def test_every_marker_is_written_in_one_file() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES.rglob("*.py"):
        for marker in re.findall(r'"(cloister\.[a-z_.-]+/\d+)"', path.read_text("utf-8")):
            homes[marker].add(path.relative_to(SOURCES).as_posix())
    assert len(homes) > 150
    assert {marker: sorted(files) for marker, files in homes.items() if len(files) > 1} == {}


def test_shared_markers_are_different() -> None:
    shared = [getattr(markers, name) for name in markers.__all__]
    assert len(set(shared)) == len(shared)
