"""``cloister attack``: one attack at a time, on files, with its baseline and its confidence interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from cloister.cli.attack_files import checked_report, common, open_all, show
from cloister.cli.commands import HelpfulGroup, command
from cloister.cli.output import Output

_HELP = """Attack what you are about to publish, before somebody else does.

Every attack says how often it is right, how often guessing is, and how sure both are. That one fails is no proof of
safety. "cloister gate" runs those that fit a release and decides.
"""

group = HelpfulGroup(name="attack", help=_HELP)

_ORIGINAL = click.option("--original", metavar="DATA", required=True, help="The table that the release was made from.")
_CONTROL = click.option("--control", metavar="DATA", help="Rows of the same kind that had no part in the release.")
_QUASI = click.option(
    "--quasi", metavar="COLUMNS", help="What attackers may know, with commas; by default by the schema."
)
_SENSITIVE = click.option(
    "--sensitive", metavar="COLUMN", help="What attackers want to know; by default by the schema."
)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _attack(
    output: Output,
    run: Callable[[dict[str, Any]], Any],
    files: dict[str, str | None],
    *,
    schema: str | None,
    report: str | None,
    force: bool,
    **how: Any,
) -> None:
    checked_report(report, {**files, "schema": schema}, force=force)
    tables = open_all(files, schema=schema, **how)
    with output.progress("Attacking"):
        result = run(tables)
    show(output, result, report=report)


def _roles(tables: dict[str, Any], quasi: str | None, sensitive: str | None) -> dict[str, Any]:
    """Return the columns that are known and wanted, from the options or the schema of the original."""
    from cloister.data.columns import Role

    original = tables.get("original")
    schema = None if original is None else getattr(original, "schema", None)
    known = _names(quasi)
    if known is None and schema is not None:
        known = list(schema.with_roles(Role.QUASI)) or None
    if sensitive is None and schema is not None:
        sensitive = next(iter(schema.with_roles(Role.SENSITIVE)), None)
    return {"quasi_identifiers": known, "sensitive": sensitive}


@command("linkage", example="cloister attack linkage protected.csv --original visits.csv --schema s.yaml", group=group)
@click.argument("release", metavar="RELEASE")
@_ORIGINAL
@click.option(
    "--kind", type=click.Choice(["exact", "distance", "probabilistic"]), default="exact", show_default=True,
    help="How people are compared with released rows.",
)  # fmt: skip
@_QUASI
@common
def linkage(output: Output, *, release: str, original: str, kind: str, quasi: str | None, **others: Any) -> None:
    """Match the people of the original with the rows of RELEASE."""
    from cloister.attacks import linkage as link

    def run(tables: dict[str, Any]) -> Any:
        known = _roles(tables, quasi, None)["quasi_identifiers"]
        return link(tables["release"], tables["original"], kind=kind, quasi_identifiers=known)

    _attack(output, run, {"release": release, "original": original}, **others)


def _inside_classes(name: str, doc: str) -> None:
    @command(name, example=f"cloister attack {name} protected.csv --quasi age,zip --sensitive illness", group=group)
    @click.argument("release", metavar="RELEASE")
    @click.option("--original", metavar="DATA", help="The table that the release was made from, for its schema.")
    @_QUASI
    @_SENSITIVE
    @common
    def attack(
        output: Output, *, release: str, original: str | None, quasi: str | None, sensitive: str | None, **others: Any
    ) -> None:
        from cloister import attacks

        function = getattr(attacks, name.replace("-", "_"))

        def run(tables: dict[str, Any]) -> Any:
            return function(tables["release"], **_roles(tables, quasi, sensitive))

        _attack(output, run, {"release": release, "original": original}, **others)

    attack.help = doc


_inside_classes("homogeneity", "Read sensitive values off classes of RELEASE whose people share one.")
_inside_classes("probabilistic-inference", "Guess sensitive values by how often they occur in a class of RELEASE.")
_inside_classes("skewness", "Find classes of RELEASE in which a sensitive value is much more common than elsewhere.")


@command(
    "anatomy-em", example="cloister attack anatomy-em out.quasi.csv out.sensitive.csv --truth truth.csv", group=group
)
@click.argument("quasi", metavar="QUASI")
@click.argument("sensitive", metavar="SENSITIVE")
@click.option(
    "--truth", metavar="DATA", required=True, help="The true values, in the order of QUASI; for scoring only."
)
@click.option(
    "--method",
    type=click.Choice(["exact", "restricted", "free"]),
    default="exact",
    show_default=True,
    help="How the groups are used while learning.",
)
@common
def anatomy_em(output: Output, *, quasi: str, sensitive: str, truth: str, method: str, **others: Any) -> None:
    """Learn from the two tables of an anatomy release who has which sensitive value.

    Released rows are in random order, and only whoever made the release knows whose they are: in Python,
    cl.attacks.anatomy_em(release) needs no truth.
    """
    from cloister.attacks import anatomy_em as learn

    def run(tables: dict[str, Any]) -> Any:
        return learn((tables["quasi"], tables["sensitive"]), truth=tables["truth"], method=method)

    _attack(output, run, {"quasi": quasi, "sensitive": sensitive, "truth": truth}, **others)


def _synthetic(name: str, function_name: str, doc: str, *, needs_secret: bool = False) -> None:
    example = f"cloister attack {name} fake.csv --original train.csv --control held-back.csv"

    @click.argument("release", metavar="RELEASE")
    @_ORIGINAL
    @_CONTROL
    @common
    def attack(
        output: Output, *, release: str, original: str, control: str | None, secret: str | None = None, **others: Any
    ) -> None:
        from cloister import attacks

        function = getattr(attacks, function_name)
        further = {"secret": secret} if needs_secret else {}

        def run(tables: dict[str, Any]) -> Any:
            return function(tables["original"], tables["release"], control=tables.get("control"), **further)

        _attack(output, run, {"release": release, "original": original, "control": control}, **others)

    if needs_secret:
        attack = click.option("--secret", metavar="COLUMN", required=True, help="What the attacker wants to know.")(
            attack
        )
        example += " --secret illness"
    command(name, example=example, group=group)(attack).help = doc


_synthetic(
    "singling-out", "synthetic_singling_out", "Single out people of the original by rows of the synthetic RELEASE."
)
_synthetic(
    "linkability", "synthetic_linkability", "Join two halves of what is known about people by the synthetic RELEASE."
)
_synthetic(
    "inference", "synthetic_inference", "Guess a secret column of people by the nearest rows of the synthetic RELEASE.",
    needs_secret=True,
)  # fmt: skip
_synthetic(
    "closest-rows",
    "distance_to_closest_record",
    "Measure how near the rows of the synthetic RELEASE come to real ones.",
)
