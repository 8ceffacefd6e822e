from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from cloister.core.guarantees import ApproxDP, PureDP
from cloister.crypto.certificates import (
    COVERED,
    Certificate,
    certificate_path,
    certify,
    check_certificate,
    find_certificate,
    result_digest,
)
from cloister.crypto.signatures import SigningKey
from cloister.errors import DataError, ParameterError

PROMISE = ApproxDP(epsilon=1, delta="1e-6")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "made-up.csv"
    place.write_bytes(b"age\n41\n")
    return place


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SigningKey:
    monkeypatch.setenv("CLOISTER_SIGNING_KEY", str(tmp_path / "settings" / "signing.key"))
    return SigningKey.from_file(create=True)


def certified(file: Path, key: SigningKey, **changes: Any) -> Path:
    given: dict[str, Any] = {"kind": "synthetic table", "guarantee": PROMISE, "recipe": {"synthesizer": "adaptive"}}
    return certify([file], key=key, **(given | changes))


def test_a_certificate_says_what_is_promised_and_who_says_it(file: Path, own: SigningKey) -> None:
    place = certified(file, own)
    assert place == certificate_path(file)
    found = find_certificate(file)
    assert found is not None
    assert (found.kind, found.guarantee) == ("synthetic table", PROMISE)
    assert found.recipe == {"synthesizer": "adaptive"}
    assert found.explain() == "The file is as it was when it was certified, with your own signing key."
    with pytest.raises(DataError, match="overwrite=True"):
        certified(file, own)


def test_a_kind_that_nobody_could_read_is_not_certified(file: Path, own: SigningKey) -> None:
    with pytest.raises(ParameterError, match='kind="synthetic" is not known. Did you mean "synthetic table"'):
        certified(file, own, kind="synthetic")
    assert not certificate_path(file).exists()


def test_a_key_that_nobody_knows_proves_nothing_but_that_nothing_was_changed(file: Path, own: SigningKey) -> None:
    other = SigningKey.generate()
    certified(file, other)
    found = find_certificate(file)
    assert found is not None
    assert "stated, not proven" in found.explain()
    assert other.public in found.explain()
    signers = file.parent / "settings" / "signers"
    signers.write_text(f"{other.public} The clinic\n", encoding="utf-8")
    assert found.explain().endswith('with the key of "The clinic".')
    assert own.public != other.public


def test_a_file_that_was_changed_is_not_what_was_certified(file: Path, own: SigningKey) -> None:
    certified(file, own)
    file.write_bytes(b"age\n42\n")
    with pytest.raises(DataError, match=r"changed after it was certified(.|\n)*make the file again"):
        find_certificate(file)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "anonymized table"},
        {"kind": "cake"},
        {"schema": "cloister.certificate/9"},
        {"guarantee": PureDP(epsilon="0.001").to_dict()},
        {"recipe": {"synthesizer": "independent"}},
        {"signer": SigningKey.generate().public},
        {"signature": "AAAA"},
        {"more": 1},
        {"made": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_certificate_that_was_changed_is_refused(file: Path, own: SigningKey, change: dict[str, Any]) -> None:
    place = certified(file, own)
    document = json.loads(place.read_text(encoding="utf-8"))
    place.write_text(json.dumps(document | change), encoding="utf-8")
    with pytest.raises(DataError, match=r"or was changed(.|\n)*delete the certificate"):
        find_certificate(file)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{" * 10_000, '{"schema": "cloister.certificate/2"}'])
def test_what_is_no_certificate_is_refused(file: Path, text: str) -> None:
    certificate_path(file).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="is not one, or was changed"):
        find_certificate(file)


def test_a_guarantee_that_cannot_be_read_is_refused_even_if_it_was_signed(file: Path, own: SigningKey) -> None:
    class Odd:
        def explain(self) -> str:
            return "trust me"

        def to_dict(self) -> dict[str, Any]:
            return {"schema": "cloister.guarantee.trust/1"}

    certified(file, own, guarantee=Odd())
    with pytest.raises(DataError, match="or was changed"):
        find_certificate(file)


def test_a_file_without_a_certificate_has_none_and_one_that_is_gone_is_an_error(file: Path, own: SigningKey) -> None:
    assert find_certificate(file) is None
    certified(file, own)
    file.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        find_certificate(file)


def of_hub(file: Path, **document: Any) -> dict[str, Any]:
    """Return a certificate as the hub hands it out."""
    result = {
        "document": {"schema": "cloister.synthetic_table/1", **document},
        "guarantee": PROMISE.to_dict(),
        "files": [{"name": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}],
        "provenance": {},
        "nonce": "00",
    }
    assert set(result) == set(COVERED)
    return {"schema": "cloister.certificate/1", "result": result, "digest": result_digest(result)}


def test_the_certificate_of_a_hub_is_read_too(file: Path) -> None:
    beside = file.with_name("certificate.json")
    beside.write_text(json.dumps(of_hub(file)), encoding="utf-8")
    found = find_certificate(file)
    assert isinstance(found, Certificate)
    assert found.kind == "synthetic table"
    assert f"/api/v1/results/{found.digest}/verification" in found.explain()
    other = file.with_name("other.csv")
    other.write_text("age\n")
    assert find_certificate(other) is None
    file.write_bytes(b"age\n42\n")
    with pytest.raises(DataError, match="changed after"):
        find_certificate(file)


@pytest.mark.parametrize("change", [{"schema": "cloister.other/1"}, {"digest": True}, {"files": 7}], ids=str)
def test_the_certificate_of_a_hub_that_fits_nothing_is_refused(file: Path, change: dict[str, Any]) -> None:
    found = of_hub(file, **{name: value for name, value in change.items() if name == "schema"})
    if "digest" in change:
        found["digest"] = "0" * 64
    if "files" in change:
        found["result"]["files"] = 7
    file.with_name("certificate.json").write_text(json.dumps(found), encoding="utf-8")
    if "files" in change:
        assert find_certificate(file) is None
        with pytest.raises(DataError, match="no certificate"):
            check_certificate(found)
        return
    with pytest.raises(DataError, match="get it from the hub again"):
        find_certificate(file)


def test_files_of_a_hubs_certificate_are_checked_by_their_content(file: Path) -> None:
    certificate = of_hub(file)
    assert check_certificate(certificate, {file.name: file.read_bytes()}) == certificate["digest"]
    with pytest.raises(DataError, match="is not the one"):
        check_certificate(certificate, {file.name: b"age\n42\n"})
    with pytest.raises(DataError, match="no certificate"):
        check_certificate({"schema": "cloister.certificate/2"})
    with pytest.raises(DataError, match="no certificate"):
        check_certificate({"schema": "cloister.certificate/1"})
