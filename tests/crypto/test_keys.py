from __future__ import annotations

import copy
import pickle
import stat
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from cloister.crypto import private_files
from cloister.crypto.keys import DataKey, MasterKey, wrapping_version
from cloister.errors import CryptoError, DecryptionError

MASTER = MasterKey({1: bytes(range(32))})  # fixed, because the names of tests hold its text
KEY = DataKey.generate()
WRAPPED = MASTER.wrap(KEY, purpose="blob", object_id="a1")


def test_a_wrapped_key_comes_back_for_its_purpose_and_object_only() -> None:
    assert MASTER.unwrap(WRAPPED, purpose="blob", object_id="a1").reveal() == KEY.reveal()
    for purpose, object_id in (("result", "a1"), ("blob", "a2"), ("bloba", "1"), ("", "bloba1")):
        with pytest.raises(DecryptionError):
            MASTER.unwrap(WRAPPED, purpose=purpose, object_id=object_id)


def test_wraps_of_one_key_look_unrelated() -> None:
    again = MASTER.wrap(KEY, purpose="blob", object_id="a1")
    assert again[5:] != WRAPPED[5:]
    assert KEY.reveal() not in WRAPPED


@given(position=st.integers(0, 8 * len(WRAPPED) - 1))
def test_any_changed_bit_of_a_wrap_is_found(position: int) -> None:
    damaged = bytearray(WRAPPED)
    damaged[position // 8] ^= 1 << position % 8
    with pytest.raises(DecryptionError) as caught:
        MASTER.unwrap(bytes(damaged), purpose="blob", object_id="a1")
    assert caught.value.problem == "This could not be decrypted."


@given(length=st.integers(0, len(WRAPPED) + 40).filter(lambda length: length != len(WRAPPED)))
def test_a_wrap_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(DecryptionError):
        MASTER.unwrap(WRAPPED.ljust(length, b"\0")[:length], purpose="blob", object_id="a1")


def test_another_master_key_gives_the_same_short_error() -> None:
    with pytest.raises(DecryptionError, match="all its versions"):
        MasterKey.generate().unwrap(WRAPPED, purpose="blob", object_id="a1")


def test_rotation_keeps_the_old_versions_until_they_are_removed() -> None:
    rotated = MASTER.rotate()
    assert (rotated.versions, rotated.newest, MASTER.versions) == ((1, 2), 2, (1,))
    assert rotated.unwrap(WRAPPED, purpose="blob", object_id="a1").reveal() == KEY.reveal()
    renewed = rotated.rewrap(WRAPPED, purpose="blob", object_id="a1")
    assert (wrapping_version(WRAPPED), wrapping_version(renewed)) == (1, 2)
    with pytest.raises(DecryptionError):
        MASTER.unwrap(renewed, purpose="blob", object_id="a1")
    only_new = rotated.without(1)
    assert only_new.unwrap(renewed, purpose="blob", object_id="a1").reveal() == KEY.reveal()
    with pytest.raises(DecryptionError):
        only_new.unwrap(WRAPPED, purpose="blob", object_id="a1")
    assert only_new.rotate().versions == (2, 3)


@pytest.mark.parametrize("version", [1, 2, 7])
def test_the_newest_version_and_unknown_ones_cannot_be_removed(version: int) -> None:
    key = MASTER.rotate() if version == 2 else MASTER
    with pytest.raises(CryptoError, match="rotate first"):
        key.without(version)


def test_a_key_shows_nothing_and_is_not_copied() -> None:
    for key in (MASTER, KEY):
        assert repr(key) == str(key) == f"{type(key).__name__}(...)"
        assert not hasattr(key, "__dict__")
        for spread in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(CryptoError, match="key file"):
                spread(key)


def test_a_key_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    made = MasterKey.create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert MasterKey.from_file(path).to_text() == made.to_text()
    path.chmod(0o640)
    with pytest.raises(CryptoError, match="chmod 600"):
        MasterKey.from_file(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["master.key"]


def test_a_key_file_is_never_overwritten_by_a_new_key(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    text = MasterKey.create(path).to_text()
    with pytest.raises(CryptoError, match="read it instead"):
        MasterKey.create(path)
    assert MasterKey.from_file(path).to_text() == text
    assert len(list(tmp_path.iterdir())) == 1


def test_of_many_who_make_a_key_file_at_once_one_succeeds(tmp_path: Path) -> None:
    path = tmp_path / "master.key"

    def make(_: int) -> str | None:
        try:
            return MasterKey.create(path).to_text()
        except CryptoError:
            return None

    with ThreadPoolExecutor(8) as pool:
        made = [text for text in pool.map(make, range(16)) if text]
    assert made == [MasterKey.from_file(path).to_text()]


def test_a_key_file_is_made_when_it_is_missing_and_wanted(tmp_path: Path) -> None:
    path = tmp_path / "new" / "master.key"
    with pytest.raises(CryptoError, match="check the path"):
        MasterKey.from_file(path)
    made = MasterKey.from_file(path, create=True)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert MasterKey.from_file(path, create=True).to_text() == made.to_text()


def test_a_key_file_that_another_process_makes_meanwhile_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "master.key"
    text = MasterKey.create(path).to_text()
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert MasterKey.from_file(path, create=True).to_text() == text


def test_a_rotated_key_replaces_its_file(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    rotated = MasterKey.create(path).rotate()
    rotated.write(path)
    assert MasterKey.from_file(path).versions == (1, 2)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    rotated = MASTER.rotate()
    monkeypatch.setenv("SOME_KEY", rotated.to_text().replace("\n", ","))
    assert MasterKey.from_environment("SOME_KEY").to_text() == rotated.to_text()
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(CryptoError, match="set SOME_KEY"):
        MasterKey.from_environment("SOME_KEY")


ENTRY = MASTER.to_text().strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# a comment only",
        "hunter2",
        ENTRY[2:],
        f"{ENTRY},{ENTRY}",
        f"{ENTRY} hunter2",
        ENTRY[:-3],
        ENTRY[:-1] + "A",
        "0" + ENTRY[1:],
        ENTRY.replace("1:", "one:"),
        "1:" + 44 * "=",
    ],
)
def test_text_that_is_no_key_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(CryptoError, match="version:base64") as caught:
        MasterKey.from_text(text)
    shown = "".join(traceback.format_exception(caught.value, chain=True))
    assert "hunter2" not in str(caught.value)
    assert ENTRY[2:] not in shown


def test_keys_of_other_sizes_are_refused() -> None:
    with pytest.raises(CryptoError, match="DataKey.generate"):
        DataKey(bytes(16))
    for versions in ({}, {0: bytes(32)}, {1: bytes(31)}):
        with pytest.raises(CryptoError, match="MasterKey.generate"):
            MasterKey(versions)


def test_files_that_cannot_be_read_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CryptoError, match="check the path"):
        MasterKey.from_file(tmp_path / "none")
    with pytest.raises(CryptoError, match="path of a key file"):
        MasterKey.from_file(tmp_path)
    for write in (MASTER.write, MasterKey.create):
        with pytest.raises(CryptoError, match="may write to"):
            write(tmp_path / "no folder" / "master.key")

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(private_files.os, "fsync", refuse)
    with pytest.raises(CryptoError, match="the system refused"):
        MasterKey.create(tmp_path / "master.key")
    assert list(tmp_path.iterdir()) == []
