"""Private models: trained on a dataset, and compared with its rows, for a price that is known before.

A model is planned on a table without rows, so that its price and every refusal cannot depend on anybody's data; it is
trained by a worker from what was reserved in the ledger. The result is the saved model itself, with its promise, to be
downloaded and used anywhere. A model that somebody brings is evaluated by noisy counts, whatever it is: the promise to
the people in the rows does not rest on where the model comes from.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from pydantic import Field

from cloister.core.guarantees import DifferentialPrivacy
from cloister.data.columns import Role
from cloister.errors import MissingExtraError, ModelError, ParameterError
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import Use
from cloister.hub.services.protected_tables import describe_protection, person_table
from cloister.hub.services.registry import (
    ResultFile,
    ServiceOutcome,
    ServiceParameters,
    ServicePlan,
    ServiceWork,
    service_registry,
)
from cloister.learn.catalog import load_all, names
from cloister.mechanisms.paid_fit import read_settings

MODELS = names()
"""The names of all models; a page does not have to load them."""

_MOST_CHARACTERS = 4_000_000
_TRAINED = "A model is learned from the rows with noise; what it says of single people is then no more than a guess."


class TrainingParameters(ServiceParameters):
    """What to learn, from what, at what price."""

    model: str = Field(
        max_length=100, title="Model", description=f"One of {', '.join(MODELS)}.", examples=["gaussian_nb"]
    )
    target: str | None = Field(
        default=None, max_length=200, title="What to predict", description="A column; none for models without a target."
    )
    features: tuple[str, ...] = Field(
        default=(),
        max_length=500,
        title="What to learn from",
        description="Columns, with commas between them; by default all others that may be measured.",
    )
    epsilon: str | float = Field(title="Price (epsilon)", description="Smaller is more private.")
    delta: str | float = Field(default="0", title="Slack (delta)", description="Above zero allows Gaussian noise.")
    settings: tuple[str, ...] = Field(
        default=(),
        max_length=50,
        title="Settings",
        description="Of the model, such as variance_floor=0.01, with commas between them.",
    )


class SavedModelParameters(ServiceParameters):
    """A model that was trained before, and a price."""

    model: str = Field(
        max_length=_MOST_CHARACTERS, title="Model", description="The content of a model's file, as it was downloaded."
    )
    epsilon: str | float = Field(title="Price (epsilon)", description="Smaller is more private.")


class EvaluationParameters(SavedModelParameters):
    """A model that was trained before, the truth to compare it with, and a price."""

    target: str = Field(max_length=200, title="Truth", description="The column that says what is right.")


class _Learning:
    """What the services share."""

    version: ClassVar[str] = "1"
    modes: ClassVar[frozenset[str]] = frozenset({"dp"})
    needs_approval: ClassVar[bool] = False
    owners_only: ClassVar[bool] = False
    page: ClassVar[str] = "service.html"


class TrainModel(_Learning):
    """A private model."""

    name: ClassVar[str] = "learn.train"
    title: ClassVar[str] = "Train a model"
    summary: ClassVar[str] = "A model that says nearly the same whether any one person was there; yours to download."
    operation: ClassVar[PolicyOperation] = PolicyOperation.ML_TRAIN
    parameters: ClassVar[type[ServiceParameters]] = TrainingParameters

    def plan(self, work: ServiceWork, parameters: TrainingParameters) -> ServicePlan:
        """Plan the training on a table without rows."""
        expected = _estimator(work, parameters).preview(person_table(work), parameters.target)
        steps = "; ".join(step.label for step in expected.steps)
        texts = [f"Paid steps: {steps}."]
        if expected.outlook is not None:
            texts.append(f"What to expect: {expected.outlook.explain()}.")
        doubt = expected.problem
        return ServicePlan(
            guarantee=expected.guarantee,
            event=expected.event,
            preview={"text": "\n\n".join(texts)},
            warnings=(_TRAINED,) if doubt is None else (_TRAINED, doubt),
        )

    def run(self, work: ServiceWork, parameters: TrainingParameters) -> ServiceOutcome:
        """Train on the rows, from the reserved budget."""
        from cloister.learn.persistence import document_of

        work.progress(0.1, "training")
        made = _estimator(work, parameters).set_params(ledger=work.ledger, dataset=work.account)
        made.fit(person_table(work), parameters.target)
        work.progress(0.9, "writing the model")
        document = document_of(made)
        content = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode()
        return ServiceOutcome(
            document=document,
            summary=(
                ("model", type(made).__name__),
                ("learned from", ", ".join(made.encoding_.columns)),
                ("promise", made.guarantee_.explain()),
            ),
            guarantee=made.guarantee_.to_dict(),
            files=(ResultFile(name="model.cloister", media_type="application/json", content=content),),
        )


class _Using(_Learning):
    """What services share that use a model which was trained before."""

    operation: ClassVar[PolicyOperation] = PolicyOperation.ML_PREDICT

    def plan(self, work: ServiceWork, parameters: Any) -> ServicePlan:  # Used or Compared
        """Do it to a table without rows, for nothing, and return what it would cost."""
        found = self._found(work, parameters, paid=False)
        guarantee = found.guarantee
        if not isinstance(guarantee, DifferentialPrivacy):  # pragma: no cover  # private figures promise it
            raise ParameterError("This promises nothing.", fix="use another service.")
        return ServicePlan(guarantee=guarantee, preview={"text": guarantee.explain()})

    def run(self, work: ServiceWork, parameters: Any) -> ServiceOutcome:  # Used or Compared
        """Do it to the rows, from the reserved budget."""
        work.progress(0.1, "predicting")
        found = self._found(work, parameters, paid=True)
        return ServiceOutcome(
            document=found.to_dict(),
            summary=tuple((str(name), str(text)) for name, text in found.summary()),
            guarantee=found.guarantee.to_dict(),
        )

    def _found(self, work: ServiceWork, parameters: Any, *, paid: bool) -> Any:
        raise NotImplementedError


class EvaluateModel(_Using):
    """How often a model is right about the rows."""

    name: ClassVar[str] = "learn.evaluate"
    title: ClassVar[str] = "Evaluate a model"
    summary: ClassVar[str] = "How often a model is right, beside the simplest guess, with noise."
    parameters: ClassVar[type[ServiceParameters]] = EvaluationParameters

    def _found(self, work: ServiceWork, parameters: EvaluationParameters, *, paid: bool) -> Any:
        from cloister.learn.evaluation import evaluate_privately

        model = _model(work, parameters)
        work.rights.check(parameters.target, Use.MEASURE)
        return evaluate_privately(model, person_table(work), parameters.target, **_paying(work, parameters, paid=paid))


class CountPredictions(_Using):
    """How many rows a model puts into each class."""

    name: ClassVar[str] = "learn.predict"
    title: ClassVar[str] = "Predict with a model"
    summary: ClassVar[str] = "How many rows a model puts into each class, with noise."
    parameters: ClassVar[type[ServiceParameters]] = SavedModelParameters

    def _found(self, work: ServiceWork, parameters: SavedModelParameters, *, paid: bool) -> Any:
        from cloister.learn.evaluation import count_predictions_privately

        model = _model(work, parameters)
        return count_predictions_privately(model, person_table(work), **_paying(work, parameters, paid=paid))


for _service in (TrainModel(), EvaluateModel(), CountPredictions()):
    service_registry.register(_service.name)(_service)


def _estimator(work: ServiceWork, parameters: TrainingParameters) -> Any:
    """Return the estimator that is asked for, with what the owner states about the dataset."""
    kind = _load_models().get(parameters.model)
    if (kind.target == "none") != (parameters.target is None):
        raise ParameterError(
            f"{parameters.model} predicts {'no' if kind.target == 'none' else 'a'} target.",
            fix="leave the target out." if kind.target == "none" else "name the column to predict.",
        )
    made = kind(epsilon=parameters.epsilon, delta=parameters.delta, **describe_protection(work))
    apart = {parameters.target, made.unit}
    apart |= set(work.table.schema.with_roles(Role.IDENTIFIER))
    measured = [name for name, uses in work.rights.uses if Use.MEASURE in uses and name not in apart]
    for name in (*parameters.features, *(() if parameters.target is None else (parameters.target,))):
        work.rights.check(name, Use.MEASURE)
    made.set_params(features=list(parameters.features or measured), **_settings(made, parameters.settings))
    return made


def _settings(made: Any, given: tuple[str, ...]) -> dict[str, Any]:
    # What the hub states itself, such as price and randomness, is not for the person who asks.
    own = {*made.base_parameters(), "random_state"}
    known = [name for name in made.get_params(deep=False) if name not in own]
    return read_settings(given, known, form="name=value")


def _paying(work: ServiceWork, parameters: SavedModelParameters, *, paid: bool) -> dict[str, Any]:
    account = {"ledger": work.ledger, "dataset": work.account} if paid else {}
    return {"epsilon": parameters.epsilon, **describe_protection(work), **account}


def _model(work: ServiceWork, parameters: SavedModelParameters) -> Any:
    """Return the model that was brought, if its columns may be measured."""
    _load_models()
    from cloister.learn.persistence import model_of

    try:
        document = json.loads(parameters.model)
    except (ValueError, RecursionError):
        raise ModelError("This is not a saved model.", fix="paste the whole file as it was downloaded.") from None
    model = model_of(document)
    for name in model.encoding_.columns:
        work.rights.check(name, Use.MEASURE)
    return model


def _load_models() -> Any:
    try:
        return load_all()
    except ImportError:
        raise MissingExtraError(what="Private models", package="scikit-learn", extra="learn") from None
