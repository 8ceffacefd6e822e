"""A real PostgreSQL server of our own, on a Unix socket, gone when the tests end."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tests.support.tools import postgres_binary


@contextmanager
def running_server() -> Iterator[str]:
    """Start a fresh server and yield the URL of its database."""
    folder = Path(tempfile.mkdtemp(prefix="cloister-pg-", dir="/tmp"))
    owner = _unprivileged()
    if owner is not None:
        shutil.chown(folder, owner)
    try:
        _run(
            owner,
            "initdb",
            "-D",
            str(folder / "data"),
            "-U",
            "cloister",
            "--auth=trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        )
        options = f"-k {folder} -c listen_addresses='' -c max_connections=100 -c fsync=off -c full_page_writes=off"
        _run(owner, "pg_ctl", "-D", str(folder / "data"), "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://cloister@/postgres?host={quote(str(folder), safe='')}"
        finally:
            _run(owner, "pg_ctl", "-D", str(folder / "data"), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def empty_database(server: str) -> str:
    """Return the URL of a database on a server that has nothing in it; who used it before has to be done."""
    import psycopg

    url = server.replace("/postgres?", "/hub?")
    with psycopg.connect(server, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'hub'").fetchall():
            connection.execute("CREATE DATABASE hub")
            return url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS cloister_ledger CASCADE")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return url


def copy_database(server: str, name: str, copy: str) -> None:
    """Replace a database on a server by a copy of another one; nobody may be connected to the other one."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {copy} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {copy} TEMPLATE {name}")


def _unprivileged() -> str | None:
    """Return a user for the server when we are root, which PostgreSQL refuses to run as."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _run(owner: str | None, program: str, *arguments: str) -> None:
    path = postgres_binary(program)
    assert path is not None
    subprocess.run([path, *arguments], check=True, user=owner, cwd="/tmp", stdout=subprocess.DEVNULL)
