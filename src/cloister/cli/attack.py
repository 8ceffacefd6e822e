"""``cloister attack``: one attack at a time, on files, with its baseline and its confidence interval.

The files, the options and the way an outcome is shown are shared with ``cloister gate``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.certificates import read_certificate
from cloister.cli.commands import CommandOutput, HelpfulGroup, command
from cloister.cli.options import check_target, data_options, output_options
from cloister.core.provenance import ANONYMIZED, SYNTHETIC, TWO_TABLES
from cloister.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    from cloister.attacks import AttackResult
    from cloister.crypto.certificates import Certificate
    from cloister.data.table import Table

__all__ = ["attack_options", "check_report", "open_tables", "show_attack", "split_names"]


def attack_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every attack on files has."""
    return data_options(schema=False)(output_options(report="Write a report")(function))


def open_tables(
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


def split_names(text: str | None) -> list[str] | None:
    """Return the names in a list with commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def show_attack(
    output: CommandOutput, result: AttackResult, *, report: str | None, certificate: Certificate | None = None
) -> None:
    """Print what an attack found, and write its report; of a certified file, whose word its kind is."""
    if report is not None:
        result.report(report)
    output.document({**result.to_dict(), "report": report})
    certified = [] if certificate is None else [["certificate", certificate.explain()]]
    output.table(["", ""], certified + [list(row) for row in result.summary()])
    if report is not None:
        output.say(f"\nThe report is in {report}.")


def check_report(report: str | None, files: dict[str, str | None], *, force: bool) -> None:
    """Refuse a report that cannot be written, before any work."""
    check_target(report, inputs=list(files.values()), force=force)


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


def _attack(
    output: CommandOutput,
    run: Callable[[dict[str, Any]], Any],
    files: dict[str, str | None],
    kind: str,
    *,
    schema: str | None,
    report: str | None,
    force: bool,
    **how: Any,
) -> None:
    check_report(report, {**files, "schema": schema}, force=force)
    certificate = read_certificate(files.get("release") or files.get("quasi"))
    if certificate is not None and certificate.kind != kind:
        raise ParameterError(
            f"By its certificate this is a release of another kind: {certificate.kind}.",
            fix='use an attack on that kind, as "cloister attack --help" lists them, or cloister gate.',
        )
    tables = open_tables(files, schema=schema, is_synthetic=kind == SYNTHETIC, **how)
    with output.progress("Attacking"):
        result = run(tables)
    show_attack(output, result, report=report, certificate=certificate)


def _find_known(quasi: str | None, schema: str | None) -> list[str]:
    """Return the columns that attackers know, from the option or the schema file."""
    from cloister.data.columns import Role
    from cloister.data.schema import Schema

    if quasi is not None:
        return split_names(quasi) or []
    known = [] if schema is None else list(Schema.read(schema).with_roles(Role.QUASI))
    if not known:
        raise SchemaError(
            "Nothing says which columns an attacker may know.", fix="name them: --quasi age,zip; or give --schema."
        )
    return known


def _find_wanted(sensitive: str | None, schema: str | None) -> str:
    """Return the column that attackers want to know, from the option or the schema file."""
    from cloister.data.columns import Role
    from cloister.data.schema import Schema

    if sensitive is not None:
        return sensitive
    known = () if schema is None else Schema.read(schema).with_roles(Role.SENSITIVE)
    if len(known) != 1:
        raise SchemaError(
            "Several columns are sensitive." if known else "Nothing says which column the attacker wants to learn.",
            fix=f"name {'one of them' if known else 'it'}: --sensitive {' or --sensitive '.join(known) or 'illness'}.",
        )
    return known[0]


@command("linkage", example="cloister attack linkage protected.csv --original visits.csv --schema s.yaml", group=group)
@click.argument("release", metavar="RELEASE")
@_ORIGINAL
@click.option(
    "--kind", type=click.Choice(["exact", "distance", "probabilistic"]), default="exact", show_default=True,
    help="How people are compared with released rows.",
)  # fmt: skip
@_QUASI
@attack_options
def linkage(output: CommandOutput, *, release: str, original: str, kind: str, quasi: str | None, **others: Any) -> None:
    """Match the people of the original with the rows of RELEASE."""
    from cloister.attacks import linkage as link

    def run(tables: dict[str, Any]) -> Any:
        return link(tables["release"], tables["original"], kind=kind, quasi_identifiers=known)

    known = _find_known(quasi, others["schema"])
    _attack(output, run, {"release": release, "original": original}, ANONYMIZED, **others)


def _inside_classes(name: str, doc: str) -> None:
    @command(name, example=f"cloister attack {name} protected.csv --quasi age,zip --sensitive illness", group=group)
    @click.argument("release", metavar="RELEASE")
    @click.option(
        "--original", metavar="DATA", help="The table that the release was made from: how common values are in it."
    )
    @_QUASI
    @_SENSITIVE
    @attack_options
    def attack(
        output: CommandOutput,
        *,
        release: str,
        original: str | None,
        quasi: str | None,
        sensitive: str | None,
        **others: Any,
    ) -> None:
        from cloister import attacks

        function = getattr(attacks, name.replace("-", "_"))

        def run(tables: dict[str, Any]) -> Any:
            return function(
                tables["release"], original=tables.get("original"), quasi_identifiers=known, sensitive=wanted
            )

        known, wanted = _find_known(quasi, others["schema"]), _find_wanted(sensitive, others["schema"])
        _attack(output, run, {"release": release, "original": original}, ANONYMIZED, **others)

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
@attack_options
def anatomy_em(output: CommandOutput, *, quasi: str, sensitive: str, truth: str, method: str, **others: Any) -> None:
    """Learn from the two tables of an anatomy release who has which sensitive value.

    Released rows are in random order, and only whoever made the release knows whose they are: in Python,
    cl.attacks.anatomy_em(release) needs no truth.
    """
    from cloister.attacks import anatomy_em as learn

    def run(tables: dict[str, Any]) -> Any:
        return learn((tables["quasi"], tables["sensitive"]), truth=tables["truth"], method=method)

    _attack(output, run, {"quasi": quasi, "sensitive": sensitive, "truth": truth}, TWO_TABLES, **others)


def _synthetic(name: str, function_name: str, doc: str, *, needs_secret: bool = False) -> None:
    example = f"cloister attack {name} fake.csv --original train.csv --control held-back.csv"

    @click.argument("release", metavar="RELEASE")
    @_ORIGINAL
    @_CONTROL
    @attack_options
    def attack(
        output: CommandOutput,
        *,
        release: str,
        original: str,
        control: str | None,
        secret: str | None = None,
        **others: Any,
    ) -> None:
        from cloister import attacks

        function = getattr(attacks, function_name)
        further = {"secret": secret} if needs_secret else {}

        def run(tables: dict[str, Any]) -> Any:
            return function(tables["original"], tables["release"], control=tables.get("control"), **further)

        _attack(output, run, {"release": release, "original": original, "control": control}, SYNTHETIC, **others)

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
