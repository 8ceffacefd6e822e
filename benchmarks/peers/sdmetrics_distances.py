"""sdmetrics: the distance of each synthetic row to its closest original row."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sdmetrics.single_table.privacy.dcr_utils import calculate_dcr


def run(folder: str) -> dict[str, Any]:
    """Measure the tables in a folder; returns the mean and the median distance, and CPU seconds."""
    warnings.simplefilter("ignore")
    original, synthetic = (pd.read_parquet(Path(folder) / f"{name}.parquet") for name in ("original", "synthetic"))
    kinds = {
        name: {"sdtype": "numerical" if pd.api.types.is_numeric_dtype(original[name]) else "categorical"}
        for name in original.columns
    }
    start = time.process_time()
    found = calculate_dcr(dataset=synthetic, reference_dataset=original, metadata={"columns": kinds})
    seconds = time.process_time() - start
    return {"seconds": seconds, "mean": float(found.mean()), "median": float(np.median(found))}
