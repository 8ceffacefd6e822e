"""Saved fits: one JSON document with what was learned, what it promises, and where it comes from.

The document names its kind by the registered name and holds public parameters and facts, the learned numbers, and the
guarantee with its steps. It holds no row, no ledger, no seed and no code: reading it builds plain values, checks each
of them, and never runs anything from the file. Anyone can read it with a text editor. Who can change the file can
change the model and what it promises: keep it where only those write whom you trust.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from cloister.accounting.events import event_from_dict
from cloister.core.documents import FIX, from_json, read_document, to_json, write_document
from cloister.core.guarantees import guarantee_from_dict
from cloister.core.provenance import Provenance
from cloister.core.registry import Registry
from cloister.errors import CloisterError, ModelError
from cloister.mechanisms.calibration import FitStep
from cloister.mechanisms.paid_fit import PaidFit

__all__ = ["SavedFits"]

Fit = TypeVar("Fit", bound=PaidFit)


class SavedFits(ABC, Generic[Fit]):
    """How the fits of one family are saved, and read again with suspicion."""

    marker: ClassVar[str]
    """The marker of the document, with its version."""
    family: ClassVar[str]
    """What a kind of fit is called, and the key of its registered name."""
    package: ClassVar[str]
    """Where the family lives."""
    noun: ClassVar[str] = "model"
    """What a saved fit is called."""
    repeat: ClassVar[str] = "train again"
    """What to do where a file cannot be used."""
    facts: ClassVar[tuple[str, ...]]
    """The keys of public facts, which the family writes and reads itself."""

    def save(self, fit: Fit, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a fit to a file, whole or not at all."""
        write_document(path, self.document_of(fit), overwrite=overwrite)

    def load(self, path: str | Path) -> Fit:
        """Return the fit that a file holds.

        Raises:
            SourceNotFoundError: if there is no such file.
            ModelError: if it is not one that this version can read.
        """
        return self.fit_of(read_document(path))

    def recipe_of(self, fit: Fit) -> dict[str, Any]:
        """Return which kind it is and what it was told, JSON-ready: nothing that it has learned."""
        names = {kind: name for name, kind in self.kinds().items()}
        if type(fit) not in names:
            raise ModelError(
                f"{type(fit).__name__} is not a registered {self.family}.",
                fix=f"save one of the {self.family}s of {self.package}.",
            )
        parameters = self.parameters_of(fit)
        return {
            self.family: names[type(fit)],
            "parameters": {name: to_json(value) for name, value in parameters.items()},
        }

    def document_of(self, fit: Fit) -> dict[str, Any]:
        """Return a fit as a JSON-ready document."""
        return {
            "schema": self.marker,
            **self.recipe_of(fit),
            **self.facts_of(fit),
            "learned": {name: to_json(value) for name, value in fit._learned_state().items()},  # noqa: SLF001  # its keeper
            "guarantee": fit.guarantee_.to_dict(),
            "steps": [step.to_dict() for step in fit.steps_],
            "provenance": fit.provenance_.to_dict(),
        }

    def fit_of(self, document: Any) -> Fit:
        """Return the fit that a document holds, or refuse it.

        Raises:
            ModelError: if anything in it is not as `document_of` writes it.
        """
        name = str(document.get("schema", "")) if isinstance(document, Mapping) else ""
        if not name.startswith(self.marker.partition("/")[0] + "/"):
            raise ModelError(f"This is not a saved {self.noun}.", fix=FIX)
        if name != self.marker:
            raise self._newer(f"The {self.noun} was saved by another version.")
        keys = ("schema", self.family, "parameters", *self.facts, "learned", "guarantee", "steps", "provenance")
        if document.keys() != set(keys):
            raise ModelError(f"The saved {self.noun} is not whole.", fix=FIX)
        try:
            made = self._build(document)
        except ModelError:
            raise
        except (CloisterError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError):
            raise ModelError(f"The saved {self.noun} is damaged.", fix=FIX) from None
        try:
            self.try_out(made)
        except Exception:  # noqa: BLE001  # whatever the numbers of a stranger do, it is the file that is wrong
            raise ModelError(f"The numbers of the saved {self.noun} do not belong together.", fix=FIX) from None
        return made

    def _build(self, document: Mapping[str, Any]) -> Fit:
        name, known = document[self.family], self.kinds()
        if not isinstance(name, str) or name not in list(known):
            raise self._newer(f"The saved {self.noun} is of a kind that this version does not know.")
        made = self.make(known.get(name), document["parameters"])
        made.guarantee_ = guarantee_from_dict(document["guarantee"])
        made.steps_ = self._steps(document["steps"])
        made.provenance_ = Provenance.from_dict(document["provenance"])
        self.restore_facts(made, document)
        made._restore({name: from_json(value) for name, value in document["learned"].items()})  # noqa: SLF001  # its keeper
        return made

    def _steps(self, given: Any) -> tuple[FitStep, ...]:
        listed: list[Any] = given if isinstance(given, list) else [None]
        for item in listed:
            if not isinstance(item, dict) or item.keys() != {"label", "event"} or not isinstance(item["label"], str):
                raise ModelError(f"The saved {self.noun} does not say what was done.", fix=FIX)
        return tuple(FitStep(item["label"], event_from_dict(item["event"])) for item in listed)

    def _newer(self, what: str) -> ModelError:
        return ModelError(what, fix=f"use a newer cloister, or {self.repeat}.")

    # What each family says -------------------------------------------------------------------------------------------

    @abstractmethod
    def kinds(self) -> Registry[type[Any]]:
        """Return the family by name."""

    @abstractmethod
    def parameters_of(self, fit: Fit) -> dict[str, Any]:
        """Return the parameters that are saved, as plain values."""

    @abstractmethod
    def make(self, kind: type[Any], parameters: Any) -> Fit:
        """Return a fit that learned nothing, of saved parameters, or refuse them."""

    @abstractmethod
    def facts_of(self, fit: Fit) -> dict[str, Any]:
        """Return what is public about the columns, JSON-ready, under the keys that ``facts`` lists."""

    @abstractmethod
    def restore_facts(self, fit: Fit, document: Mapping[str, Any]) -> None:
        """Set what `facts_of` returned, or refuse it or anything else in the document that such a fit cannot have."""

    @abstractmethod
    def try_out(self, fit: Fit) -> None:
        """Use the fit once, so that numbers which do not belong together are found; raises anything."""
