"""What was typed after ``cloister query``, checked before a file or a ledger is touched."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.cli.options import Payer

_CHARTS = (".svg", ".png", ".html", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """The options of the command; numbers are still text, so that they stay exact."""

    data: str
    schema: str
    sql: str
    epsilon: str | None
    delta: str | None
    rho: str | None
    preview: bool
    error: str | None
    rows: int | None
    ledger: str | None
    dataset: str | None
    budget_epsilon: str | None
    budget_delta: str | None
    budget_rho: str | None
    analyst: str | None
    unit: str | None
    limit: int | None
    data_version: str
    fresh: bool
    plot: str | None
    force: bool
    encoding: str | None
    missing: tuple[str, ...]

    def check(self) -> None:
        """Refuse options that do not belong together, and a chart that could not be written."""
        self._check_price()
        self._check_ledger()
        if self.plot is not None:
            self._check_chart(Path(self.plot))

    @property
    def measure(self) -> str:
        """Return in what the price is stated."""
        return "epsilon" if self.rho is None else "rho"

    @property
    def price(self) -> dict[str, Any]:
        """Return the price as the library takes it."""
        given = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def offer(self) -> dict[str, Any]:
        """Return the price, or the wanted error."""
        return self.price if self.error is None else {**self.price, "error": self.error}

    @property
    def price_budget(self) -> Budget:
        """Return a budget for this one answer."""
        from cloister.accounting.budget import Budget

        return Budget(**self.price)

    @property
    def pretended_budget(self) -> Budget:
        """Return a budget to plan with; nothing is charged to it."""
        from cloister.accounting.budget import Budget
        from cloister.core import exact

        return Budget(epsilon=exact.number(1)) if self.rho is None else Budget(rho=exact.number(1))

    @property
    def has_budget(self) -> bool:
        """Return whether a budget for a new account is stated."""
        return self.budget_epsilon is not None or self.budget_rho is not None

    @property
    def stated_budget(self) -> Budget:
        """Return the budget for a new account."""
        from cloister.accounting.budget import Budget

        given: dict[str, Any] = {"epsilon": self.budget_epsilon, "rho": self.budget_rho, "delta": self.budget_delta}
        return Budget(**{name: value for name, value in given.items() if value is not None})

    @property
    def payer(self) -> Payer:
        """Return which account pays; there is a ledger."""
        from cloister.cli.options import Payer

        budget = self.stated_budget if self.has_budget else None
        return Payer(ledger=str(self.ledger), dataset=str(self.dataset), budget=budget, measure=self.measure)

    def _check_price(self) -> None:
        if self.error is not None and not self.preview:
            raise ParameterError(
                "--error asks for a price; an answer has to name one.",
                fix="add --preview to learn the epsilon, then ask with --epsilon.",
            )
        if self.rows is not None and not self.preview:
            raise ParameterError("--rows is a guess for --preview.", fix="add --preview, or leave --rows out.")
        wanted = {"--epsilon": self.epsilon, "--rho": self.rho, "--error": self.error}
        given = [name for name, value in wanted.items() if value is not None]
        if len(given) != 1:
            problem = f"{' and '.join(given)} exclude each other." if given else "The answer has no price."
            raise ParameterError(
                problem, fix="say what it may cost, such as --epsilon 0.1; add --preview to see the error first."
            )

    def _check_ledger(self) -> None:
        if self.ledger is not None:
            if self.dataset is None:
                raise ParameterError(
                    "With a ledger, the table needs a name for its account.",
                    fix="add --dataset, such as hospital-2026.",
                )
            if self.budget_delta is not None and not self.has_budget:
                raise ParameterError(
                    "--budget-delta is a part of a budget.", fix="add --budget-epsilon or --budget-rho."
                )
            if self.has_budget:
                _ = self.stated_budget
            return
        needing = {
            "--dataset": self.dataset is not None,
            "--analyst": self.analyst is not None,
            "--budget-epsilon": self.budget_epsilon is not None,
            "--budget-delta": self.budget_delta is not None,
            "--budget-rho": self.budget_rho is not None,
            "--fresh": self.fresh,
        }
        for name, is_given in needing.items():
            if is_given:
                raise ParameterError(
                    f"{name} has no meaning without a ledger, where spending is remembered.",
                    fix=f"add --ledger sqlite:///budget.db, or leave {name} out.",
                )

    def _check_chart(self, target: Path) -> None:
        if self.preview:
            raise ParameterError("A preview has nothing to draw.", fix="leave --plot or --preview out.")
        if target.suffix.lower() not in _CHARTS:
            raise ParameterError(
                f'A chart cannot be saved as "{target.name}".', fix=f"use a name that ends in {', '.join(_CHARTS)}."
            )
        folder = target.absolute().parent
        if not folder.is_dir():
            raise ParameterError(
                f'The folder "{target.parent}" is not there.', fix="make the folder first, or choose another --plot."
            )
        if target.exists():
            self._check_replaceable(target)
        if target.is_dir() or not os.access(target if target.exists() else folder, os.W_OK):
            raise ParameterError(f'"{target}" cannot be written.', fix="choose another --plot.")
        if target.suffix.lower() != ".json" and importlib.util.find_spec("vl_convert") is None:
            raise MissingExtraError(what="Plots", package="altair", extra="plot")

    def _check_replaceable(self, target: Path) -> None:
        from cloister.data.sources import files_of

        inputs = [Path(self.schema), *files_of(self.data)]
        if any(source.exists() and target.samefile(source) for source in inputs):
            raise ParameterError(
                f'"{target}" is the data or its schema; the chart would replace it.', fix="choose another --plot."
            )
        if not self.force:
            raise ParameterError(
                f'"{target}" is already there.', fix="choose another --plot, or replace it with --force."
            )
