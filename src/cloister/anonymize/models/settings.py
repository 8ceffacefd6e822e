"""Models as plain settings, for recipes and the command line: ``{k: 5}``, ``{l: 3, attribute: disease}``, and back.

The model is told by the numbers it has; ``model`` may name it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from cloister.core.exact import to_plain_number
from cloister.core.guarantees import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaPresence,
    Guarantee,
    KAnonymity,
    KMap,
    LDiversity,
    PSensitivity,
    Syntactic,
    TCloseness,
)
from cloister.errors import ParameterError, did_you_mean

_MODELS: dict[str, type[Syntactic]] = {
    model.kind: model
    for model in (
        KAnonymity,
        LDiversity,
        TCloseness,
        AlphaKAnonymity,
        PSensitivity,
        BetaLikeness,
        DeltaPresence,
        KMap,
    )
}
# The most telling come first, since several models have a k beside their own number.
_TELLING: tuple[tuple[str, type[Syntactic]], ...] = (
    ("alpha", AlphaKAnonymity),
    ("p", PSensitivity),
    ("beta", BetaLikeness),
    ("delta_max", DeltaPresence),
    ("l", LDiversity),
    ("t", TCloseness),
    ("k", KAnonymity),
)


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


def _find_model(name: object, given: Mapping[str, Any]) -> type[Syntactic]:
    if name is None:
        found = next((model for number, model in _TELLING if number in given), None)
        if found is None:
            raise ParameterError("The settings of a model have no number.", fix='write for example {"k": 5}.')
        return found
    if name not in _MODELS:
        raise ParameterError(
            f'There is no model "{name}".{did_you_mean(str(name), _MODELS)}', fix=f"use one of {', '.join(_MODELS)}."
        )
    return _MODELS[str(name)]


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
