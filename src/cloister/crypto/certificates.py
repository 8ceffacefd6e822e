"""Certificates: what is promised about some files, how they were made, and that they are still the same.

There are two forms. The certificate of a *file* lies beside it (``made-up.csv.certificate.json``) and is signed with
the key of whoever made the release; it holds the promise, the recipe and the digests of the files, and nothing that was
counted in the data, since it is published with them. The certificate of a *result of the hub* holds everything that the
digest of the result covers: whoever has it and the files can compute the digest again without the hub, and ask the hub
whether it let a result with that digest out.

A certificate says who promises what. That the promise is true, it does not prove: whoever can sign can also lie.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloister.core import markers
from cloister.core.atomic_files import write_text
from cloister.core.digests import canonical, digest_of
from cloister.core.guarantees import Guarantee, guarantee_from_dict
from cloister.core.provenance import ANONYMIZED, CERTIFIED_KINDS, SYNTHETIC, Provenance
from cloister.core.validation import check_choice
from cloister.crypto.signatures import SigningKey, check_signature, own_signer, signer_name
from cloister.errors import CloisterError, DataError

__all__ = [
    "COVERED",
    "ENDING",
    "NAME",
    "SCHEMA",
    "Certificate",
    "certificate_from_dict",
    "certificate_path",
    "certify",
    "check_certificate",
    "find_certificate",
    "result_digest",
]

SCHEMA = "cloister.certificate/1"
NAME = "certificate.json"
COVERED = ("document", "guarantee", "files", "provenance", "nonce")
"""What the digest of a result of the hub covers."""

ENDING = ".certificate.json"
_SIGNED = "cloister.certificate/2"
_PREFIX = b"cloister certificate\x00"
_OF_HUB = {markers.RELEASE: ANONYMIZED, markers.SYNTHETIC_TABLE: SYNTHETIC}
_PARTS = {"schema", "kind", "promise", "guarantee", "recipe", "files", "made", "signer", "signature"}
_LARGEST = 16 * 2**20
_BLOCK = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate that is whole and fits its files.

    Attributes:
        kind: how the release was made, one of `CERTIFIED_KINDS`.
        guarantee: what is promised.
        recipe: how it was made: algorithm and parameters.
        files: the names and digests of the files.
        signer: the public key that signed it; None for a result of a hub, which knows its digest.
        digest: the digest of a result of a hub.
    """

    kind: str
    guarantee: Guarantee
    recipe: Mapping[str, Any]
    files: tuple[tuple[str, str], ...]
    signer: str | None
    digest: str | None = None

    def check(self, path: str | Path) -> None:
        """Return nothing if a file is one that the certificate is about, else raise.

        Raises:
            DataError: if it is not, or was changed.
        """
        if _digest(Path(path)) not in {digest for _, digest in self.files}:
            raise DataError(
                f'"{Path(path).name}" was changed after it was certified: what its certificate promises is not about '
                "this file.",
                fix="make the file again; or delete the certificate, and say yourself what the file is.",
            )

    @property
    def is_vouched(self) -> bool:
        """Return whether your own key signed it, or one that you know: else anybody can have written it."""
        return self.signer is not None and (self.signer == own_signer() or signer_name(self.signer) is not None)

    def explain(self) -> str:
        """Return whose word it is, in a sentence or two."""
        if self.signer is None:
            return (
                "The file is the one that a hub's certificate is about, which is not signed: what it promises is "
                f"stated, not proven, until the hub confirms /api/v1/results/{self.digest}/verification."
            )
        same = "The file is as it was when it was certified"
        if self.signer == own_signer():
            return f"{same}, with your own signing key."
        name = signer_name(self.signer)
        if name is not None:
            return f'{same}, with the key of "{name}".'
        return f"{same}, with a key that nobody here knows ({self.signer}): what it promises is stated, not proven."


def certificate_path(path: str | Path) -> Path:
    """Return where the certificate of a file is.

    >>> certificate_path("made-up.csv").name
    'made-up.csv.certificate.json'
    """
    return Path(path).with_name(Path(path).name + ENDING)


def certify(
    paths: Sequence[str | Path],
    *,
    kind: str,
    guarantee: Guarantee,
    recipe: Mapping[str, Any],
    key: SigningKey,
    overwrite: bool = False,
) -> Path:
    """Write the certificate of some files beside the first of them, and return where.

    Args:
        paths: the files, as they will be published.
        kind: one of `CERTIFIED_KINDS`.
        guarantee: what is promised about them.
        recipe: algorithm and parameters, JSON-ready; it is published, so nothing in it may be counted in the data.
            Where an anonymization was chosen by its loss, the recipe says which one, as the release itself shows.
        key: who signs.
        overwrite: whether a certificate that is there may be replaced.

    Raises:
        DataError: if a file cannot be read, or the certificate not be written.
        ParameterError: if the kind is another one: nobody could read the certificate.
    """
    made = Provenance.of_today(dataset=None)
    body = {
        "schema": _SIGNED,
        "kind": check_choice(kind, name="kind", allowed=CERTIFIED_KINDS),
        "promise": guarantee.explain(),
        "guarantee": guarantee.to_dict(),
        "recipe": dict(recipe),
        "files": [{"name": Path(path).name, "sha256": _digest(Path(path))} for path in paths],
        "made": {"cloister": made.cloister, "date": made.date},
        "signer": key.public,
    }
    place = certificate_path(paths[0])
    document = {**body, "signature": key.sign(_message(body))}
    write_text(place, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", overwrite=overwrite)
    return place


def find_certificate(path: str | Path) -> Certificate | None:
    """Return the certificate beside a file, checked; None if there is none.

    It is ``NAME.certificate.json``, or the ``certificate.json`` of a hub if that names the file.

    Raises:
        DataError: if the certificate was changed, or the file was changed after it was certified.
    """
    place = Path(path)
    beside = certificate_path(place)
    if beside.is_file():
        found = _load_signed(_read(beside))
        found.check(place)
        return found
    of_hub = place.with_name(NAME)
    document = _read(of_hub) if of_hub.is_file() else {}
    # A hub's certificate in the same folder may be about other files.
    named = [item.get("name") for item in _list_items(document.get("result"), "files")]
    if place.name not in named:
        return None
    found = _of_hub(document)
    found.check(place)
    return found


def certificate_from_dict(document: Mapping[str, Any]) -> Certificate:
    """Return what a certificate of either form says, checked as far as it can be without its files.

    Raises:
        DataError: if it is none, or was changed.
    """
    return _of_hub(document) if document.get("schema") == SCHEMA else _load_signed(document)


def result_digest(covered: Mapping[str, Any]) -> str:
    """Return the digest of a result of the hub."""
    return digest_of({name: covered[name] for name in COVERED})


def check_certificate(certificate: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> str:
    """Return the digest of a hub's certificate that is whole and fits the files given with it, else raise.

    Only the hub can say whether it let the result out: ask it about the digest.

    Args:
        certificate: what the file ``certificate.json`` holds.
        files: the content of files that came with it, by their names.

    Raises:
        DataError: if the certificate was changed, or a file is not the one that it is about.
    """
    try:
        if certificate["schema"] != SCHEMA:
            raise _damage_error()
        digest = result_digest(certificate["result"])
        named = {str(item["name"]): str(item["sha256"]) for item in certificate["result"]["files"]}
        stated = str(certificate["digest"])
    except (KeyError, TypeError, ValueError):
        raise _damage_error() from None
    if not hmac.compare_digest(digest, stated):
        raise _damage_error()
    for name, content in (files or {}).items():
        if named.get(name) != hashlib.sha256(content).hexdigest():
            raise DataError(
                f'The file "{name}" is not the one that the certificate is about.', fix="get both from the hub again."
            )
    return digest


def _load_signed(document: Mapping[str, Any]) -> Certificate:
    """Return the certificate of a file, whose signature is checked."""
    try:
        # A part that is not signed could say anything, so that there must be no other parts.
        if document.keys() != _PARTS or document["schema"] != _SIGNED or document["kind"] not in CERTIFIED_KINDS:
            raise _change_error()
        body = {name: value for name, value in document.items() if name != "signature"}
        check_signature(str(document["signature"]), _message(body), signer=str(document["signer"]))
        return Certificate(
            kind=document["kind"],
            guarantee=guarantee_from_dict(document["guarantee"]),
            recipe=document["recipe"],
            files=tuple((str(item["name"]), str(item["sha256"])) for item in document["files"]),
            signer=document["signer"],
        )
    except (CloisterError, KeyError, TypeError, ValueError):
        raise _change_error() from None


def _of_hub(document: Mapping[str, Any]) -> Certificate:
    """Return the certificate of a hub's result, whose digest is checked."""
    digest = check_certificate(document)
    try:
        covered = document["result"]
        return Certificate(
            kind=_OF_HUB[covered["document"]["schema"]],
            guarantee=guarantee_from_dict(covered["guarantee"]),
            recipe=covered["document"].get("recipe", {}),
            files=tuple((str(item["name"]), str(item["sha256"])) for item in covered["files"]),
            signer=None,
            digest=digest,
        )
    except (CloisterError, KeyError, TypeError, ValueError):
        raise _damage_error() from None


def _message(body: Mapping[str, Any]) -> bytes:
    # The prefix keeps a signature of something else from being one of a certificate.
    return _PREFIX + canonical(body).encode("utf-8", "surrogatepass")


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found.update(block)
    except OSError as error:
        raise DataError(
            f'"{path}" cannot be read: {error.strerror or "the system refused"}.', fix="check the path."
        ) from None
    return found.hexdigest()


def _read(path: Path) -> dict[str, Any]:
    """Return what the file of a certificate holds."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        raise _change_error() from None
    if not isinstance(found, dict):
        raise _change_error()
    return found


def _list_items(value: Any, name: str) -> list[dict[str, Any]]:  # from outside, hence anything
    items = value.get(name) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _change_error() -> DataError:
    return DataError(
        "What lies beside the file as its certificate is not one, or was changed.",
        fix="make the file and its certificate again; or delete the certificate, and say yourself what the file is.",
    )


def _damage_error() -> DataError:
    return DataError("This is no certificate of a release, or it was changed.", fix="get it from the hub again.")
