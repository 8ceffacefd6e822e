"""``cloister audit``: try to refute the promises of everything that is registered."""

from __future__ import annotations

import click

from cloister.cli.commands import CommandOutput, command

_EXAMPLE = "cloister audit --seconds 300"
_FAMILIES = ("mechanism", "estimator", "synthesizer")


@command("audit", example=_EXAMPLE)
@click.argument("names", metavar="NAMES", nargs=-1)
@click.option("--epsilon", metavar="E", default="1", show_default=True, help="At which epsilon each is made.")
@click.option(
    "--seconds",
    metavar="N",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    help="About how long all audits together may take.",
)
@click.option(
    "--family", type=click.Choice(_FAMILIES), multiple=True, help="Which kinds; repeat for more. [default: all]"
)
def audit(
    output: CommandOutput, *, names: tuple[str, ...], epsilon: str, seconds: float, family: tuple[str, ...]
) -> int:
    """Run mechanisms, estimators and synthesizers again and again on neighbors, and compare with what they promise.

    NAMES are registered ones, such as laplace; without any, all are audited. More seconds find more. An audit that
    refutes nothing proves nothing; one that refutes a promise is a bug, and ends with code 1.
    """
    from cloister.attacks import audit_everything

    with output.progress("Auditing") as told:
        found = audit_everything(
            epsilon=epsilon, seconds=seconds, families=family or _FAMILIES, names=names or None, progress=told
        )
    output.document(found.to_dict())
    output.table(["", ""], [list(row) for row in found.summary()])
    output.say(f"\n{found.verdict}")
    return 1 if found.refuted else 0
