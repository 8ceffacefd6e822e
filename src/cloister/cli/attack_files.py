"""What the commands that attack share: their files, their options, and how an outcome is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.output import Output
from cloister.cli.reading import reading
from cloister.cli.targets import check_target

if TYPE_CHECKING:
    from cloister.attacks import AttackResult
    from cloister.crypto.certificates import Certificate
    from cloister.data.table import Table

__all__ = ["checked_report", "common", "names", "open_all", "show"]


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every attack on files has."""
    for option in (
        click.option("--force", is_flag=True, help="Replace the report if it is there."),
        click.option("--report", metavar="FILE", help="Write a report: .html, .md or .json."),
        click.option("--schema", metavar="FILE", help="What the columns are, with their roles; see cloister schema."),
    ):
        function = option(function)
    return reading(function)


def open_all(
    files: dict[str, str | None],
    *,
    schema: str | None,
    encoding: str | None,
    missing: Any,
    is_synthetic: bool = False,
) -> dict[str, Table]:
    """Return the tables of the files that are named; the original and the control get the schema.

    So do made-up rows, which are stored as real ones are; labels of protected rows are stored otherwise.
    """
    from cloister.data.schema import Schema
    from cloister.data.sources import open_table

    described = None if schema is None else Schema.read(schema)
    how: dict[str, Any] = {"encoding": encoding, "missing": missing}
    given = {name: path for name, path in files.items() if path is not None}
    tables = {
        name: open_table(path, schema=described if name in {"original", "control"} else None, **how)
        for name, path in given.items()
    }
    if is_synthetic and described is not None:
        shown = tables["release"].columns
        for name in [name for name in described if name not in shown]:
            described = described.without(name)
        if all(name in described for name in shown):
            tables["release"] = open_table(given["release"], schema=described, **how)
    return tables


def names(text: str | None) -> list[str] | None:
    """Return the names in a list with commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def show(output: Output, result: AttackResult, *, report: str | None, certificate: Certificate | None = None) -> None:
    """Print what an attack found, and write its report; of a certified file, whose word its kind is."""
    if report is not None:
        result.report(report)
    output.document({**result.to_dict(), "report": report})
    certified = [] if certificate is None else [["certificate", certificate.explain()]]
    output.table(["", ""], certified + [list(row) for row in result.summary()])
    if report is not None:
        output.say(f"\nThe report is in {report}.")


def checked_report(report: str | None, files: dict[str, str | None], *, force: bool) -> None:
    """Refuse a report that cannot be written, before any work."""
    check_target(report, inputs=list(files.values()), force=force)
