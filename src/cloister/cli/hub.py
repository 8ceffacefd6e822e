"""``cloister hub``: the server where institutions share protected data."""

from __future__ import annotations

import gc
import importlib.util
from pathlib import Path

import click

from cloister.cli.commands import HelpfulGroup, command
from cloister.cli.output import Output
from cloister.errors import MissingExtraError

hub = HelpfulGroup(name="hub", help="Run the server where institutions share protected data.")

_PACKAGES = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "jinja2", "argon2", "structlog", "prometheus_client")


@command("serve", example="cloister hub serve --folder /var/lib/cloister --port 8080", group=hub)
@click.option("--settings", "path", type=click.Path(path_type=Path), help="A TOML file with settings.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where data, database and key are kept.")
@click.option("--database", metavar="URL", help="postgresql://user@host/database; by default SQLite in the folder.")
@click.option("--host", metavar="ADDRESS", help="Where to listen; by default on this machine only.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="NUMBER", help="Where to listen; by default 8080.")
@click.option("--workers", type=int, metavar="NUMBER", help="How many processes run jobs; by default 2.")
def serve(
    output: Output,
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
    from cloister.hub.serving import serve as run
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
