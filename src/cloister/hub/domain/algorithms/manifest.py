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
from typing import Annotated, Any, ClassVar, TypeAlias

import yaml
from pydantic import AfterValidator, PlainSerializer, PlainValidator

from cloister.core import exact
from cloister.data.schema_file import load_yaml
from cloister.errors import ManifestError, ParameterError, SchemaError, did_you_mean
from cloister.hub.domain.algorithms._fields import (
    Bounds,
    ManifestPart,
    Number,
    finite,
    line,
    named,
)
from cloister.hub.domain.algorithms.outputs import AlgorithmOutput, OutputLayout
from cloister.hub.domain.algorithms.privacy import PrivacyContract
from cloister.hub.domain.algorithms.versions import Version
from cloister.hub.domain.documents import WrittenAs, mistake, one_of, require, whole

TYPES = ("integer", "number", "choice", "boolean")
_NEEDED = {"integer": "bounds", "number": "bounds", "choice": "options"}

Value: TypeAlias = "int | float | str | bool"


def _check_options(found: Any) -> tuple[str, ...]:  # whatever the file holds
    fine = isinstance(found, list) and 1 <= len(found) <= 50 and all(map(_is_short_text, found))
    if not fine or len(set(found)) != len(found):
        raise mistake("this is not a list of different short texts.", fix='write options: ["a", "b"].')
    return tuple(found)


def _is_short_text(item: object) -> bool:
    return isinstance(item, str) and 1 <= len(item) <= 60 and item.isprintable()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter(ManifestPart):
    """One parameter: its type, its bounds or options, and its default."""

    unwritten: ClassVar = ("name",)
    left_out: ClassVar = ("bounds", "options")

    name: str = ""
    type: Annotated[str, PlainValidator(one_of(TYPES))]
    # Its own check is below, since it needs the bounds or options.
    default: Annotated[Value, PlainValidator(lambda value: value)]
    title: Annotated[str, line()] = ""
    bounds: Bounds | None = None
    options: Annotated[tuple[str, ...], PlainValidator(_check_options), PlainSerializer(list)] = ()

    def __post_init__(self) -> None:
        if self.type == "integer" and self.bounds is not None and any(end.denominator != 1 for end in self.bounds):
            raise ManifestError("The bounds are not whole.", fix="write two whole numbers.")
        try:
            object.__setattr__(self, "default", self.check(self.default))
        except ParameterError as error:
            raise ManifestError("The default is not allowed.", fix=error.fix) from None

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that a parameter of this type has; what another type would have is not looked at."""
        kind = values.get("type")
        needed = _NEEDED.get(kind) if isinstance(kind, str) else None
        if needed is not None:
            require(values, needed)
        return {name: value for name, value in values.items() if name not in {"bounds", "options"} - {needed}}

    def finish(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields, with bounds as numbers of the parameter's own type."""
        return values | {"bounds": list(self.corners())} if self.bounds is not None else values

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
                    found = finite(value)
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


PACKAGES = ("numpy", "scipy", "sklearn")
"""What foreign code may import besides the standard library and itself."""

MOST_CHARACTERS = 64_000
_EXAMPLE = "begin with schema: cloister.algorithm/1, id:, version: and entrypoint:"
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_MODULE = r"[A-Za-z_][A-Za-z0-9_]*"
_ENTRY = re.compile(rf"{_MODULE}(?:\.{_MODULE})*:{_MODULE}", re.ASCII)
_DOTTED = re.compile(rf"{_MODULE}(?:\.{_MODULE})*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input(ManifestPart):
    """Columns that the data user chooses: how many, and whether they hold numbers or public categories."""

    unwritten: ClassVar = ("name",)

    name: str = ""
    kind: Annotated[str, PlainValidator(one_of(("numeric", "category")))]
    at_least: Annotated[int, whole(1, 100)] = 1
    at_most: Annotated[int, whole(1, 100)] = 1
    title: Annotated[str, line()] = ""

    def __post_init__(self) -> None:
        if self.at_most < self.at_least:
            raise ManifestError("At most is below at least.", fix="write as many for at_most, or more.")

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields; as many columns as needed are also the most, unless stated."""
        return {"at_most": values.get("at_least", 1)} | values

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


def _check_wall_seconds(seconds: Fraction) -> Fraction:
    if not Fraction(1, 10) <= seconds <= 600:
        raise mistake("this is not from 0.1 to 600.", fix="write for example 1.")
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources(ManifestPart):
    """What one block may use. Every block takes the whole wall time, whether the code needs it or not."""

    cpu_seconds: Annotated[int, whole(1, 600)] = 1
    memory_mb: Annotated[int, whole(16, 4096)] = 256
    wall_seconds: Annotated[Number, AfterValidator(_check_wall_seconds)] = Fraction(1)


def _matching(pattern: re.Pattern[str], allowed: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise mistake("this is malformed.", fix=f"write {allowed}.")
        return text

    return AfterValidator(check)


def _check_packages(found: Any) -> tuple[str, ...]:  # whatever the file holds
    if not isinstance(found, list) or len(found) > 20 or not all(map(_is_offered, found)):
        raise mistake(
            "this lists something that is not offered.",
            fix=f"use only {', '.join(PACKAGES)}, or modules in them such as sklearn.cluster.",
        )
    return tuple(sorted({*found, "numpy"}))


def _is_offered(item: object) -> bool:
    if not isinstance(item, str) or not _DOTTED.fullmatch(item):
        return False
    return item.partition(".")[0] in PACKAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(ManifestPart):
    """One version of a foreign algorithm, as its provider states it."""

    schema_marker: ClassVar = "cloister.algorithm/1"

    id: Annotated[str, line(100), _matching(_ID, "small letters, digits and hyphens, such as k-means")]
    version: Annotated[Version, WrittenAs(Any, Version.parse, str)]
    title: Annotated[str, line()]
    description: Annotated[str, line(2000)]
    author: Annotated[str, line()]
    license: Annotated[str, line()]
    entrypoint: Annotated[str, line(100), _matching(_ENTRY, "module:function, such as clustering:fit")]
    packages: Annotated[tuple[str, ...], PlainValidator(_check_packages), PlainSerializer(list)] = ("numpy",)
    inputs: Annotated[tuple[Input, ...], named(Input, most=20)]
    parameters: Annotated[tuple[Parameter, ...], named(Parameter, most=50)] = ()
    outputs: Annotated[tuple[AlgorithmOutput, ...], named(AlgorithmOutput, most=20)]
    privacy: PrivacyContract
    resources: Resources = Resources()

    def __post_init__(self) -> None:
        names = [item.name for item in self.inputs]
        if set(names) & {item.name for item in self.parameters}:
            raise ManifestError("An input and a parameter have the same name.", fix="give each its own name.")
        if not self.inputs or not self.outputs:
            raise ManifestError("The manifest needs inputs and outputs.", fix="declare at least one of each.")
        integers = [item.name for item in self.parameters if item.type == "integer" and _is_axis(item)]
        for output in self.outputs:
            output.check_names(integers=integers, inputs=names)

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields; the title is also the description, unless stated."""
        return {"description": values["title"]} | values if "title" in values else values

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
