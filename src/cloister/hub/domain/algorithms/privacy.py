"""The privacy contract of a foreign algorithm: what the platform, not the algorithm, does to its outputs.

One contract is offered, ``sample_and_aggregate``: the platform runs the algorithm on disjoint blocks of persons, clips
each block's outputs and releases their private mean or median (Nissim, Raskhodnikova and Smith 2007). It holds for any
code. Noise that the algorithm adds itself counts for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.core import exact, validation
from cloister.core.guarantees import Adjacency
from cloister.errors import CloisterError, ManifestError, ParameterError
from cloister.hub.domain.algorithms._sections import ManifestSection

CONTRACTS = ("sample_and_aggregate",)
AGGREGATIONS = ("mean", "median")
NOISES = ("laplace", "gaussian")
UNITS = ("any", "row", "person")
NEIGHBORS = ("any", "add_remove", "replace", "user")
MOST_BLOCKS = 1000
ASKED = "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """How many blocks a run may have."""

    default: int = 20
    fewest: int = 5
    most: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyContract:
    """What a run promises.

    Attributes:
        contract: always "sample_and_aggregate".
        aggregation: the mean or the median of the blocks.
        noise: "laplace" (epsilon) or "gaussian" (epsilon and delta) for means; the median is pure.
        epsilon: the price of a run, or None if the data user names it.
        delta: likewise, for Gaussian noise.
        blocks: how many blocks a run may have.
        unit: to whom it applies: "row", "person" or "any".
        neighbors: the neighbor relation that it is meant for, or "any".
    """

    contract: str = "sample_and_aggregate"
    aggregation: str = "mean"
    noise: str = "laplace"
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    blocks: Blocks = Blocks()
    unit: str = "any"
    neighbors: str = "any"

    @classmethod
    def read(cls, values: object) -> PrivacyContract:
        """Return the contract that plain values state."""
        known = ("contract", "aggregation", "noise", "epsilon", "delta", "blocks", "unit", "neighbors")
        section = ManifestSection(values, where="privacy", known=known)
        contract = cls(
            contract=section.choice("contract", CONTRACTS),
            aggregation=section.choice("aggregation", AGGREGATIONS, "mean"),
            noise=section.choice("noise", NOISES, "laplace"),
            epsilon=_price(section, "epsilon"),
            delta=_price(section, "delta"),
            blocks=_blocks(section),
            unit=section.choice("unit", UNITS, "any"),
            neighbors=section.choice("neighbors", NEIGHBORS, "any"),
        )
        if section.has("delta") and not contract.is_gaussian:
            raise ManifestError(
                "privacy.delta is for Gaussian noise.", fix="leave delta out, or write noise: gaussian."
            )
        if contract.aggregation == "median" and contract.noise == "gaussian":
            raise ManifestError("A median has no Gaussian noise.", fix="write noise: laplace, or aggregation: mean.")
        return contract

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

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that `read` takes."""
        values: dict[str, Any] = {
            "contract": self.contract,
            "aggregation": self.aggregation,
            "noise": self.noise,
            "epsilon": ASKED if self.epsilon is None else float(self.epsilon),
            "blocks": {"default": self.blocks.default, "fewest": self.blocks.fewest, "most": self.blocks.most},
            "unit": self.unit,
            "neighbors": self.neighbors,
        }
        if self.is_gaussian:
            values["delta"] = ASKED if self.delta is None else float(self.delta)
        return values


def _price(section: ManifestSection, name: str) -> Fraction | None:
    found = section.any(name, ASKED)
    if found == ASKED:
        return None
    try:
        check = validation.check_epsilon if name == "epsilon" else _positive_delta
        return check(section.number(name))
    except CloisterError as error:
        raise ManifestError(
            f"{section.path(name)} is neither a number that can be a price nor the word asked.", fix=error.fix
        ) from None


def _positive_delta(value: object) -> Fraction:
    return validation.check_delta(value, allow_zero=False)


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


def _blocks(section: ManifestSection) -> Blocks:
    inner = ManifestSection(section.any("blocks", {}), where="privacy.blocks", known=("default", "fewest", "most"))
    plain = Blocks()
    most = inner.whole("most", plain.most, low=2, high=MOST_BLOCKS)
    fewest = inner.whole("fewest", min(plain.fewest, most), low=2, high=most)
    default = inner.whole("default", min(max(plain.default, fewest), most), low=fewest, high=most)
    return Blocks(default=default, fewest=fewest, most=most)
