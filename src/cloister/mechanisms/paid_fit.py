"""Fits that pay before they look: what estimators and synthesizers have in common.

The order of a fit is fixed here. A family checks its parameters and plans from public facts alone, which gives a
`PricedFit`: what it promises, what it is for the accountants, and how to get the rows. `PaidFit` charges the ledger for
it, and only then lets it look. Where looking fails, the same fit is done about nobody, with the same noise (see
`cloister.accounting.payment`). Each fit is another release, and a fit that failed leaves nothing behind.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.accounting.events import Event
from cloister.accounting.payment import finish, pay
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, Caveat, DifferentialPrivacy, Guarantee
from cloister.core.provenance import Provenance
from cloister.core.random import RandomSource, RandomState, caveats_of
from cloister.data.schema import Schema
from cloister.errors import ParameterError, did_you_mean
from cloister.mechanisms.calibration import FitStep, NoiseCalibration

if TYPE_CHECKING:
    from cloister.mechanisms.saved_fits import SavedFits

__all__ = ["PaidFit", "PricedFit", "read_settings"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PricedFit:
    """A fit that was planned and priced from public facts, and that nobody has paid or looked for yet.

    Attributes:
        guarantee: what it promises; one that is not differentially private may fail before everybody's eyes.
        event: what it is for the accountants; None where there is nothing to pay.
        rows: gets the protected rows.
        nobody: gets the same where there are no rows.
        learn: sets what is public and what is learned, from such rows through noise only.
    """

    guarantee: Guarantee
    event: Event | None
    rows: Callable[[], Any]
    nobody: Callable[[], Any]
    learn: Callable[[Any, RandomSource], None]


@dataclass(kw_only=True, eq=False, repr=False)
class PaidFit(ABC):
    """The base of what learns from protected rows for a price.

    Args:
        epsilon: what a fit may cost.
        delta: what a fit may cost besides; with 0 the promise is pure.
        schema: what is publicly known of the columns.
        ledger: a ledger that has an account for the dataset, or its address; without one, nobody keeps count.
        dataset: the account in the ledger.
        analyst: who pays, where the ledger limits analysts.
        unit: what is protected: "row", or the column that names a person.
        max_rows_per_unit: how many rows of a person are used.
        adjacency: "add_remove" or "replace"; persons are added or removed with all their rows.
        random_state: None; an integer is for tests, and breaks the promise.
    """

    purpose: ClassVar[str]
    """What the ledger says that was done, before the name of the class."""
    outlives_fits: ClassVar[tuple[str, ...]] = ()
    """The attributes that end in an underscore and are about what was given, not learned."""

    epsilon: Number = 1.0
    delta: Number = 0.0
    schema: Schema | None = None
    ledger: Any = None
    dataset: str | None = None
    analyst: str | None = None
    unit: str = "row"
    max_rows_per_unit: int = 1
    adjacency: Adjacency | str = "add_remove"
    random_state: RandomState = None

    guarantee_: Guarantee = field(init=False)
    steps_: tuple[FitStep, ...] = field(init=False)
    provenance_: Provenance = field(init=False)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model to a file that holds no row and no pickle; ``load`` of its package reads it again.

        Args:
            path: such as ``"income.cloister"``.
            overwrite: whether a file that is there may be replaced.

        Raises:
            DataError: if the file is there already, or cannot be written.
        """
        self._check_fitted()
        self._files().save(self, path, overwrite=overwrite)

    def _calibration(self) -> NoiseCalibration:
        return NoiseCalibration.of(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            unit=self.unit,
            max_rows_per_unit=self.max_rows_per_unit,
        )

    def _pay_and_look(self, fit: PricedFit, source: RandomSource) -> None:
        """Charge the ledger, then learn from the rows or, where that fails, from none."""
        if fit.event is not None:
            self._pay(fit.guarantee, fit.event)

        def attempt(fetch: Callable[[], Any]) -> None:
            # An attempt that failed half way must leave nothing behind for the next one.
            self._forget()
            self._promise_as(fit.guarantee, source)
            fit.learn(fetch(), source)

        try:
            if isinstance(fit.guarantee, DifferentialPrivacy):
                finish(lambda: attempt(fit.rows), nothing=lambda: attempt(fit.nobody))
            else:
                attempt(fit.rows)
        except BaseException:
            self._forget()
            raise

    def _pay(self, guarantee: Guarantee, event: Event) -> None:
        pay(
            guarantee,  # type: ignore[arg-type]  # what has an event is differentially private
            event,
            ledger=self.ledger,
            dataset=self.dataset,
            analyst=self.analyst,
            purpose=f"{self.purpose} {type(self).__name__}",
        )

    def _promise_as(self, guarantee: Guarantee, source: RandomSource) -> None:
        """Set the promise of a fit, with what breaks it, and where the fit comes from."""
        self.guarantee_ = guarantee.with_caveat(*caveats_of(source), *self._caveats())
        self.provenance_ = Provenance.of_today(dataset=self.dataset)

    def _forget(self) -> None:
        """Drop what an earlier fit learned: no model may carry the promise of another one."""
        for name in [name for name in vars(self) if name.endswith("_") and name not in self.outlives_fits]:
            delattr(self, name)

    # What each family says -------------------------------------------------------------------------------------------

    def _caveats(self) -> tuple[Caveat, ...]:
        """Return what besides a seed limits the promise."""
        return ()

    @abstractmethod
    def _check_fitted(self) -> None:
        """Raise unless there was a fit."""

    @abstractmethod
    def _files(self) -> SavedFits[Any]:
        """Return how the family is saved."""

    @abstractmethod
    def _learned_state(self) -> dict[str, Any]:
        """Return what a saved model keeps: numbers, texts, arrays, and lists and dictionaries of them."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Set what `_learned_state` returned, as it was read from a file."""


def read_settings(
    given: Iterable[str], known: Sequence[str], *, whose: str = "the model", form: str = "NAME=VALUE"
) -> dict[str, Any]:
    """Return settings of a fit as people type them, by name; values as in JSON, else as a text.

    >>> read_settings(["depth=3", "criterion=gini"], ["depth", "criterion"])
    {'depth': 3, 'criterion': 'gini'}

    Args:
        given: texts NAME=VALUE.
        known: the settings that there are.
        whose: what they are settings of, in an error.
        form: how they are written where the error is read.

    Raises:
        ParameterError: if one is no such text, or is unknown.
    """
    found: dict[str, Any] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or name not in known:
            raise ParameterError(
                f'"{name}" is not a setting of {whose}.{did_you_mean(name, known)}',
                fix=f"write {form} with one of {', '.join(known)}." if known else "leave the settings out.",
            )
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found
