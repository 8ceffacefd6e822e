"""``cloister gate``: try to break a release, and say whether to publish it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.attack import attack_options, check_report, open_tables, quasi_option
from cloister.cli.certificates import read_certificate
from cloister.cli.commands import CommandOutput, command
from cloister.cli.options import NumberText, split_names
from cloister.core.provenance import ANONYMIZED, SYNTHETIC, TWO_TABLES
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.core.guarantees import Guarantee
    from cloister.crypto.certificates import Certificate

_EXAMPLE = "cloister gate protected.csv --original visits.csv --schema visits.schema.yaml --report gate.html"
_KINDS = {"anonymized": ANONYMIZED, "anatomy": TWO_TABLES, "synthetic": SYNTHETIC}


@command("gate", example=_EXAMPLE)
@click.argument("release", metavar="RELEASE")
@click.option("--original", metavar="DATA", required=True, help="The table that the release was made from.")
@click.option("--control", metavar="DATA", help="For a synthetic table: rows that had no part in it.")
@click.option("--sensitive-table", metavar="DATA", help="For anatomy: the second table, with the sensitive values.")
@click.option(
    "--kind",
    type=click.Choice(list(_KINDS)),
    help="How the release was made; by default as its certificate says.",
)
@quasi_option
@click.option(
    "--sensitive", metavar="COLUMNS", help="What attackers want to know, with commas; by default by the schema."
)
@click.option(
    "--epsilon",
    metavar="NUMBER",
    type=NumberText(),
    help="What a synthetic table promises, if it is differentially private.",
)
@click.option("--delta", metavar="NUMBER", type=NumberText(), help="The delta of that promise.")
@click.option("--limit", metavar="NAME=VALUE", multiple=True, help="A limit of the policy, such as max_match=0.1.")
@attack_options
def gate(
    output: CommandOutput,
    *,
    release: str,
    original: str,
    control: str | None,
    sensitive_table: str | None,
    kind: str | None,
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

    What cloister synth and cloister anonymize write has a certificate beside it, which says how it was made and what is
    promised. Of other files, say it with --kind and --epsilon.
    """
    from cloister.attacks import GatePolicy, gate as try_to_break
    from cloister.data.engines.openers import check_readable
    from cloister.data.sources import files_of

    certificate = read_certificate(release)
    if certificate is None:
        for path in files_of(release):
            check_readable(path)
    kind = _kind(kind, certificate, output)
    if kind == "anatomy" and certificate is not None and sensitive_table is None:
        sensitive_table = _second(release, certificate)
    files = {"release": release, "original": original, "control": control, "second": sensitive_table}
    check_report(report, {**files, "schema": schema}, force=force)
    if (kind == "anatomy") != (sensitive_table is not None):
        raise ParameterError(
            "A release in two tables needs both of them.", fix="give --kind anatomy together with --sensitive-table."
        )
    _check_promise(kind, epsilon=epsilon, delta=delta, control=control, is_certified=certificate is not None)
    if kind == "anonymized" and schema is None and quasi is None:
        raise ParameterError("Nothing says which columns attackers may know.", fix="give --schema, or --quasi age,zip.")
    policy = GatePolicy.from_dict(_limits(limit))
    promise = None if epsilon is None else _make_guarantee(epsilon, delta or "0")
    tables = open_tables(files, schema=schema, is_synthetic=kind == "synthetic", **how)
    published: Any = tables["release"]
    if sensitive_table is not None:
        published = (published, tables["second"])
    with output.progress("Attacking") as told:
        found = try_to_break(
            published,
            original=tables["original"],
            control=tables.get("control"),
            kind=None if kind == "anatomy" else _KINDS[kind],
            quasi_identifiers=None if quasi is None else split_names(quasi),
            sensitive=None if sensitive is None else split_names(sensitive),
            guarantee=promise,
            certificate=certificate,
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


def _kind(given: str | None, certificate: Certificate | None, output: CommandOutput) -> str:
    """Return how the release was made, as the option or the certificate says; a person at a terminal is asked."""
    if certificate is not None:
        certified = next(name for name, kind in _KINDS.items() if kind == certificate.kind)
        if given not in (None, certified):
            raise ParameterError(
                f"The certificate of the file says that it was made otherwise: {certified}.",
                fix=f"drop --kind {given}; or delete the certificate if it is wrong.",
            )
        return certified
    if given is not None:
        return given
    if output.is_interactive:
        asked: str = click.prompt("How was the release made?", type=click.Choice(list(_KINDS)))
        return asked
    raise ParameterError(
        "Nothing says how the release was made: there is no certificate beside it.",
        fix="add --kind anonymized, --kind synthetic or --kind anatomy; what cloister synth and cloister anonymize "
        "write has a certificate that says it.",
    )


def _second(release: str, certificate: Certificate) -> str:
    """Return the second table of a release in two, which lies beside the first and is as it was certified."""
    found = Path(release).with_name(certificate.files[-1][0])
    if not found.is_file():
        raise ParameterError(
            f'The second table, "{found.name}", is not beside the first.', fix="give it with --sensitive-table."
        )
    certificate.check(found)
    return str(found)


def _check_promise(
    kind: str, *, epsilon: str | None, delta: str | None, control: str | None, is_certified: bool
) -> None:
    """Refuse options that say something about synthetic tables only, or that the certificate says already."""
    if is_certified and epsilon is not None:
        raise ParameterError(
            "The certificate says what is promised.", fix="drop --epsilon; or delete the certificate if it is wrong."
        )
    given = {"--epsilon": epsilon, "--delta": delta, "--control": control}
    named = next((name for name, value in given.items() if value is not None), None)
    if kind != "synthetic" and named is not None:
        raise ParameterError(f"{named} is about synthetic tables.", fix="add --kind synthetic, or leave it out.")
    if delta is not None and epsilon is None:
        raise ParameterError("--delta is a part of a promise.", fix="add --epsilon.")


def _make_guarantee(epsilon: str, delta: str) -> Guarantee:
    from cloister.core import exact
    from cloister.core.guarantees import ApproxDP, PureDP

    return ApproxDP(epsilon=epsilon, delta=delta) if exact.number(delta) else PureDP(epsilon=epsilon)


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
