"""The automated checks that a submitted artifact has to pass before a person reviews it.

They run on made-up numbers only, so that failures may be told in full. They find mistakes; they are no proof, and none
is needed: whatever passes, a run is private by the platform's own clipping and noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ParameterError
from cloister.hub.domain.algorithms import Artifact, Layout, Manifest
from cloister.hub.sandbox.blocks import Block
from cloister.hub.sandbox.runner import Ending, Outcome, Runner
from cloister.hub.sandbox.scanning import Finding, Level, scan

__all__ = ["CheckReport", "check_artifact"]

_ROWS = 200
_REASONS = {
    Ending.FAILED: "the function failed",
    Ending.KILLED: "the process was ended: too much memory or processor time, or something that is not allowed",
    Ending.LATE: "the function did not end within its wall time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What the checks found, and for which exact artifact."""

    algorithm: str
    version: str
    digest: str
    findings: tuple[Finding, ...]
    isolation: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Return whether nothing keeps the version from review."""
        return not any(finding.level is Level.ERROR for finding in self.findings)

    def __str__(self) -> str:
        title = f"{self.algorithm} {self.version}: {'passed' if self.passed else 'not passed'}"
        return "\n".join([title, *map(str, self.findings)])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values."""
        return {
            "schema": "cloister.algorithm_check/1",
            "algorithm": self.algorithm,
            "version": self.version,
            "digest": self.digest,
            "passed": self.passed,
            "findings": [finding.to_dict() for finding in self.findings],
            "isolation": list(self.isolation),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Trial:
    """One run on made-up data."""

    name: str
    block: Block
    layout: Layout
    must_work: bool


def check_artifact(artifact: Artifact) -> CheckReport:
    """Return what a scan of the sources and runs on made-up data find.

    Raises:
        SandboxUnavailableError: if foreign code cannot be confined on this machine.
    """
    findings = list(scan(artifact))
    isolation: tuple[str, ...] = ()
    if not any(finding.level is Level.ERROR for finding in findings):
        with Runner(artifact, tells=True) as runner:
            isolation = runner.isolation.describe()
            for trial in _trials(artifact.manifest):
                findings += _tried(trial, runner.run(trial.block))
    return CheckReport(
        algorithm=artifact.manifest.id,
        version=str(artifact.manifest.version),
        digest=artifact.digest,
        findings=tuple(findings),
        isolation=isolation,
    )


def _tried(trial: _Trial, outcome: Outcome) -> list[Finding]:
    if outcome.values is None:
        reason = outcome.words or _REASONS.get(outcome.ending, "no complete result was returned")
        level = Level.ERROR if trial.must_work else Level.NOTE
        then = "" if trial.must_work else "; such blocks count with the default"
        return [Finding(level=level, text=f"on {trial.name}: {reason}{then}")]
    findings = []
    undefined = int(np.count_nonzero(~np.isfinite(outcome.values)))
    if undefined and trial.must_work:
        findings.append(
            Finding(
                level=Level.WARNING, text=f"on {trial.name}: {undefined} numbers are undefined and become the default"
            )
        )
    clipped = _share_outside(trial.layout, outcome.values)
    if clipped and trial.must_work:
        findings.append(
            Finding(
                level=Level.WARNING, text=f"on {trial.name}: {clipped:.0%} of the numbers are outside of their bounds"
            )
        )
    return findings


def _share_outside(layout: Layout, values: NDArray[np.float64]) -> float:
    low = np.concatenate([clip.low for clip in layout.clips])
    high = np.concatenate([clip.high for clip in layout.clips])
    room = 1e-9 * (high - low)
    with np.errstate(invalid="ignore"):
        return float(np.mean((values < low - room) | (values > high + room)))


def _trials(manifest: Manifest) -> Iterator[_Trial]:
    """Yield runs with few and many columns, parameters at their ends, and empty, small and incomplete blocks."""
    plain: dict[str, object] = {item.name: item.default for item in manifest.parameters}
    yield from _made(manifest, "made-up rows", plain)
    yield from _made(manifest, "made-up rows with the most columns", plain, most=True)
    for parameter in manifest.parameters:
        for value in parameter.corners():
            yield from _made(
                manifest, f"made-up rows with {parameter.name} = {value}", {**plain, parameter.name: value}
            )
    yield from _made(manifest, "a block without rows", plain, rows=0, must_work=False)
    yield from _made(manifest, "a block of one row", plain, rows=1, must_work=False)
    yield from _made(manifest, "rows that are all missing", plain, missing=1.0, must_work=False)
    yield from _made(manifest, "rows with some values missing", plain, missing=0.2, must_work=False)


def _made(
    manifest: Manifest,
    name: str,
    parameters: dict[str, object],
    *,
    most: bool = False,
    rows: int = _ROWS,
    missing: float = 0.0,
    must_work: bool = True,
) -> Iterator[_Trial]:
    counts = {item.name: item.at_most if most else item.at_least for item in manifest.inputs}
    bounds = {
        item.name: [(0.0, 3.0)] * counts[item.name]
        if item.kind == "category"
        else [(0.0, 10.0 + place) for place in range(counts[item.name])]
        for item in manifest.inputs
    }
    try:
        layout = manifest.layout(parameters, bounds)
    except ParameterError:
        return
    inputs = {}
    for index, item in enumerate(manifest.inputs):
        high = np.array([pair[1] for pair in bounds[item.name]])
        matrix = _spread(rows, counts[item.name], 17 * index) * high
        matrix = np.floor(matrix * (4 / 3)).clip(0, 3) if item.kind == "category" else matrix
        matrix[_spread(rows, counts[item.name], 17 * index + 5) < missing] = np.nan
        inputs[item.name] = matrix
    block = Block(
        inputs=inputs,
        parameters=parameters,
        bounds=bounds,
        outputs=tuple((clip.name, clip.shape) for clip in layout.clips),
        entrypoint=manifest.entrypoint,
    )
    yield _Trial(name=name, block=block, layout=layout, must_work=must_work)


def _spread(rows: int, columns: int, offset: int) -> NDArray[np.float64]:
    """Return numbers in [0, 1) that fill the space evenly (multiples of roots, modulo 1); nothing random is needed."""
    roots = np.array([math.sqrt(prime) for prime in range(2 + offset, 2 + offset + 4 * columns + 4)])
    irrational = roots[np.abs(roots - np.rint(roots)) > 1e-9][:columns]
    return np.asarray((np.arange(1, rows + 1)[:, None] * irrational[None, :]) % 1.0)
