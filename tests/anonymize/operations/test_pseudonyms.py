from __future__ import annotations

import base64
import hashlib
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from cloister.anonymize.operations import Pseudonymize, RandomTokens, Secret, reveal
from cloister.anonymize.operations.pseudonyms import encrypt_all, keyed_tokens
from cloister.errors import CloisterError, DataError, ParameterError, ParameterTypeError, SourceNotFoundError
from tests.anonymize.operations.helpers import transformed

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
PLAIN = Pseudonymize("v", key=KEY, domain="patient/study")


def tokens(values: list[Any], **options: Any) -> list[Any]:
    settings = {"key": KEY, "domain": "patient/study", **options}
    return transformed(Pseudonymize("v", **settings), v=values)["v"]


def _by_hand(key: bytes, message: bytes) -> str:
    """HMAC-SHA256 from its definition (RFC 2104)."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + message).digest()
    return base64.b32encode(hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).digest()).decode()


def test_the_token_is_the_stated_formula() -> None:
    assert tokens(["Ann"])[0] == _by_hand(KEY, b"patient/study\x00Ann")[:26]
    assert tokens([7], length=52)[0] == _by_hand(KEY, b"patient/study\x007")[:52]


def test_same_value_key_and_domain_give_the_same_token_and_any_change_another() -> None:
    first = tokens(["Ann", "Ann", "Bob", None])
    assert first[0] == first[1] != first[2]
    assert first[3] is None
    assert tokens(["Ann"])[0] == first[0]
    assert tokens(["Ann"], key=OTHER)[0] != first[0]
    assert tokens(["Ann"], domain="patient/other")[0] != first[0]


@pytest.mark.parametrize("options", [{}, {"reversible": True}])
def test_ten_thousand_identifiers_get_ten_thousand_tokens(options: dict[str, Any]) -> None:
    found = tokens([f"{number:09}" for number in range(10_000)], **options)
    assert len(set(found)) == 10_000


@given(st.sets(st.text(max_size=8), max_size=30))
def test_tokens_are_injective_on_normalized_values(values: set[str]) -> None:
    listed = sorted(values)
    normalized = {unicodedata.normalize("NFC", value) for value in listed}
    assert len(set(tokens(pa.array(listed, pa.string())))) == len(normalized)


@given(st.lists(st.none() | st.text(), max_size=10))
def test_reversible_tokens_come_back(values: list[str | None]) -> None:
    listed = pa.array(values, pa.string())
    made = tokens(listed, reversible=True, normalize=[])
    assert reveal(made, key=KEY, domain="patient/study") == values


def test_reversible_tokens_hide_the_exact_length() -> None:
    lengths = {len(made) for made in encrypt_all(["a", "a" * 15], key=KEY, domain="d")}
    assert len(lengths) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"key": OTHER},
        {"domain": "patient/other"},
        {"tokens": ["AAAA"]},
        {"tokens": ["not base 32!"]},
        {"tokens": [""]},
    ],
)
def test_what_cannot_be_revealed_says_little(change: dict[str, Any]) -> None:
    made = tokens(["Ann"], reversible=True)
    arguments = {"tokens": made, "key": KEY, "domain": "patient/study", **change}
    with pytest.raises(DataError, match="check the key, the domain"):
        reveal(arguments.pop("tokens"), **arguments)


def test_differences_that_do_not_count_are_evened_out() -> None:
    assert len(set(tokens(["é", "e\u0301"]))) == 1
    assert len(set(tokens([" Ann", "ann "]))) == 2
    assert len(set(tokens([" Ann", "ann "], normalize=["casefold", "strip"]))) == 1
    assert Pseudonymize("v", key=KEY, domain="d", normalize=["casefold", "nfc"]).normalize == ("nfc", "casefold")


def test_colliding_tokens_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "cloister.anonymize.operations.pseudonyms.keyed_tokens", lambda *_args, **_options: ["SAME"] * 2
    )
    with pytest.raises(DataError, match="longer tokens"):
        tokens(["Ann", "Bob"])


def test_random_tokens_are_new_each_time_and_keep_equal_rows_together() -> None:
    first, second = (transformed(RandomTokens("v", length=10), v=["a", "b", "a", None])["v"] for _ in range(2))
    assert first[0] == first[2] != first[1]
    assert first[3] is None
    assert first != second
    assert {len(made) for made in first[:3]} == {10}


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"key": b""}, "openssl"),
        ({"key": b"short"}, "openssl"),
        ({"key": b"a" * 40}, "openssl"),
        ({"key": "hunter2"}, "env"),
        ({"key": None}, "env"),
        ({"key": {"vault": "x"}}, "env"),
        ({"key": {"env": ""}}, "env"),
        ({"domain": ""}, "heart-study"),
        ({"domain": "a\x00b"}, "heart-study"),
        ({"length": 9}, "length"),
        ({"length": 53}, "length=26"),
        ({"normalize": "nfc"}, "normalize="),
        ({"normalize": ["upper"]}, "nfc"),
    ],
)
def test_unsafe_settings_are_refused(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        tokens(["Ann"], **options)


def test_a_key_is_required() -> None:
    with pytest.raises(TypeError, match="key"):
        Pseudonymize("v", domain="d")  # type: ignore[call-arg]


def test_keys_come_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = KEY.hex()
    monkeypatch.setenv("STUDY_KEY", text)
    (tmp_path / "key").write_text(text + "\n")
    by_name = tokens(["Ann"], key={"env": "STUDY_KEY"})
    assert by_name == tokens(["Ann"], key={"file": str(tmp_path / "key")})
    assert by_name == tokens(["Ann"], key="env:STUDY_KEY")
    assert by_name == tokens(["Ann"], key=text.encode())


def test_a_fresh_key_is_for_its_owner_only(tmp_path: Path) -> None:
    secret = Secret.create(tmp_path / "key")
    assert len(secret.read()) == 64
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(DataError, match="overwrite"):
        Secret.create(tmp_path / "key")
    assert Secret.create(tmp_path / "other").read() != secret.read()


def test_missing_keys_and_odd_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_KEY", raising=False)
    with pytest.raises(SourceNotFoundError, match="NO_KEY"):
        Secret(env="NO_KEY").read()
    with pytest.raises(SourceNotFoundError, match="no key file"):
        Secret(file=tmp_path / "none").read()
    with pytest.raises(DataError, match="cannot be read"):
        Secret(file=tmp_path).read()
    monkeypatch.setenv("NO_KEY", "abc")
    with pytest.raises(ParameterError, match="shorter than 32"):
        Secret(env="NO_KEY").read()
    with pytest.raises(ParameterError, match="one place"):
        Secret(env="A", file=tmp_path)
    with pytest.raises(ParameterError, match="env: NAME"):
        Secret.of({"file": "x"}, folder=None)
    with pytest.raises(ParameterTypeError, match="bytes"):
        Secret(value="text")  # type: ignore[arg-type]


def test_keys_are_never_shown_nor_written() -> None:
    assert KEY.hex() not in repr(PLAIN)
    assert repr(KEY) not in repr(PLAIN)
    with pytest.raises(ParameterError, match="never stored"):
        PLAIN.to_dict()


@pytest.mark.parametrize("length", [10, 26, 51, 52])
def test_tokens_are_base_32_of_any_length(length: int) -> None:
    found = keyed_tokens(["Ann", "Bob"], key=KEY, domain="d", length=length)
    assert found == [_by_hand(KEY, b"d\x00" + name)[:length] for name in (b"Ann", b"Bob")]
    assert keyed_tokens([], key=KEY, domain="d") == []
