"""Rules for a submitted artifact: what its sources are searched for, and the runs that it has to pass before review.

Checks run on made-up numbers only, so that failures may be told in full. They find mistakes; they are no proof, and
none is needed: whatever passes, a run is private by the platform's own clipping and noise. The look at the sources is
for the reviewer. It is no wall: the sandbox is.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.wordings import percent
from cloister.errors import ParameterError
from cloister.hub.domain.algorithms import Artifact, Manifest, OutputLayout
from cloister.hub.domain.algorithms.manifest import PACKAGES
from cloister.hub.sandbox.runner import BlockEnding, BlockOutcome, Runner
from cloister.hub.sandbox.sample_and_aggregate import SandboxBlock

__all__ = ["CheckReport", "FindingLevel", "ScanFinding", "check_artifact", "scan"]


_UNUSUAL_MODULES = frozenset(
    [
        "asyncio",
        "code",
        "codeop",
        "concurrent",
        "ctypes",
        "fcntl",
        "ftplib",
        "gc",
        "http",
        "imaplib",
        "importlib",
        "inspect",
        "marshal",
        "mmap",
        "multiprocessing",
        "os",
        "pickle",
        "pkgutil",
        "posix",
        "pty",
        "resource",
        "runpy",
        "select",
        "selectors",
        "shelve",
        "shutil",
        "signal",
        "site",
        "smtplib",
        "socket",
        "socketserver",
        "ssl",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "urllib",
        "webbrowser",
        "xmlrpc",
        "zipimport",
    ]
)
_UNUSUAL_NAMES = frozenset(
    ["eval", "exec", "compile", "__import__", "open", "input", "breakpoint", "globals", "locals", "vars", "memoryview"]
)
_USUAL_DUNDERS = frozenset(
    [
        "__init__",
        "__name__",
        "__all__",
        "__doc__",
        "__version__",
        "__author__",
        "__repr__",
        "__str__",
        "__eq__",
        "__hash__",
        "__len__",
        "__iter__",
        "__next__",
        "__getitem__",
        "__setitem__",
        "__contains__",
        "__call__",
        "__enter__",
        "__exit__",
        "__post_init__",
        "__add__",
        "__sub__",
        "__mul__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__main__",
        "__slots__",
    ]
)


class FindingLevel(StrEnum):
    """How serious a finding is: an error keeps a version from being published."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFinding:
    """One thing that a provider or a reviewer should know."""

    level: FindingLevel
    text: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.level}: {self.text}" + (f" ({self.place})" if self.place else "")

    def to_dict(self) -> dict[str, str]:
        """Return the finding as JSON-ready values."""
        return {"level": str(self.level), "text": self.text, "place": self.place}


def scan(artifact: Artifact) -> tuple[ScanFinding, ...]:
    """Return what is unusual in the sources, and the errors that keep them from being read."""
    own = {name.split("/")[0].removesuffix(".py") for name in artifact.files if name.endswith(".py")}
    findings: list[ScanFinding] = []
    for name, content in artifact.files.items():
        if not name.endswith(".py"):
            continue
        try:
            tree = ast.parse(content, name)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            line = getattr(problem, "lineno", None)
            findings.append(_error("the file is not valid Python", f"{name}, line {line}" if line else name))
            continue
        findings += _SourceScanner(name, own).read(tree)
        findings += _entry(artifact, name, tree)
    return tuple(findings)


def _entry(artifact: Artifact, name: str, tree: ast.Module) -> list[ScanFinding]:
    module, _, function = artifact.manifest.entrypoint.partition(":")
    path = module.replace(".", "/")
    if name not in (f"{path}.py", f"{path}/__init__.py"):
        return []
    found = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function), None)
    if found is None:
        return [_warning(f"the function {function} is not defined at the top of its module", name)]
    if len(found.args.posonlyargs) + len(found.args.args) != 3:
        return [
            _error(
                f"{function} must take three arguments: inputs, parameters and bounds", f"{name}, line {found.lineno}"
            )
        ]
    return []


class _SourceScanner:
    """Collects what is unusual in one file, each thing once."""

    def __init__(self, name: str, own: set[str]) -> None:
        self._name, self._own = name, own
        self._found: dict[str, int] = {}

    def read(self, tree: ast.Module) -> list[ScanFinding]:
        for node in ast.walk(tree):
            match node:
                case ast.Import():
                    for alias in node.names:
                        self._module(alias.name, node.lineno)
                case ast.ImportFrom(level=0):
                    self._module(node.module or "", node.lineno)
                case ast.Name(id=name) if name in _UNUSUAL_NAMES:
                    self._note(f"uses {name}", node.lineno)
                case ast.Attribute(attr=name) if name.startswith("__") and name not in _USUAL_DUNDERS:
                    self._note(f"reaches for {name}", node.lineno)
                case ast.Constant(value=str(text)) if text.startswith("__") and text not in _USUAL_DUNDERS:
                    self._note(f"names {text[:40]} in a text", node.lineno)
        return [_warning(text, f"{self._name}, line {line}") for text, line in self._found.items()]

    def _module(self, module: str, line: int) -> None:
        top = module.split(".", maxsplit=1)[0]
        if top in self._own:
            return
        if top in _UNUSUAL_MODULES:
            self._note(f"imports {top}, which computing seldom needs", line)
        elif top not in PACKAGES and top not in sys.stdlib_module_names:
            self._note(f"imports {top}, which is not offered", line)

    def _note(self, text: str, line: int) -> None:
        self._found.setdefault(text, line)


def _error(text: str, place: str) -> ScanFinding:
    return ScanFinding(level=FindingLevel.ERROR, text=text, place=place)


def _warning(text: str, place: str) -> ScanFinding:
    return ScanFinding(level=FindingLevel.WARNING, text=text, place=place)


_ROWS = 200
_REASONS = {
    BlockEnding.FAILED: "the function failed",
    BlockEnding.KILLED: "the process was ended: too much memory or processor time, or something that is not allowed",
    BlockEnding.LATE: "the function did not end within its wall time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What the checks found, and for which exact artifact."""

    algorithm: str
    version: str
    digest: str
    findings: tuple[ScanFinding, ...]
    isolation: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Return whether nothing keeps the version from review."""
        return not any(finding.level is FindingLevel.ERROR for finding in self.findings)

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
    block: SandboxBlock
    layout: OutputLayout
    must_work: bool


def check_artifact(artifact: Artifact) -> CheckReport:
    """Return what a scan of the sources and runs on made-up data find.

    Raises:
        SandboxUnavailableError: if foreign code cannot be confined on this machine.
    """
    findings = list(scan(artifact))
    isolation: tuple[str, ...] = ()
    if not any(finding.level is FindingLevel.ERROR for finding in findings):
        with Runner(artifact, tells=True) as runner:
            isolation = runner.isolation.describe()
            for trial in _trials(artifact.manifest):
                findings += _judge_trial(trial, runner.run(trial.block))
    return CheckReport(
        algorithm=artifact.manifest.id,
        version=str(artifact.manifest.version),
        digest=artifact.digest,
        findings=tuple(findings),
        isolation=isolation,
    )


def _judge_trial(trial: _Trial, outcome: BlockOutcome) -> list[ScanFinding]:
    if outcome.values is None:
        reason = outcome.words or _REASONS.get(outcome.ending, "no complete result was returned")
        level = FindingLevel.ERROR if trial.must_work else FindingLevel.NOTE
        then = "" if trial.must_work else "; such blocks count with the default"
        return [ScanFinding(level=level, text=f"on {trial.name}: {reason}{then}")]
    findings = []
    undefined = int(np.count_nonzero(~np.isfinite(outcome.values)))
    if undefined and trial.must_work:
        findings.append(
            ScanFinding(
                level=FindingLevel.WARNING,
                text=f"on {trial.name}: {undefined} numbers are undefined and become the default",
            )
        )
    clipped = _share_outside(trial.layout, outcome.values)
    if clipped and trial.must_work:
        findings.append(
            ScanFinding(
                level=FindingLevel.WARNING,
                text=f"on {trial.name}: {percent(clipped)} of the numbers are outside of their bounds",
            )
        )
    return findings


def _share_outside(layout: OutputLayout, values: NDArray[np.float64]) -> float:
    low = np.concatenate([clip.low for clip in layout.clips])
    high = np.concatenate([clip.high for clip in layout.clips])
    room = 1e-9 * (high - low)
    with np.errstate(invalid="ignore"):
        return float(np.mean((values < low - room) | (values > high + room)))


def _trials(manifest: Manifest) -> Iterator[_Trial]:
    """Yield runs with few and many columns, parameters at their ends, and empty, small and incomplete blocks."""
    plain: dict[str, object] = {item.name: item.default for item in manifest.parameters}
    yield from _make_trial(manifest, "made-up rows", plain)
    yield from _make_trial(manifest, "made-up rows with the most columns", plain, most=True)
    for parameter in manifest.parameters:
        for value in parameter.corners():
            yield from _make_trial(
                manifest, f"made-up rows with {parameter.name} = {value}", {**plain, parameter.name: value}
            )
    yield from _make_trial(manifest, "a block without rows", plain, rows=0, must_work=False)
    yield from _make_trial(manifest, "a block of one row", plain, rows=1, must_work=False)
    yield from _make_trial(manifest, "rows that are all missing", plain, missing=1.0, must_work=False)
    yield from _make_trial(manifest, "rows with some values missing", plain, missing=0.2, must_work=False)


def _make_trial(
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
    block = SandboxBlock(
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
