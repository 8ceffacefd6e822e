"""``cloister hub`` and ``cloister demo``: the server where institutions share protected data.

An operator does some things at the machine itself: let somebody in, copy, bring back, check, upgrade. ``cloister demo``
is a hub on this machine with made-up people, to look around in.
"""

from __future__ import annotations

import gc
import importlib.util
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.commands import CommandOutput, HelpfulGroup, command
from cloister.errors import MissingExtraError

if TYPE_CHECKING:
    from cloister.hub.demo import Demo
    from cloister.hub.hub import Hub


hub = HelpfulGroup(name="hub", help="Run the server where institutions share protected data.")

_PACKAGES = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "jinja2", "argon2", "structlog", "prometheus_client")


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


@command("serve", example="cloister hub serve --folder /var/lib/cloister --port 8080", group=hub)
@_place
@click.option("--host", metavar="ADDRESS", help="Where to listen; by default on this machine only.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="NUMBER", help="Where to listen; by default 8080.")
@click.option("--workers", type=int, metavar="NUMBER", help="How many processes run jobs; by default 2.")
def serve(
    output: CommandOutput,
    *,
    path: Path | None,
    folder: Path | None,
    database: str | None,
    host: str | None,
    port: int | None,
    workers: int | None,
) -> None:
    """Serve a hub until Ctrl+C. Settings come from options, then CLOISTER_HUB_* variables, then the file."""
    check_installed()
    gc.disable()  # the server switches it on again once it answers: loading makes no garbage, and looking takes time
    from cloister.hub.server import serve as run
    from cloister.hub.settings import read_settings

    settings = read_settings(path, folder=folder, database=database, host=host, port=port, workers=workers)

    def ready(_hub: object) -> None:
        output.say(f"The hub answers at {settings.address}. Ctrl+C ends it.")
        output.document({"schema": "cloister.hub/1", "address": settings.address})

    try:
        run(settings, ready=ready)
    finally:
        gc.enable()


def check_installed() -> None:
    """Raise `MissingExtraError` if the packages of the hub are not there."""
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(what="Hubs", package=package, extra="hub")


group = hub


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
    output: CommandOutput,
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
    from cloister.hub.use_cases.accounts.enrolment import invite as make

    made = make(settings, name, roles=roles, organisation=organisation)
    output.document(made.to_dict())
    output.say(f"{made.account} sets a password here, once, until {made.expires:%Y-%m-%d %H:%M} UTC:")
    output.say(made.address)


@command("backup", example="cloister hub backup --folder /var/lib/cloister -o hub-2026-11-16.tar", group=hub)
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), required=True, help="The archive to write.")
@_place
def backup(
    output: CommandOutput, *, target: Path, path: Path | None, folder: Path | None, database: str | None
) -> None:
    """Copy a hub's database and sealed files into one archive, while it runs. The master key is never part of it."""
    settings = _settings(path, folder, database)
    from cloister.hub.backups import backup as make

    made = make(settings, target)
    output.document(made.to_dict() | {"key": str(settings.key_path)})
    output.say(
        f"{made.path} holds the database, with {made.audit_entries} audit entries, and {made.files} sealed files."
    )
    output.say(f"It does not hold the key {settings.key_path}: keep a copy of that elsewhere, or all data are lost.")


@command("restore", example="cloister hub restore hub-2026-11-16.tar --folder /var/lib/cloister", group=hub)
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_place
def restore(
    output: CommandOutput, *, archive: Path, path: Path | None, folder: Path | None, database: str | None
) -> None:
    """Bring a hub back from an archive, into a folder that has none, and check that all of it is whole."""
    settings = _settings(path, folder, database)
    from cloister.hub.backups import restore as bring_back

    made = bring_back(settings, archive)
    output.document(made.to_dict() | {"key": str(settings.key_path)})
    output.say(f"Restored: {made.audit_entries} audit entries and {made.files} sealed files; both chains are whole.")
    output.say(f"Put the key of that hub to {settings.key_path} before you serve it.")


@command("check", example="cloister hub check --folder /var/lib/cloister", group=hub)
@_place
def check(output: CommandOutput, *, path: Path | None, folder: Path | None, database: str | None) -> int:
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
def upgrade(output: CommandOutput, *, path: Path | None, folder: Path | None, database: str | None) -> None:
    """Bring the tables of a hub to this version; `cloister hub serve` does it too. Make a backup before."""
    settings = _settings(path, folder, database)
    from cloister.hub.store.database import Store
    from cloister.hub.store.table_upgrade import revisions, upgrade as bring

    store = Store(settings.database_url)
    try:
        is_changed = bring(store)
    finally:
        store.close()
    output.document({"schema": "cloister.upgrade/1", "revision": revisions()[-1], "is_changed": is_changed})
    output.say(f"The tables {'are now' if is_changed else 'were already'} those of this version.")


@command("demo", example="cloister demo --port 8080")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, metavar="NUMBER", help="Where to listen."
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the demo's files here; by default they are deleted at the end.",
)
def demo(output: CommandOutput, *, port: int, no_browser: bool, folder: Path | None) -> None:
    """Start a hub on this machine with a made-up hospital, a survey, and one account for each role."""
    check_installed()
    with ExitStack() as stack, output.progress("Starting a hub"):
        from cloister.hub import demo as filling
        from cloister.hub.hub import open_hub
        from cloister.hub.server import bind_socket, serve
        from cloister.hub.settings import read_settings

        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cloister-demo-")))
        settings = read_settings(
            environment={}, folder=place, port=port, demo=True, owner_second_factor=False, log_level="warning"
        )
        bind_socket(settings).close()
        opened = open_hub(settings)
        try:
            made = filling.fill(opened) if filling.is_empty(opened) else None
        finally:
            opened.close()

        def ready(_hub: Hub) -> None:
            _say(output, settings.address, made)
            if not no_browser:
                threading.Thread(target=webbrowser.open, args=(settings.address,), daemon=True).start()

        serve(settings, ready=ready)


def _say(output: CommandOutput, address: str, made: Demo | None) -> None:
    logins = () if made is None else made.logins
    output.document(
        {
            "schema": "cloister.demo/1",
            "address": address,
            "api": f"{address}/api/v1",
            "survey": None if made is None else f"{address}/s/{made.survey_slug}",
            "logins": [{"name": login.name, "role": str(login.role), "password": login.password} for login in logins],
        }
    )
    output.heading(f"The hub answers at {address}")
    output.say("Everybody in it is made up, and it can be reached from this machine only. Ctrl+C ends it.")
    if made is None:
        output.say("The folder held a demo already: sign in as before.")
        return
    output.say("")
    output.say(f"Sign in with the password  {logins[0].password}  as")
    for login in logins:
        output.say(f"  {login.name:8} {login.role.words:20} {login.does}")
    output.say("")
    output.say(f"Answer the survey, as anybody with a phone would:  {address}/s/{made.survey_slug}")
