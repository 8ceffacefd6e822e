"""The manifest of a foreign algorithm (``manifest.yaml``): everything that is public about one version of it.

Its parameters are public values that a data user chooses within declared bounds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import yaml

from cloister.core import exact
from cloister.data.schema_file import load_yaml
from cloister.errors import ManifestError, ParameterError, SchemaError, did_you_mean
from cloister.hub.domain.algorithms._sections import ManifestSection, finite, pair
from cloister.hub.domain.algorithms.outputs import AlgorithmOutput, OutputLayout
from cloister.hub.domain.algorithms.privacy import PrivacyContract
from cloister.hub.domain.algorithms.versions import Version

TYPES = ("integer", "number", "choice", "boolean")

Value: TypeAlias = "int | float | str | bool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter: its type, its bounds or options, and its default."""

    name: str
    type: str
    default: Value
    bounds: tuple[Fraction, Fraction] | None = None
    options: tuple[str, ...] = ()
    title: str = ""

    @classmethod
    def read(cls, name: str, values: object) -> Parameter:
        """Return the parameter that plain values state."""
        section = ManifestSection(
            values, where=f"parameters.{name}", known=("type", "bounds", "options", "default", "title")
        )
        kind = section.choice("type", TYPES)
        bounds: tuple[Fraction, Fraction] | None = None
        options: tuple[str, ...] = ()
        if kind in ("integer", "number"):
            bounds = pair(section.any("bounds"), section.path("bounds"))
            if kind == "integer" and any(end.denominator != 1 for end in bounds):
                raise ManifestError(f"{section.path('bounds')} are not whole.", fix="write two whole numbers.")
        if kind == "choice":
            options = _options(section)
        parameter = cls(
            name=name,
            type=kind,
            default=0,
            bounds=bounds,
            options=options,
            title=section.text("title", name),
        )
        try:
            default = parameter.check(section.any("default"))
        except ParameterError as error:
            raise ManifestError(f"The default of {section.where} is not allowed.", fix=error.fix) from None
        return cls(name=name, type=kind, default=default, bounds=bounds, options=options, title=parameter.title)

    def check(self, value: object) -> Value:
        """Return a value that a user chose, if it is allowed.

        Raises:
            ParameterError: with what is allowed.
        """
        match self.type:
            case "boolean" if isinstance(value, bool):
                return value
            case "choice" if isinstance(value, str) and value in self.options:
                return value
            case "integer" if type(value) is int and self._within(Fraction(value)):
                return value
            case "number" if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
                try:
                    found = finite(value, self.name)
                except ManifestError:
                    found = None
                if found is not None and self._within(found):
                    return float(value)
        raise ParameterError(f'The parameter "{self.name}" is not allowed.', fix=f"give {self._allowed()}.")

    def corners(self) -> tuple[Value, ...]:
        """Return the values at the ends of what is allowed, for checks."""
        if self.bounds is not None:
            low, high = self.bounds
            return (int(low), int(high)) if self.type == "integer" else (float(low), float(high))
        return self.options if self.type == "choice" else (False, True)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that `read` takes."""
        values: dict[str, Any] = {"type": self.type, "default": self.default, "title": self.title}
        if self.bounds is not None:
            values["bounds"] = list(self.corners())
        if self.options:
            values["options"] = list(self.options)
        return values

    def _within(self, value: Fraction) -> bool:
        return self.bounds is not None and self.bounds[0] <= value <= self.bounds[1]

    def _allowed(self) -> str:
        match self.type:
            case "boolean":
                return "true or false"
            case "choice":
                return f"one of {', '.join(self.options)}"
        low, high = (exact.text(end) for end in self.bounds or (Fraction(0), Fraction(0)))
        return f"{'a whole number' if self.type == 'integer' else 'a number'} from {low} to {high}"


def choose_values(parameters: tuple[Parameter, ...], given: Mapping[str, object]) -> dict[str, Value]:
    """Return a value for each parameter: what was given, or the default.

    Raises:
        ParameterError: if a value is not allowed or a name is unknown.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            raise ParameterError(
                f'There is no parameter "{str(name)[:40]}".{did_you_mean(str(name)[:40], known)}',
                fix=f"use {', '.join(known) or 'no parameters: the algorithm has none'}.",
            )
    return {name: parameter.check(given.get(name, parameter.default)) for name, parameter in known.items()}


def _options(section: ManifestSection) -> tuple[str, ...]:
    found = section.any("options")
    fine = isinstance(found, list) and 1 <= len(found) <= 50 and len(set(map(str, found))) == len(found)
    if not fine or not all(isinstance(item, str) and item and item.isprintable() and len(item) <= 60 for item in found):
        raise ManifestError(
            f"{section.path('options')} is not a list of different short texts.", fix='write options: ["a", "b"].'
        )
    return tuple(found)


SCHEMA = "cloister.algorithm/1"
PACKAGES = ("numpy", "scipy", "sklearn")
"""What foreign code may import besides the standard library and itself."""

MOST_CHARACTERS = 64_000
_EXAMPLE = "begin with schema: cloister.algorithm/1, id:, version: and entrypoint:"
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_MODULE = r"[A-Za-z_][A-Za-z0-9_]*"
_ENTRY = re.compile(rf"{_MODULE}(?:\.{_MODULE})*:{_MODULE}", re.ASCII)
_DOTTED = re.compile(rf"{_MODULE}(?:\.{_MODULE})*", re.ASCII)
_KEYS = (
    "schema",
    "id",
    "version",
    "title",
    "description",
    "author",
    "license",
    "entrypoint",
    "packages",
    "inputs",
    "parameters",
    "outputs",
    "privacy",
    "resources",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Columns that the data user chooses: how many, and whether they hold numbers or public categories."""

    name: str
    kind: str = "numeric"
    at_least: int = 1
    at_most: int = 1
    title: str = ""

    @classmethod
    def read(cls, name: str, values: object) -> Input:
        """Return the input that plain values state."""
        section = ManifestSection(values, where=f"inputs.{name}", known=("kind", "at_least", "at_most", "title"))
        fewest = section.whole("at_least", 1, low=1, high=100)
        return cls(
            name=name,
            kind=section.choice("kind", ("numeric", "category")),
            at_least=fewest,
            at_most=section.whole("at_most", fewest, low=fewest, high=100),
            title=section.text("title", name),
        )

    def check(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the chosen columns if their number is right."""
        if isinstance(columns, str) or not self.at_least <= len(columns) <= self.at_most:
            raise ParameterError(
                f'The input "{self.name}" takes {self.at_least} to {self.at_most} columns.',
                fix="choose as many columns as that.",
            )
        if len(set(columns)) != len(columns):
            raise ParameterError(f'The input "{self.name}" has a column twice.', fix="choose each column once.")
        return tuple(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that `read` takes."""
        return {"kind": self.kind, "at_least": self.at_least, "at_most": self.at_most, "title": self.title}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one block may use. Every block takes the whole wall time, whether the code needs it or not."""

    cpu_seconds: int = 1
    memory_mb: int = 256
    wall_seconds: Fraction = Fraction(1)

    @classmethod
    def read(cls, values: object) -> Resources:
        """Return the resources that plain values state."""
        section = ManifestSection(values, where="resources", known=("cpu_seconds", "memory_mb", "wall_seconds"))
        wall = section.number("wall_seconds", 1)
        if not Fraction(1, 10) <= wall <= 600:
            raise ManifestError("resources.wall_seconds is not from 0.1 to 600.", fix="write for example 1.")
        return cls(
            cpu_seconds=section.whole("cpu_seconds", 1, low=1, high=600),
            memory_mb=section.whole("memory_mb", 256, low=16, high=4096),
            wall_seconds=wall,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that `read` takes."""
        return {
            "cpu_seconds": self.cpu_seconds,
            "memory_mb": self.memory_mb,
            "wall_seconds": float(self.wall_seconds),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One version of a foreign algorithm, as its provider states it."""

    id: str
    version: Version
    title: str
    description: str
    author: str
    license: str
    entrypoint: str
    packages: tuple[str, ...]
    inputs: tuple[Input, ...]
    parameters: tuple[Parameter, ...]
    outputs: tuple[AlgorithmOutput, ...]
    privacy: PrivacyContract
    resources: Resources

    @classmethod
    def parse(cls, text: str) -> Manifest:
        """Return the manifest that a YAML or JSON text states.

        Raises:
            ManifestError: with the first part that is wrong.
        """
        if len(text) > MOST_CHARACTERS:
            raise ManifestError("The manifest is too long.", fix=f"keep it below {MOST_CHARACTERS:,} characters.")
        try:
            values = load_yaml(text, what="manifest", example=_EXAMPLE)
            if any(isinstance(token, yaml.AliasToken | yaml.AnchorToken) for token in yaml.scan(text)):
                raise ManifestError("The manifest has anchors or aliases.", fix="write every value where it is used.")
        except SchemaError as error:
            raise ManifestError(error.problem, fix=error.fix) from None
        return cls.from_dict(values)

    @classmethod
    def from_dict(cls, values: object) -> Manifest:
        """Return the manifest that plain values state.

        Raises:
            ManifestError: with the first part that is wrong.
        """
        section = ManifestSection(values, where="The manifest", known=_KEYS)
        section.choice("schema", (SCHEMA,))
        inputs = tuple(Input.read(*item) for item in section.named("inputs", most=20).items())
        parameters = tuple(Parameter.read(*item) for item in section.named("parameters", most=50, default={}).items())
        names = [item.name for item in inputs]
        integers = [item.name for item in parameters if item.type == "integer" and _is_axis(item)]
        if set(names) & {item.name for item in parameters}:
            raise ManifestError("An input and a parameter have the same name.", fix="give each its own name.")
        outputs = tuple(
            AlgorithmOutput.read(name, item, integers=integers, inputs=names)
            for name, item in section.named("outputs", most=20).items()
        )
        if not inputs or not outputs:
            raise ManifestError("The manifest needs inputs and outputs.", fix="declare at least one of each.")
        return cls(
            id=_matching(section, "id", _ID, "small letters, digits and hyphens, such as k-means"),
            version=Version.parse(section.any("version")),
            title=section.text("title"),
            description=section.text("description", section.text("title"), most=2000),
            author=section.text("author"),
            license=section.text("license"),
            entrypoint=_matching(section, "entrypoint", _ENTRY, "module:function, such as clustering:fit"),
            packages=_packages(section),
            inputs=inputs,
            parameters=parameters,
            outputs=outputs,
            privacy=PrivacyContract.read(section.any("privacy")),
            resources=Resources.read(section.any("resources", {})),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that `from_dict` takes."""
        return {
            "schema": SCHEMA,
            "id": self.id,
            "version": str(self.version),
            "title": self.title,
            "description": self.description,
            "author": self.author,
            "license": self.license,
            "entrypoint": self.entrypoint,
            "packages": list(self.packages),
            "inputs": {item.name: item.to_dict() for item in self.inputs},
            "parameters": {item.name: item.to_dict() for item in self.parameters},
            "outputs": {item.name: item.to_dict() for item in self.outputs},
            "privacy": self.privacy.to_dict(),
            "resources": self.resources.to_dict(),
        }

    def to_json(self) -> str:
        """Return the manifest as JSON that `parse` gives back equal."""
        return json.dumps(self.to_dict(), indent=2)

    def choose(self, given: Mapping[str, object]) -> dict[str, Value]:
        """Return a value for each parameter: what a user gave, or the default."""
        return choose_values(self.parameters, given)

    def layout(
        self, parameters: Mapping[str, object], column_bounds: Mapping[str, list[tuple[float, float]]]
    ) -> OutputLayout:
        """Return the shapes and public sets of the outputs for public choices."""
        return OutputLayout(clips=tuple(output.resolve(parameters, column_bounds) for output in self.outputs))


def _is_axis(parameter: Parameter) -> bool:
    return parameter.bounds is not None and parameter.bounds[0] >= 1


def _matching(section: ManifestSection, name: str, pattern: re.Pattern[str], allowed: str) -> str:
    found = section.text(name, most=100)
    if not pattern.fullmatch(found):
        raise ManifestError(f"{section.path(name)} is malformed.", fix=f"write {allowed}.")
    return found


def _packages(section: ManifestSection) -> tuple[str, ...]:
    found = section.any("packages", ["numpy"])
    fine = isinstance(found, list) and len(found) <= 20 and all(map(_is_offered, found))
    if not fine:
        raise ManifestError(
            "packages lists something that is not offered.",
            fix=f"use only {', '.join(PACKAGES)}, or modules in them such as sklearn.cluster.",
        )
    return tuple(sorted({*found, "numpy"}))


def _is_offered(item: object) -> bool:
    if not isinstance(item, str) or not _DOTTED.fullmatch(item):
        return False
    return item.partition(".")[0] in PACKAGES
