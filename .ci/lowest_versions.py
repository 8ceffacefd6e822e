"""Prints the lowest versions that `pyproject.toml` allows, as constraints for pip; --extras prints their extras."""

import re
import sys
import tomllib
from pathlib import Path

EXTRAS = ("pandas", "polars", "postgres", "plot", "learn")
_LEAST = re.compile(r"(?P<name>[\w-]+)(\[\w+\])?>=(?P<version>[\w.]+)")


def main() -> None:
    """Print one line for each dependency of the core and of the extras that the tests of core, data and queries use."""
    if sys.argv[1:] == ["--extras"]:
        print(",".join(EXTRAS))  # noqa: T201
        return
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [line for name in EXTRAS for line in project["optional-dependencies"][name]]
    for line in [*project["dependencies"], *extras]:
        found = _LEAST.fullmatch(line)
        if found is None:
            sys.exit(f"pyproject.toml states no lowest version: {line}")
        print(f"{found['name']}=={found['version']}")  # noqa: T201


if __name__ == "__main__":
    main()
