"""The roles that people hold, and the person or service that asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Role(StrEnum):
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
class Subject:
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
    roles: frozenset[Role] = frozenset()
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    scopes: frozenset[str] | None = None
