"""Releases of Adult at k = 5: what they lose and what they cost, beside ARX, anonypy and exhaustive search.

30,162 rows, eight quasi-identifiers; NCP (mean LM) comes from one evaluator for all, `benchmarks.anonymize_loss`. CPU
seconds are warm medians: of the search alone, on counts that are there already, and of the whole call, from the open
file to all released rows. ARX cannot be built here without a Maven repository: its figures are stated ones. Its times
are those of whole calls of ARX 3.9.2, warm, on a machine of this kind, noted on 2026-11-17 beside ours there: 0.101,
0.156 and 0.207 s at 0, 5 and 100% suppression, 0.81 s for local recoding with an NCP of 0.0522. So whole calls are set
beside whole calls, and the bare search beside nothing; ratios compare different runs. Targets stand met or not.

Larger tables: `benchmarks.anonymize_scale`; risks: `benchmarks.assessing` and `benchmarks.population_uniqueness`;
models trained on releases: `benchmarks.train_on_released`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import anonymize_data, anonymize_tools
from benchmarks.anonymize_data import K
from benchmarks.anonymize_loss import evaluate
from benchmarks.anonymize_tools import Way, beside, judged
from benchmarks.exhaustive_lattice import Optimum, best_recodings

TITLE = "Anonymization: Adult, 30,162 rows, 8 quasi-identifiers, k = 5"
ARX, ARX_LOSS = "ARX 3.9.2, whole call, stated, noted 2026-11-17", "ARX, stated"
ARX_LOCAL = "ARX 3.9.2 local recoding, whole call, stated, noted 2026-11-17"
ARX_LOCAL_LONG = "ARX local recoding at length, stated"
OPTIMAL = {0.0: (0.07, 0.661), 0.05: (0.70, 0.274), 1.0: (1.72, 0.233)}
"""The suppression limit, and the seconds of ARX's whole call and its NCP."""
LOCAL = {ARX_LOCAL: (2.31, 0.0605), ARX_LOCAL_LONG: (11.2, 0.0547)}
LOCAL_TARGETS = {"CPU s": 3.0, "NCP": 0.0547}
SETS_TARGETS = {"CPU s": 1.0, "NCP": 0.024}
SETS_STATED = {"set-valued Mondrian elsewhere, stated": (50.0, 0.029)}

_MEASURES = (("whole call", "CPU s"), ("loss", "NCP"))

Figures = tuple[float | None, float | None]
"""CPU seconds and NCP."""

HIERARCHICAL = (
    Way(name="clustering", algorithm="clustering", options={"values": "hierarchy"}),
    Way(name="top_down", algorithm="top_down"),
    Way(name="mondrian", algorithm="mondrian", options={"values": "hierarchy"}),
    Way(name="optimal, then local", algorithm="optimal", suppression=1, options={"recoding": "local"}),
)
SET_VALUED = (
    Way(name="clustering", algorithm="clustering", options={"values": "sets"}),
    Way(name="mondrian", algorithm="mondrian", options={"values": "sets"}),
    Way(name="mondrian, relaxed", algorithm="mondrian", options={"values": "sets", "mode": "relaxed"}),
)


def main(size: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of every part; for a try, of the first rows of Adult."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.parquet"
        anonymize_data.write_sample(path, size=size)
        return [*optimal(path), *hierarchical(path), *set_valued(path, size)]


def optimal(path: Path) -> list[dict[str, Any]]:
    """Compare the optimum with ARX's, and with the best of all recodings."""
    print("  exhaustive search ...", flush=True)
    truths = best_recodings(pq.read_table(path), k=K, limits=list(OPTIMAL))
    return [row for limit, truth in zip(OPTIMAL, truths, strict=True) for row in _optimum(path, limit, truth)]


def _optimum(path: Path, limit: float, truth: Optimum) -> list[dict[str, Any]]:
    way = Way(name=f"optimal, {limit:.0%} suppression", algorithm="optimal", suppression=limit)
    seconds, lost = OPTIMAL[limit]
    ncp = anonymize_tools.evaluated(way, path).ncp
    best = {"target": "the optimum", "met": abs(ncp - truth.ncp) < 1e-9}
    call = judged(f"{way.name}: whole call", anonymize_tools.call_seconds(way, path), unit="CPU s", target=seconds)
    loss = judged(f"{way.name}: loss", ncp, unit="NCP")
    return [
        judged(f"{way.name}: search", anonymize_tools.search_seconds(way, path), unit="CPU s"),
        beside(call, ARX, seconds),
        beside({**loss, "target": f"<= {lost}", "met": round(ncp, 3) <= lost}, ARX_LOSS, lost),
        beside({**loss, **best}, f"best of {truth.nodes:,}", truth.ncp),
    ]


def hierarchical(path: Path) -> list[dict[str, Any]]:
    """Compare recodings that show names of the hierarchies only."""
    return _compared("hierarchy-bound", HIERARCHICAL, path, targets=LOCAL_TARGETS, peers=LOCAL)


def set_valued(path: Path, size: int | None = None) -> list[dict[str, Any]]:
    """Compare recodings that show sets and intervals."""
    peers = {"anonypy": _anonypy(size), **SETS_STATED}
    return _compared("sets and intervals", SET_VALUED, path, targets=SETS_TARGETS, peers=peers)


def _compared(
    kind: str, ways: Sequence[Way], path: Path, *, targets: dict[str, float], peers: dict[str, Figures]
) -> list[dict[str, Any]]:
    """Return the first way, which has targets, beside all peers, and the others beside the first peer."""
    rows = []
    for place, way in enumerate(ways):
        figures = anonymize_tools.call_seconds(way, path), anonymize_tools.evaluated(way, path).ncp
        wanted = {} if place else targets
        for name, theirs in list(peers.items())[: 1 if place else None]:
            rows += [
                beside(judged(f"{kind}: {way.name}: {what}", ours, unit=unit, target=wanted.get(unit)), name, figure)
                for (what, unit), ours, figure in zip(_MEASURES, figures, theirs, strict=True)
            ]
    return rows


def _anonypy(size: int | None) -> Figures:
    """Return the figures of anonypy's Mondrian; none if it cannot be run."""
    found = anonymize_tools.run_peer("anonypy_mondrian", "anonypy", "pandas", k=K, size=size)
    if found is None:
        return None, None
    released = evaluate(pa.table(found["labels"]), total=sum(found["counts"]), counts=found["counts"])
    return found["cpu"], released.ncp
