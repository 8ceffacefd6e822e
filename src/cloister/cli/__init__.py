"""The ``cloister`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    sys.exit(0)
