"""Whether a person may run a service on a dataset now, on which version of it and on which view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.core.digests import canonical, digest_of
from cloister.errors import ConflictError, ForbiddenError, NotFoundError, ParameterError
from cloister.hub.domain import rules
from cloister.hub.domain.actions import Relation
from cloister.hub.domain.decisions import Decision
from cloister.hub.domain.policy import Operation, Policy
from cloister.hub.domain.roles import Subject
from cloister.hub.services import views
from cloister.hub.services.authorizing import decide_operation
from cloister.hub.services.datasets import modes
from cloister.hub.services.offered import algorithms
from cloister.hub.services.registry import Algorithm, BringsMaterial, Material, Parameters
from cloister.hub.services.running.release_registry import is_orphaned
from cloister.hub.services.targets import Target, load_target
from cloister.hub.store.models import Dataset, DatasetVersion, Job

__all__ = ["Case", "canonical", "check_may_have", "consider", "digest_of", "read_parameters"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A run that the policy allows.

    Attributes:
        algorithm: what runs.
        parameters: with what.
        subject: for whom.
        purpose: for what.
        dataset: on what.
        version: on which version of it.
        policy: what allowed it.
        decision: how.
        view: what tells the rows and columns that it may use from others.
        used: what the policy was asked about: the service, or what it brings along, in its version.
        material: what the run needs besides the dataset.
    """

    algorithm: Algorithm
    parameters: Parameters
    subject: Subject
    purpose: str
    dataset: Dataset
    version: DatasetVersion
    policy: Policy
    decision: Decision
    view: str
    used: str
    material: Material | None = None

    def key(self, question: str) -> str:
        """Return the name under which equal questions share one answer: same service, version of the data and view."""
        service = f"{self.algorithm.name}@{self.algorithm.version}"
        return f"hub:{digest_of([service, self.version.id, self.view, question])}"


def consider(
    session: Session,
    *,
    dataset_id: str,
    subject: Subject,
    service: str,
    parameters: Mapping[str, Any],
    purpose: str,
    version_id: str | None = None,
) -> Case:
    """Return the case of a run, or raise why there is none. It depends on the policy and the request, not on rows.

    Args:
        session: a transaction.
        dataset_id: the dataset.
        subject: who asks, as they are now.
        service: the name of the service.
        parameters: as they were sent.
        purpose: what the run is for.
        version_id: the version that was planned on; by default the newest.
    """
    algorithm = _algorithm(service)
    target = load_target(session, "dataset", dataset_id)
    if target is None:
        raise NotFoundError("There is no such dataset, or you may not see it.", fix="check the address.")
    material = None
    if isinstance(algorithm, BringsMaterial):
        material = algorithm.bring(session, dataset_id, read_parameters(algorithm, parameters))
    used = rules.Algorithm(algorithm.name, algorithm.version) if material is None else material.used
    decision = _decide(target, subject, algorithm, purpose, used=used)
    if material is not None:
        material.check()
    dataset: Dataset = target.item
    if dataset.mode not in algorithm.modes:
        raise ConflictError(
            f"{algorithm.title} is not for datasets whose answers are protected by {dataset.mode}.",
            fix=f"use a service for {dataset.mode}; the list of services tells which.",
        )
    policy = target.policy or Policy(object_id=target.id)
    modes.check_agreement(dataset, policy)
    version = _version(session, dataset, version_id)
    return Case(
        algorithm=algorithm,
        parameters=read_parameters(algorithm, parameters),
        subject=subject,
        purpose=purpose,
        dataset=dataset,
        version=version,
        policy=policy,
        decision=decision,
        view=views.view_digest(version, decision),
        used=str(used),
        material=material,
    )


def check_may_have(session: Session, subject: Subject, job: Job) -> None:
    """Return nothing if the policy would let a person have a release now, else raise, whatever was approved before.

    It asks about the service as it was when the job was added; the hub may not offer it any more. What is
    differentially private was paid for and approved, and outlives its data: nothing that happens to them can make it
    tell more.
    """
    if is_orphaned(job):
        return
    target = None if job.dataset_id is None else load_target(session, "dataset", job.dataset_id)
    if target is None:
        raise ForbiddenError("The data are not there any more.", fix="ask their owner.")
    used = rules.Algorithm(job.service, job.service_version)
    operation = Operation(str(job.plan["operation"]))
    decision = decide_operation(target, subject, operation, purpose=job.purpose or None, algorithm=used)
    if not decision.allowed:
        raise ForbiddenError(decision.public_reason, fix="ask the owner for access on the dataset's page.")


def read_parameters(algorithm: Algorithm, parameters: Mapping[str, Any]) -> Parameters:
    """Return the checked parameters of a service.

    Raises:
        ParameterError: naming the places that are wrong.
    """
    try:
        return algorithm.parameters.model_validate(dict(parameters))
    except ValidationError as error:
        told = [
            f"{'.'.join(str(part) for part in item['loc']) or 'parameters'}: {item['msg']}" for item in error.errors()
        ]
        raise ParameterError(
            f"The parameters of {algorithm.name} are not as it takes them: {'; '.join(told)[:500]}.",
            fix=f"see /api/v1/services/{algorithm.name} for what it takes.",
        ) from None


def _algorithm(service: str) -> Algorithm:
    if service not in algorithms:
        raise NotFoundError("There is no such service.", fix="see /api/v1/services for what there is.")
    return algorithms.get(service)


def _decide(
    target: Target, subject: Subject, algorithm: Algorithm, purpose: str, *, used: rules.Algorithm | None = None
) -> Decision:
    used = used or rules.Algorithm(algorithm.name, algorithm.version)
    decision = decide_operation(target, subject, algorithm.operation, purpose=purpose or None, algorithm=used)
    if not decision.allowed:
        raise ForbiddenError(decision.public_reason, fix="ask the owner for access on the dataset's page.")
    if algorithm.owners_only and Relation.OWNER not in target.relations(subject):
        raise ForbiddenError(f"{algorithm.title} is for owners of the data only.", fix="ask the owner.")
    return decision


def _version(session: Session, dataset: Dataset, version_id: str | None) -> DatasetVersion:
    found = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset.id, DatasetVersion.state == "ready")
    if version_id is not None:
        found = found.where(DatasetVersion.id == version_id)
    version = session.scalars(found.order_by(DatasetVersion.number.desc()).limit(1)).first()
    if version is None or dataset.state != "ready":
        raise ConflictError("The dataset has no rows that are ready.", fix="ask its owner to finish the upload.")
    return version
