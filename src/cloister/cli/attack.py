"""``cloister attack``: one attack at a time, on files, with its baseline and its confidence interval.

The files, the options and the way an outcome is shown are shared with ``cloister gate``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.certificates import read_certificate
from cloister.cli.commands import CommandOutput, HelpfulGroup, command
from cloister.cli.options import check_target, data_options, output_options, split_names
from cloister.core.provenance import SYNTHETIC, TWO_TABLES
from cloister.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    from cloister.attacks import AttackResult
    from cloister.attacks.release_attacks import ReleaseAttack
    from cloister.crypto.certificates import Certificate
    from cloister.data.table import Table

__all__ = ["attack_options", "check_report", "open_tables", "quasi_option", "show_attack"]


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


class _AttackGroup(HelpfulGroup):
    """The attacks that are offered by name; they are loaded when one is used or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of the attacks."""
        from cloister.attacks.release_attacks import release_attacks

        return sorted(release_attacks)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of an attack."""
        from cloister.attacks.release_attacks import release_attacks

        return _command_of(release_attacks.get(cmd_name)) if cmd_name in self.list_commands(ctx) else None


group = _AttackGroup(name="attack", help=_HELP)


def _command_of(attack: ReleaseAttack) -> click.Command:
    @attack_options
    def perform(output: CommandOutput, **options: Any) -> None:
        _perform(output, attack, **options)

    for parameter in reversed([*_parameters(attack)]):
        perform = parameter(perform)
    made = command(attack.name, example=f"cloister attack {attack.name} {attack.example}")(perform)
    made.help = attack.summary
    return made


def _parameters(attack: ReleaseAttack) -> Iterator[Callable[[Any], Any]]:
    """Return the arguments and options of an attack: its tables, its choices, then its columns."""
    from cloister.attacks.release_attacks import PARAMETERS, Given

    asked = {PARAMETERS[parameter]: attack.is_needed(parameter) for parameter in attack.takes}
    if attack.kind == TWO_TABLES:
        yield from (click.argument(name.lower(), metavar=name) for name in ("QUASI", "SENSITIVE"))
    else:
        yield click.argument("release", metavar="RELEASE")
    for given in (Given.ORIGINAL, Given.CONTROL, Given.TRUTH):
        if given in asked:
            told = _TABLES[given] if asked[given] or given is not Given.ORIGINAL else _FREQUENCIES
            yield click.option(f"--{given}", metavar="DATA", required=asked[given], help=told)
    for name, choice in attack.choices.items():
        allowed = click.Choice(choice.allowed)
        yield click.option(
            f"--{name}", type=allowed, default=attack.default_of(name), show_default=True, help=choice.help
        )
    for given in (Given.QUASI, Given.SENSITIVE, Given.SECRET):
        if given in asked:
            yield _column_option(given, required=asked[given])


_TABLES = {
    "original": "The table that the release was made from.",
    "control": "Rows of the same kind that had no part in the release.",
    "truth": "The true values, in the order of QUASI; for scoring only.",
}
_FREQUENCIES = "The table that the release was made from: how common values are in it."
_COLUMNS = {
    "quasi": ("COLUMNS", "What attackers may know, with commas; by default by the schema."),
    "sensitive": ("COLUMN", "What attackers want to know; by default by the schema."),
    "secret": ("COLUMN", "What the attacker wants to know."),
}


def _column_option(given: str, *, required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    what, told = _COLUMNS[given]
    return click.option(f"--{given}", metavar=what, required=required, help=told)


def quasi_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that names what attackers may know."""
    return _column_option("quasi", required=False)(function)


def _perform(
    output: CommandOutput,
    attack: ReleaseAttack,
    *,
    schema: str | None,
    report: str | None,
    force: bool,
    encoding: str | None,
    missing: Any,
    **options: Any,
) -> None:
    """Run an attack on files: what can be refused is refused before any of them is read."""
    chosen = {name: options.pop(name) for name in attack.choices}
    files, columns = _split_given(attack, options, schema)
    check_report(report, {**files, "schema": schema}, force=force)
    certificate = read_certificate(files.get("release") or files.get("quasi"))
    if certificate is not None and certificate.kind != attack.kind:
        raise ParameterError(
            f"By its certificate this is a release of another kind: {certificate.kind}.",
            fix='use an attack on that kind, as "cloister attack --help" lists them, or cloister gate.',
        )
    tables: dict[str, Any] = open_tables(
        files, schema=schema, encoding=encoding, missing=missing, is_synthetic=attack.kind == SYNTHETIC
    )
    if attack.kind == TWO_TABLES:
        tables["release"] = (tables.pop("quasi"), tables.pop("sensitive"))
    with output.progress("Attacking"):
        result = attack.run_on({**tables, **columns}, **chosen)
    show_attack(output, result, report=report, certificate=certificate)


def _split_given(
    attack: ReleaseAttack, options: dict[str, Any], schema: str | None
) -> tuple[dict[str, str | None], dict[str, Any]]:
    """Return which files are given, and which columns; those that nobody named are looked up in the schema."""
    from cloister.attacks.release_attacks import Given

    if attack.kind == TWO_TABLES:
        return options, {}
    columns: dict[str, Any] = {given: options.pop(given) for given in Given if given in options and not given.is_table}
    if Given.QUASI in columns:
        columns[Given.QUASI] = _find_known(columns[Given.QUASI], schema)
    if Given.SENSITIVE in columns:
        columns[Given.SENSITIVE] = _find_wanted(columns[Given.SENSITIVE], schema)
    return options, columns


def _find_known(quasi: str | None, schema: str | None) -> list[str]:
    """Return the columns that attackers know, from the option or the schema file."""
    from cloister.data.columns import Role
    from cloister.data.schema import Schema

    if quasi is not None:
        return split_names(quasi)
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
