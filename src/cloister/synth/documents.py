"""Synthesizers as plain values: a registered name with settings as people type them, or one saved JSON document.

Names and settings are for the command line and the hub. The document is that of every saved fit (see
`cloister.mechanisms.saved_fits`), with the declared cells, columns and constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

from cloister.core.documents import FIX, from_json
from cloister.core.random import SeededRandomSource
from cloister.core.registry import Registry
from cloister.data.schema import Schema
from cloister.data.values import StorageType
from cloister.errors import ModelError
from cloister.mechanisms.paid_fit import read_settings
from cloister.mechanisms.saved_fits import SavedFits
from cloister.synth._domain import TableDomain
from cloister.synth.base import SynthesisFacts, Synthesizer, synthesizers
from cloister.synth.constraints import constraint_from_dict, zeros_of

__all__ = [
    "SAVED_SYNTHESIZERS",
    "SavedSynthesizers",
    "document_of",
    "load",
    "make_synthesizer",
    "methods",
    "own_settings",
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
    return _own_names(synthesizers.get(name))


def _own_names(kind: type[Any]) -> tuple[str, ...]:
    common = {item.name for item in fields(Synthesizer)}
    return tuple(item.name for item in fields(kind) if item.init and item.name not in common)


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
    made: Synthesizer = kind(**parameters, **read_settings(settings, known, whose="this method"))
    return made


_SAVED = ("epsilon", "delta", "unit", "max_rows_per_unit", "adjacency", "expected_rows")


class SavedSynthesizers(SavedFits[Synthesizer]):
    """How synthesizers are saved."""

    marker: ClassVar[str] = "cloister.synthesizer/1"
    family: ClassVar[str] = "synthesizer"
    package: ClassVar[str] = "cloister.synth"
    noun: ClassVar[str] = "synthesizer"
    repeat: ClassVar[str] = "fit again"
    facts: ClassVar[tuple[str, ...]] = ("facts",)

    def kinds(self) -> Registry[type[Any]]:
        """Return all synthesizers by name."""
        return synthesizers

    def parameters_of(self, fit: Synthesizer) -> dict[str, Any]:
        """Return the parameters that say what was measured: without them a report of the model would be another one."""
        return {name: _plain(getattr(fit, name)) for name in _saved_names(type(fit))}

    def make(self, kind: type[Any], parameters: Any) -> Synthesizer:
        """Return a synthesizer with the same parameters, neither fewer nor more."""
        if set(parameters) != set(_saved_names(kind)):
            raise ModelError("The saved synthesizer has other parameters than it should.", fix=FIX)
        made: Synthesizer = kind(**{name: from_json(value) for name, value in parameters.items()})
        return made

    def facts_of(self, fit: Synthesizer) -> dict[str, Any]:
        """Return the declared cells, columns and constraints."""
        facts = fit.fitted_facts
        return {
            "facts": {
                "domain": facts.domain.to_dict(),
                "schema": facts.schema.to_dict(),
                "order": list(facts.order),
                "derived": {name: str(storage) for name, storage in facts.derived.items()},
                "constraints": [item.to_dict() for item in facts.constraints],
                "assumptions": list(facts.assumptions),
            }
        }

    def restore_facts(self, fit: Synthesizer, document: Mapping[str, Any]) -> None:
        """Set what was declared, as a fit has it and as its parameters."""
        fit.facts_ = _facts(document["facts"])
        fit.constraints, fit.schema = fit.facts_.constraints, fit.facts_.schema
        fit.columns = list(fit.facts_.domain.names)

    def try_out(self, fit: Synthesizer) -> None:
        """Draw a few rows."""
        fit.sample(max(2, fit.fewest_rows), random_state=SeededRandomSource(0))


SAVED_SYNTHESIZERS = SavedSynthesizers()


def load(path: str | Path) -> Any:  # a synthesizer
    """Return the synthesizer that a file holds, with its guarantee; the ledger is not part of it.

    Raises:
        SourceNotFoundError: if there is no such file.
        ModelError: if it is not one that this version can read.
    """
    return SAVED_SYNTHESIZERS.load(path)


def document_of(synthesizer: Synthesizer) -> dict[str, Any]:
    """Return a fitted synthesizer as a JSON-ready document."""
    return SAVED_SYNTHESIZERS.document_of(synthesizer)


def synthesizer_of(document: Any) -> Any:  # a synthesizer
    """Return the synthesizer that a document holds, or refuse it.

    Raises:
        ModelError: if anything in it is not as `document_of` writes it.
    """
    return SAVED_SYNTHESIZERS.fit_of(document)


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


def _saved_names(kind: type[Any]) -> tuple[str, ...]:
    return (*_SAVED, *_own_names(kind))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value
