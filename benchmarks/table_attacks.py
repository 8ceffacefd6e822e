"""How long attacks on a released table take: Adult, 30,162 rows, eight quasi-identifiers, 5-anonymous by Mondrian.

CPU seconds of a warm process, from the release to the result, its table read each time. The attacker knows the
quasi-identifiers of everybody. What each attack finds stands beside its time. No peer was run: `recordlinkage` compares
rows with rows and reads neither intervals nor hierarchies.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloister as cl
from benchmarks import anonymize_data, anonymize_tools
from benchmarks.anonymize_data import QUASI, SENSITIVE, K
from benchmarks.anonymize_tools import judged, median_seconds
from cloister import attacks
from cloister.anonymize import Release

TITLE = "Attacks on a released table: Adult, 8 quasi-identifiers, 5-anonymous"
TARGET = 1.0
_SLOWER = 2.0
_PHONES = 1_000_000


def main(size: int | None = None, phones: int = _PHONES) -> list[dict[str, Any]]:
    """Return the CPU time of each attack, and what it found."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.parquet"
        anonymize_data.write_sample(path, size=size)
        table = anonymize_tools.open_adult(path)
        release, other = _releases(table)
        return [*_linkage(table, release), *_classes(release), *_together(table, release, other), _dictionary(phones)]


def _releases(table: cl.Table) -> tuple[Release, Release]:
    made = [
        cl.anonymize(table, models=[cl.KAnonymity(k=K)], algorithm="mondrian"),
        cl.anonymize(table, models=[cl.KAnonymity(k=K)], algorithm="optimal", suppression_limit=0.02),
    ]
    first, second = (release for release in made if isinstance(release, Release))
    return first, second


def _linkage(table: cl.Table, release: Release) -> list[dict[str, Any]]:
    rows = table.count()
    return [
        _row("linkage, raw rows", lambda: attacks.linkage(table, table, truth=range(rows))),
        _row("linkage, exact", lambda: attacks.linkage(release)),
        _row("linkage, distance", lambda: attacks.linkage(release, kind="distance"), target=_SLOWER),
        _row("linkage, probabilistic", lambda: attacks.linkage(release, kind="probabilistic"), target=_SLOWER),
    ]


def _classes(release: Release) -> list[dict[str, Any]]:
    return [
        _row("homogeneity", lambda: attacks.homogeneity(release)),
        _row("background knowledge, two neighbors", lambda: attacks.background_knowledge(release, neighbors=2)),
        _row("probabilistic inference", lambda: attacks.probabilistic_inference(release)),
        _row("skewness", lambda: attacks.skewness(release)),
    ]


def _together(table: cl.Table, release: Release, other: Release) -> list[dict[str, Any]]:
    value = str(table.frequencies([SENSITIVE]).decoders[0][-1])
    return [
        _row("intersection of two releases", lambda: attacks.intersection([release, other]), target=_SLOWER),
        _row("membership, population = Adult", lambda: attacks.table_membership(release, table), target=_SLOWER),
        _row("minimality", lambda: attacks.minimality(release, value=value, l=2)),
        _row("singling out, 2,000 conditions", lambda: attacks.singling_out(release)),
        _row("identifying columns", lambda: attacks.identifying_columns(table, columns=list(QUASI))),
    ]


def _dictionary(phones: int) -> dict[str, Any]:
    digits = len(str(phones - 1))
    numbers = [f"+1555{number:0{digits}d}" for number in range(0, phones, 997)]
    tokens = [hashlib.sha256(number.encode()).hexdigest() for number in numbers]
    start = time.process_time()
    found = attacks.dictionary(tokens, attacks.digit_pattern("+1555" + "#" * digits), truth=numbers)
    used = time.process_time() - start
    return judged(f"dictionary, {phones:,} phone numbers: {_share(found)}", used, unit="CPU s")


def _row(name: str, attack: Callable[[], attacks.AttackResult], *, target: float = TARGET) -> dict[str, Any]:
    found = attack()
    return judged(f"{name}: {_share(found)}", median_seconds(attack), unit="CPU s", target=target)


def _share(found: attacks.AttackResult) -> str:
    return f"success {100 * found.success:.4g}%, baseline {100 * found.baseline:.4g}%"
