"""How parallel workers share out the tests: the longest files first, and all of Spark's tests to one of them.

``python -m tests.support.work_units report.xml`` writes anew which files take longest; the report is what
``pytest --junit-xml=report.xml`` writes.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

TESTS = Path(__file__).parents[1]
LIST = TESTS / "longest_first.txt"
LISTED = 60


def sort(items: list[pytest.Item]) -> None:
    """Put the longest files first: who begins with them does not wait for one of them at the end."""
    places = {TESTS / name: place for place, name in enumerate(LIST.read_text("utf-8").split())}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def work_unit(name: str) -> str:
    """Return what a test stays together with on one worker: its file, whose servers start once.

    Starting Spark takes ten seconds and a gigabyte, and its first queries are slow: one worker has all of its tests.
    """
    return "spark" if "spark" in name else name.split("::", 1)[0]


def main() -> None:
    """Write the list."""
    seconds: Counter[str] = Counter()
    for case in ET.parse(sys.argv[1]).iter("testcase"):
        seconds[case.attrib["classname"]] += float(case.attrib["time"])
    files = [(TESTS.parent / name.replace(".", "/")).with_suffix(".py") for name, _ in seconds.most_common()]
    names = [file.relative_to(TESTS).as_posix() for file in files if file.exists()]
    LIST.write_text("".join(f"{name}\n" for name in names[:LISTED]), "utf-8")


if __name__ == "__main__":
    main()
