"""What commands are made of: groups that load their nouns late, commands with an example, and their output.

A person or a program sees JSON with ``--json``, tables on a terminal, and plain aligned text in a pipe.
"""

from __future__ import annotations

import importlib
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from cloister.core.wordings import percent
from cloister.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class CommandOutput:
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
            yield lambda share, what: status.update(f"{text}: {what} ({percent(share, digits=2)})")


def program() -> str:
    """Return how this command is called from here: its name, or its path where the name alone is not found."""
    beside = Path(sys.executable).with_name("cloister")
    if shutil.which("cloister") is not None or not beside.exists():
        return "cloister"
    here = Path.cwd()
    return shlex.quote(str(beside.relative_to(here) if beside.is_relative_to(here) else beside))


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


SECTIONS = ("Options", "Data", "Price", "Ledger", "Output")
"""The groups of options, in the order in which help lists them; the first are a command's own."""

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True)
class Noun:
    """Where a command lives, and its line in the list of commands."""

    module: str
    attribute: str
    summary: str

    def load(self) -> click.Command:
        """Import the command."""
        command = getattr(importlib.import_module(self.module), self.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.module}.{self.attribute} is not a command")
        return command


class GroupedOption(click.Option):
    """An option that help lists together with others of its kind."""

    def __init__(self, *names: Any, section: str = "Options", **settings: Any) -> None:  # click's own settings
        super().__init__(*names, **settings)
        self.section = section


class GroupedCommand(click.Command):
    """A command whose help lists its options group by group, and the groups of all commands in one order."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        for section in SECTIONS:
            options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
            listed = [one for one in options if getattr(one, "section", SECTIONS[0]) == section]
            records = [record for one in listed if (record := one.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)


class HelpfulGroup(click.Group):
    """A group that, called alone, shows its help and is done."""

    def __init__(self, **settings: Any) -> None:  # click's own settings
        settings.setdefault("context_settings", _SETTINGS)
        super().__init__(invoke_without_command=True, no_args_is_help=False, callback=_show_help, **settings)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is meant, or fail with the nearest one."""
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            ctx.fail(f'There is no command "{name}".{did_you_mean(name, known)}')
        return super().resolve_command(ctx, args)


class LazyGroup(HelpfulGroup):
    """The root: its nouns are imported when one is used, so that ``cloister --version`` stays fast."""

    def __init__(self, *, nouns: Mapping[str, Noun], **settings: Any) -> None:  # click's own settings
        super().__init__(**settings)
        self.nouns = dict(nouns)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the nouns."""
        return sorted(self.nouns)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """Return a noun's command, importing it."""
        return self.nouns[cmd_name].load() if cmd_name in self.nouns else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        """Write the list of nouns without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, noun.summary) for name, noun in sorted(self.nouns.items())])


def command(
    name: str, *, example: str, group: click.Group | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command with an example in its help and the option ``--json``.

    The decorated function gets an `CommandOutput` as its first argument and may return an exit code.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        def callback(*, as_json: bool, **options: Any) -> Any:  # click's options
            return function(CommandOutput(as_json=as_json), **options)

        callback.__doc__ = function.__doc__
        # The last option that was added is listed first.
        as_json = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON and nothing else.")
        callback.__dict__["__click_params__"] = [as_json, *getattr(function, "__click_params__", [])]
        made = click.command(name, cls=GroupedCommand, epilog=f"\b\nExample:\n  {example}", context_settings=_SETTINGS)(
            callback
        )
        if group is not None:
            group.add_command(made)
        return made

    return decorate


@click.pass_context
def _show_help(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
