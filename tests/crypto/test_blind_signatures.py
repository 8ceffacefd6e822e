from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given, settings, strategies as st

from cloister.crypto.blind_signatures import EXPONENT, BlindPublicKey, BlindSigningKey
from cloister.errors import CryptoError
from tests.crypto import rfc9474 as vector

KEY = BlindSigningKey.generate()
OTHER = BlindSigningKey.generate()


def _published() -> BlindSigningKey:
    n, q = int(vector.N, 16), int(vector.Q, 16)
    p = n // q
    d = pow(EXPONENT, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(
        p=p,
        q=q,
        d=d,
        dmp1=d % (p - 1),
        dmq1=d % (q - 1),
        iqmp=pow(q, -1, p),
        public_numbers=rsa.RSAPublicNumbers(EXPONENT, n),
    )
    return BlindSigningKey(numbers.private_key())


def test_the_published_vector_is_reproduced_step_by_step() -> None:
    key = _published()
    factor = pow(int(vector.INVERSE, 16), -1, key.public.modulus)
    prepared = bytes.fromhex(vector.PREFIX + vector.MESSAGE)
    request = key.public.blind_with(prepared, salt=bytes.fromhex(vector.SALT), factor=factor)
    assert request.blinded.hex() == vector.BLINDED
    blind_signature = key.sign(request.blinded)
    assert blind_signature.hex() == vector.BLIND_SIGNATURE
    assert request.finish(blind_signature).hex() == vector.SIGNATURE
    key.public.verify(prepared, bytes.fromhex(vector.SIGNATURE))


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=200))
def test_a_signature_fits_its_message_and_no_other(message: bytes) -> None:
    request = KEY.public.blind(message)
    signature = request.finish(KEY.sign(request.blinded))
    KEY.public.verify(request.message, signature)
    assert request.message.endswith(message)
    assert len(request.message) == 32 + len(message)
    for key, said, signed in (
        (OTHER.public, request.message, signature),
        (KEY.public, request.message + b"x", signature),
        (KEY.public, request.message, bytes(len(signature))),
        (KEY.public, request.message, signature[:-1]),
        (KEY.public, request.message, b""),
    ):
        with pytest.raises(CryptoError, match="not valid"):
            key.verify(said, signed)


def test_the_same_message_is_hidden_anew_each_time_and_signed_alike_when_it_is_asked_for_again() -> None:
    first, second = KEY.public.blind(b"vote"), KEY.public.blind(b"vote")
    assert first.blinded != second.blinded
    assert first.message != second.message
    assert KEY.sign(first.blinded) == KEY.sign(first.blinded)
    assert first.finish(KEY.sign(first.blinded)) != second.finish(KEY.sign(second.blinded))


def test_any_request_could_belong_to_any_signature() -> None:
    first, second = KEY.public.blind(b"one"), KEY.public.blind(b"two")
    signature = first.finish(KEY.sign(first.blinded))
    modulus = KEY.public.modulus
    encoded = pow(int.from_bytes(signature, "big"), EXPONENT, modulus)
    # For every other request there is exactly one factor that would have led to it from this message.
    signed = int.from_bytes(KEY.sign(second.blinded), "big")
    factor = signed * pow(int.from_bytes(signature, "big"), -1, modulus) % modulus
    hidden = encoded * pow(factor, EXPONENT, modulus) % modulus
    assert hidden.to_bytes(KEY.public.size, "big") == second.blinded


def test_a_signer_that_does_not_sign_is_noticed() -> None:
    request, another = KEY.public.blind(b"vote"), KEY.public.blind(b"vote")
    with pytest.raises(CryptoError, match="not valid"):
        request.finish(KEY.sign(another.blinded))


@pytest.mark.parametrize("blinded", [b"", b"\x00" * 256, b"\xff" * 256, b"\x01" * 255, b"\x01" * 257])
def test_what_is_no_request_is_not_signed(blinded: bytes) -> None:
    with pytest.raises(CryptoError, match="blind the message anew"):
        KEY.sign(blinded)


def test_a_wrong_result_of_the_machine_is_not_given_away(monkeypatch: pytest.MonkeyPatch) -> None:
    request = KEY.public.blind(b"vote")
    monkeypatch.setattr(BlindSigningKey, "_power", lambda self, value: value)
    with pytest.raises(CryptoError, match="came out wrong"):
        KEY.sign(request.blinded)


def test_keys_survive_their_bytes_and_show_nothing() -> None:
    again = BlindSigningKey.from_bytes(KEY.to_bytes())
    assert again.public == KEY.public
    assert repr(KEY) == "BlindSigningKey(...)"
    request = KEY.public.blind(b"vote")
    assert again.sign(request.blinded) == KEY.sign(request.blinded)
    assert "vote" not in repr(request)
    assert KEY.public.to_dict()["fingerprint"] == KEY.public.fingerprint != OTHER.public.fingerprint


def test_other_keys_are_refused() -> None:
    foreign = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(CryptoError, match="what to_bytes wrote"):
        BlindSigningKey.from_bytes(foreign)
    with pytest.raises(CryptoError, match="2048 bits or more"):
        BlindPublicKey(KEY.public.modulus >> 8)
    with pytest.raises(CryptoError, match="2048 bits or more"):
        BlindPublicKey(KEY.public.modulus, 3)
    with pytest.raises(CryptoError, match="no key for signatures"):
        BlindPublicKey(2**2048).blind_with(b"m", salt=bytes(48), factor=2)
