"""mbi: one distribution from noisy marginals that were measured elsewhere, and rows drawn from it, all by default."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from mbi import Domain, LinearMeasurement, estimation


def run(folder: str) -> dict[str, Any]:
    """Estimate from ``measured.npz`` and ``measured.json`` in a folder, and write ``rows.npy`` there.

    Returns:
        The CPU seconds of estimation and drawing, and the least-squares loss that was reached.
    """
    facts = json.loads((Path(folder) / "measured.json").read_text())
    arrays = np.load(Path(folder) / "measured.npz")
    names = [str(column) for column in range(len(facts["sizes"]))]
    domain = Domain(names, facts["sizes"])
    seen = [
        LinearMeasurement(arrays[f"m{place}"].ravel().astype(float), tuple(map(str, columns)), deviation)
        for place, (columns, deviation) in enumerate(facts["measured"])
    ]
    start = time.process_time()
    model = estimation.MirrorDescent().estimate(domain, seen)
    drawn = model.synthetic_data(facts["rows"])
    seconds = time.process_time() - start
    codes = np.stack([np.asarray(drawn.to_dict()[name]) for name in names], axis=1)
    np.save(Path(folder) / "rows.npy", codes.astype(np.int32))
    loss = 0.0
    for item in seen:
        values = np.asarray(model.project(item.clique).datavector())
        loss += float(((values - np.asarray(item.noisy_measurement)) ** 2).sum()) / (2 * item.stddev**2)
    return {"seconds": seconds, "loss": loss}
