"""A local protocol: what a device does to one value, what leaves it, and how reports are read.

A protocol is a frozen, public description shared by devices and collector. Its probabilities are integers out of 2**64,
rounded towards privacy, so that its law is exact: `likelihood_ratio` is a rational number, and its logarithm is the
epsilon asked for, to a billionth, never above it.

Privacy: claim epsilon-LDP for one report (hence epsilon-DP under the replace relation for the collected set). Each
subclass argues for its own ratio; `testing` follows every decision of the device and compares.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from inspect import signature
from math import ceil
from typing import Any, ClassVar, TypeVar, overload

from numpy.typing import NDArray

from cloister.core import exact, validation
from cloister.core.digests import digest_of
from cloister.core.exact import Number
from cloister.core.guarantees import LocalDP
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.registry import Registry
from cloister.data.columns import Category
from cloister.errors import (
    ForeignReportError,
    InternalError,
    MissingBoundsError,
    ParameterError,
    ParameterTypeError,
)
from cloister.local._output_space import OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.draws import CERTAIN, Draws, SourceDraws
from cloister.local.estimates import Floats
from cloister.local.reports import LocalReport, Reports, read_reports

__all__ = ["LARGEST_EPSILON", "SMALLEST_EPSILON", "Protocol", "check_local_epsilon", "open_protocol", "protocols"]

LARGEST_EPSILON = 20
SMALLEST_EPSILON = Fraction(1, 10**6)
_AGREEMENT = Fraction(1, 10**9)
_SCHEMA = "cloister.protocol/1"
_STATED = ("perturb", "likelihood_ratio", "likeliest_report", "plausibility_tests")
"""What every protocol with a name states, not above the place where it says what the device does."""
_ALSO_STATED = ("poisoning_gains", "log_likelihoods")
"""What families of protocols may leave open, and their members may not."""

FOLLOWED = "the device followed the protocol, with randomness that nobody can predict"
"""What every local guarantee assumes: a collector cannot see it from a report."""

protocols: Registry[type[Protocol]] = Registry("local protocol")
_P = TypeVar("_P", bound="Protocol")


class Protocol(ABC):
    """What devices and collector agree on before anything is asked.

    Attributes:
        epsilon: what one report costs its sender.
        output_space: what a report may look like.
        fits_choices: whether a survey may name it for a question with one of several answers.
        in_browsers: whether ``local/js/protocol.js`` knows it, so that people can answer in a browser.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    fits_choices: ClassVar[bool] = False
    in_browsers: ClassVar[bool] = False

    epsilon: Fraction
    output_space: OutputSpace

    def __init_subclass__(cls, **options: Any) -> None:  # of further bases
        """Refuse a protocol that says how it answers and not what its honest reports look like.

        What is missing would be silence: a check that passes without having looked. A protocol that changes what the
        device does must say anew how likely its reports are and what they are compared with.
        """
        super().__init_subclass__(**options)
        # A family without a name is never used by itself: its members answer for what it leaves open.
        if "name" not in vars(cls):
            return
        # These are said about a name: whoever takes another one has to say them anew.
        for claim in ("fits_choices", "in_browsers"):
            if claim not in vars(cls):
                setattr(cls, claim, False)
        home = {name: next(place for place, kind in enumerate(cls.__mro__) if name in vars(kind)) for name in _STATED}
        required = (*_STATED, *_ALSO_STATED)
        missing = [name for name in required if getattr(getattr(cls, name), "__isabstractmethod__", False)]
        # What is stated above the class that changes the device was said about another device.
        missing += [name for name in _STATED if name not in missing and home[name] > home["perturb"]]
        if missing:
            raise InternalError(f'the local protocol "{cls.name}" does not state {", ".join(missing)}')

    def __init__(self, *, epsilon: Number | None) -> None:
        self.epsilon = check_local_epsilon(epsilon)

    @overload
    def randomize(self, values: Category, *, random_state: RandomState = None) -> LocalReport: ...
    @overload
    def randomize(self, values: Any, *, random_state: RandomState = None) -> Reports: ...
    def randomize(self, values: Any, *, random_state: RandomState = None) -> Reports:  # one value or many
        """Return the report of one value, or the reports of many people's values, one each.

        This is the device's side: only what is returned may leave it.

        Raises:
            OutsideDomainError: if a value is missing or not in the public domain.
        """
        source = random_source(random_state)
        codes, is_single = self.encode(values)
        draws = SourceDraws(source)
        # One device draws in the order of the protocol, which browsers share; for many people at once no order is
        # promised.
        payload = self.perturb(codes, draws) if is_single else self.perturb_many(codes, draws)
        kind = LocalReport if is_single else Reports
        return kind(self, payload, caveats_of(source))

    @abstractmethod
    def encode(self, values: Any) -> tuple[NDArray[Any], bool]:  # one value or many
        """Return the codes of values, one row each, and whether it was a single value."""

    @abstractmethod
    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return the reports of codes; for one code the order of draws is the protocol's."""

    def perturb_many(self, codes: NDArray[Any], draws: SourceDraws) -> Payload:
        """Return reports by the same law, as fast as arrays allow; the order of draws is free."""
        return self.perturb(codes, draws)

    @property
    @abstractmethod
    def likelihood_ratio(self) -> Fraction:
        """Return the largest ratio of the probabilities of one report under two values, exactly."""

    @property
    @abstractmethod
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value, or a bound above it.

        So surprising it is, at least, that two reports are the same.
        """

    @abstractmethod
    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with, whatever people's values are; see `_plausibility`."""

    def log_likelihoods(self, payload: Payload) -> Floats:  # noqa: ARG002  # for those that have them
        """Return for each report and value the logarithm of the probability, up to a number for each report.

        Raises:
            ParameterTypeError: if the protocol is not one for a value of a public domain.
        """
        raise several_values()

    def poisoning_gains(self) -> tuple[float, float]:
        """Return by how much one report can raise, and lower, an estimated count.

        Raises:
            ParameterTypeError: if the protocol does not count values.
        """
        raise ParameterTypeError(
            "This protocol does not count values.", fix="use a frequency protocol, such as DirectEncoding."
        )

    @property
    def values_raised(self) -> int:
        """Return how many values one report can raise together."""
        return 1

    def epsilon_of(self) -> Fraction:
        """Return the epsilon of the device's actual law, rounded up beyond the thirtieth digit."""
        return exact.log_bounds(self.likelihood_ratio)[1]

    def read(self, source: Any) -> Reports:  # whatever holds reports
        """Return reports in any form, each one checked; see `reports.read_reports`."""
        return read_reports(self, source)

    @abstractmethod
    def estimate(self, reports: Any) -> Any:  # whatever holds reports; a result of the protocol's kind
        """Return what the reports say about the people together."""

    def guarantee_of(self, reports: Reports) -> LocalDP:
        """Return what each of the reports promises to its sender."""
        return self.guarantee.with_caveat(*reports.caveats)

    @property
    def guarantee(self) -> LocalDP:
        """Return what one report promises to its sender."""
        return LocalDP(epsilon=self.epsilon, assumptions=(FOLLOWED,))

    def to_dict(self) -> dict[str, Any]:
        """Return the public record that devices get; integers that a browser would round are text."""
        record = self._record()
        return {**record, "fingerprint": digest_of(record)}

    @property
    def fingerprint(self) -> str:
        """Return the hash of the record: two protocols are the same when their fingerprints are."""
        return str(self.to_dict()["fingerprint"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Protocol) and (self is other or other.fingerprint == self.fingerprint)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._domain_words()}, epsilon={float(self.epsilon):g})"

    @abstractmethod
    def _domain_record(self) -> dict[str, Any]:
        """Return the public domain or bounds as JSON-ready values."""

    @abstractmethod
    def _domain_words(self) -> str:
        """Return the public domain or bounds for a person."""

    def _options(self) -> dict[str, Any]:
        """Return further arguments of the constructor as JSON-ready values."""
        return {}

    @abstractmethod
    def _params(self) -> dict[str, Any]:
        """Return what the device decides with: thresholds and sizes, as JSON-ready values."""

    def _record(self) -> dict[str, Any]:
        return {
            "schema": _SCHEMA,
            "name": self.name,
            "version": self.version,
            "epsilon": exact.text(self.epsilon),
            **self._domain_record(),
            "options": self._options(),
            "params": self._params(),
            "output_space": self.output_space.to_dict(),
        }

    def _check_epsilon(self) -> None:
        """Compare the actual law with the epsilon asked for; constructors end with this."""
        actual = self.epsilon_of()
        # The logarithm is itself rounded up beyond the thirtieth digit, so that equality may look like a little more.
        if actual > self.epsilon + Fraction(1, 10**25):
            raise InternalError(f'"{self.name}" has a larger epsilon than was asked for')
        if actual < self.epsilon - _AGREEMENT:
            raise ParameterError(
                "These probabilities are too small for a decision with 64 random bits.",
                fix="use probabilities above 0.000000001, or none at all.",
            )


def several_values() -> ParameterTypeError:
    """Return the error for likelihoods of reports that are not about one value of a public domain."""
    return ParameterTypeError(
        "This attack is for reports of one value of a public domain.",
        fix="give a protocol such as DirectEncoding, OptimizedUnaryEncoding or OptimizedLocalHashing.",
    )


def check_local_epsilon(value: object) -> Fraction:
    """Return epsilon as an exact number in the range in which 64-bit decisions are exact enough."""
    if value is None:
        raise ParameterError(
            "A report's epsilon is missing.", fix="write for example epsilon=1; smaller is more private."
        )
    epsilon = validation.check_epsilon(value)
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise ParameterError(
            f"A report's epsilon lies between {float(SMALLEST_EPSILON):g} and {LARGEST_EPSILON}.",
            fix="use for example epsilon=1; above 10 a report is practically the truth.",
        )
    return epsilon


def lie_threshold(epsilon: Fraction, others: int | Fraction = 1) -> int:
    """Return the threshold of ``others / (others + exp(epsilon))``, rounded up: towards privacy."""
    # The lower bound of exp(epsilon) and the rounding both make the lie likelier, never the truth.
    return ceil(others * CERTAIN / (others + exact.exp_bounds(epsilon)[0]))


def open_protocol(record: Any) -> Protocol:  # JSON text or its values
    """Return the protocol of a public record, after checking that the record is what this version makes of it.

    Raises:
        ForeignReportError: if the record was changed or made by another version.
    """
    try:
        values = json.loads(record) if isinstance(record, str) else dict(record)
        kind, arguments = protocols.get(str(values["name"])), {"epsilon": values["epsilon"]}
        arguments |= {key: values[key] for key in ("domain", "bounds") if key in values}
        arguments |= dict(values.get("options", {}))
        # A name that the constructor does not have is the record's mistake, and must not look like one of the caller.
        signature(kind).bind(**arguments)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _no_record() from None
    try:
        made = kind(**arguments)
    except MissingBoundsError:
        raise _no_record() from None
    # Thresholds in the record are never used, only compared: whoever changes one is found out here.
    if made.to_dict() != values:
        raise ForeignReportError(
            "The protocol record was changed, or made by another version.",
            fix="take the record from the collector again, and use the same version of cloister on both sides.",
        )
    return made


def _no_record() -> ParameterTypeError:
    return ParameterTypeError("This is not a protocol record.", fix="give what Protocol.to_dict returned, or its JSON.")
