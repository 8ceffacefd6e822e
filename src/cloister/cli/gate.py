"""``cloister gate``: try to break a release, and say whether to publish it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.attack_files import checked_report, common, names, open_all
from cloister.cli.commands import command
from cloister.cli.output import Output
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.core.guarantees import Guarantee

_EXAMPLE = "cloister gate protected.csv --original visits.csv --schema visits.schema.yaml --report gate.html"
_KINDS = {"anonymized": "anonymized table", "anatomy": "two tables", "synthetic": "synthetic table"}


@command("gate", example=_EXAMPLE)
@click.argument("release", metavar="RELEASE")
@click.option("--original", metavar="DATA", required=True, help="The table that the release was made from.")
@click.option("--control", metavar="DATA", help="For a synthetic table: rows that had no part in it.")
@click.option("--sensitive-table", metavar="DATA", help="For anatomy: the second table, with the sensitive values.")
@click.option(
    "--kind",
    type=click.Choice(list(_KINDS)),
    default="anonymized",
    show_default=True,
    help="How the release was made.",
)
@click.option("--quasi", metavar="COLUMNS", help="What attackers may know, with commas; by default by the schema.")
@click.option(
    "--sensitive", metavar="COLUMNS", help="What attackers want to know, with commas; by default by the schema."
)
@click.option("--epsilon", metavar="E", help="What a synthetic table promises, if it is differentially private.")
@click.option("--delta", metavar="D", help="The delta of that promise.")
@click.option("--limit", metavar="NAME=VALUE", multiple=True, help="A limit of the policy, such as max_match=0.1.")
@common
def gate(
    output: Output,
    *,
    release: str,
    original: str,
    control: str | None,
    sensitive_table: str | None,
    kind: str,
    quasi: str | None,
    sensitive: str | None,
    epsilon: str | None,
    delta: str | None,
    limit: tuple[str, ...],
    schema: str | None,
    report: str | None,
    force: bool,
    **how: Any,
) -> int:
    """Attack a release in every way that fits it, and say whether to publish it.

    RELEASE is the file that is about to be published. The gate runs on this machine and compares it with the original,
    so what it prints is for the custodian. It ends with code 1 if something speaks against publishing.
    """
    from cloister.attacks import GatePolicy, gate as try_to_break

    files = {"release": release, "original": original, "control": control, "second": sensitive_table}
    checked_report(report, {**files, "schema": schema}, force=force)
    if (kind == "anatomy") != (sensitive_table is not None):
        raise ParameterError(
            "A release in two tables needs both of them.", fix="give --kind anatomy together with --sensitive-table."
        )
    _check_promise(kind, epsilon=epsilon, delta=delta, control=control)
    if kind == "anonymized" and schema is None and quasi is None:
        raise ParameterError("Nothing says which columns attackers may know.", fix="give --schema, or --quasi age,zip.")
    policy = GatePolicy.from_dict(_limits(limit))
    promise = None if epsilon is None else _promised(epsilon, delta or "0")
    tables = open_all(files, schema=schema, **how)
    published: Any = tables["release"]
    if sensitive_table is not None:
        published = (published, tables["second"])
    with output.progress("Attacking") as told:
        found = try_to_break(
            published,
            original=tables["original"],
            control=tables.get("control"),
            kind=None if kind == "anatomy" else _KINDS[kind],
            quasi_identifiers=names(quasi),
            sensitive=names(sensitive),
            guarantee=promise,
            policy=policy,
            progress=told,
        )
    if report is not None:
        found.report(report, title=f"The gate: {Path(release).name}")
    output.document({**found.to_dict(), "report": report})
    output.table(["", ""], [list(row) for row in found.summary()])
    output.say(f"\n{found.verdict}")
    if report is not None:
        output.say(f"\nThe report is in {report}.")
    return 0 if found.publish else 1


def _check_promise(kind: str, *, epsilon: str | None, delta: str | None, control: str | None) -> None:
    """Refuse options that say something about synthetic tables only."""
    given = {"--epsilon": epsilon, "--delta": delta, "--control": control}
    named = next((name for name, value in given.items() if value is not None), None)
    if kind != "synthetic" and named is not None:
        raise ParameterError(f"{named} is about synthetic tables.", fix="add --kind synthetic, or leave it out.")
    if delta is not None and epsilon is None:
        raise ParameterError("--delta is a part of a promise.", fix="add --epsilon.")


def _promised(epsilon: str, delta: str) -> Guarantee:
    from cloister.core import exact
    from cloister.core.guarantees import ApproxDP, PureDP

    slack = exact.number(delta, name="--delta")
    price = exact.number(epsilon, name="--epsilon")
    return ApproxDP(epsilon=price, delta=slack) if slack else PureDP(epsilon=price)


def _limits(given: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for item in given:
        name, sign, value = item.partition("=")
        try:
            found[name.strip().replace("-", "_")] = float(value)
        except ValueError:
            sign = ""
        if not sign:
            raise ParameterError(f'"{item}" is not a limit.', fix="write it as max_match=0.1.")
    return found
