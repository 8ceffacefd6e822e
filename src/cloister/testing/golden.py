"""Golden examples: published worked examples as data, with where they come from and whether they were right.

One TOML file per example, ``tests/golden/<package>/<name>.toml``::

    source = "Dwork and Roth (2014), example 3.1"
    status = "confirmed"          # or "corrected", with a derivation
    tolerance = 1e-6              # absolute, on every number; 0 compares exactly
    expected = 1.098612           # a value, a list or a table

    [inputs]
    p = 0.5

Several cases of one function go into ``[[cases]]``, each with ``inputs``, ``expected`` and perhaps a ``name``.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cloister.core import exact
from cloister.errors import GoldenMismatchError, ParameterError, SourceNotFoundError

__all__ = ["Golden", "check_golden", "load_golden", "load_goldens"]

_KEYS = {"source", "status", "derivation", "printed", "note", "tolerance", "inputs", "expected", "cases"}
_CASE_KEYS = {"name", "inputs", "expected", "note"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Inputs and what must come out."""

    name: str
    inputs: Mapping[str, Any]
    expected: Any  # numbers, text, lists and tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """A worked example: where it is from, whether its print was right, and its cases."""

    name: str
    source: str
    status: str
    tolerance: Fraction
    cases: tuple[Case, ...]
    derivation: str = ""
    path: Path = field(default=Path(), repr=False)

    def __str__(self) -> str:
        return self.name


def load_goldens(folder: str | Path) -> list[Golden]:
    """Return the examples of a folder, by name.

    Raises:
        SourceNotFoundError: if there is no such folder, or no example in it.
        ParameterError: if a file does not say all that it must.
    """
    paths = sorted(Path(folder).glob("*.toml"))
    if not paths:
        raise SourceNotFoundError(f"There are no golden examples in {folder}.", fix="check the folder.")
    return [load_golden(path) for path in paths]


def load_golden(path: str | Path) -> Golden:
    """Return the example of one file."""
    place = Path(path)
    try:
        values = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceNotFoundError(f"{place} cannot be read.", fix="check the path.") from error
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{place} is not TOML: {error}.", fix="correct the file.") from error
    _check_keys(place, values, _KEYS)
    status = _text(place, values, "status")
    if status not in {"confirmed", "corrected"}:
        raise _bad(place, f'has the status "{status}"', 'write status = "confirmed" or "corrected".')
    derivation = str(values.get("derivation", ""))
    if status == "corrected" and not derivation.strip():
        raise _bad(place, "corrects its source without a derivation", "add derivation = how the right figure follows.")
    return Golden(
        name=place.stem,
        source=_text(place, values, "source"),
        status=status,
        tolerance=_tolerance(place, values),
        cases=_cases(place, values),
        derivation=derivation,
        path=place,
    )


def check_golden(golden: Golden, function: Callable[..., Any], *, tolerance: object = None) -> None:
    """Raise unless a function gives what is expected on every case; inputs are passed by keyword.

    Args:
        golden: the example.
        function: takes the inputs by name.
        tolerance: a tighter tolerance than the file's, if wanted; a looser one is refused.

    Raises:
        GoldenMismatchError: with the place where the values part.
    """
    allowed = golden.tolerance
    if tolerance is not None:
        allowed = exact.number(tolerance, name="tolerance")
        if allowed > golden.tolerance:
            raise ParameterError(
                f"The tolerance is looser than the {float(golden.tolerance):g} of {golden.name}.",
                fix="leave tolerance out, or find out why the figures differ.",
            )
    for case in golden.cases:
        problem = _difference(case.expected, function(**case.inputs), allowed, "the result")
        if problem:
            raise GoldenMismatchError(
                f"{golden.name}{case.name and f' ({case.name})'}: {problem}.",
                fix=f"check the function against {golden.source}; never edit the expected value to fit.",
            )


def _difference(expected: Any, actual: Any, tolerance: Fraction, place: str) -> str:
    """Return where and how two values differ, or an empty string."""
    if isinstance(actual, np.ndarray | np.generic):
        actual = actual.tolist()
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or set(map(str, actual)) != set(expected):
            return f"{place} does not have the keys {', '.join(expected)}"
        named = {str(key): value for key, value in actual.items()}
        return _first(_difference(expected[key], named[key], tolerance, f"{place}[{key}]") for key in expected)
    if isinstance(expected, list):
        if isinstance(actual, str) or not isinstance(actual, Sequence) or len(actual) != len(expected):
            return f"{place} is not a list of {len(expected)}"
        pairs = enumerate(zip(expected, actual, strict=True))
        return _first(_difference(left, right, tolerance, f"{place}[{i}]") for i, (left, right) in pairs)
    return "" if _equal(expected, actual, tolerance) else f"{place} is {actual!r}, expected {expected!r}"


def _equal(expected: Any, actual: Any, tolerance: Fraction) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, str) and isinstance(actual, Fraction):
        return exact.number(expected) == actual
    if isinstance(expected, str) or actual is None or isinstance(actual, str):
        return bool(expected == actual)
    if not (math.isfinite(expected) and math.isfinite(actual)):
        return bool(expected == actual)
    return abs(exact.number(expected) - exact.number(actual)) <= tolerance


def _first(problems: Any) -> str:
    return next(filter(None, problems), "")


def _cases(place: Path, values: Mapping[str, Any]) -> tuple[Case, ...]:
    if ("cases" in values) == ("expected" in values):
        raise _bad(place, "has neither an expected value nor cases, or both", "write expected = ... or [[cases]].")
    listed = values.get("cases", [{"inputs": values.get("inputs", {}), "expected": values.get("expected")}])
    for case in listed:
        _check_keys(place, case, _CASE_KEYS)
        if "expected" not in case:
            raise _bad(place, "has a case without an expected value", "write expected = ... in every case.")
    if not listed:
        raise _bad(place, "has no cases", "add a case.")
    shared = values.get("inputs", {})
    return tuple(
        Case(name=case.get("name", ""), inputs={**shared, **case.get("inputs", {})}, expected=case["expected"])
        for case in listed
    )


def _tolerance(place: Path, values: Mapping[str, Any]) -> Fraction:
    if "tolerance" not in values:
        raise _bad(place, "does not state its tolerance", "write tolerance = 0 for exact values, or 1e-6.")
    tolerance = exact.number(values["tolerance"], name="tolerance")
    if tolerance < 0:
        raise _bad(place, "has a negative tolerance", "write tolerance = 0 for exact values, or 1e-6.")
    return tolerance


def _text(place: Path, values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _bad(place, f"does not state its {key}", f'write {key} = "...".')
    return value


def _check_keys(place: Path, values: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(values) - known)
    if unknown:
        raise _bad(place, f"has unknown keys: {', '.join(unknown)}", f"use only {', '.join(sorted(known))}.")


def _bad(place: Path, problem: str, fix: str) -> ParameterError:
    return ParameterError(f"{place.name} {problem}.", fix=fix)
