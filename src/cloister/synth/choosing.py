"""A synthesizer by its registered name, with settings as people type them: for the command line and the hub."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from cloister.errors import ParameterError, did_you_mean
from cloister.synth.base import Synthesizer, synthesizers

__all__ = ["make_synthesizer", "methods", "own_settings"]


def methods() -> dict[str, str]:
    """Return what each registered synthesizer is, by its name.

    >>> methods()["adaptive"]
    'The best choice for most tables: marginals chosen where they are needed ("AIM").'
    """
    return {name: (kind.__doc__ or "").strip().partition("\n")[0] for name, kind in synthesizers.items()}


def own_settings(name: str) -> tuple[str, ...]:
    """Return the parameters that a synthesizer has beside those that all have.

    >>> own_settings("spanning_tree")
    ('center',)
    """
    common = {item.name for item in fields(Synthesizer)}
    return tuple(item.name for item in fields(synthesizers.get(name)) if item.init and item.name not in common)


def make_synthesizer(name: str, *, settings: Iterable[str] = (), **parameters: Any) -> Synthesizer:
    """Return a synthesizer by name.

    Args:
        name: as it is registered; a dash stands for an underscore.
        settings: texts NAME=VALUE, for parameters that only this synthesizer has; values as in JSON, else as a text.
        parameters: those that all synthesizers have.

    Raises:
        ParameterError: if there is no such synthesizer, or it has no such setting.
    """
    spelled = name.replace("-", "_")
    kind, known = synthesizers.get(spelled), own_settings(spelled)
    made: Synthesizer = kind(**parameters, **_read(settings, known))
    return made


def _read(settings: Iterable[str], known: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in settings:
        setting, equals, text = item.partition("=")
        if not equals or setting not in known:
            raise ParameterError(
                f'"{setting}" is not a setting of this method.{did_you_mean(setting, known)}',
                fix=f"write NAME=VALUE with one of {', '.join(known)}." if known else "leave the settings out.",
            )
        try:
            found[setting] = json.loads(text)
        except ValueError:
            found[setting] = text
    return found
