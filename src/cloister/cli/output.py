"""What a person or a program sees: JSON with ``--json``, tables on a terminal, plain aligned text in a pipe."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget


@dataclass(frozen=True, slots=True)
class Output:
    """Where one command writes its answer.

    A command calls `document` with its JSON-ready answer and then writes the same for a person; with ``--json`` only
    the first is printed, without it only the second.
    """

    as_json: bool = False

    @property
    def is_interactive(self) -> bool:
        """Return whether a person sits at a terminal and can be asked."""
        return not self.as_json and sys.stdin.isatty() and _on_terminal()

    def document(self, values: Mapping[str, Any]) -> None:
        """Print the answer for a program."""
        if self.as_json:
            click.echo(json.dumps(values, indent=2, ensure_ascii=False))

    def say(self, text: str = "") -> None:
        """Print a paragraph for a person."""
        if self.as_json:
            return
        if _on_terminal():
            _console().print(text, markup=False, highlight=False)
        else:
            click.echo(text)

    def heading(self, text: str) -> None:
        """Print a heading for a person."""
        if self.as_json:
            return
        if _on_terminal():
            _console().print(f"\n{text}", style="bold", markup=False, highlight=False)
        else:
            click.echo(f"\n{text}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a small table for a person."""
        if self.as_json:
            return
        if _on_terminal():
            _print_rich(columns, rows)
        else:
            click.echo(plain_table(columns, rows))

    @contextmanager
    def progress(self, text: str) -> Iterator[Callable[[float, str], None]]:
        """Show on a terminal that work is going on; what is yielded tells how far it is, and with what."""
        if self.as_json or not sys.stderr.isatty():
            yield lambda share, what: None  # noqa: ARG005  # nobody is looking
            return
        with _console(to_errors=True).status(text) as status:
            yield lambda share, what: status.update(f"{text}: {what} ({share:.0%})")


def program() -> str:
    """Return how this command is called from here: its name, or its path where the name alone is not found."""
    beside = Path(sys.executable).with_name("cloister")
    if shutil.which("cloister") is not None or not beside.exists():
        return "cloister"
    here = Path.cwd()
    return shlex.quote(str(beside.relative_to(here) if beside.is_relative_to(here) else beside))


def amount(budget: Budget) -> str:
    """Return a budget in words: its measure and its number.

    >>> from cloister.accounting.budget import Budget
    >>> amount(Budget(epsilon=0.5, delta=1e-6))
    'epsilon 0.5, delta 1e-06'
    """
    slack = f", delta {float(budget.delta):g}" if budget.delta else ""
    return f"{budget.measure} {float(budget.amount):g}{slack}"


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as aligned lines that other programs can cut.

    >>> print(plain_table(["dataset", "left"], [["hospital", "0.9"]]))
    dataset   left
    hospital  0.9
    """
    lines = [list(columns), *map(list, rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def _console(*, to_errors: bool = False) -> Any:  # a rich console; rich is loaded only when needed
    from rich.console import Console

    return Console(stderr=to_errors)


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    _console().print(table)
