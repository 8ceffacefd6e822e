"""``cloister schema``: propose, then check, what the columns of a table are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cloister.cli.app import FAILED
from cloister.cli.commands import CommandOutput, HelpfulGroup, command, program
from cloister.cli.options import check_target, data_options, open_data, output_options
from cloister.core.wordings import format_count
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.data.columns import Column
    from cloister.data.schema import Schema
    from cloister.data.schema_check import SchemaFinding, SchemaReport

schema = HelpfulGroup(name="schema", help="Describe the columns of a table: what they are and who they expose.")


@command("infer", example="cloister schema infer visits.csv -o visits.schema.yaml", group=schema)
@click.argument("data", metavar="DATA")
@data_options(schema=None)
@output_options("the schema", endings=(), default="schema.yaml", show_default=True)
def infer(
    output: CommandOutput, *, data: str, output_file: str, force: bool, encoding: str | None, missing: tuple[str, ...]
) -> None:
    """Propose a schema for a table, for its owner to read and correct.

    DATA is a CSV or Parquet file (also compressed, also several with *), or the address of a database table.

    Everything in the proposal is a guess that was read from the data. Private releases refuse guessed bounds and
    categories until a person has replaced or confirmed them.
    """
    from cloister.data.schema import Schema

    check_target(output_file, inputs=[data], force=force, endings=None)
    _check_is_schema(Path(output_file))
    with output.progress("Looking at every column"):
        proposal = Schema.infer(open_data(data, None, encoding=encoding, missing=missing))
    proposal.write(output_file, overwrite=force)
    output.document({"schema": "cloister.schema.proposal/1", "file": output_file, "proposal": proposal.to_dict()})
    again = ["schema", "check", output_file, data, *(["--encoding", encoding] if encoding else [])]
    again += [word for marker in missing for word in ("--missing", marker)]
    _show_proposal(output, proposal, output_file, f"{program()} {shlex.join(again)}")


@command("check", example="cloister schema check visits.schema.yaml visits.csv", group=schema)
@click.argument("file", metavar="SCHEMA")
@click.argument("data", metavar="[DATA]", required=False)
@data_options(schema=None)
def check(output: CommandOutput, *, file: str, data: str | None, encoding: str | None, missing: tuple[str, ...]) -> int:
    """Check a schema: is anything missing for a private release, and does it fit the table?

    SCHEMA is a schema file. DATA, if given, is the table that it describes. The exit code is 1 if something must be
    mended.
    """
    from cloister.data.schema import Schema

    stated = Schema.read(file)
    with output.progress("Comparing the schema with the table"):
        report = stated.check(None if data is None else open_data(data, None, encoding=encoding, missing=missing))
    output.document(report.to_dict())
    _show_report(output, report)
    return 0 if report.ok else FAILED


def _check_is_schema(target: Path) -> None:
    """Refuse to replace a file that is no schema, also where replacing is asked for."""
    from cloister.data.schema_file import looks_like_schema

    if target.exists() and not looks_like_schema(target):
        raise ParameterError(
            f'"{target}" is there and is no schema, so it is not replaced.',
            fix="choose another name with -o, or move that file away first.",
        )


def _show_proposal(output: CommandOutput, proposal: Schema, target: str, check_again: str) -> None:
    output.table(["column", "role", "kind", "values", "why"], [_row(column) for column in proposal.values()])
    output.say(f"\nWritten to {target}. These are guesses, for the owner's eyes only. What to do now:")
    output.say("1. Read the file. Correct roles and kinds that are wrong.")
    output.say("2. Replace bounds and categories by what is known without looking at the data,")
    output.say("   such as a form's choices or the range of human ages.")
    output.say('3. Delete the "guessed" and "evidence" lines of each column that you stand behind.')
    output.say(f"4. Run: {check_again}")


def _row(column: Column) -> list[str]:
    known = "bounds" if column.bounds is not None else "categories" if column.categories is not None else "-"
    return [column.name, str(column.role), str(column.kind), known, column.evidence]


def _show_report(output: CommandOutput, report: SchemaReport) -> None:
    if not report.findings:
        output.say("The schema is complete.")
        return
    for first, others in _group_findings(report.findings):
        output.say(f"{first.severity}: {_without_evidence(first) if others else first.sentence}")
        if others:
            output.say(f"    The same for {format_count(len(others), 'column')} more: {', '.join(others)}.")
        output.say(f"    Fix: {first.in_file}")
    output.say(f"\n{_verdict(report)}")


def _group_findings(findings: Sequence[SchemaFinding]) -> list[tuple[SchemaFinding, list[str]]]:
    """Return findings that say the same about several columns once, with the names of the other columns."""
    groups: dict[tuple[str, ...], tuple[SchemaFinding, list[str]]] = {}
    for finding in findings:
        name = str(finding.column)
        key = (str(finding.severity), _without_evidence(finding).replace(f'"{name}"', ""), finding.in_file)
        if key in groups:
            groups[key][1].append(name)
        else:
            groups[key] = (finding, [])
    return list(groups.values())


def _without_evidence(finding: SchemaFinding) -> str:
    return re.sub(r" are guesses \(.*\)\.$", " are guesses.", finding.sentence)


def _verdict(report: SchemaReport) -> str:
    grave, light = (
        sum(finding.severity == severity for finding in report.findings) for severity in ("error", "warning")
    )
    if grave:
        return f"{format_count(grave, 'error')} must be mended before a private release."
    if light:
        return f"No errors, but {format_count(light, 'warning')} to read before a private release."
    return "Nothing stands in the way of a private release."
