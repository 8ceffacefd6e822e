"""``cloister gate``: try to break a release, and say whether to publish it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.attack_files import checked_report, common, open_all
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
@click.option("--epsilon", metavar="E", help="What a synthetic table promises, if it is differentially private.")
@click.option("--delta", metavar="D", default="0", help="The delta of that promise.")
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
    epsilon: str | None,
    delta: str,
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
    policy = GatePolicy.from_dict(_limits(limit))
    promise = None if epsilon is None else _promised(epsilon, delta)
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
