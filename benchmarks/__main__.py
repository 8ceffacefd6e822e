"""Run all benchmarks, or the named ones, and write benchmarks/RESULTS.md: ``python -m benchmarks [name ...]``."""

from __future__ import annotations

import sys

from benchmarks import harness

if __name__ == "__main__":
    sys.exit(harness.run(sys.argv[1:]))
