"""A hub that listens on loopback, for tests with real browsers: ``with serving(folder) as (hub, address): …``."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from cloister.hub.app import create_app
from cloister.hub.gateway.identity import COOKIE, CSRF_COOKIE
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.hub.store.models import User
from cloister.hub.use_cases.sessions import open_login


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[tuple[Hub, str]]:
    """Run a hub in a thread and yield it with its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    hub = open_hub(Settings(folder=folder, port=port, workers=0, **settings))
    server = uvicorn.Server(uvicorn.Config(create_app(hub), log_config=None, access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        end = time.monotonic() + 30
        while not server.started and time.monotonic() < end:
            time.sleep(0.01)
        assert server.started
        yield hub, f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
        hub.close()


def login_cookies(hub: Hub, user_id: str, address: str) -> list[dict[str, Any]]:
    """Return the cookies of a sign-in, as a browser profile takes them."""
    with hub.store.writing() as session:
        user = session.get(User, user_id)
        assert user is not None
        cookie, csrf = open_login(session, user, hours=1)
    return [
        {"name": COOKIE, "value": cookie, "url": address, "httpOnly": True},
        {"name": CSRF_COOKIE, "value": csrf, "url": address},
    ]
