"""What several releases have in common: their events, relation, unit, caveats and assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from cloister.accounting.accountants.base import Events, Tally, tally
from cloister.accounting.events import Event
from cloister.core import validation
from cloister.core.guarantees import Adjacency, Caveat, DifferentialPrivacy, Guarantee
from cloister.errors import AccountingError, ParameterError, ParameterTypeError

__all__ = ["Common", "Release", "Releases", "in_common"]

_T = TypeVar("_T")


@runtime_checkable
class Release(Protocol):
    """A result or a mechanism: something with an event and the promise that was made for it."""

    @property
    def event(self) -> Event:
        """Return what ran, for the accountants."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """Return what was promised."""
        ...


Releases: TypeAlias = "Release | Iterable[Release]"
"""One release, or several in any order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What all releases share, and everything that any of them assumes or warns of."""

    counts: Tally
    adjacency: Adjacency
    unit: str
    assumptions: tuple[str, ...] = ()
    caveats: tuple[Caveat, ...] = ()


def in_common(given: Events | Releases, *, adjacency: Adjacency | str | None, unit: str | None) -> Common:
    """Return the events, relation and unit of plain events with both stated, or of releases that carry them."""
    items = _listed(given)
    releases = [item for item in items if not isinstance(item, Event) and isinstance(item, Release)]
    if not releases:
        return _of_events(given if isinstance(given, Event | Tally) else items, adjacency, unit)
    if len(releases) < len(items):
        raise ParameterTypeError(
            "Releases and plain events cannot be composed in one call.",
            fix="give results or mechanisms alone, or events alone with adjacency= and unit=.",
        )
    promises = [_promise(release) for release in releases]
    relation = None if adjacency is None else _relation(adjacency)
    return Common(
        counts=tally([release.event for release in releases]),
        adjacency=_one("adjacency", [promise.adjacency for promise in promises], relation),
        unit=_one("unit", [promise.unit for promise in promises], unit),
        assumptions=tuple(dict.fromkeys(text for promise in promises for text in promise.assumptions)),
        caveats=tuple(dict.fromkeys(caveat for promise in promises for caveat in promise.caveats)),
    )


def _of_events(events: Events, adjacency: Adjacency | str | None, unit: str | None) -> Common:
    counts = tally(events)
    if adjacency is None or unit is None:
        raise ParameterError(
            "Events do not say between which neighbors they are private.",
            fix='add for example adjacency="add_remove", unit="row", or give the results or mechanisms themselves.',
        )
    return Common(counts=counts, adjacency=_relation(adjacency), unit=unit)


def _listed(given: object) -> list[Any]:  # whatever a caller put in
    if isinstance(given, Event | Release | str | bytes | Mapping) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def _promise(release: Release) -> DifferentialPrivacy:
    if isinstance(release.guarantee, DifferentialPrivacy):
        return release.guarantee
    kind = getattr(release.guarantee, "kind", type(release.guarantee).__name__)
    raise AccountingError(
        f"A release with a guarantee of kind {kind} cannot be composed.",
        fix="compose differentially private results or mechanisms only.",
    )


def _relation(adjacency: Adjacency | str) -> Adjacency:
    return Adjacency(validation.check_choice(adjacency, name="adjacency", allowed=[*Adjacency]))


def _one(name: str, values: list[_T], stated: _T | None) -> _T:
    known = list(dict.fromkeys([*values, *([] if stated is None else [stated])]))
    if len(known) > 1:
        raise AccountingError(
            f"Releases with different {name} do not compose: {', '.join(map(str, known))}.",
            fix="release them for the same unit and relation; to_replace() restates an add_remove promise.",
        )
    return known[0]
