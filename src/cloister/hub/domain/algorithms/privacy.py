"""The privacy contract of a foreign algorithm: what the platform, not the algorithm, does to its outputs.

One contract is offered, ``sample_and_aggregate``: the platform runs the algorithm on disjoint blocks of persons, clips
each block's outputs and releases their private mean or median (Nissim, Raskhodnikova and Smith 2007). It holds for any
code. Noise that the algorithm adds itself counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from cloister.core import exact, validation
from cloister.core.guarantees import Adjacency
from cloister.errors import CloisterError, ManifestError, ParameterError
from cloister.hub.domain.algorithms._fields import ManifestPart, finite
from cloister.hub.domain.documents import mistake, one_of, require, whole

CONTRACTS = ("sample_and_aggregate",)
AGGREGATIONS = ("mean", "median")
NOISES = ("laplace", "gaussian")
UNITS = ("any", "row", "person")
NEIGHBORS = ("any", "add_remove", "replace", "user")
MOST_BLOCKS = 1000
ASKED = "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks(ManifestPart):
    """How many blocks a run may have."""

    default: Annotated[int, whole(2, MOST_BLOCKS)] = 20
    fewest: Annotated[int, whole(2, MOST_BLOCKS)] = 5
    most: Annotated[int, whole(2, MOST_BLOCKS)] = 200

    def __post_init__(self) -> None:
        for name, low in (("fewest", 2), ("default", self.fewest)):
            if not low <= getattr(self, name) <= self.most:
                raise ManifestError(
                    f"{name.capitalize()} is not a whole number from {low} to {self.most}.",
                    fix=f"write for example {name}: {low}.",
                )

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields; what is not stated gives way to what is."""
        if any(type(number) is not int for number in values.values()):
            return values
        plain = cls()
        most = values.get("most", plain.most)
        fewest = values.get("fewest", min(plain.fewest, most))
        return {"fewest": fewest, "default": min(max(plain.default, fewest), most)} | values


def _price(check: Callable[[object], Fraction]) -> PlainValidator:
    def read(value: Any) -> Fraction | None:  # whatever the file holds
        if value == ASKED:
            return None
        try:
            return check(finite(value))
        except CloisterError as error:
            raise ManifestError(
                "This is neither a number that can be a price nor the word asked.", fix=error.fix
            ) from None

    return PlainValidator(read)


def _positive_delta(value: object) -> Fraction:
    return validation.check_delta(value, allow_zero=False)


_WRITTEN_PRICE = PlainSerializer(lambda price: ASKED if price is None else float(price))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyContract(ManifestPart):
    """What a run promises.

    Attributes:
        contract: always "sample_and_aggregate".
        aggregation: the mean or the median of the blocks.
        noise: "laplace" (epsilon) or "gaussian" (epsilon and delta) for means; the median is pure.
        epsilon: the price of a run, or None if the data user names it.
        blocks: how many blocks a run may have.
        unit: to whom it applies: "row", "person" or "any".
        neighbors: the neighbor relation that it is meant for, or "any".
        delta: as epsilon, for Gaussian noise.
    """

    contract: Annotated[str, PlainValidator(one_of(CONTRACTS))] = "sample_and_aggregate"
    aggregation: Annotated[str, PlainValidator(one_of(AGGREGATIONS))] = "mean"
    noise: Annotated[str, PlainValidator(one_of(NOISES))] = "laplace"
    epsilon: Annotated[Fraction | None, _price(validation.check_epsilon), _WRITTEN_PRICE] = None
    blocks: Blocks = Blocks()
    unit: Annotated[str, PlainValidator(one_of(UNITS))] = "any"
    neighbors: Annotated[str, PlainValidator(one_of(NEIGHBORS))] = "any"
    delta: Annotated[Fraction | None, _price(_positive_delta), _WRITTEN_PRICE] = None

    def __post_init__(self) -> None:
        if self.aggregation == "median" and self.is_gaussian:
            raise ManifestError("A median has no Gaussian noise.", fix="write noise: laplace, or aggregation: mean.")

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields, among which the contract has to be; only Gaussian noise has a delta."""
        require(values, "contract")
        if "delta" in values and values.get("noise") != "gaussian":
            raise mistake(
                "this is for Gaussian noise.", fix="leave delta out, or write noise: gaussian.", at=("delta",)
            )
        return values

    def finish(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields, with a delta where the noise has one."""
        return {name: value for name, value in values.items() if name != "delta" or self.is_gaussian}

    @property
    def is_gaussian(self) -> bool:
        """Return whether a run needs a delta."""
        return self.noise == "gaussian"

    def price(self, *, epsilon: object, delta: object) -> tuple[Fraction, Fraction]:
        """Return epsilon and delta of a run from what the data user asked for.

        Raises:
            ParameterError: if they are missing, or differ from a declared price.
        """
        return _settle_price("epsilon", self.epsilon, epsilon), (
            _settle_price("delta", self.delta, delta) if self.is_gaussian else _refuse_delta(delta)
        )

    def number_of_blocks(self, asked: int | None) -> int:
        """Return how many blocks a run has."""
        count = self.blocks.default if asked is None else validation.check_count(asked, name="blocks", at_least=1)
        if not self.blocks.fewest <= count <= self.blocks.most:
            raise ParameterError(
                f"The algorithm runs on {self.blocks.fewest} to {self.blocks.most} blocks.",
                fix=f"use for example blocks={self.blocks.default}.",
            )
        return count

    def require_unit(self, *, unit_is_person: bool, adjacency: Adjacency) -> None:
        """Return nothing if the contract covers a dataset's unit and neighbor relation, else raise."""
        unit = "person" if unit_is_person else "row"
        if adjacency not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.USER):
            raise ParameterError(
                f"Foreign algorithms are not offered for the relation {adjacency}.",
                fix="protect rows or persons: add_remove, replace or user.",
            )
        if self.unit not in ("any", unit) or self.neighbors not in ("any", str(adjacency)):
            raise ParameterError(
                f"The algorithm is meant for the unit {self.unit} and the relation {self.neighbors}.",
                fix="choose another algorithm, or ask its provider to support this dataset's unit and relation.",
            )


def _settle_price(name: str, declared: Fraction | None, asked: object) -> Fraction:
    if asked is None:
        if declared is None:
            raise ParameterError(f"The run needs {name}.", fix=f"say how much {name} the run may cost.")
        return declared
    given = validation.check_epsilon(asked) if name == "epsilon" else _positive_delta(asked)
    if declared is not None and given != declared:
        raise ParameterError(f"The algorithm has a fixed {name} of {exact.text(declared)}.", fix=f"leave {name} out.")
    return given


def _refuse_delta(delta: object) -> Fraction:
    if delta is not None and exact.number(delta, name="delta") != 0:
        raise ParameterError("The algorithm has no delta.", fix="leave delta out.")
    return Fraction(0)
