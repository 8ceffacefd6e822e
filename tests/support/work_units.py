"""Which test files take longest: ``python -m tests.support.longest_first report.xml`` writes the list anew.

The report is what ``pytest --junit-xml=report.xml`` writes.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

TESTS = Path(__file__).parents[1]
LIST = TESTS / "longest_first.txt"
LISTED = 60


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
