"""How well boosted trees predict the salary class of Adult after seeing released quasi-identifiers only.

Every release is 5-anonymous. Models are trained on what is released of four fifths of the rows and tested on the
original quasi-identifiers of the others, five times; the same trees trained on the original rows are the measure. ARX
cannot be built here without a Maven repository: its figures are those that were published for this table, where models
may have been tested in another way.
"""

from __future__ import annotations

from typing import Any

import cloister as cl
from benchmarks.anonymize_data import SENSITIVE, adult_file, schema
from benchmarks.anonymize_tools import Way

TITLE = "Train on the release, test on the original: Adult, k = 5"
WANTED = 0.829
LOCAL, GLOBAL = ("ARX local, stated", 0.827), ("ARX global, stated", 0.808)
RELEASES = (
    (Way(name="clustering, sets", algorithm="clustering", options={"values": "sets"}), LOCAL, WANTED),
    (Way(name="clustering, hierarchy", algorithm="clustering", options={"values": "hierarchy"}), LOCAL, WANTED),
    (Way(name="mondrian, sets", algorithm="mondrian", options={"values": "sets"}), LOCAL, None),
    (Way(name="optimal, 5% suppression", algorithm="optimal", suppression=0.05), GLOBAL, None),
)


def main() -> list[dict[str, Any]]:
    """Return the accuracy of each release beside that of the original and that of ARX's."""
    table = cl.open_table(adult_file(), schema=schema())
    rows = []
    for way, (peer_name, peer), wanted in RELEASES:
        print(f"  {way.name} ...", flush=True)
        rows += _compared(way, table, peer_name, peer, wanted)
    return rows


def _compared(way: Way, table: cl.Table, peer_name: str, peer: float, wanted: float | None) -> list[dict[str, Any]]:
    utility = cl.assess(way.release(table), target=SENSITIVE).utility
    learned = None if utility is None else utility.learning
    if learned is None:
        raise ValueError(f"nothing was learned from {way.name}")
    score = learned.accuracy
    row = {"name": f"{way.name}: accuracy", "ours": score.released}
    goal = {} if wanted is None else {"target": f">= {wanted}", "met": score.released >= wanted}
    return [
        {**row, "peer": score.original, "peer_name": "original", **goal},
        {**row, "peer": peer, "peer_name": peer_name, **goal},
        {
            "name": f"{way.name}: AUC",
            "ours": learned.auc.released,
            "peer": learned.auc.original,
            "peer_name": "original",
        },
    ]
