from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

import pytest

from cloister.core.atomic_files import write_text, write_with
from cloister.errors import DataError


def test_a_new_file_is_for_its_owner(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "Zürich\n", overwrite=False)
    assert (tmp_path / "a.txt").read_bytes() == "Zürich\n".encode()
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o600


def test_a_replaced_file_keeps_its_rights(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    place.write_text("old", "utf-8")
    place.chmod(0o644)
    with pytest.raises(DataError, match="Fix: choose another name, or say overwrite=True"):
        write_text(place, "new", overwrite=False)
    assert place.read_text("utf-8") == "old"
    write_text(str(place), "new", overwrite=True)
    assert place.read_text("utf-8") == "new"
    assert stat.S_IMODE(place.stat().st_mode) == 0o644


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="Fix: choose the name of a file"):
        write_text(tmp_path / "pipe", "new", overwrite=True)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert list(tmp_path.iterdir()) == [tmp_path / "pipe"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "folder", tmp_path / "none" / "a.txt"):
        with pytest.raises(DataError, match="Fix: choose a folder you may write to"):
            write_text(place, "text", overwrite=True)
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("old", "utf-8")

    def full(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DataError, match="the system refused"):
        write_text(tmp_path / "a.txt", "new", overwrite=True)
    assert [path.read_text("utf-8") for path in tmp_path.iterdir()] == ["old"]


def test_text_that_is_no_text_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "a.txt", "\ud800", overwrite=True)
    assert list(tmp_path.iterdir()) == []


def test_a_function_may_write_the_file(tmp_path: Path) -> None:
    write_with(tmp_path / "a.bin", lambda draft: draft.write(b"\x00\xff"), overwrite=False)
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\xff"


def test_a_function_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old", "utf-8")

    def half(draft: IO[bytes]) -> None:
        draft.write(b"ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_with(tmp_path / "a.txt", half, overwrite=True)
    assert [path.read_text("utf-8") for path in tmp_path.iterdir()] == ["old"]


def test_the_bytes_and_the_name_are_on_the_disk_before_anybody_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    whole = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor).st_mode), whole(descriptor))
    )
    write_text(tmp_path / "a.txt", "text", overwrite=False)
    assert [stat.S_ISDIR(mode) for mode in synced] == [False, True]


def test_a_system_that_syncs_no_folders_writes_the_file_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_DIRECTORY")
    write_text(tmp_path / "a.txt", "text", overwrite=False)
    assert (tmp_path / "a.txt").read_text("utf-8") == "text"
