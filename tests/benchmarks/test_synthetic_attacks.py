"""The benchmark of attacks on synthetic tables judges by intervals, and asks of each side what it says it asks."""

from __future__ import annotations

from types import SimpleNamespace

from benchmarks import harness, synthetic_attacks


def test_it_is_a_benchmark() -> None:
    assert "synthetic_attacks" in harness.names()


def test_rates_agree_if_their_intervals_meet() -> None:
    assert synthetic_attacks._rate("x", 0.10, (0.08, 0.12), [0.13, 0.02])["met"]
    assert not synthetic_attacks._rate("x", 0.10, (0.08, 0.12), [0.16, 0.02])["met"]


def test_an_attack_must_tell_copies_from_none() -> None:
    def outcome(*, succeeded: bool) -> tuple[SimpleNamespace, float]:
        found = SimpleNamespace(
            succeeded=succeeded, success=0.1, interval=(0.0, 0.2), control=0.1, control_interval=(0.0, 0.2)
        )
        return found, 2.0

    peer = {"seconds": 6.0, "success": [0.1, 0.1], "control": [0.1, 0.1], "risk": [0.0, 0.0, 0.1]}
    found = {"clean": outcome(succeeded=False), "copied": outcome(succeeded=True)}
    rows = synthetic_attacks._compared("inference", found, {"clean": peer, "copied": peer})
    assert [row["met"] for row in rows] == [True] * 4
    assert rows[2]["peer"] == "no"
    assert rows[3]["ratio"] == 3
    found["clean"] = found["copied"]
    rows = synthetic_attacks._compared("inference", found, {"clean": None, "copied": None})
    assert [row.get("met") for row in rows] == [False, None]


def test_both_sides_know_every_column_once() -> None:
    known = [*synthetic_attacks.KNOWN[0], *synthetic_attacks.KNOWN[1]]
    assert len(set(known)) == len(known) == 14
