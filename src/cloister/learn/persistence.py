"""Saved models: estimators as JSON documents, as `cloister.mechanisms.saved_fits` writes and reads them.

What an estimator adds to what is saved of every fit is its classes and the encoding of its columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cloister.core.documents import FIX, from_json, to_json
from cloister.core.guarantees import DifferentialPrivacy
from cloister.core.registry import Registry
from cloister.errors import ModelError
from cloister.learn._encoding import Encoding
from cloister.learn._public_facts import sort_classes
from cloister.learn.base import PrivateEstimator
from cloister.learn.catalog import load_all
from cloister.mechanisms.saved_fits import SavedFits

__all__ = ["SAVED_MODELS", "SavedModels", "document_of", "load", "model_of"]

_NOT_SAVED = ("schema", "ledger", "dataset", "analyst", "random_state")


class SavedModels(SavedFits[PrivateEstimator]):
    """How estimators are saved."""

    marker: ClassVar[str] = "cloister.model/1"
    family: ClassVar[str] = "estimator"
    package: ClassVar[str] = "cloister.learn"
    facts: ClassVar[tuple[str, ...]] = ("encoding", "classes")

    def kinds(self) -> Registry[type[Any]]:
        """Return all estimators by name."""
        return load_all()

    def parameters_of(self, fit: PrivateEstimator) -> dict[str, Any]:
        """Return all parameters but those of one fit."""
        given = fit.get_params(deep=False)
        return {name: _public(value) for name, value in given.items() if name not in _NOT_SAVED}

    def make(self, kind: type[Any], parameters: Any) -> PrivateEstimator:
        """Return an estimator; parameters that a file does not have keep their defaults."""
        allowed = set(kind._get_param_names()) - set(_NOT_SAVED)  # noqa: SLF001  # scikit-learn's own list
        if not isinstance(parameters, dict) or not parameters.keys() <= allowed:
            raise ModelError("The saved model has parameters that such a model does not take.", fix=FIX)
        made: PrivateEstimator = kind(**{name: from_json(value) for name, value in parameters.items()})
        return made

    def facts_of(self, fit: PrivateEstimator) -> dict[str, Any]:
        """Return the encoding of the columns, and the classes."""
        return {"encoding": fit.encoding_.to_dict(), "classes": to_json(getattr(fit, "classes_", None))}

    def restore_facts(self, fit: PrivateEstimator, document: Mapping[str, Any]) -> None:
        """Set the encoding and the classes; refuse another promise, and other names than such a model learns."""
        if not isinstance(fit.guarantee_, DifferentialPrivacy):
            raise ModelError("The saved model promises something else than differential privacy.", fix=FIX)
        # An estimator with a state of its own checks it itself.
        own = type(fit)._learned_state is not PrivateEstimator._learned_state  # noqa: SLF001  # its keeper
        state = document["learned"]
        if not isinstance(state, dict) or not (own or state.keys() == set(fit.learned)):
            raise ModelError("The saved model does not hold what such a model learns.", fix=FIX)
        fit.encoding_ = Encoding.from_dict(document["encoding"])
        fit.finds_by_name_ = True
        fit.n_features_in_ = len(fit.encoding_.columns)
        fit.feature_names_in_ = np.array(fit.encoding_.columns, dtype=object)
        classes = from_json(document["classes"])
        if (fit.target == "classes") != isinstance(classes, np.ndarray):
            raise ModelError("The saved model has no classes, or too many.", fix=FIX)
        if isinstance(classes, np.ndarray):
            if sort_classes(classes.ravel()) != tuple(classes.tolist()):
                raise ModelError("The saved model has classes that cannot be told apart.", fix=FIX)
            fit.classes_ = classes

    def try_out(self, fit: PrivateEstimator) -> None:
        """Use the model once on a public row."""
        row = [feature.example for feature in fit.encoding_.features]
        listing = np.empty((1, len(row)), dtype=object)
        listing[0, :] = row
        use = getattr(fit, "predict", None) or getattr(fit, "transform", None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = listing if use is None else np.asarray(use(listing))
        if found.shape[:1] != (1,):
            raise ValueError("one row is not one row any more")


SAVED_MODELS = SavedModels()


def document_of(model: PrivateEstimator) -> dict[str, Any]:
    """Return a fitted model as a JSON-ready document."""
    return SAVED_MODELS.document_of(model)


def load(path: str | Path) -> Any:  # an estimator
    """Return the model that a file holds, with its guarantee; the ledger is not part of it.

    Raises:
        SourceNotFoundError: if there is no such file.
        ModelError: if it is not a model that this version can read.
    """
    return SAVED_MODELS.load(path)


def model_of(document: Any) -> Any:  # an estimator
    """Return the model that a document holds, or refuse it.

    Raises:
        ModelError: if anything in it is not as `document_of` writes it.
    """
    return SAVED_MODELS.fit_of(document)


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
