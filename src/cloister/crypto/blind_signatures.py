"""Blind signatures: something is signed unseen, and the signer cannot tell later when it was.

This is RSABSSA-SHA384-PSS-Randomized of RFC 9474. Somebody who may have one signature picks a random message, hides it
behind a random factor (`BlindPublicKey.blind`), has it signed (`BlindSigningKey.sign`) and takes the factor away again
(`Blinded.finish`). What the signer saw is uniformly random whatever the message is: message and signature belong to
every request alike, even for a signer who can compute anything.

Not promised: the signer may link by other means (addresses, times), and a signer who gives everybody another key can
tell the signatures apart; compare `BlindPublicKey.fingerprint` with others. Python integers take a time that depends on
their values, so that the signer multiplies each request with a fresh random factor before its secret exponent is used.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA384

from cloister.crypto.encryption import random_bytes
from cloister.errors import CryptoError

__all__ = ["BlindPublicKey", "BlindSigningKey", "Blinded"]

KEY_BITS = 2048
EXPONENT = 65537
SALT_BYTES = 48
PREFIX_BYTES = 32
"""Random bytes before each message, so that nobody can choose what is signed."""

_HASH_BYTES = 48


@dataclass(frozen=True, slots=True)
class BlindPublicKey:
    """What signatures are checked and requests are made with.

    >>> key = BlindSigningKey.generate()
    >>> request = key.public.blind(b"one vote")
    >>> signature = request.finish(key.sign(request.blinded))
    >>> key.public.verify(request.message, signature)
    """

    modulus: int
    exponent: int = EXPONENT

    def __post_init__(self) -> None:
        if self.modulus.bit_length() < KEY_BITS or self.exponent != EXPONENT:
            raise CryptoError(
                f"A key for blind signatures has {KEY_BITS} bits or more, and the exponent {EXPONENT}.",
                fix="make one with BlindSigningKey.generate().",
            )

    @property
    def size(self) -> int:
        """Return how many bytes requests and signatures have."""
        return (self.modulus.bit_length() + 7) // 8

    @property
    def fingerprint(self) -> str:
        """Return the hash of the key, which everybody who asks must see alike."""
        return hashlib.sha256(f"cloister.blind_key/1\n{self.modulus:x}\n{self.exponent:x}".encode()).hexdigest()

    def to_dict(self) -> dict[str, str]:
        """Return the key as JSON-ready values."""
        return {"modulus": f"{self.modulus:x}", "exponent": f"{self.exponent:x}", "fingerprint": self.fingerprint}

    def blind(self, message: bytes) -> Blinded:
        """Return a request for the signature of a message, with what undoes it; random bytes come before the message.

        Raises:
            CryptoError: if the key has a factor in common with the request, as no honest key has.
        """
        return self.blind_with(random_bytes(PREFIX_BYTES) + message, salt=random_bytes(SALT_BYTES), factor=_below(self))

    def blind_with(self, prepared: bytes, *, salt: bytes, factor: int) -> Blinded:
        """Return the request for a prepared message with given randomness: for comparisons only."""
        encoded = int.from_bytes(_encode(prepared, bits=self.modulus.bit_length() - 1, salt=salt), "big")
        # Whoever finds a common factor has factored the key; it also has no inverse.
        if math.gcd(encoded, self.modulus) != 1 or math.gcd(factor, self.modulus) != 1:
            raise CryptoError("This is no key for signatures.", fix="tell the people who published it.")
        hidden = encoded * pow(factor, self.exponent, self.modulus) % self.modulus
        return Blinded(prepared, hidden.to_bytes(self.size, "big"), self, pow(factor, -1, self.modulus))

    def verify(self, message: bytes, signature: bytes) -> None:
        """Raise unless a signature is this key's for a message, with the random bytes before it.

        Raises:
            CryptoError: if it is not; nothing else is said.
        """
        key = rsa.RSAPublicNumbers(self.exponent, self.modulus).public_key()
        scheme = padding.PSS(mgf=padding.MGF1(SHA384()), salt_length=SALT_BYTES)
        try:
            key.verify(signature, message, scheme, SHA384())
        except InvalidSignature:
            raise CryptoError("This signature is not valid.", fix="ask for a new one.") from None


@dataclass(frozen=True, slots=True)
class Blinded:
    """A request for a signature.

    Attributes:
        message: what the signature will be for: the message with random bytes before it.
        blinded: what the signer gets.
        key: whose signature it is.
        inverse: what undoes the blinding; whoever has it can link the request to the signature.
    """

    message: bytes = field(repr=False)
    blinded: bytes = field(repr=False)
    key: BlindPublicKey
    inverse: int = field(repr=False)

    def finish(self, blind_signature: bytes) -> bytes:
        """Return the signature of the message.

        Raises:
            CryptoError: if the signer did not sign.
        """
        signed = int.from_bytes(blind_signature, "big") * self.inverse % self.key.modulus
        signature = signed.to_bytes(self.key.size, "big")
        self.key.verify(self.message, signature)
        return signature


class BlindSigningKey:
    """Signs what it cannot see. Use a key for one purpose only: whatever it signs, its holder agreed to."""

    __slots__ = ("_numbers", "public")

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._numbers = key.private_numbers()
        self.public = BlindPublicKey(self._numbers.public_numbers.n, self._numbers.public_numbers.e)

    def __repr__(self) -> str:
        return "BlindSigningKey(...)"

    @classmethod
    def generate(cls, *, bits: int = KEY_BITS) -> BlindSigningKey:
        """Return a new key."""
        return cls(rsa.generate_private_key(public_exponent=EXPONENT, key_size=bits))

    @classmethod
    def from_bytes(cls, secret: bytes) -> BlindSigningKey:
        """Return the key that `to_bytes` wrote."""
        key = serialization.load_der_private_key(secret, password=None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise CryptoError("This is no key for blind signatures.", fix="give what to_bytes wrote.")
        return cls(key)

    def to_bytes(self) -> bytes:
        """Return the secret itself, to be sealed."""
        return self._numbers.private_key().private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def sign(self, blinded: bytes) -> bytes:
        """Return the blind signature of a request; the same request always gets the same one.

        Raises:
            CryptoError: if it is not a request for this key.
        """
        modulus, exponent = self.public.modulus, self.public.exponent
        hidden = int.from_bytes(blinded, "big")
        if len(blinded) != self.public.size or not 0 < hidden < modulus or math.gcd(hidden, modulus) != 1:
            raise CryptoError("This is no request for a signature of this key.", fix="blind the message anew.")
        factor = _below(self.public)
        masked = hidden * pow(factor, exponent, modulus) % modulus
        signed = self._power(masked) * pow(factor, -1, modulus) % modulus
        # A fault in one of the two powers would show the primes to whoever gets the signature (Boneh, DeMillo and
        # Lipton 1997).
        if pow(signed, exponent, modulus) != hidden:
            raise CryptoError("The signature came out wrong.", fix="try again; if it stays, check the machine.")
        return signed.to_bytes(self.public.size, "big")

    def _power(self, value: int) -> int:
        """Return a value to the secret exponent, by way of the two primes."""
        secret = self._numbers
        left, right = pow(value, secret.dmp1, secret.p), pow(value, secret.dmq1, secret.q)
        return right + secret.q * ((left - right) * secret.iqmp % secret.p)


def _below(key: BlindPublicKey) -> int:
    """Return a uniform factor in 1 .. modulus - 1: 128 spare bits make the remainder uniform for all purposes."""
    return 1 + int.from_bytes(random_bytes(key.size + 16), "big") % (key.modulus - 1)


def _encode(message: bytes, *, bits: int, salt: bytes) -> bytes:
    """Return EMSA-PSS (RFC 8017, section 9.1.1) of a message."""
    size = (bits + 7) // 8
    digest = _hash(bytes(8) + _hash(message) + salt)
    block = bytes(size - len(salt) - _HASH_BYTES - 2) + b"\x01" + salt
    masked = int.from_bytes(block, "big") ^ int.from_bytes(_mask(digest, len(block)), "big")
    # The encoded message has to stay below the modulus.
    masked &= (1 << (8 * len(block) - (8 * size - bits))) - 1
    return masked.to_bytes(len(block), "big") + digest + b"\xbc"


def _mask(seed: bytes, size: int) -> bytes:
    """Return MGF1 of a seed."""
    rounds = range(-(-size // _HASH_BYTES))
    return b"".join(_hash(seed + counter.to_bytes(4, "big")) for counter in rounds)[:size]


def _hash(message: bytes) -> bytes:
    return hashlib.sha384(message).digest()
