"""``cloister hub``: what an operator does at the machine itself: let somebody in, copy, bring back, check, upgrade."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cloister.cli.commands import command
from cloister.cli.hub import check_installed, hub
from cloister.cli.output import Output

group = hub


def _place(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which hub is meant."""
    for option in (
        click.option(
            "--database", metavar="URL", help="postgresql://user@host/database; by default SQLite in the folder."
        ),
        click.option("--folder", type=click.Path(path_type=Path), help="Where data, database and key are kept."),
        click.option("--settings", "path", type=click.Path(path_type=Path), help="A TOML file with settings."),
    ):
        function = option(function)
    return function


def _settings(path: Path | None, folder: Path | None, database: str | None) -> Any:  # settings of a hub, loaded late
    check_installed()
    from cloister.hub.settings import read_settings

    return read_settings(path, folder=folder, database=database)


@command("invite", example="cloister hub invite otis --role operator --folder /var/lib/cloister", group=hub)
@click.argument("name")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role of a new account; may be repeated.")
@click.option("--organisation", metavar="NAME", help="The institution of a new account; made if it is new.")
@_place
def invite(
    output: Output,
    *,
    name: str,
    roles: tuple[str, ...],
    organisation: str | None,
    path: Path | None,
    folder: Path | None,
    database: str | None,
) -> None:
    """Make an account, if there is none of that name, and print the link by which its holder sets the password.

    This is how a hub gets its first operator. Whoever can run it can read the hub's files anyway; the audit log keeps
    that it was done at the machine itself.
    """
    settings = _settings(path, folder, database)
    from cloister.hub.inviting import invite as make

    made = make(settings, name, roles=roles, organisation=organisation)
    output.document(made.to_dict())
    output.say(f"{made.account} sets a password here, once, until {made.expires:%Y-%m-%d %H:%M} UTC:")
    output.say(made.address)


@command("backup", example="cloister hub backup --folder /var/lib/cloister -o hub-2026-11-16.tar", group=hub)
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), required=True, help="The archive to write.")
@_place
def backup(output: Output, *, target: Path, path: Path | None, folder: Path | None, database: str | None) -> None:
    """Copy a hub's database and sealed files into one archive, while it runs. The master key is never part of it."""
    settings = _settings(path, folder, database)
    from cloister.hub.copies import backup as make

    made = make(settings, target)
    output.document(made.to_dict() | {"key": str(settings.key_path)})
    output.say(
        f"{made.path} holds the database, with {made.audit_entries} audit entries, and {made.files} sealed files."
    )
    output.say(f"It does not hold the key {settings.key_path}: keep a copy of that elsewhere, or all data are lost.")


@command("restore", example="cloister hub restore hub-2026-11-16.tar --folder /var/lib/cloister", group=hub)
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_place
def restore(output: Output, *, archive: Path, path: Path | None, folder: Path | None, database: str | None) -> None:
    """Bring a hub back from an archive, into a folder that has none, and check that all of it is whole."""
    settings = _settings(path, folder, database)
    from cloister.hub.copies import restore as bring_back

    made = bring_back(settings, archive)
    output.document(made.to_dict() | {"key": str(settings.key_path)})
    output.say(f"Restored: {made.audit_entries} audit entries and {made.files} sealed files; both chains are whole.")
    output.say(f"Put the key of that hub to {settings.key_path} before you serve it.")


@command("check", example="cloister hub check --folder /var/lib/cloister", group=hub)
@_place
def check(output: Output, *, path: Path | None, folder: Path | None, database: str | None) -> int:
    """Look whether a hub is in order: key, tables, ledger, audit log, sealed files, and the sandbox of its machine."""
    settings = _settings(path, folder, database)
    from cloister.hub.checkup import check_hub

    found = check_hub(settings)
    is_fine = all(finding.is_fine or not finding.is_needed for finding in found)
    output.document(
        {"schema": "cloister.checkup/1", "is_fine": is_fine, "findings": [finding.to_dict() for finding in found]}
    )
    for finding in found:
        output.say(f"{'ok ' if finding.is_fine else 'NO '} {finding.what}")
        if not finding.is_fine:
            output.say(f"    {finding.problem} Fix: {finding.fix}")
    return 0 if is_fine else 1


@command("upgrade", example="cloister hub upgrade --folder /var/lib/cloister", group=hub)
@_place
def upgrade(output: Output, *, path: Path | None, folder: Path | None, database: str | None) -> None:
    """Bring the tables of a hub to this version; `cloister hub serve` does it too. Make a backup before."""
    settings = _settings(path, folder, database)
    from cloister.hub.store.database import Store
    from cloister.hub.store.migrating import revisions, upgrade as bring

    store = Store(settings.database_url)
    try:
        is_changed = bring(store)
    finally:
        store.close()
    output.document({"schema": "cloister.upgrade/1", "revision": revisions()[-1], "is_changed": is_changed})
    output.say(f"The tables {'are now' if is_changed else 'were already'} those of this version.")
