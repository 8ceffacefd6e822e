"""``cloister demo``: a hub on this machine with made-up people, to look around in."""

from __future__ import annotations

import tempfile
import threading
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cloister.cli.commands import command
from cloister.cli.hub import check_installed
from cloister.cli.output import Output

if TYPE_CHECKING:
    from cloister.hub.demo import Demo
    from cloister.hub.hub import Hub


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
def demo(output: Output, *, port: int, no_browser: bool, folder: Path | None) -> None:
    """Start a hub on this machine with a made-up hospital, a survey, and one account for each role."""
    check_installed()
    with ExitStack() as stack, output.progress("Starting a hub"):
        from cloister.hub import demo as filling
        from cloister.hub.hub import open_hub
        from cloister.hub.serving import bound_socket, serve
        from cloister.hub.settings import read_settings

        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cloister-demo-")))
        settings = read_settings(
            environment={}, folder=place, port=port, demo=True, owner_second_factor=False, log_level="warning"
        )
        bound_socket(settings).close()
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


def _say(output: Output, address: str, made: Demo | None) -> None:
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
