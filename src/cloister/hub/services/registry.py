"""The registry of services: what the hub can run on data, each entry with an API, a page and a job.

A service plans on an **empty** table with the same schema, so that prices, previews and refusals cannot depend on
anybody's data. It runs in a worker against a ledger in memory that holds exactly what was reserved in the real one, so
that it cannot spend more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from pydantic import ConfigDict
from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.accounting.ledger import Ledger
from cloister.core.guarantees import DifferentialPrivacy
from cloister.core.registry import Registry
from cloister.data.table import Table
from cloister.hub.domain import policy
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.domain.views import ColumnRights
from cloister.hub.hub import Hub


class ServiceParameters(RequestBody):
    """The parameters of an algorithm: forms, checks and the OpenAPI come from its fields and their descriptions."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceWork:
    """What an algorithm works with.

    Attributes:
        table: the rows that the person's policy lets it see; without rows while planning.
        rights: the columns that exist for the person, and what each may be used for.
        account: the dataset's account in the ledger.
        facts: what the owner states about the dataset: unit, adjacency, max_rows_per_unit, mode and so on.
        version: which version of the rows this is.
        ledger: what it may spend: while planning more than enough, thrown away afterwards; then the reservation.
        remembered: what the person's organisation was answered before, where the dataset is under inference control.
        progress: says how far it is, 0 to 1, and in what stage; raises when the job was canceled or lost its claim.
        material: what `BringsMaterial.bring` opened for the run; None where nothing is brought.
    """

    table: Table
    rights: ColumnRights
    account: str
    facts: dict[str, Any]
    version: str
    ledger: Ledger
    remembered: dict[str, Any] | None = None
    progress: Callable[[float, str], None] = field(default=lambda share, stage: None)  # noqa: ARG005
    material: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """What a run would cost and give, known before any row is read.

    Attributes:
        guarantee: what the result will promise and the ledger is charged, or None for what leaves the hub only with
            the owner's approval, or not at all.
        cost: in place of the guarantee's price, a cost.
        key: the canonical text of the question, if equal questions share one answer; None if not.
        event: what will run, for accountants.
        preview: JSON for the page: expected errors and what they mean.
        warnings: sentences that the person should read before paying.
    """

    guarantee: DifferentialPrivacy | None
    cost: Budget | None = None
    key: str | None = None
    event: Event | None = None
    preview: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """A file that a result brings along."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOutcome:
    """What a run gave.

    Attributes:
        document: the result's ``to_dict()``.
        summary: (name, text) rows for the page.
        guarantee: the guarantee's ``to_dict()``.
        figure: a chart as SVG, or "".
        report: a page of its own, or "".
        is_report_for_owner: whether only the owner of the data may read that page, also after approving.
        owner_report: another page, for owners of the data only, or "".
        files: what can be downloaded.
        owner_only: what only the owner sees, such as the risk before anonymization.
        remembered: what the organisation was answered by now, kept in the transaction that keeps the result; None
            where nothing is remembered.
    """

    document: dict[str, Any]
    summary: tuple[tuple[str, str], ...] = ()
    guarantee: dict[str, Any] = field(default_factory=dict)
    figure: str = ""
    report: str = ""
    is_report_for_owner: bool = False
    owner_report: str = ""
    files: tuple[ResultFile, ...] = ()
    owner_only: dict[str, Any] = field(default_factory=dict)
    remembered: dict[str, Any] | None = None


class Service(Protocol):
    """One entry of the registry.

    Attributes:
        name: such as "query.sql"; part of addresses.
        version: written into the provenance of every result.
        title: for the list of services.
        summary: one sentence for the list of services.
        operation: what the dataset's policy must allow.
        modes: the modes of datasets that it serves: dp, sdc, exact.
        parameters: what it takes.
        needs_approval: whether the owner sees the result first and decides whether it leaves.
        owners_only: whether only owners may run it.
        page: the template of its form, or "service.html", which makes one from the parameters.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    operation: ClassVar[PolicyOperation]
    modes: ClassVar[frozenset[str]]
    parameters: ClassVar[type[ServiceParameters]]
    needs_approval: ClassVar[bool]
    owners_only: ClassVar[bool]
    page: ClassVar[str]

    def plan(self, work: ServiceWork, parameters: Any) -> ServicePlan:  # the algorithm's own Parameters
        """Check the parameters and say what a run would cost, on a table without rows."""
        ...

    def run(self, work: ServiceWork, parameters: Any) -> ServiceOutcome:  # the algorithm's own Parameters
        """Do the work on the rows, spending no more than the reservation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMaterial:
    """What a run needs besides the dataset, such as the sources of somebody else's algorithm.

    Attributes:
        used: what the dataset's policy is asked about, in place of the service itself.
        check: raises where it may not be used; called when the policy has allowed it.
        open: gives it, before anything is paid or any row is read.
    """

    used: policy.AlgorithmReference
    check: Callable[[], None]
    open: Callable[[Hub], Any]


@runtime_checkable
class BringsMaterial(Protocol):
    """An algorithm that needs something besides the dataset."""

    def bring(self, session: Session, dataset_id: str, parameters: Any) -> RunMaterial:
        """Return what a run needs, whether or not it exists or may be used."""
        ...


service_registry: Registry[Service] = Registry("service")
"""Everything that the hub can run on data."""
