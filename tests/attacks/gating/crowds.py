"""Made-up people who look drawn at random, and what the gate says of tables about them before it attacks anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import cloister as cl
from cloister.attacks import GateResult
from cloister.attacks.gating._gate_subject import subject_of
from cloister.attacks.gating._screen import screen_release
from cloister.attacks.gating.policy import GatePolicy
from cloister.core.guarantees import PureDP
from cloister.core.random import SystemRandomSource

DP = PureDP(epsilon=1)
ILLNESSES = np.array(["asthma", "cancer", "cold", "flu", "heart"])


def mixed(place: np.ndarray, salt: int, size: int) -> np.ndarray:
    """Return numbers below a size that look drawn at random."""
    values = (place.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15 + 2 * salt)
    values = (values ^ (values >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((values ^ (values >> np.uint64(29))) % np.uint64(size)).astype(np.int64)


def people(rows: int = 1000, start: int = 0) -> pd.DataFrame:
    place = np.arange(start, start + rows)
    return pd.DataFrame(
        {
            "age": 20 + mixed(place, 1, 60),
            "zip": [f"{47000 + code}" for code in mixed(place, 2, 12)],
            "sex": np.array(["F", "M"])[mixed(place, 3, 2)],
            "illness": ILLNESSES[mixed(place, 4, 5)],
        }
    )


def described(frame: pd.DataFrame, **roles: str) -> Any:
    table = cl.open_table(frame)
    schema = cl.Schema.infer(table).confirm()
    for name in frame.columns:
        default = {"age": "quasi", "zip": "quasi", "sex": "quasi", "illness": "sensitive"}.get(name, "insensitive")
        schema = schema.with_role(name, roles.get(name, default))
    return table.with_schema(schema)


def stands(result: Any) -> dict[str, str]:
    return {finding.attack: str(finding.stand) for finding in result.findings}


def screen(release: Any, *, guarantee: Any = None, **known: Any) -> GateResult:
    """Return what the gate says before it attacks anything, which is what these tricks must not get past."""
    given = {"kind": None, "original": None, "control": None, "quasi_identifiers": None, "sensitive": None, **known}
    subject = subject_of(release, guarantee=guarantee, source=SystemRandomSource(), **given)
    found = tuple(screen_release(subject, GatePolicy()))
    return GateResult(kind=subject.kind, promise="", findings=found, policy=GatePolicy(), seconds=0.0)


def wide(rows: int = 600, start: int = 0) -> pd.DataFrame:
    place = np.arange(start, start + rows)
    frame = people(rows, start)
    return frame.assign(
        salary=20_000 + mixed(place, 5, 60_000),
        latitude=48 + mixed(place, 6, 10**9) / 1e9,
        seen=pd.Timestamp("2024-01-01") + pd.to_timedelta(mixed(place, 7, 10**7), unit="s"),
    )
