"""How well boosted trees predict the salary class of Adult after seeing released quasi-identifiers only.

Every release is 5-anonymous. Models are trained on what is released of four fifths of the rows and tested on the
original quasi-identifiers of the others, five times; the same trees trained on the original rows are the measure.
"""

from __future__ import annotations

from typing import Any

import cloister as cl
from benchmarks.shared_adult import TARGET, adult_file, adult_schema

TITLE = "Train on the release, test on the original: Adult, k = 5"
WANTED = 0.829
RELEASES: dict[str, dict[str, Any]] = {
    "mondrian, sets": {"algorithm": "mondrian", "values": "sets"},
    "optimal, full-domain": {"algorithm": "optimal", "suppression_limit": 0.05},
}


def main() -> list[dict[str, Any]]:
    """Return the accuracy of each release beside that of the original."""
    table = cl.open_table(adult_file(), schema=adult_schema())
    rows = []
    for number, (name, options) in enumerate(RELEASES.items()):
        release = cl.anonymize(table, models=[cl.KAnonymity(k=5)], **options)
        utility = cl.assess(release, target=TARGET).utility
        learned = None if utility is None else utility.learning
        if learned is None:
            continue
        score = learned.accuracy
        row = {"name": f"{name}: accuracy", "ours": score.released, "peer": score.original, "peer_name": "original"}
        if number == 0:
            row |= {"target": f">= {WANTED}", "met": score.released >= WANTED}
        rows.append(row)
        rows.append({"name": f"{name}: AUC", "ours": learned.auc.released, "peer": learned.auc.original})
    return rows
