"""``cloister risk``: what a table gives away about the people in it, before or after anything is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cloister.cli.commands import CommandOutput, command, program
from cloister.cli.options import check_target, data_options, open_data, output_options

if TYPE_CHECKING:
    from cloister.anonymize import Assessment

_EXAMPLE = "cloister risk visits.csv --schema visits.schema.yaml --report risk.html"


@command("risk", example=_EXAMPLE)
@click.argument("data", metavar="DATA")
@click.option("--original", metavar="DATA", help="The table before it was protected, to measure what was lost.")
@click.option("--population", metavar="N", type=click.IntRange(1), help="How many people the table was drawn from.")
@click.option(
    "--k", metavar="N", type=click.IntRange(1), default=5, show_default=True, help="The class size to ask for."
)
@click.option(
    "--threshold",
    metavar="SHARE",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="The risk above which a row counts as at risk.",
)
@data_options()
@output_options(report="Write a report")
def risk(
    output: CommandOutput,
    *,
    data: str,
    schema: str,
    original: str | None,
    report: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Measure how easily people in a table could be recognized, and what would be learned about them.

    DATA is a CSV or Parquet file (also compressed, also several with *), or the address of a database table: raw, or
    protected by cloister or another tool.

    The figures are exact and about the people in the table: they are for its custodian, not for publication.
    """
    from cloister.anonymize import assess

    how = {name: options.pop(name) for name in ("encoding", "missing")}
    check_target(report, inputs=(data, schema, original), force=force)
    with output.progress("Counting"):
        if original is None:
            found = assess(open_data(data, schema, **how), **options)
        else:
            found = assess(open_data(data, None, **how), original=open_data(original, schema, **how), **options)
    if report is not None:
        _write(found, report, data)
    output.document({**found.to_dict(), "data": data, "report": report})
    output.table(["", ""], [list(row) for row in found.summary()])
    if report is not None:
        output.say(f"\nThe report is in {report}.")
    elif found.risk.models.k < options["k"]:
        command_line = f"{program()} anonymize {data} --schema {schema} --k {options['k']} -o protected.csv"
        output.say(f"\nTo protect the table: {command_line}")


def _write(found: Assessment, path: str, data: str) -> None:
    from cloister.anonymize.release_report import report_of_risk

    report_of_risk(found, title=f"Risk of {data}").write(path)
