"""What commands are made of: a group that loads its nouns late, and a command with an example and ``--json``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from cloister.cli.output import Output
from cloister.errors import did_you_mean

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

    The decorated function gets an `Output` as its first argument and may return an exit code.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        def callback(*, as_json: bool, **options: Any) -> Any:  # click's options
            return function(Output(as_json=as_json), **options)

        callback.__doc__ = function.__doc__
        callback.__dict__["__click_params__"] = getattr(function, "__click_params__", [])
        with_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")(callback)
        made = click.command(name, epilog=f"\b\nExample:\n  {example}", context_settings=_SETTINGS)(with_json)
        if group is not None:
            group.add_command(made)
        return made

    return decorate


@click.pass_context
def _show_help(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
