"""The roles that people hold, which of them go together, and the person or service that asks.

Separation of duties: who runs the hub (operator) or audits it (auditor) does nothing else there. The other roles go
together: a data owner may be a data user of somebody else's data. Roles only say what may be tried; policies decide
about each object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from cloister.core.wordings import a_or_an
from cloister.errors import ForbiddenError, ParameterError


class AccountRole(StrEnum):
    """What an account may try at all; a policy still decides about each object."""

    DATA_OWNER = "data_owner"
    DATA_PROVIDER = "data_provider"
    DATA_USER = "data_user"
    ALGORITHM_PROVIDER = "algorithm_provider"
    OPERATOR = "operator"
    AUDITOR = "auditor"

    @property
    def words(self) -> str:
        """Return the role as people write it."""
        return self.value.replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSubject:
    """Who asks.

    Attributes:
        user_id: the account.
        name: the name of the account, which the ledger charges.
        organisation_id: where they work; charged as well.
        roles: what the account may try.
        attributes: facts about them that policies may use, such as their branch.
        scopes: the actions that their token is for, or None where they signed in themselves.
    """

    user_id: str
    name: str
    organisation_id: str | None = None
    roles: frozenset[AccountRole] = frozenset()
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    scopes: frozenset[str] | None = None


APART = frozenset({AccountRole.OPERATOR, AccountRole.AUDITOR})
"""Roles that exclude every other one."""


def check_roles(names: Iterable[str], *, separate: bool = True) -> frozenset[AccountRole]:
    """Return roles that one account may hold, or raise."""
    try:
        roles = frozenset(AccountRole(name) for name in names)
    except ValueError:
        raise ParameterError("There is no such role.", fix=f"use some of {', '.join(AccountRole)}.") from None
    apart = roles & APART
    if separate and apart and len(roles) > 1:
        holder = a_or_an(min(apart).words).capitalize()
        raise ForbiddenError(
            f"{holder} holds no other role: who runs or audits the hub does not work with its data.",
            fix="make a second account, or set separate_duties = false for a hub with few people.",
        )
    return roles
