"""Attacks on what the hub has made, before its owner is asked to let it out."""

from __future__ import annotations

from typing import Any

from cloister.attacks import GatePolicy, GateResult, gate
from cloister.hub.services.registry import Work
from cloister.report import Report

__all__ = ["GATE", "attacked", "gate_of"]

GATE = "gate"
"""Where owners find what the gate said."""

_SECONDS = 120
_FAILED = "The attacks could not be run, so nobody knows what they would find."


def attacked(work: Work, release: Any, *, report: Report | None, begin: float, end: float, **known: Any) -> GateResult:
    """Return what the gate says about a release, telling how far it is between two shares of the work."""
    return gate(
        release,
        report=report,
        policy=GatePolicy(time_limit=_SECONDS),
        progress=lambda share, attack: work.progress(begin + (end - begin) * share, f"attacking: {attack}"),
        **known,
    )


def gate_of(found: GateResult | None) -> dict[str, Any]:
    """Return what owners are told; without a result, that nothing was tried."""
    return {GATE: {"publish": False, "verdict": _FAILED, "findings": []} if found is None else found.to_dict()}
