from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cloister.crypto.signatures import SigningKey, check_signature, own_signer, signer_name, signing_key_path
from cloister.errors import CryptoError


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "settings" / "signing.key"
    monkeypatch.setenv("CLOISTER_SIGNING_KEY", str(place))
    return place


def test_a_signature_is_of_one_message_by_one_key() -> None:
    key, other = SigningKey.generate(), SigningKey.generate()
    signature = key.sign(b"so it is")
    check_signature(signature, b"so it is", signer=key.public)
    for message, signer, given in (
        (b"so it was", key.public, signature),
        (b"so it is", other.public, signature),
        (b"so it is", key.public, other.sign(b"so it is")),
        (b"so it is", key.public, "no signature"),
        (b"so it is", key.public.removeprefix("ed25519:"), signature),
        (b"so it is", "ed25519:????", signature),
    ):
        with pytest.raises(CryptoError, match="signature is not right"):
            check_signature(given, message, signer=signer)


def test_the_answer_of_a_standard_is_given() -> None:
    """The first test of RFC 8032, section 7.1."""
    secret = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    key = SigningKey(secret)
    expected = bytes.fromhex(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b"
    )
    import base64

    assert key.public == "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    assert base64.b64decode(key.sign(b"")) == expected


def test_ones_own_key_is_made_once_for_ones_own_eyes(own: Path) -> None:
    assert own_signer() is None
    first = SigningKey.from_file(create=True)
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert SigningKey.from_file(create=True).public == first.public == own_signer()
    assert SigningKey.from_file(own).public == first.public
    assert "secret" not in repr(first)


def test_of_two_who_make_a_key_at_the_same_time_both_use_one(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SigningKey.from_file(create=True)
    with monkeypatch.context() as patch:
        answers = iter([False])
        patch.setattr(Path, "exists", lambda place: next(answers, True))  # the other was a moment faster
        again = SigningKey.from_file(own, create=True)
    assert again.public == own_signer()


def test_a_key_that_others_may_read_or_that_is_none_is_refused(own: Path) -> None:
    with pytest.raises(CryptoError, match="cannot be read"):
        SigningKey.from_file(own)
    SigningKey.from_file(create=True)
    own.chmod(0o644)
    with pytest.raises(CryptoError, match="chmod 600"):
        SigningKey.from_file(own)
    for text in ("", "ed25519-secret:AAAA", "1:AAAA", "ed25519-secret:????"):
        with pytest.raises(CryptoError, match="no signing key"):
            SigningKey.from_text(text)
    with pytest.raises(CryptoError, match="32 bytes"):
        SigningKey(b"short")


def test_a_folder_that_cannot_be_made_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CryptoError, match="folder"):
        SigningKey.from_file(tmp_path / "file" / "signing.key", create=True)


def test_the_key_is_in_the_folder_for_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CLOISTER_SIGNING_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert signing_key_path() == tmp_path / "cloister" / "signing.key"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert signing_key_path() == Path.home() / ".config" / "cloister" / "signing.key"


def test_known_signers_have_names(own: Path) -> None:
    other = SigningKey.generate().public
    assert signer_name(other) is None
    own.parent.mkdir()
    (own.parent / "signers").write_text(f"# known\n{other}  The clinic in the east\n", encoding="utf-8")
    assert signer_name(other) == "The clinic in the east"
    assert signer_name(SigningKey.generate().public) is None
