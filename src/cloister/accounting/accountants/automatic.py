"""Composition for users: releases composed by the best accountant that knows them all, and accountants compared.

Releases are composed when they have their relation and unit in common; the caveats and assumptions of all of them are
carried over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

from cloister.accounting.accountants.base import (
    Accountant,
    Events,
    Tally,
    describe,
    has_approx_loss,
    supports_all,
    tally,
)
from cloister.accounting.accountants.closed_form import GaussianAccountant, PureAccountant, ZeroConcentratedAccountant
from cloister.accounting.accountants.numerical import NumericalAccountant
from cloister.accounting.accountants.renyi import RenyiAccountant
from cloister.accounting.events import Event, SubsampledEvent
from cloister.core import validation
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, ApproxDP, Caveat, DifferentialPrivacy, Guarantee, PureDP
from cloister.errors import AccountingError, ParameterError, ParameterTypeError, UnsupportedEventError

__all__ = [
    "AccountedRelease",
    "Common",
    "Releases",
    "accountant_named",
    "check_relation",
    "compare",
    "compose",
    "in_common",
]


_T = TypeVar("_T")


@runtime_checkable
class AccountedRelease(Protocol):
    """A result or a mechanism: something with an event and the promise that was made for it."""

    @property
    def event(self) -> Event:
        """Return what ran, for the accountants."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """Return what was promised."""
        ...


Releases: TypeAlias = "AccountedRelease | Iterable[AccountedRelease]"
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
    items = _as_list(given)
    releases = [item for item in items if not isinstance(item, Event) and isinstance(item, AccountedRelease)]
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


def _as_list(given: object) -> list[Any]:  # whatever a caller put in
    if isinstance(given, Event | AccountedRelease | str | bytes | Mapping) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def _promise(release: AccountedRelease) -> DifferentialPrivacy:
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


_ACCOUNTANTS: tuple[type[Accountant], ...] = (
    PureAccountant,
    ZeroConcentratedAccountant,
    GaussianAccountant,
    RenyiAccountant,
    NumericalAccountant,
)


@overload
def compose(
    releases: Events | Releases,
    *,
    delta: Number,
    epsilon: None = None,
    accountant: str | Accountant = "auto",
    adjacency: Adjacency | str | None = None,
    unit: str | None = None,
) -> ApproxDP: ...
@overload
def compose(
    releases: Events | Releases,
    *,
    delta: None = None,
    epsilon: Number,
    accountant: str | Accountant = "auto",
    adjacency: Adjacency | str | None = None,
    unit: str | None = None,
) -> ApproxDP: ...
@overload
def compose(
    releases: Events | Releases,
    *,
    delta: None = None,
    epsilon: None = None,
    accountant: str | Accountant = "auto",
    adjacency: Adjacency | str | None = None,
    unit: str | None = None,
) -> PureDP: ...
@overload
def compose(
    releases: Events | Releases,
    *,
    delta: Number | None = None,
    epsilon: Number | None = None,
    accountant: str | Accountant = "auto",
    adjacency: Adjacency | str | None = None,
    unit: str | None = None,
) -> PureDP | ApproxDP: ...
def compose(
    releases: Events | Releases,
    *,
    delta: Number | None = None,
    epsilon: Number | None = None,
    accountant: str | Accountant = "auto",
    adjacency: Adjacency | str | None = None,
    unit: str | None = None,
) -> PureDP | ApproxDP:
    """Return what releases promise together.

    Args:
        releases: Results or mechanisms, which carry their relation, unit, caveats and assumptions; or plain events,
            for which ``adjacency`` and ``unit`` must be stated. In any order, each possibly chosen after seeing the
            results before it.
        delta: Asks for epsilon at this delta.
        epsilon: Asks for delta at this epsilon. With neither, the plain sum of pure losses is returned.
        accountant: "auto" takes the smallest valid bound that is cheap to find; or one of "pure",
            "zero_concentrated", "gaussian", "renyi", "numerical"; or an `Accountant`.
        adjacency: The neighbor relation under which every event was calibrated; required for plain events.
        unit: The protected unit; required for plain events.

    Returns:
        `ApproxDP`, or `PureDP` when neither delta nor epsilon is given and no event has a delta. Caveats of the
        releases are carried over: one seeded release and the whole does not hold.

    Raises:
        AccountingError: If the releases have different relations or units.

    >>> from cloister.accounting.events import LaplaceEvent
    >>> events = [LaplaceEvent(noise_multiplier=10)] * 100
    >>> round(float(compose(events, delta=1e-6, adjacency="add_remove", unit="row").epsilon), 3)
    4.693
    """
    if delta is not None and epsilon is not None:
        raise ParameterError("Either delta or epsilon is given, and the other is found.", fix="leave one of them out.")
    common = in_common(releases, adjacency=adjacency, unit=unit)
    counts = common.counts
    check_relation(common.adjacency, counts)
    shared: dict[str, Any] = {  # fields of several types
        "adjacency": common.adjacency,
        "unit": common.unit,
        "assumptions": common.assumptions,
        "caveats": common.caveats,
    }
    if epsilon is not None:
        wanted = validation.check_epsilon(epsilon, allow_zero=True)
        least = _answer(accountant, counts, lambda one: one.delta(counts, epsilon=wanted), pure=False)
        return ApproxDP(epsilon=wanted, delta=_below_one(least), **shared)
    slack = validation.check_delta(0 if delta is None else delta)
    if slack == 0 and isinstance(accountant, str):
        _check_pure(counts)
    found = _answer(accountant, counts, lambda one: one.epsilon(counts, delta=slack), pure=slack == 0)
    if delta is None:
        return PureDP(epsilon=found, **shared)
    return ApproxDP(epsilon=found, delta=slack, **shared)


def compare(events: Events, *, delta: Number) -> dict[str, Fraction]:
    """Return epsilon at a delta from every own accountant that knows all events, by name."""
    counts = tally(events)
    slack = validation.check_delta(delta, allow_zero=False)
    answers = {}
    for accountant in (cls() for cls in _ACCOUNTANTS):
        if supports_all(accountant, counts):
            with suppress(AccountingError):
                answers[accountant.name] = accountant.epsilon(counts, delta=slack)
    return answers


def accountant_named(name: str) -> Accountant:
    """Return an accountant by its name."""
    known = {cls.name: cls for cls in _ACCOUNTANTS}
    validation.check_choice(name, name="accountant", allowed=("auto", *known))
    return known[name]()


def check_relation(relation: Adjacency, counts: Tally) -> None:
    """Raise if events are not accounted for under a relation."""
    if relation is Adjacency.REPLACE and any(isinstance(event, SubsampledEvent) for event in counts):
        raise AccountingError(
            "Poisson samples are accounted for when a unit is added or removed, not when it is replaced.",
            fix="use adjacency='add_remove', or subsampling_without_replacement() for one release under replace.",
        )


def _check_pure(counts: Tally) -> None:
    needing = sorted({describe(event) for event in counts if not has_approx_loss(event)})
    if needing:
        raise UnsupportedEventError(
            f"No epsilon is known for these events without a delta: {', '.join(needing)}.",
            fix="give a delta, for example compose(releases, delta=1e-6).",
        )


def _answer(
    accountant: str | Accountant, counts: Tally, ask: Callable[[Accountant], Fraction], *, pure: bool
) -> Fraction:
    if not isinstance(accountant, str):
        return ask(accountant)
    if accountant != "auto":
        return ask(accountant_named(accountant))
    if pure or not counts:
        return ask(PureAccountant())
    # Its answer is exact, so that no other accountant can do better.
    if supports_all(GaussianAccountant(), counts):
        return ask(GaussianAccountant())
    return _smallest(counts, ask)


def _smallest(counts: Tally, ask: Callable[[Accountant], Fraction]) -> Fraction:
    """Return the smallest answer of the cheap accountants.

    Rényi is asked only when the numerical one does not answer, or knows a sample merely by its amplified epsilon; so is
    the zero-concentrated one, which finds the best order more exactly than Rényi's grid has it.
    """
    sampled = any(isinstance(event, SubsampledEvent) for event in counts)
    answers: dict[str, Fraction] = {}
    problem: AccountingError | None = None
    for one in (PureAccountant(), NumericalAccountant(), ZeroConcentratedAccountant(), RenyiAccountant()):
        if (NumericalAccountant.name in answers and not sampled) or not supports_all(one, counts):
            continue
        try:
            answers[one.name] = ask(one)
        except AccountingError as error:
            problem = error
    if answers:
        return min(answers.values())
    if problem is not None:
        raise problem
    kinds = ", ".join(sorted({describe(event) for event in counts}))
    raise UnsupportedEventError(
        f"No accountant knows all of these events together: {kinds}.",
        fix="describe what ran by PureEvent, ApproxEvent or ZeroConcentratedEvent.",
    )


def _below_one(delta: Fraction) -> Fraction:
    if delta >= 1:
        raise AccountingError(
            "At this epsilon nothing can be promised about these events.", fix="ask for a larger epsilon."
        )
    return delta
