"""Options that say how a file is read, shared by the commands that take DATA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--encoding`` and ``--missing`` to a command."""
    for option in (
        click.option(
            "--missing",
            metavar="TEXT",
            multiple=True,
            help='A text that stands for a missing value, such as "?"; repeat for more.',
        ),
        click.option("--encoding", metavar="NAME", help="Of a CSV file: utf-8 (default), latin-1, cp1252 or utf-16."),
    ):
        function = option(function)
    return function
