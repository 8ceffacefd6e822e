"""A database belongs to one folder, and says so to every other one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cloister.errors import ConflictError
from cloister.hub.hub import open_hub
from cloister.hub.settings import Settings
from cloister.hub.store.folder_identity import IDENTITY_FILE, bind_folder, find_recorded_identity, write_identity


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        folder=tmp_path / "first", database=f"sqlite:///{tmp_path}/hub.db", key_file=tmp_path / "master.key"
    )


def opened(settings: Settings, folder: Path) -> None:
    open_hub(Settings(folder=folder, database=settings.database, key_file=settings.key_file)).close()


def test_a_start_with_the_same_folder_changes_nothing(settings: Settings) -> None:
    opened(settings, settings.folder)
    identity = (settings.folder / IDENTITY_FILE).read_text()
    opened(settings, settings.folder)
    assert (settings.folder / IDENTITY_FILE).read_text() == identity
    assert (settings.folder / IDENTITY_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [None, b"", b"another", b"\xff"])
def test_a_start_with_another_folder_is_refused_with_what_to_do(
    settings: Settings, tmp_path: Path, content: bytes | None
) -> None:
    opened(settings, settings.folder)
    (tmp_path / "second").mkdir()
    if content is not None:
        (tmp_path / "second" / IDENTITY_FILE).write_bytes(content)
    with pytest.raises(ConflictError, match="on every machine the same one") as refused:
        opened(settings, tmp_path / "second")
    assert "belongs to another folder" in refused.value.problem
    identity = (settings.folder / IDENTITY_FILE).read_text().strip()
    assert f'write "{identity}" into its file identity' in refused.value.fix
    (tmp_path / "second" / IDENTITY_FILE).write_text(identity)
    opened(settings, tmp_path / "second")


def test_a_folder_that_moved_with_its_files_is_the_same_one(settings: Settings, tmp_path: Path) -> None:
    opened(settings, settings.folder)
    identity = (settings.folder / IDENTITY_FILE).read_text()
    shutil.move(settings.folder, tmp_path / "moved")
    opened(settings, tmp_path / "moved")
    assert (tmp_path / "moved" / IDENTITY_FILE).read_text() == identity


def test_of_two_first_starts_one_decides(settings: Settings, tmp_path: Path) -> None:
    hub = open_hub(settings)
    try:
        bind_folder(hub.store, settings.folder)
        assert write_identity(settings.folder, "late") == find_recorded_identity(hub.store), (
            "an identity is never replaced"
        )
    finally:
        hub.close()
