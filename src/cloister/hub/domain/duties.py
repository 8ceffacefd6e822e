"""Separation of duties: which roles one account may hold together.

Who runs the hub (operator) or audits it (auditor) does nothing else there. The other roles go together: a data owner
may be a data user of somebody else's data. Roles only say what may be tried; policies decide about each object.
"""

from __future__ import annotations

from collections.abc import Iterable

from cloister.errors import ForbiddenError, ParameterError, a_or_an
from cloister.hub.domain.roles import Role

APART = frozenset({Role.OPERATOR, Role.AUDITOR})
"""Roles that exclude every other one."""


def check_roles(names: Iterable[str], *, separate: bool = True) -> frozenset[Role]:
    """Return roles that one account may hold, or raise."""
    try:
        roles = frozenset(Role(name) for name in names)
    except ValueError:
        raise ParameterError("There is no such role.", fix=f"use some of {', '.join(Role)}.") from None
    apart = roles & APART
    if separate and apart and len(roles) > 1:
        holder = a_or_an(min(apart).words).capitalize()
        raise ForbiddenError(
            f"{holder} holds no other role: who runs or audits the hub does not work with its data.",
            fix="make a second account, or set separate_duties = false for a hub with few people.",
        )
    return roles
