"""The parameters of a foreign algorithm: public values that a data user chooses within declared bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from cloister.core import exact
from cloister.errors import ManifestError, ParameterError, did_you_mean
from cloister.hub.domain.algorithms.reading import Section, finite, pair

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
        section = Section(values, where=f"parameters.{name}", known=("type", "bounds", "options", "default", "title"))
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


def choose(parameters: tuple[Parameter, ...], given: Mapping[str, object]) -> dict[str, Value]:
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


def _options(section: Section) -> tuple[str, ...]:
    found = section.any("options")
    fine = isinstance(found, list) and 1 <= len(found) <= 50 and len(set(map(str, found))) == len(found)
    if not fine or not all(isinstance(item, str) and item and item.isprintable() and len(item) <= 60 for item in found):
        raise ManifestError(
            f"{section.path('options')} is not a list of different short texts.", fix='write options: ["a", "b"].'
        )
    return tuple(found)
