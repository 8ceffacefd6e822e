"""The parties of a distributed PCA: owners of rows, a proxy that adds up what it cannot read, and a data user.

1. The data user makes a key and sends its public part to everybody.
2. Each owner encrypts its numbers, noise included, and sends them to the proxy.
3. The proxy adds them up under encryption, blinds what the plan says, and sends the result to the data user.
4. The data user decrypts, and computes components from what the plan releases.

Noise and blinding come from the source that a party is given; encryption always from the operating system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cloister.accounting.payment import finish
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.crypto.paillier import LEAST_KEY_BITS, Packing, PaillierPrivateKey, PaillierPublicKey
from cloister.errors import ParameterError, ProtocolError
from cloister.protocols.parties import Awaited, Outgoing
from cloister.protocols.pca._moments import MOST_ROWS
from cloister.protocols.pca._plans import PcaPlan, Released, Shares

__all__ = ["PROXY", "USER", "DataUser", "Owner", "Proxy"]

USER = "data user"
PROXY = "proxy"

_KEY = "public key"
_SHARE = "encrypted share"
_TOTAL = "encrypted total"


class Owner:
    """Holds rows; what leaves is encrypted and has a share of the noise."""

    def __init__(
        self,
        name: str,
        rows: Floats,
        *,
        plan: PcaPlan,
        key_bits: int,
        source: RandomSource,
        public_rows: int | None = None,
    ) -> None:
        if len(rows) > MOST_ROWS:
            raise ParameterError(f'"{name}" has too many rows.', fix="split them between several owners.")
        if public_rows is not None and len(rows) != public_rows:
            raise ParameterError(
                f'"{name}" has another number of rows than is public.', fix="state public_rows as the owners have them."
            )
        self.name, self.is_done = name, False
        self._rows, self._plan, self._key_bits, self._source = rows, plan, key_bits, source

    def __repr__(self) -> str:
        return f"Owner({self.name!r})"

    @property
    def learns(self) -> tuple[str, ...]:
        """Return what an owner learns."""
        return ("the data user's public key", "nothing about the rows of others")

    @property
    def awaits(self) -> frozenset[Awaited]:
        """Return what an owner waits for: the key."""
        return frozenset({(USER, _KEY)})

    def step(self, inbox: Mapping[Awaited, bytes]) -> Sequence[Outgoing]:
        """Encrypt this owner's share for the proxy."""
        key = read_key(inbox[USER, _KEY], bits=self._key_bits)
        # An owner whose rows cannot be added up takes part as one without rows, which only has its share of the noise.
        shares = finish(
            lambda: self._plan.shares(self._rows, self._source),
            nothing=lambda: self._plan.shares(self._rows[:0], self._source),
        )
        # From public numbers alone, so that all parties pack in the same way.
        packing = Packing.for_numbers(largest=self._plan.largest, bits=key.bits)
        numbers = [*packing.pack(shares.packed), *shares.alone]
        self.is_done = True
        payload = key.to_bytes(key.encrypt(number) for number in numbers)
        return [Outgoing(PROXY, _SHARE, payload)]


class Proxy:
    """Adds up ciphertexts."""

    def __init__(self, owners: Sequence[str], *, plan: PcaPlan, key_bits: int, source: RandomSource) -> None:
        self.name, self.is_done = PROXY, False
        self._owners, self._plan, self._key_bits, self._source = tuple(owners), plan, key_bits, source

    @property
    def learns(self) -> tuple[str, ...]:
        """Return what the proxy learns."""
        return ("who takes part", "ciphertexts that it cannot read")

    @property
    def awaits(self) -> frozenset[Awaited]:
        """Return what the proxy waits for: the key and every owner's share."""
        return frozenset({(USER, _KEY), *((owner, _SHARE) for owner in self._owners)})

    def step(self, inbox: Mapping[Awaited, bytes]) -> Sequence[Outgoing]:
        """Add up the shares and forward them to the data user."""
        key = read_key(inbox[USER, _KEY], bits=self._key_bits)
        packing = Packing.for_numbers(largest=self._plan.largest, bits=key.bits)
        packed = packing.numbers(self._plan.packed)
        sent = [key.from_bytes(inbox[owner, _SHARE], count=packed + self._plan.alone) for owner in self._owners]
        # A product of ciphertexts encrypts the sum of what is in them.
        totals = [key.add(*parts) for parts in zip(*sent, strict=True)]
        products, alone = self._plan.forward(key, packing, totals[:packed], totals[packed:], self._source)
        self.is_done = True
        return [Outgoing(USER, _TOTAL, key.to_bytes([*products, *alone]))]


class DataUser:
    """Makes the key, and gets what the plan releases.

    Attributes:
        seen: all numbers that were decrypted.
        released: what they amount to.
    """

    def __init__(self, owners: Sequence[str], *, plan: PcaPlan, key: PaillierPrivateKey) -> None:
        self.name, self.is_done = USER, False
        self.seen: Shares | None = None
        self.released: Released | None = None
        self._others, self._plan, self._key, self._has_sent = (*owners, PROXY), plan, key, False

    @property
    def learns(self) -> tuple[str, ...]:
        """Return what the data user learns."""
        return (self._plan.learned_by_user,)

    @property
    def awaits(self) -> frozenset[Awaited]:
        """Return what the data user waits for: nothing at first, then the total."""
        return frozenset({(PROXY, _TOTAL)}) if self._has_sent else frozenset()

    def step(self, inbox: Mapping[Awaited, bytes]) -> Sequence[Outgoing]:
        """Send the public key, or decrypt the total."""
        if not self._has_sent:
            self._has_sent = True
            key = self._key.public.modulus
            payload = key.to_bytes((key.bit_length() + 7) // 8, "big")
            return [Outgoing(name, _KEY, payload) for name in self._others]
        self._read(inbox[PROXY, _TOTAL])
        self.is_done = True
        return []

    def _read(self, payload: bytes) -> None:
        public, plan = self._key.public, self._plan
        packing = Packing.for_numbers(largest=plan.largest, bits=public.bits)
        packed = packing.numbers(plan.packed)
        numbers = [self._key.decrypt(each) for each in public.from_bytes(payload, count=packed + plan.alone)]
        self.seen = Shares(packing.unpack(numbers[:packed], count=plan.packed), numbers[packed:])
        self.released = plan.read(self.seen)


def read_key(payload: bytes, *, bits: int) -> PaillierPublicKey:
    """Return the data user's public key, if it is as long as was agreed.

    Raises:
        ProtocolError: if it is not.
    """
    modulus = int.from_bytes(payload, "big")
    if modulus.bit_length() != bits:
        raise ProtocolError(
            "The data user's key is not as long as was agreed.", fix=f"ask for a new key of {bits} bits."
        )
    return PaillierPublicKey(modulus, insecure_for_tests=bits < LEAST_KEY_BITS)
