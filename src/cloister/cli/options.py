"""Option groups: data, price, ledger and output, each written once, and what is wrong with them said once.

A command takes a group by its decorator, and its help lists the options of a group together and in the same order.
Everything that can be wrong with options, and with the files that a command will write, is said before work begins.
Numbers stay the text that was typed, so that they stay exact.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from cloister.cli.accounts import Payer
from cloister.cli.commands import GroupedOption, program
from cloister.core.wordings import join_words
from cloister.errors import MissingExtraError, ParameterError, UnconfirmedSchemaError, did_you_mean

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.data.table import Table

Decorator: TypeAlias = "Callable[[Callable[..., Any]], Callable[..., Any]]"

TABLES = (".csv", ".parquet", ".pq")
REPORTS = (".html", ".htm", ".md", ".json")
MODELS = (".cloister", ".json")
CHARTS = (".svg", ".png", ".html", ".json")
_OTHER_SPELLINGS = (".pq", ".htm", ".yml")
_SQLITE = re.compile("^sqlite:///", re.IGNORECASE)
_GUESSES = ("bounds", "categories", "subject")


class NumberText(click.types.StringParamType):
    """A number that stays the text that was typed, so that it stays exact."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # click's signature
        """Return the text, unless it is no number."""
        from cloister.core import exact

        text = str(super().convert(value, param, ctx))
        exact.number(text, name="a number" if param is None else param.opts[0])
        return text


def option(*names: str, metavar: str | None = None, text: str, section: str = "Options", **settings: Any) -> Decorator:
    """Return a decorator that adds an option; one without a metavar is a flag."""
    settings = {"metavar": metavar, **settings} if metavar is not None else {"is_flag": True, **settings}
    return click.option(*names, cls=GroupedOption, section=section, help=text, **settings)


def data_options(*, schema: bool | None = True) -> Decorator:
    """Add how DATA is read: ``--schema``, which is required, may be given (False) or is not there (None), and more."""

    def data(name: str, metavar: str, text: str, **settings: Any) -> Decorator:
        return option(name, metavar=metavar, text=text, section="Data", **settings)

    missing = 'A text that stands for a missing value, such as "?"; repeat for more.'
    described = data("--schema", "FILE", "What the columns are; see cloister schema.", required=bool(schema))
    return _together(
        *([] if schema is None else [described]),
        data("--encoding", "NAME", "Of a CSV file: utf-8 (default), latin-1, cp1252 or utf-16."),
        data("--missing", "TEXT", missing, multiple=True),
    )


def price_options(*, rho: bool = False) -> Decorator:
    """Add what a private command may cost, and whom it protects; with a price in rho, epsilon is not required."""

    def price(name: str, text: str, **settings: Any) -> Decorator:
        return option(name, text=text, section="Price", **settings)

    number = {"metavar": "NUMBER", "type": NumberText()}
    other = [
        price("--rho", "The price in rho (zero-concentrated differential privacy), in place of epsilon.", **number)
    ]
    return _together(
        price("--epsilon", "What it may cost: smaller protects better and errs more.", required=not rho, **number),
        price("--delta", "A slack, such as 1e-6, that allows Gaussian noise.", **number),
        *(other if rho else ()),
        price(
            "--unit",
            'The column that names a person, or "row"; by default the subject of the schema.',
            metavar="COLUMN",
        ),
        price("--limit", "How many rows of a person are used.", metavar="NUMBER", type=click.IntRange(1)),
        price("--preview", "Say what it would cost and how far off it would be; spend nothing."),
    )


def ledger_options(*, rho: bool = False) -> Decorator:
    """Add where spending is remembered, and which account pays."""

    def ledger(name: str, metavar: str, text: str, **settings: Any) -> Decorator:
        return option(name, metavar=metavar, text=text, section="Ledger", **settings)

    def budget(measure: str, text: str) -> Decorator:
        return ledger(f"--budget-{measure}", "NUMBER", f"For an account's first use: {text}.", type=NumberText())

    return _together(
        ledger("--ledger", "URL", "Where spending is remembered, such as sqlite:///budget.db."),
        ledger("--dataset", "NAME", "The account in the ledger."),
        budget("epsilon", "the epsilon that may be spent in all"),
        budget("delta", "the delta that may be spent in all"),
        *([budget("rho", "the budget in rho, in place of epsilon")] if rho else ()),
        ledger("--analyst", "NAME", "Who asks; a limit that the ledger has for them applies."),
    )


def output_options(
    what: str | None = None,
    *,
    endings: Sequence[str] = TABLES,
    required: bool = False,
    report: str | None = None,
    more: Sequence[Decorator] = (),
    certificate: bool = False,
    **settings: Any,
) -> Decorator:
    """Add what a command writes.

    Args:
        what: what ``-o`` writes; None for a command without it.
        endings: how the name of that file may end; any way, if there are none.
        required: whether there is no default for it.
        report: what ``--report`` is about; None for a command without one.
        more: further files, listed after those two.
        certificate: whether a certificate is written beside the file.
        settings: click's own settings of ``-o``.
    """
    target = file_option(
        "-o", "--output", "output_file", text=f"Where to write {what}", endings=endings, required=required, **settings
    )
    signing = [
        option(
            "--signing-key",
            metavar="FILE",
            section="Output",
            text="The key that signs the certificate; by default your own, which is made if there is none.",
        ),
        option("--no-certificate", text="Write no certificate beside the file.", section="Output"),
    ]
    return _together(
        *([] if what is None else [target]),
        *([] if report is None else [file_option("--report", text=report, endings=REPORTS)]),
        *more,
        option("--force", text="Replace files that are there.", section="Output"),
        *(signing if certificate else ()),
    )


def file_option(*names: str, text: str, endings: Sequence[str], **settings: Any) -> Decorator:
    """Return a decorator that adds a file to write."""
    shown = join_words([ending for ending in endings if ending not in _OTHER_SPELLINGS], last="or")
    return option(
        *names, metavar="FILE", text=f"{text}: {shown}." if shown else f"{text}.", section="Output", **settings
    )


def _together(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        # The last decorator that is applied is listed first.
        for one in reversed(options):
            function = one(function)
        return function

    return decorate


def check_target(
    path: str | None, *, inputs: Sequence[str | None], force: bool, endings: Sequence[str] | None = REPORTS
) -> None:
    """Return nothing when a file can be written, else raise.

    Raises:
        ParameterError: if it would replace an input, its ending is not known, its folder is not there, it is there
            already and may not be replaced, or it may not be written.
    """
    if path is None:
        return
    target = Path(path)
    if any(_is_same_file(target, source) for source in _files_of(inputs)):
        raise ParameterError(f'"{path}" would replace what is read.', fix="choose another name.")
    if endings is not None and target.suffix.lower() not in endings:
        raise ParameterError(
            f'"{path}" has an ending that says no kind of file.', fix=f"use a name that ends in {', '.join(endings)}."
        )
    if not target.absolute().parent.is_dir():
        raise ParameterError(f'There is no folder "{target.parent}".', fix="make it first, or choose another one.")
    if target.exists() and not force:
        raise ParameterError(f'"{path}" is there already.', fix="choose another name, or say --force.")
    if target.is_dir() or not os.access(target if target.exists() else target.absolute().parent, os.W_OK):
        raise ParameterError(f'"{path}" cannot be written.', fix="choose another name.")


def _files_of(inputs: Sequence[str | None]) -> list[Path]:
    """Return the files of inputs, also those that a pattern or the address of a database or ledger stands for."""
    from cloister.data.sources import files_of

    named = [_SQLITE.sub("", given) for given in inputs if given is not None]
    return [file for given in named for file in ([Path(given)] if Path(given).exists() else files_of(given))]


def _is_same_file(one: Path, other: Path) -> bool:
    """Return whether two names stand for one file, also where a ledger is made only when it is paid from."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def check_chart(path: str | None, *, inputs: Sequence[str | None], force: bool) -> None:
    """Return nothing when a chart can be drawn into a file, else raise as `check_target` does."""
    check_target(path, inputs=inputs, force=force, endings=CHARTS)
    if path is not None and not path.lower().endswith(".json") and importlib.util.find_spec("vl_convert") is None:
        raise MissingExtraError(what="Plots", package="altair", extra="plot")


def check_column(table: Table, target: str | None) -> None:
    """Raise where --target names no column of the table."""
    if target is not None and target not in table.columns:
        raise ParameterError(
            f'The table has no column "{target}".{did_you_mean(target, table.columns)}',
            fix=f"give --target one of {', '.join(table.columns)}.",
        )


def split_names(text: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def open_data(data: str, schema: str | None, *, encoding: str | None, missing: tuple[str, ...]) -> Table:
    """Return a table, described by a schema file where one is given."""
    from cloister.data.schema import Schema
    from cloister.data.sources import open_table

    described = None if schema is None else Schema.read(schema)
    return open_table(data, schema=described, encoding=encoding, missing=missing)


def open_given_data(options: Mapping[str, Any]) -> Table:
    """Return the table that the options of the group data name."""
    return open_data(options["data"], options["schema"], encoding=options["encoding"], missing=options["missing"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidOptions:
    """What private commands have in common: the groups data, price and ledger."""

    data: str
    schema: str
    encoding: str | None
    missing: tuple[str, ...]
    epsilon: str | None
    delta: str | None
    rho: str | None = None
    unit: str | None
    limit: int | None
    preview: bool
    ledger: str | None
    dataset: str | None
    budget_epsilon: str | None
    budget_delta: str | None
    budget_rho: str | None = None
    analyst: str | None
    force: bool = False

    def check_ledger(self, **others: object) -> None:
        """Refuse options that do not belong together; others, by their names, have no meaning without a ledger."""
        if self.ledger is None:
            budget = {f"budget_{name}": getattr(self, f"budget_{name}") for name in ("epsilon", "delta", "rho")}
            _refuse_without_ledger(dataset=self.dataset, analyst=self.analyst, **budget, **others)
            return
        if self.dataset is None:
            raise ParameterError(
                "With a ledger, the table needs a name for its account.", fix="add --dataset, such as hospital-2026."
            )
        if self.budget_delta is not None and self.budget_epsilon is None and self.budget_rho is None:
            raise ParameterError("--budget-delta is a part of a budget.", fix="add --budget-epsilon.")
        _ = self.stated_budget

    @property
    def stated_budget(self) -> Budget | None:
        """Return the budget for a new account, where one is stated."""
        from cloister.accounting.budget import Budget

        if self.budget_epsilon is None and self.budget_rho is None:
            return None
        return Budget(epsilon=self.budget_epsilon, rho=self.budget_rho, delta=self.budget_delta or 0)

    @property
    def payer(self) -> Payer:
        """Return which account pays; there is a ledger."""
        return Payer(
            ledger=str(self.ledger),
            dataset=str(self.dataset),
            budget=self.stated_budget,
            measure="epsilon" if self.rho is None else "rho",
            analyst=self.analyst,
        )

    def unit_of(self, table: Table) -> str:
        """Return whom to protect: who is asked for, else the person that the schema names, else the row."""
        return self.unit or (None if table.schema is None else table.schema.subject) or "row"

    @property
    def inputs(self) -> list[str | None]:
        """Return what no output may replace: what is read, and the ledger, without which all spending is forgotten."""
        return [self.data, self.schema, self.ledger]

    def open_table(self) -> Table:
        """Return the table; its schema holds no guess that a private release would use."""
        from cloister.data.schema import Schema
        from cloister.data.sources import open_table

        schema = Schema.read(self.schema)
        try:
            schema.require_confirmed(facts=_GUESSES)
        except UnconfirmedSchemaError as error:
            raise UnconfirmedSchemaError(
                error.problem,
                fix=f'write what is known without looking into {self.schema}, delete the "guessed" lines, and run: '
                f"{program()} schema check {self.schema}",
            ) from None
        return open_table(self.data, schema=schema, encoding=self.encoding, missing=self.missing)


def _refuse_without_ledger(**given: object) -> None:
    """Refuse options that have no meaning without a ledger; they are named as Python spells them."""
    named = next((name for name, value in given.items() if value not in (None, False)), None)
    if named is not None:
        spelled = f"--{named.replace('_', '-')}"
        raise ParameterError(
            f"{spelled} has no meaning without a ledger, where spending is remembered.",
            fix=f"add --ledger sqlite:///budget.db, or leave {spelled} out.",
        )
