"""Synthesizers as plain values: a registered name with settings as people type them, or one saved JSON document.

Names and settings are for the command line and the hub. The document holds the declared cells, what was measured with
noise, the guarantee with its steps, and the model. It holds no row, no ledger, no seed and no code. Who can change
the file can change what it promises: keep it where only those write whom you trust.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from cloister.accounting.events import event_from_dict
from cloister.core.documents import FIX, from_json, read_document, to_json, write_document
from cloister.core.guarantees import guarantee_from_dict
from cloister.core.provenance import Provenance
from cloister.core.random import SeededRandomSource
from cloister.data.schema import Schema
from cloister.data.values import StorageType
from cloister.errors import CloisterError, ModelError, ParameterError, did_you_mean
from cloister.mechanisms.allowance import FitStep
from cloister.synth._domain import TableDomain
from cloister.synth.base import SynthesisFacts, Synthesizer, synthesizers
from cloister.synth.constraints import constraint_from_dict, zeros_of

__all__ = [
    "SCHEMA",
    "document_of",
    "load",
    "make_synthesizer",
    "methods",
    "own_settings",
    "recipe_of",
    "save",
    "synthesizer_of",
]


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


SCHEMA = "cloister.synthesizer/1"

_KEYS = {"schema", "synthesizer", "parameters", "facts", "learned", "guarantee", "steps", "provenance"}
_SAVED = ("epsilon", "delta", "unit", "max_rows_per_unit", "adjacency", "expected_rows")


def save(synthesizer: Synthesizer, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted synthesizer to a file, whole or not at all."""
    write_document(path, document_of(synthesizer), overwrite=overwrite)


def load(path: str | Path) -> Any:  # a synthesizer
    """Return the synthesizer that a file holds, with its guarantee; the ledger is not part of it.

    Raises:
        SourceNotFoundError: if there is no such file.
        ModelError: if it is not one that this version can read.
    """
    return synthesizer_of(read_document(path))


def recipe_of(synthesizer: Synthesizer) -> dict[str, Any]:
    """Return which synthesizer it is and what it was told, JSON-ready: nothing that it has learned."""
    names = {kind: name for name, kind in synthesizers.items()}
    if type(synthesizer) not in names:
        raise ModelError(
            f"{type(synthesizer).__name__} is not a registered synthesizer.",
            fix="save one of the synthesizers of cloister.synth.",
        )
    name = names[type(synthesizer)]
    return {
        "synthesizer": name,
        "parameters": {setting: to_json(_plain(getattr(synthesizer, setting))) for setting in _parameters_of(name)},
    }


def document_of(synthesizer: Synthesizer) -> dict[str, Any]:
    """Return a fitted synthesizer as a JSON-ready document."""
    facts = synthesizer.fitted_facts
    return {
        "schema": SCHEMA,
        **recipe_of(synthesizer),
        "facts": {
            "domain": facts.domain.to_dict(),
            "schema": facts.schema.to_dict(),
            "order": list(facts.order),
            "derived": {name: str(storage) for name, storage in facts.derived.items()},
            "constraints": [item.to_dict() for item in facts.constraints],
            "assumptions": list(facts.assumptions),
        },
        "learned": {name: to_json(value) for name, value in synthesizer._learned_state().items()},  # noqa: SLF001  # its keeper
        "guarantee": synthesizer.guarantee_.to_dict(),
        "steps": [step.to_dict() for step in synthesizer.steps_],
        "provenance": synthesizer.provenance_.to_dict(),
    }


def synthesizer_of(document: Any) -> Any:  # a synthesizer
    """Return the synthesizer that a document holds, or refuse it.

    Raises:
        ModelError: if anything in it is not as `document_of` writes it.
    """
    if not isinstance(document, Mapping) or not str(document.get("schema", "")).startswith("cloister.synthesizer/"):
        raise ModelError("This is not a saved synthesizer.", fix=FIX)
    if document["schema"] != SCHEMA:
        raise ModelError("The synthesizer was saved by another version.", fix="use a newer cloister, or fit again.")
    if document.keys() != _KEYS:
        raise ModelError("The saved synthesizer is not whole.", fix=FIX)
    try:
        made = _make(document)
        made.sample(
            max(2, made.fewest_rows), random_state=SeededRandomSource(0)
        )  # numbers that do not belong together are found here
    except ModelError:
        raise
    except (CloisterError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise ModelError("The saved synthesizer is damaged.", fix=FIX) from None
    return made


def _make(document: Mapping[str, Any]) -> Any:
    name = document["synthesizer"]
    if not isinstance(name, str) or name not in list(synthesizers):
        raise ModelError(
            "The saved synthesizer is of a kind that this version does not know.",
            fix="use a newer cloister, or fit again.",
        )
    parameters = {key: from_json(value) for key, value in document["parameters"].items()}
    if set(parameters) != set(_parameters_of(name)):
        raise ModelError("The saved synthesizer has other parameters than it should.", fix=FIX)
    made = synthesizers.get(name)(**parameters)
    made._restore({key: from_json(value) for key, value in document["learned"].items()})  # noqa: SLF001  # its keeper
    made.facts_ = _facts(document["facts"])
    made.constraints, made.schema = made.facts_.constraints, made.facts_.schema
    made.columns = list(made.facts_.domain.names)
    made.guarantee_ = guarantee_from_dict(document["guarantee"])
    made.steps_ = tuple(FitStep(str(item["label"]), event_from_dict(item["event"])) for item in document["steps"])
    made.provenance_ = Provenance.from_dict(document["provenance"])
    return made


def _facts(given: Mapping[str, Any]) -> SynthesisFacts:
    facts = SynthesisFacts(
        domain=TableDomain.from_dict(given["domain"]),
        schema=Schema.from_dict(given["schema"], folder=None),
        order=tuple(map(str, given["order"])),
        derived={str(name): StorageType(storage) for name, storage in given["derived"].items()},
        constraints=tuple(constraint_from_dict(item) for item in given["constraints"]),
        assumptions=tuple(map(str, given["assumptions"])),
    )
    zeros_of(facts.constraints, facts.domain)
    if set(facts.order) != {*facts.domain.names, *facts.derived}:
        raise ModelError("The saved synthesizer has other columns than it should.", fix=FIX)
    return facts


def _parameters_of(name: str) -> tuple[str, ...]:
    """Return the parameters that say what was measured: without them a report of the model would be another one."""
    return (*_SAVED, *own_settings(name))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value
