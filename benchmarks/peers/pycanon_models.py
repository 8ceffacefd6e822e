"""pycanon: every model that it can measure, on a table with its quasi-identifiers and one sensitive column."""

from __future__ import annotations

import time
from typing import Any

import pandas as pd
from pycanon import anonymity


def run(path: str, *, quasi: list[str], sensitive: str, size: int | None = None) -> dict[str, Any]:
    """Return the CPU seconds and what was measured, on the first rows of a file."""
    rows = pd.read_csv(path).head(size)
    start = time.process_time()
    k = anonymity.k_anonymity(rows, quasi)
    of_both = (
        anonymity.alpha_k_anonymity,
        anonymity.l_diversity,
        anonymity.entropy_l_diversity,
        anonymity.recursive_c_l_diversity,
        anonymity.basic_beta_likeness,
        anonymity.enhanced_beta_likeness,
        anonymity.t_closeness,
        anonymity.delta_disclosure,
    )
    found = {measure.__name__: str(measure(rows, quasi, [sensitive])) for measure in of_both}
    return {"cpu": time.process_time() - start, "rows": len(rows), "found": {"k": str(k), **found}}
