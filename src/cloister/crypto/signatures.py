"""Signatures with a key of one's own (Ed25519, RFC 8032), and whose key signed something.

The key lies in the folder for settings of the account, readable by nobody else; ``CLOISTER_SIGNING_KEY`` names another
file. Beside it, the file ``signers`` lists the public keys of others, one a line: ``ed25519:...  name``. A signature by
a key that is neither one's own nor listed proves that nothing was changed, and not who says it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cloister.crypto.encryption import SecretKey, random_bytes
from cloister.crypto.private_files import KeyFileExistsError, create_private, read_private
from cloister.errors import CryptoError

__all__ = ["KEY_VARIABLE", "SigningKey", "check_signature", "own_signer", "signer_name", "signing_key_path"]

KEY_VARIABLE = "CLOISTER_SIGNING_KEY"
_SECRET, _PUBLIC = "ed25519-secret:", "ed25519:"
_KEY_BYTES = 32
_HEADING = "# A signing key of cloister. Who has it can sign certificates in your name.\n"
_SIGNERS = "signers"


class SigningKey(SecretKey):
    """A key that signs.

    >>> key = SigningKey.generate()
    >>> check_signature(key.sign(b"so it is"), b"so it is", signer=key.public)
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) != _KEY_BYTES:
            raise CryptoError("A signing key has 32 bytes.", fix="make one with SigningKey.generate().")
        self._secret = secret

    @classmethod
    def generate(cls) -> SigningKey:
        """Return a new key from the randomness of the operating system."""
        return cls(random_bytes(_KEY_BYTES))

    @classmethod
    def from_text(cls, text: str) -> SigningKey:
        """Return the key that `to_text` wrote.

        Raises:
            CryptoError: if it is anything else; the text is not quoted.
        """
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        secret = _decode(lines[0].removeprefix(_SECRET)) if len(lines) == 1 and lines[0].startswith(_SECRET) else b""
        if len(secret) != _KEY_BYTES:
            raise CryptoError("This is no signing key.", fix="give the file as cloister wrote it, or another name.")
        return cls(secret)

    @classmethod
    def from_file(cls, path: str | Path | None = None, *, create: bool = False) -> SigningKey:
        """Return the key in a file, one's own by default; ``create`` makes a new one if there is none.

        Raises:
            CryptoError: if there is none, it holds something else, or other accounts may read it.
        """
        place = signing_key_path() if path is None else Path(path)
        if create and not place.exists():
            with contextlib.suppress(OSError):
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Another process may make a key in this moment: then that one counts, and this one is thrown away.
            key = cls.generate()
            with contextlib.suppress(KeyFileExistsError):
                create_private(place, _HEADING + key.to_text())
                return key
        return cls.from_text(read_private(place))

    @property
    def public(self) -> str:
        """Return the public key as a text, which may be shown to anybody."""
        public = Ed25519PrivateKey.from_private_bytes(self._secret).public_key()
        return _PUBLIC + base64.b64encode(public.public_bytes_raw()).decode()

    def to_text(self) -> str:
        """Return the secret itself, for a file of your own."""
        return f"{_SECRET}{base64.b64encode(self._secret).decode()}\n"

    def sign(self, message: bytes) -> str:
        """Return the signature of a message as a text."""
        return base64.b64encode(Ed25519PrivateKey.from_private_bytes(self._secret).sign(message)).decode()


def check_signature(signature: str, message: bytes, *, signer: str) -> None:
    """Return nothing if a message was signed with the key whose public part is given, else raise.

    Raises:
        CryptoError: if it was not, or if these are no key and signature.
    """
    public = _decode(signer.removeprefix(_PUBLIC)) if signer.startswith(_PUBLIC) else b""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(_decode(signature), message)
    except (InvalidSignature, ValueError):
        raise CryptoError("The signature is not right.", fix="get what was signed again.") from None


def signing_key_path() -> Path:
    """Return where one's own signing key is, or would be."""
    named = os.environ.get(KEY_VARIABLE)
    if named:
        return Path(named)
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "cloister" / "signing.key"


def own_signer() -> str | None:
    """Return one's own public key; None if there is no key that can be read."""
    try:
        return SigningKey.from_file().public
    except CryptoError:
        return None


def signer_name(signer: str) -> str | None:
    """Return what the file ``signers`` beside one's own key calls a public key; None if it does not."""
    try:
        lines = signing_key_path().with_name(_SIGNERS).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    pairs = [line.strip().partition(" ") for line in lines]
    return next((name.strip() for key, _, name in pairs if key == signer and name.strip()), None)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
