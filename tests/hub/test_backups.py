"""Backups, checks and upgrades of a hub, from the command line of its machine."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloister.cli.app import run
from cloister.errors import ConflictError, CryptoError, DataError
from cloister.hub.backups import backup, restore
from cloister.hub.hub import open_hub
from cloister.hub.settings import Settings
from cloister.hub.store.table_upgrade import current_revision, revisions, upgrade
from tests.support.hub_world import COUNT, OWNER, World, populated

pytestmark = [pytest.mark.slow, pytest.mark.traced]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with populated(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture(scope="module")
def archive(shared: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("backups") / "hub.tar"
    made = backup(shared.hub.settings, path)
    assert (made.files, path.stat().st_mode & 0o777) == (2, 0o600)
    return path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    assert run(["hub", *arguments, "--json"]) == code
    told = capsys.readouterr()
    found: dict[str, Any] = json.loads(told.out or told.err)
    return found


def with_key(shared: World, folder: Path) -> Settings:
    """Restore the key beside a restored hub, from where it was kept."""
    settings = Settings(folder=folder, workers=0)
    settings.key_path.parent.mkdir(mode=0o700, parents=True)
    shutil.copy2(shared.hub.settings.key_path, settings.key_path)
    return settings


def test_a_hub_comes_back_with_everything(
    shared: World, archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = answer(capsys, "restore", str(archive), "--folder", str(tmp_path / "new"))
    assert told["files"] == 2
    settings = with_key(shared, tmp_path / "new")
    checked = answer(capsys, "check", "--folder", str(settings.folder))
    assert checked["is_fine"]
    hub = open_hub(settings)
    again = World(hub, _app(hub), tmp_path, shared.people, shared.cookies, shared.secrets, shared.things)
    asked = f"/api/v1/datasets/{shared.things['dataset_id']}"
    assert again.client(OWNER).get(f"{asked}/ledger").json() == shared.client(OWNER).get(f"{asked}/ledger").json()
    assert again.client(OWNER).post(f"{asked}/services/query.sql/preview", json=COUNT).status_code == 200
    again.close()


def _app(hub: Any) -> Any:
    from cloister.hub.app import create_app

    return create_app(hub)


def test_the_key_is_not_in_the_archive(shared: World, archive: Path) -> None:
    content, secret = archive.read_bytes(), shared.hub.settings.key_path.read_text()
    assert secret.split()[-1].encode() not in content
    with tarfile.open(archive) as opened:
        assert not [name for name in opened.getnames() if "key" in name]


def test_a_hub_without_its_key_is_not_given_another_one(archive: Path, tmp_path: Path) -> None:
    settings = Settings(folder=tmp_path, workers=0)
    restore(settings, archive)
    with pytest.raises(CryptoError, match="check the path"):
        open_hub(settings)
    assert not settings.key_path.exists()


def test_nothing_is_overwritten(shared: World, archive: Path, tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match="choose another name"):
        backup(shared.hub.settings, archive)
    with pytest.raises(ConflictError, match="an empty folder"):
        restore(shared.hub.settings, archive)
    with pytest.raises(ConflictError, match="pg_dump"):
        backup(Settings(folder=tmp_path, database="postgresql://hub@db/hub"), tmp_path / "b.tar")


def test_a_backup_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "backup", "--folder", str(tmp_path / "x"), "-o", str(tmp_path / "b.tar"), code=1)
    assert "check --folder" in str(told)
    assert not (tmp_path / "b.tar").exists()
    assert "check --folder" in str(answer(capsys, "check", "--folder", str(tmp_path / "x"), code=1))


def _changed(archive: Path, place: Path, changes: dict[str, bytes | None]) -> Path:
    """Return a copy of an archive in which some files are others; None leaves one out."""
    path = place / "changed.tar"
    with tarfile.open(archive) as old, tarfile.open(path, "w") as new:
        for known in old:
            reader = old.extractfile(known)
            assert reader is not None
            content = changes.get(known.name.partition("/")[0], reader.read())
            if content is not None:
                entry = tarfile.TarInfo(known.name)
                entry.size = len(content)
                new.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize(
    "changes",
    [{"blobs": b"other"}, {"blobs": None}, {"hub.db": b"none"}, {"manifest.json": b"{}"}, {"manifest.json": None}],
)
def test_an_archive_that_was_changed_is_refused(archive: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="another copy"):
        restore(Settings(folder=tmp_path / "new"), _changed(archive, tmp_path, changes))
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("name", ["../evil", "/evil", "blobs/../../evil", "blobs/a/b", "keys/master.key"])
def test_an_archive_writes_nowhere_else(archive: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "evil.tar"
    shutil.copy2(archive, path)
    with tarfile.open(path, "a") as opened:
        entry = tarfile.TarInfo(name)
        entry.size = 4
        opened.addfile(entry, io.BytesIO(b"evil"))
    with pytest.raises(DataError, match="another copy"):
        restore(Settings(folder=tmp_path / "deep" / "new"), path)
    assert [file.name for file in tmp_path.rglob("*evil*")] == ["evil.tar"]


def test_checks_find_what_is_wrong(
    shared: World, archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restore(Settings(folder=tmp_path / "new"), archive)
    settings = with_key(shared, tmp_path / "new")
    settings.key_path.chmod(0o644)
    blob = next((settings.folder / "blobs").iterdir())
    blob.write_bytes(blob.read_bytes()[:-1] + b"?")
    with closing(sqlite3.connect(settings.folder / "hub.db")) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{name}"')
        database.execute("UPDATE audit_entries SET actor = 'somebody' WHERE number = 2")
        database.commit()
    told = answer(capsys, "check", "--folder", str(settings.folder), code=1)
    wrong = [item["what"] for item in told["findings"] if not item["is_fine"] and item["is_needed"]]
    assert [what.split(" ")[1] for what in wrong] == ["key", "chain", "chain", "sealed"]


def test_upgrading_twice_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (answer(capsys, "upgrade", "--folder", str(tmp_path)) for _ in range(2))
    assert (first["is_changed"], second["is_changed"]) == (True, False)
    assert first["revision"] == revisions()[-1]


def test_a_database_of_a_newer_hub_is_left_alone(tmp_path: Path) -> None:
    hub = open_hub(Settings(folder=tmp_path, workers=0))
    with hub.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        assert current_revision(connection) == "9999"
    with pytest.raises(ConflictError, match="install that version"):
        upgrade(hub.store)
    hub.close()


def test_the_names_of_migrations_are_their_revisions() -> None:
    from alembic.script import ScriptDirectory

    from cloister.hub.store.table_upgrade import configuration

    scripts = ScriptDirectory.from_config(configuration())
    assert sorted(script.revision for script in scripts.walk_revisions()) == revisions()
    assert scripts.get_current_head() == revisions()[-1]
