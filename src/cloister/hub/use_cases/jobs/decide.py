"""Step 1 of a job: whether a person may run a service on a dataset now, on which version of it and on which view.

Pages offer only what the policy allows: what a person may run on a dataset, and what for, is decided by the policy
alone, as a run would be. Nothing here depends on rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.core.digests import digest_of
from cloister.errors import ConflictError, ForbiddenError, NotFoundError, ParameterError
from cloister.hub.domain import policy as domain_policy
from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.decisions import Decision
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.terms import VOCABULARY
from cloister.hub.services.registry import BringsMaterial, RunMaterial, Service, ServiceParameters, service_registry
from cloister.hub.store.models import Dataset, DatasetVersion, Job
from cloister.hub.use_cases import datasets
from cloister.hub.use_cases.authorization import ActionTarget, decide_operation, load_target
from cloister.hub.use_cases.datasets import _views as views, modes
from cloister.hub.use_cases.jobs._release_registry import is_orphaned

__all__ = [
    "RunCase",
    "check_may_have",
    "consider",
    "describe_offers",
    "offer",
    "read_parameters",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCase:
    """A run that the policy allows.

    Attributes:
        service: what runs.
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

    service: Service
    parameters: ServiceParameters
    subject: AccessSubject
    purpose: str
    dataset: Dataset
    version: DatasetVersion
    policy: Policy
    decision: Decision
    view: str
    used: str
    material: RunMaterial | None = None

    def key(self, question: str) -> str:
        """Return the name under which equal questions share one answer: same service, version of the data and view."""
        service = f"{self.service.name}@{self.service.version}"
        return f"hub:{digest_of([service, self.version.id, self.view, question])}"


def consider(
    session: Session,
    *,
    dataset_id: str,
    subject: AccessSubject,
    service: str,
    parameters: Mapping[str, Any],
    purpose: str,
    version_id: str | None = None,
    target: ActionTarget | None = None,
) -> RunCase:
    """Return the case of a run, or raise why there is none. It depends on the policy and the request, not on rows.

    The gateway has decided something else before: whether the person may know of the dataset at all.

    Args:
        session: a transaction.
        dataset_id: the dataset.
        subject: who asks, as they are now.
        service: the name of the service.
        parameters: as they were sent.
        purpose: what the run is for.
        version_id: the version that was planned on; by default the newest.
        target: the dataset and its policy as the gateway has just read them, enough for a plan; by default they are
            read now.
    """
    chosen = _find_service(service)
    target = target or load_target(session, "dataset", dataset_id)
    if target is None:
        raise NotFoundError("There is no such dataset, or you may not see it.", fix="check the address.")
    given = material = None
    if isinstance(chosen, BringsMaterial):
        given = read_parameters(chosen, parameters)
        material = chosen.bring(session, dataset_id, given)
    used = domain_policy.AlgorithmReference(chosen.name, chosen.version) if material is None else material.used
    decision = _decide(target, subject, chosen, purpose, used=used)
    # Asked after the policy, so that a stranger does not learn which versions exist and may run.
    if material is not None:
        material.check()
    dataset: Dataset = target.item
    if dataset.mode not in chosen.modes:
        raise ConflictError(
            f"{chosen.title} is not for datasets whose answers are protected by {dataset.mode}.",
            fix=f"use a service for {dataset.mode}; the list of services tells which.",
        )
    policy = target.policy or Policy(object_id=target.id)
    modes.check_agreement(dataset, policy)
    version = _version(session, dataset, version_id)
    return RunCase(
        service=chosen,
        parameters=read_parameters(chosen, parameters) if given is None else given,
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


def check_may_have(session: Session, subject: AccessSubject, job: Job) -> None:
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
    used = domain_policy.AlgorithmReference(job.service, job.service_version)
    operation = PolicyOperation(str(job.plan["operation"]))
    decision = decide_operation(target, subject, operation, purpose=job.purpose or None, algorithm=used)
    if not decision.allowed:
        raise ForbiddenError(decision.public_reason, fix="ask the owner for access on the dataset's page.")


def read_parameters(service: Service, parameters: Mapping[str, Any]) -> ServiceParameters:
    """Return the checked parameters of a service.

    Raises:
        ParameterError: naming the places that are wrong.
    """
    try:
        return service.parameters.model_validate(dict(parameters))
    except ValidationError as error:
        told = [
            f"{'.'.join(str(part) for part in item['loc']) or 'parameters'}: {item['msg']}" for item in error.errors()
        ]
        raise ParameterError(
            f"The parameters of {service.name} are not as it takes them: {'; '.join(told)[:500]}.",
            fix=f"see /api/v1/services/{service.name} for what it takes.",
        ) from None


def _find_service(name: str) -> Service:
    if name not in service_registry:
        raise NotFoundError("There is no such service.", fix="see /api/v1/services for what there is.")
    return service_registry.get(name)


def _decide(
    target: ActionTarget,
    subject: AccessSubject,
    service: Service,
    purpose: str,
    *,
    used: domain_policy.AlgorithmReference,
) -> Decision:
    decision = decide_operation(target, subject, service.operation, purpose=purpose or None, algorithm=used)
    if not decision.allowed:
        raise ForbiddenError(decision.public_reason, fix="ask the owner for access on the dataset's page.")
    if service.owners_only and ObjectRelation.OWNER not in target.relations(subject):
        raise ForbiddenError(f"{service.title} is for owners of the data only.", fix="ask the owner.")
    return decision


def _version(session: Session, dataset: Dataset, version_id: str | None) -> DatasetVersion:
    found = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset.id, DatasetVersion.state == "ready")
    if version_id is not None:
        found = found.where(DatasetVersion.id == version_id)
    version = session.scalars(found.order_by(DatasetVersion.number.desc()).limit(1)).first()
    if version is None or dataset.state != "ready":
        raise ConflictError("The dataset has no rows that are ready.", fix="ask its owner to finish the upload.")
    return version


def describe_offers(session: Session, subject: AccessSubject, target: ActionTarget) -> dict[str, Any]:
    """Return a dataset as the person may know it, with the services for it and whether they may run each."""
    described = datasets.describe(session, subject, target, None)
    is_owner = bool(described["is_owner"])
    found = [item for _, item in sorted(service_registry.items()) if described["mode"] in item.modes]
    shown = [item for item in found if is_owner or not item.owners_only]
    is_ready = described["state"] == "ready"
    return {**described, "services": [offer(item, subject, target) for item in shown] if is_ready else []}


def offer(service: Service, subject: AccessSubject, target: ActionTarget) -> dict[str, Any]:
    """Return whether the person may run a service on a dataset, for which purposes, and otherwise why not."""
    decisions = {
        purpose: _decide_offer(service, subject, target, purpose)
        # None among them asks whether a purpose has to be named at all.
        for purpose in (None, *sorted({*VOCABULARY, *_own_purposes(target)}))
    }
    allowed = [purpose for purpose, decision in decisions.items() if decision.allowed]
    is_theirs = not service.owners_only or ObjectRelation.OWNER in target.relations(subject)
    return {
        "name": service.name,
        "title": service.title,
        "summary": service.summary,
        "may_run": bool(allowed) and is_theirs,
        "reason": "" if allowed else decisions[None].public_reason,
        "purposes": [
            {"name": purpose, "meaning": VOCABULARY.get(purpose, purpose)} for purpose in allowed if purpose is not None
        ],
        "needs_purpose": None not in allowed,
    }


def _decide_offer(service: Service, subject: AccessSubject, target: ActionTarget, purpose: str | None) -> Decision:
    """Return what the policy says; where a service brings algorithms along, about the one that is allowed, if any."""
    decisions = [
        decide_operation(target, subject, service.operation, purpose=purpose, algorithm=used)
        for used in _list_uses(service, target)
    ]
    return next((decision for decision in decisions if decision.allowed), decisions[0])


def _list_uses(service: Service, target: ActionTarget) -> list[domain_policy.AlgorithmReference]:
    itself = domain_policy.AlgorithmReference(service.name, service.version)
    if not isinstance(service, BringsMaterial) or target.policy is None:
        return [itself]
    named = {used for role in target.policy.roles for rule in role.rules for used in rule.algorithms or ()}
    return [itself, *sorted(named, key=str)]


def _own_purposes(target: ActionTarget) -> set[str]:
    """Return purposes that a policy names and the vocabulary may not know."""
    policy = target.policy
    if policy is None:
        return set()
    given = [rule.purposes for role in policy.roles for rule in role.rules if rule.purposes is not None]
    return {name for purposes in (policy.terms.purposes, *given) for name in purposes.names if name != "*"}
