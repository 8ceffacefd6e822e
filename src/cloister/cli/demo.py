"""``cloister demo``: a first private answer."""

from __future__ import annotations

from cloister.cli.commands import command
from cloister.cli.output import Output


@command("demo", example="cloister demo")
def demo(output: Output) -> None:
    """Ask a first question of example data, and see what privacy costs."""
    output.say("demo")
