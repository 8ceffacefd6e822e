"""Saved models: one JSON document with what was learned, what it promises, and where it comes from.

The document names its estimator by the registered name and holds public parameters, the encoding of the columns, the
learned numbers and the guarantee with its steps. It holds no row, no ledger, no seed and no code: reading it builds
plain values, checks each of them, and never runs anything from the file. Anyone can read it with a text editor. Who can
change the file can change the model and what it promises: keep it where only those write whom you trust.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.accounting.events import event_from_dict
from cloister.core.documents import FIX, from_json, read_document, to_json, write_document
from cloister.core.guarantees import DifferentialPrivacy, guarantee_from_dict
from cloister.core.provenance import Provenance
from cloister.errors import CloisterError, ModelError
from cloister.learn._encoding import Encoding
from cloister.learn._public_facts import sort_classes
from cloister.learn.catalog import load_all
from cloister.mechanisms.allowance import FitStep

if TYPE_CHECKING:
    from cloister.learn.base import PrivateEstimator

__all__ = ["SCHEMA", "document_of", "load", "model_of", "save"]

SCHEMA = "cloister.model/1"

_KEYS = {"schema", "estimator", "parameters", "encoding", "classes", "learned", "guarantee", "steps", "provenance"}
_NOT_SAVED = ("schema", "ledger", "dataset", "analyst", "random_state")


def document_of(model: PrivateEstimator) -> dict[str, Any]:
    """Return a fitted model as a JSON-ready document."""
    names = {cls: name for name, cls in load_all().items()}
    if type(model) not in names:
        raise ModelError(
            f"{type(model).__name__} is not a registered estimator.",
            fix="save one of the estimators of cloister.learn.",
        )
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_SAVED}
    return {
        "schema": SCHEMA,
        "estimator": names[type(model)],
        "parameters": {name: to_json(_public(value)) for name, value in parameters.items()},
        "encoding": model.encoding_.to_dict(),
        "classes": to_json(getattr(model, "classes_", None)),
        "learned": {name: to_json(value) for name, value in model._learned_state().items()},  # noqa: SLF001  # its keeper
        "guarantee": model.guarantee_.to_dict(),
        "steps": [step.to_dict() for step in model.steps_],
        "provenance": model.provenance_.to_dict(),
    }


def save(model: PrivateEstimator, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted model to a file, whole or not at all."""
    write_document(path, document_of(model), overwrite=overwrite)


def load(path: str | Path) -> Any:  # an estimator
    """Return the model that a file holds, with its guarantee; the ledger is not part of it.

    Raises:
        SourceNotFoundError: if there is no such file.
        ModelError: if it is not a model that this version can read.
    """
    return model_of(read_document(path))


def model_of(document: Any) -> Any:  # an estimator
    """Return the model that a document holds, or refuse it.

    Raises:
        ModelError: if anything in it is not as `document_of` writes it.
    """
    if not isinstance(document, Mapping) or not str(document.get("schema", "")).startswith("cloister.model/"):
        raise ModelError("This is not a saved model.", fix=FIX)
    if document["schema"] != SCHEMA:
        raise ModelError("The model was saved by another version.", fix="use a newer cloister, or train again.")
    if document.keys() != _KEYS:
        raise ModelError("The saved model is not whole.", fix=FIX)
    try:
        model = _build_model(document)
    except ModelError:
        raise
    except (CloisterError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError, RecursionError):
        raise ModelError("The saved model is damaged.", fix=FIX) from None
    _try_out(model)
    return model


def _build_model(document: Mapping[str, Any]) -> Any:
    name = document["estimator"]
    known = load_all()
    if not isinstance(name, str) or name not in list(known):
        raise ModelError(
            "The saved model is of a kind that this version does not know.", fix="use a newer cloister, or train again."
        )
    kind = known.get(name)
    model = kind(**_parameters(kind, document["parameters"]))
    model.encoding_ = Encoding.from_dict(document["encoding"])
    model.finds_by_name_ = True
    model.n_features_in_ = len(model.encoding_.columns)
    model.feature_names_in_ = np.array(model.encoding_.columns, dtype=object)
    model.guarantee_ = _guarantee(document["guarantee"])
    model.steps_ = tuple(_step(item) for item in _check_list(document["steps"]))
    model.provenance_ = Provenance.from_dict(document["provenance"])
    classes = from_json(document["classes"])
    if (kind.target == "classes") != isinstance(classes, np.ndarray):
        raise ModelError("The saved model has no classes, or too many.", fix=FIX)
    if isinstance(classes, np.ndarray):
        if sort_classes(classes.ravel()) != tuple(classes.tolist()):
            raise ModelError("The saved model has classes that cannot be told apart.", fix=FIX)
        model.classes_ = classes
    state = document["learned"]
    if not isinstance(state, dict) or state.keys() != model_state_names(kind, state):
        raise ModelError("The saved model does not hold what such a model learns.", fix=FIX)
    model._restore({name: from_json(value) for name, value in state.items()})  # noqa: SLF001  # its keeper
    return model


def model_state_names(kind: Any, state: Mapping[str, Any]) -> set[str]:
    """Return the names that a saved state must have; an estimator with a state of its own checks it itself."""
    from cloister.learn.base import PrivateEstimator

    own = kind._learned_state is not PrivateEstimator._learned_state  # noqa: SLF001  # its keeper
    return set(state) if own else set(kind.learned)


def _parameters(kind: Any, given: Any) -> dict[str, Any]:
    allowed = set(kind._get_param_names()) - set(_NOT_SAVED)  # noqa: SLF001  # scikit-learn's own list
    if not isinstance(given, dict) or not given.keys() <= allowed:
        raise ModelError("The saved model has parameters that such a model does not take.", fix=FIX)
    return {name: from_json(value) for name, value in given.items()}


def _guarantee(given: Any) -> DifferentialPrivacy:
    found = guarantee_from_dict(given)
    if not isinstance(found, DifferentialPrivacy):
        raise ModelError("The saved model promises something else than differential privacy.", fix=FIX)
    return found


def _step(given: Any) -> FitStep:
    if not isinstance(given, dict) or given.keys() != {"label", "event"} or not isinstance(given["label"], str):
        raise ModelError("The saved model does not say what was done.", fix=FIX)
    return FitStep(given["label"], event_from_dict(given["event"]))


def _check_list(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise ModelError("The saved model does not say what was done.", fix=FIX)
    return given


def _public(value: Any) -> Any:
    """Return a parameter in a form that can be saved: exact numbers as fractions, names as texts."""
    match value:
        case Decimal():
            return Fraction(value)
        case Enum():
            return value.value
        case Mapping():
            return {str(name): _public(item) for name, item in value.items()}
        case list():
            return [_public(item) for item in value]
        case tuple():
            return tuple(_public(item) for item in value)
        case _:
            return value


def _try_out(model: Any) -> None:
    """Use the model once on a public row, so that numbers which do not belong together are found here."""
    row = [feature.example for feature in model.encoding_.features]
    listing = np.empty((1, len(row)), dtype=object)
    listing[0, :] = row
    use = getattr(model, "predict", None) or getattr(model, "transform", None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = listing if use is None else np.asarray(use(listing))
        if found.shape[:1] != (1,):
            raise ValueError("one row is not one row any more")  # noqa: TRY301  # as any other failure
    except Exception:  # noqa: BLE001  # whatever the numbers of a stranger do, it is the file that is wrong
        raise ModelError("The numbers of the saved model do not belong together.", fix=FIX) from None
