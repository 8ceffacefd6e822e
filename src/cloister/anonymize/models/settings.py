"""Models as plain settings, for recipes and the command line: ``{k: 5}``, ``{l: 3, attribute: disease}``, and back.

The model is told by the numbers it has; ``model`` may name it as well.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from cloister.anonymize.models.base import privacy_models
from cloister.core.exact import to_plain_number
from cloister.core.guarantees import Guarantee, Syntactic
from cloister.errors import ParameterError, did_you_mean

_WRITTEN = re.compile(r"(?P<name>[\w-]+)\((?P<settings>.*)\)", re.DOTALL)


def model_from(settings: object) -> Guarantee:
    """Return the model that settings describe; a model stays as it is.

    Raises:
        ParameterError: if no model has these settings.
    """
    if isinstance(settings, Guarantee):
        return settings
    if not isinstance(settings, Mapping) or not settings:
        raise ParameterError(
            "A model is neither a model nor its settings.", fix='write cl.KAnonymity(k=5) or {"k": 5}.'
        )
    given = {str(name): value for name, value in settings.items()}
    model = _find_model(given.pop("model", None), given)
    try:
        return model(**given)
    except TypeError:
        known = {"kind" if item.name == "variant" else item.name for item in fields(model)}
        names = sorted(known - {"assumptions", "caveats"})
        wrong = next((name for name in given if name not in names), "")
        raise ParameterError(
            f"The settings of {model.kind} are not complete or have unknown names.{did_you_mean(wrong, names)}",
            fix=f"give those that apply of {', '.join(names)}.",
        ) from None


def parse_model(written: str) -> Guarantee:
    """Return the model that a text stands for: its name, and its settings in parentheses.

    >>> parse_model("p_sensitivity(attribute=diagnosis, p=2, k=5)").brief()
    'p = 2, k = 5 (diagnosis) per row'

    Raises:
        ParameterError: if it is not written so, or no model has these settings.
    """
    found = _WRITTEN.fullmatch(str(written).strip())
    parts = None if found is None else _split(found["settings"])
    if found is None or parts is None or not all("=" in part for part in parts):
        raise ParameterError(
            f'"{written}" is not a model with its settings.',
            fix='write for example "p_sensitivity(attribute=diagnosis, p=2, k=5)"; the names are '
            f"{', '.join(privacy_models)}.",
        )
    named = (part.split("=", 1) for part in parts)
    settings = {name.strip(): _read_value(value.strip()) for name, value in named}
    return model_from({**settings, "model": found["name"].replace("-", "_")})


def _split(settings: str) -> list[str] | None:
    """Return what stands between commas, of which quoted ones are parts of a value; None if a quote is left open."""
    lexer = shlex.shlex(settings, posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = ",", True, ""
    try:
        return list(lexer)
    except ValueError:
        return None


def _read_value(value: str) -> str | int:
    """Return a whole number as such; all other numbers are exact as text."""
    return int(value) if value.isdecimal() and value.isascii() else value


def _find_model(name: object, given: Mapping[str, Any]) -> type[Syntactic]:
    if name is not None:
        if str(name) not in privacy_models:
            raise ParameterError(
                f'There is no model "{name}".{did_you_mean(str(name), privacy_models)}',
                fix=f"use one of {', '.join(privacy_models)}.",
            )
        return privacy_models.get(str(name)).promise
    # Several models have a k beside their own number, which is the more telling one.
    known = sorted((model for _, model in privacy_models.items()), key=lambda model: model.number == "k")
    found = next((model for model in known if model.number in given), None)
    if found is None:
        raise ParameterError("The settings of a model have no number.", fix='write for example {"k": 5}.')
    return found.promise


def settings_of(model: Guarantee) -> dict[str, Any]:
    """Return the settings that `model_from` turns into the model again."""
    named: dict[str, Any] = {"model": model.kind}
    for item in fields(model):
        value = getattr(model, item.name)
        if item.name in ("assumptions", "caveats") or value is None or (item.name, value) == ("unit", "row"):
            continue
        named["kind" if item.name == "variant" else item.name] = plain(value)
    return named


def plain(value: Any) -> Any:  # a field of a model
    """Return a number as YAML and JSON hold it: a whole number, an exact decimal, or a fraction as text."""
    return to_plain_number(value) if isinstance(value, Fraction) else value
