"""Policies over HTTP: who may do what with a dataset, and why."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from cloister.errors import ParameterError
from cloister.hub.api._terms import BudgetBody, End, moment_of
from cloister.hub.domain import actions
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import BudgetLimits, Member, Use
from cloister.hub.domain.policy_edits import RoleEdit
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.use_cases import datasets, policies

router = GuardedRouter(tags=["policies"])

BasedOn = Annotated[int, Field(ge=1, description="The version that you looked at; it must still be the newest.")]
Text = Annotated[str, Field(max_length=10_000)]
Purpose = Annotated[str | None, Query(max_length=200, description="Such as research.health.")]
AlgorithmName = Annotated[str | None, Query(max_length=300, description="Such as kmeans@1.0.0.")]


class WholePolicy(RequestBody):
    """A policy: as an object, or as JSON or YAML text."""

    based_on: BasedOn
    policy: dict[str, Any] | None = None
    text: str | None = Field(default=None, max_length=500_000)


class RoleLimits(RequestBody):
    """How much may be spent; what is left out is not limited, but for a limit of a purpose, which stays."""

    job: BudgetBody | None = None
    user: BudgetBody | None = None
    organisation: BudgetBody | None = None
    purpose: BudgetBody | None = None

    def to_limits(self) -> BudgetLimits:
        """Return exact limits."""
        given = {"job": self.job, "user": self.user, "organisation": self.organisation, "purpose": self.purpose}
        return BudgetLimits(**{name: None if body is None else body.to_budget() for name, body in given.items()})


class ChangedRole(RequestBody):
    """What to change of a role; what is left out stays."""

    name: str = Field(min_length=1, max_length=200)
    operations: list[PolicyOperation] | None = None
    limits: RoleLimits | None = None
    rows: Text | None = Field(default=None, description="A condition on rows; empty for none.")
    remove: bool = False


class ChangedPolicy(RequestBody):
    """What to change of a policy; what is left out stays."""

    based_on: BasedOn
    discoverable: bool | None = None
    two_person: bool | None = None
    purposes: list[str] | None = Field(default=None, max_length=100)
    rows: Text | None = Field(default=None, description="A condition on rows; empty for none.")
    columns: dict[str, list[Use]] | None = Field(default=None, description="Uses by column; none hides it.")
    other_columns: list[Use] | None = None
    roles: list[ChangedRole] = Field(default=[], max_length=100)


class FromTemplate(RequestBody):
    """A template to start from."""

    based_on: BasedOn
    template: str = Field(max_length=100, examples=["research by request"])
    hidden: list[str] | None = Field(default=None, description="Columns that nobody sees; by default identifiers.")


class NewMember(RequestBody):
    """Somebody who is let into a role."""

    role: str = Field(min_length=1, max_length=200)
    person: str = Field(min_length=1, max_length=200, description="The name of the account.")
    until: End | None = None
    budget: BudgetBody | None = Field(default=None, description="What the person may spend in all.")


class Person(RequestBody):
    """Somebody, by the name of the account."""

    person: str = Field(min_length=1, max_length=200)


@router.guarded("GET", "/datasets/{dataset_id}/policy", actions.SEE_POLICY)
def see_policy(hub: CurrentHub, dataset_id: str) -> dict[str, Any]:
    """Show the policy of your dataset: as a document, and in words."""
    with hub.store.reading() as session:
        return policies.read_policy(session, datasets.get_dataset(session, dataset_id))


@router.guarded("PUT", "/datasets/{dataset_id}/policy", actions.EDIT_POLICY)
def save_policy(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: WholePolicy) -> dict[str, Any]:
    """Keep a whole policy as the next version."""
    document = body.policy if body.text is None else body.text
    if document is None or (body.text is not None and body.policy is not None):
        raise ParameterError("A policy is given as an object or as a text.", fix="give policy, or text.")
    with hub.store.writing() as session:
        dataset = datasets.get_dataset(session, dataset_id)
        policies.save_policy(hub.store, session, access.person, dataset, document, based_on=body.based_on)
        return policies.read_policy(session, dataset)


@router.guarded("PATCH", "/datasets/{dataset_id}/policy", actions.EDIT_POLICY)
def change_policy(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: ChangedPolicy) -> dict[str, Any]:
    """Change parts of a policy; all else stays, and the result is the next version."""
    changes = body.model_dump(exclude={"based_on", "roles"}, exclude_none=True)
    roles = [
        RoleEdit(
            name=role.name,
            operations=role.operations,
            limits=None if role.limits is None else role.limits.to_limits(),
            rows=role.rows,
            remove=role.remove,
        )
        for role in body.roles
    ]
    with hub.store.writing() as session:
        dataset = datasets.get_dataset(session, dataset_id)
        policies.change_policy(
            hub.store, session, access.person, dataset, based_on=body.based_on, roles=roles, **changes
        )
        return policies.read_policy(session, dataset)


@router.guarded("POST", "/datasets/{dataset_id}/policy/template", actions.EDIT_POLICY)
def start_from_template(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: FromTemplate) -> dict[str, Any]:
    """Replace the policy by a template."""
    with hub.store.writing() as session:
        dataset = datasets.get_dataset(session, dataset_id)
        policies.start_from_template(
            hub,
            session,
            access.person,
            dataset,
            template=body.template,
            based_on=body.based_on,
            hidden=None if body.hidden is None else tuple(body.hidden),
        )
        return policies.read_policy(session, dataset)


@router.guarded("PUT", "/datasets/{dataset_id}/policy/members", actions.EDIT_POLICY)
def add_member(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: NewMember) -> dict[str, Any]:
    """Let a person into a role without a request, or change their end or budget."""
    member = Member(
        user_id=body.person,
        until=None if body.until is None else moment_of(body.until),
        budget=None if body.budget is None else body.budget.to_budget(),
    )
    with hub.store.writing() as session:
        dataset = datasets.get_dataset(session, dataset_id)
        policies.add_member(hub.store, session, access.person, dataset, role=body.role, member=member)
        return policies.read_policy(session, dataset)


@router.guarded("POST", "/datasets/{dataset_id}/policy/revocations", actions.EDIT_POLICY)
def revoke_person(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: Person) -> dict[str, Any]:
    """Take a person out of every role at once; queued and running work of theirs is denied at its next step."""
    with hub.store.writing() as session:
        dataset = datasets.get_dataset(session, dataset_id)
        policy, still = policies.remove_person(session, access.person, dataset, body.person)
        return {"schema": "cloister.revocation/1", "version": policy.version, "still_in": list(still)}


@router.guarded("GET", "/datasets/{dataset_id}/policy/versions", actions.SEE_POLICY)
def list_policy_versions(
    hub: CurrentHub,
    dataset_id: str,
    after: Annotated[int | None, Query(ge=1, le=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> dict[str, Any]:
    """List the versions of the policy, the newest first, each with what it changed."""
    with hub.store.reading() as session:
        items, following = policies.list_versions(
            session, datasets.get_dataset(session, dataset_id), before=after, limit=limit
        )
    return {"schema": "cloister.policy-versions/1", "items": items, "next": following}


@router.guarded("GET", "/datasets/{dataset_id}/policy/versions/{number}", actions.SEE_POLICY)
def see_policy_version(
    hub: CurrentHub, dataset_id: str, number: Annotated[int, Path(ge=1, le=2**31)]
) -> dict[str, Any]:
    """Show one version of the policy."""
    with hub.store.reading() as session:
        return policies.read_version(session, datasets.get_dataset(session, dataset_id), number)


@router.guarded("GET", "/datasets/{dataset_id}/policy/decision", actions.SEE_POLICY)
def explain_decision(
    *,
    hub: CurrentHub,
    access: CurrentAccess,
    dataset_id: str,  # noqa: ARG001
    person: Annotated[str, Query(min_length=1, max_length=200)],
    operation: Annotated[str, Query(max_length=100)],
    purpose: Purpose = None,
    algorithm: AlgorithmName = None,
) -> dict[str, Any]:
    """Say whether somebody may do something now, and which rules were looked at."""
    with hub.store.reading() as session:
        return policies.explain_to_owner(
            session, access.object, person, operation, purpose=purpose, algorithm=algorithm
        )


@router.guarded("GET", "/datasets/{dataset_id}/access", actions.SEE_STANDING)
def see_standing(hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> dict[str, Any]:  # noqa: ARG001
    """Say what you may do with a dataset, for what, until when and for how much."""
    with hub.store.reading() as session:
        return policies.standing(hub.store, session, access.object, access.person)


@router.guarded("GET", "/datasets/{dataset_id}/access/decision", actions.SEE_STANDING)
def may_i(
    access: CurrentAccess,
    dataset_id: str,  # noqa: ARG001
    operation: Annotated[str, Query(max_length=100)],
    purpose: Purpose = None,
    algorithm: AlgorithmName = None,
) -> dict[str, Any]:
    """Say whether you may do something now, and why."""
    return policies.may_i(access.object, access.person, operation, purpose=purpose, algorithm=algorithm)
