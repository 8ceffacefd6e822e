"""Every registered local protocol obeys the laws of its family."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from cloister import local
from cloister.errors import CloisterError, InternalError, LawViolatedError
from cloister.local._bit_strings import BitStrings
from cloister.local._output_space import Payload
from cloister.local.draws import Draws
from cloister.local.frequency.support import FrequencyProtocol
from cloister.testing import local_laws
from cloister.testing.laws import Law
from cloister.testing.local_laws import LocalProtocolLaws, device_law, worst_ratio
from tests.support.thoroughness import examples

EPSILONS = ("1/2", "4", "1/10", "1", "2", "7")[: examples(6, usual=2)]
"""Of protocols whose whole law takes a second to follow."""


def made(kind: Any, domain: Any, **options: Any) -> Any:
    return lambda epsilon: kind(domain=domain, epsilon=epsilon, **options)


def categorical(kind: Any, small: int | None, **options: Any) -> LocalProtocolLaws:
    domain = ["no", "yes"] if kind is local.RandomizedResponse else ["a", "b", "c", "d", "e", "f", "g"]
    return LocalProtocolLaws(
        factory=made(kind, domain),
        values=tuple(domain),
        outside=("secret-4711", None, float("nan"), 7),
        small=None if small is None else made(kind, small, **options),
        codes=tuple(range(small or 0)),
    )


def numeric(kind: Any, small: int | None) -> LocalProtocolLaws:
    return LocalProtocolLaws(
        factory=lambda epsilon: kind(bounds=(0, 10), epsilon=epsilon),
        values=(0, 2.5, 10),
        outside=("secret-4711", None, float("nan"), float("inf"), True),
        small=None if small is None else lambda epsilon: kind(bounds=(0, 10), epsilon=epsilon, steps=small),
        codes=tuple(range((small or 0) + 1)),
    )


def vectors(kind: Any, dimensions: int | None) -> LocalProtocolLaws:
    return LocalProtocolLaws(
        factory=lambda epsilon: kind(bounds=[(0, 10), (-1, 1)], epsilon=epsilon),
        values=((0, -1), (2.5, 0.5), (10, 1)),
        outside=("secret-4711", None, (1, float("nan")), (1, 2, 3), (1, None)),
        small=None
        if dimensions is None
        else lambda epsilon: kind(bounds=[(0, 1)] * dimensions, epsilon=epsilon, steps=2),
        codes=tuple(product(range(3), repeat=dimensions or 0)),
    )


LAWS = {
    "randomized_response": categorical(local.RandomizedResponse, 2),
    "direct_encoding": categorical(local.DirectEncoding, 5),
    "symmetric_unary_encoding": categorical(local.SymmetricUnaryEncoding, 4),
    "optimized_unary_encoding": categorical(local.OptimizedUnaryEncoding, 4),
    "optimized_local_hashing": replace(categorical(local.OptimizedLocalHashing, 2, buckets=2), epsilons=EPSILONS),
    "hadamard_response": categorical(local.HadamardResponse, 5),
    "subset_selection": categorical(local.SubsetSelection, 5),
    "pram": categorical(local.Pram, 4),
    "rappor": LocalProtocolLaws(
        factory=made(local.Rappor, ["a", "b", "c", "d", "e"], bits=8, hashes=2),
        values=("a", "b", "e"),
        outside=("secret-4711", None, float("nan"), 7),
    ),
    "heavy_hitters": LocalProtocolLaws(
        factory=lambda epsilon: local.HeavyHitters(kind="text", size=5, epsilon=epsilon),
        values=("a", "bb", "ccccc"),
        outside=("secret-4711", None, float("nan"), 7),
        small=lambda epsilon: local.HeavyHitters(
            kind="integer", size=2, epsilon=epsilon, most=1, candidates=2, buckets=2
        ),
        codes=tuple(BitStrings.of("integer", 2).encode([0, 1])),
        epsilons=("1",),
    ),
    "unary_set": LocalProtocolLaws(
        factory=made(local.UnarySet, ["a", "b", "c", "d", "e"], most=2),
        values=({"a", "b"}, frozenset(), {"e"}),
        outside=({"secret-4711"}, None, ["a", "a"], {"a", "b", "c"}, {7}),
        small=made(local.UnarySet, 4, most=2),
        codes=tuple(tuple(place in picks for place in range(4)) for picks in ({0, 1}, {2, 3}, {0}, {3}, {0, 2}, set())),
    ),
    "summation_histogram_encoding": categorical(local.SummationHistogramEncoding, None),
    "threshold_histogram_encoding": categorical(local.ThresholdHistogramEncoding, None),
    "duchi": numeric(local.Duchi, 8),
    "piecewise": numeric(local.Piecewise, 8),
    "square_wave": numeric(local.SquareWave, 8),
    "hybrid": numeric(local.Hybrid, 8),
    "local_laplace": numeric(local.LocalLaplace, None),
    "duchi_vector": replace(vectors(local.DuchiVector, 3), epsilons=EPSILONS),
    "piecewise_vector": vectors(local.PiecewiseVector, 2),
    "laplace_vector": vectors(local.LaplaceVector, None),
}
CASES = {f"{name}: {law}": law for name, laws in LAWS.items() for law in laws}


def test_every_registered_protocol_is_here() -> None:
    assert set(LAWS) == set(local.protocols)


@pytest.fixture(autouse=True, scope="module")
def _follow_each_device_once() -> Iterator[None]:
    """Keep what a device's decisions come to: two laws look at the same devices."""
    known: dict[tuple[type, str, bytes], dict[bytes, Fraction]] = {}

    def law_known(protocol: Any, code: Any) -> dict[bytes, Fraction]:
        key = type(protocol), protocol.fingerprint, np.asarray(code).tobytes()
        if key not in known:
            known[key] = device_law(protocol, code)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_laws, "device_law", law_known)
        yield


@pytest.mark.parametrize("law", CASES.values(), ids=CASES)
def test_law(law: Law) -> None:
    """LDP-01."""
    law.verify()


class _OffByOne(local.DirectEncoding):
    """Lies by steps of 0 .. d-2: one value is never reported."""

    def perturb(self, codes: Any, draws: Draws) -> Payload:
        told = draws.chances(self.truth, 1)[0]
        return self.output_space.rows(y=codes if told else (codes + draws.below(len(self.domain) - 1, 1)) % 4)


class _Unsuspecting(local.DirectEncoding):
    """Says that a report is rarer than it is, so that honest reports look copied."""

    @property
    def likeliest_report(self) -> float:
        return -40.0


class _Trusting(local.DirectEncoding):
    """Compares its reports with nothing, and takes any report for certain."""

    @property
    def likeliest_report(self) -> float:
        return 0.0

    def plausibility_tests(self) -> Iterator[Any]:
        yield from ()


class _Forgetful(local.DirectEncoding):
    """Its record leaves out half of its domain."""

    def _domain_record(self) -> dict[str, Any]:
        return {"domain": list(self.domain.values[:2])}


class _Louder(local.DirectEncoding):
    """Tells the truth more often than it says."""

    def epsilon_of(self) -> Any:
        return 2 * self.epsilon


class _Leaky(local.DirectEncoding):
    """Accepts everything, and quotes what it does not."""

    def encode(self, values: Any) -> Any:
        try:
            return super().encode(values)
        except CloisterError:
            raise CloisterError(f"{values} is odd.", fix="give another value.") from None


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (_OffByOne, "device_has_exactly_its_epsilon"),
        (_Unsuspecting, "no_report_is_likelier_than_stated"),
        (_Unsuspecting, "copies_are_found_and_honest_reports_are_not"),
        (_Trusting, "no_report_is_likelier_than_stated"),
        (_Trusting, "copies_are_found_and_honest_reports_are_not"),
        (_Forgetful, "record_opens_again"),
        (_Louder, "states_the_epsilon_asked_for"),
        (_Leaky, "refuses_values_outside_without_telling_them"),
    ],
)
def test_broken_protocols_are_refuted(kind: Any, law: str) -> None:
    """LDP-02."""
    factory = partial(kind, domain=["a", "b", "c", "d"])
    laws = LocalProtocolLaws(
        factory=lambda epsilon: factory(epsilon=epsilon),
        values=("a", "b"),
        outside=("secret-4711",),
        small=lambda epsilon: factory(epsilon=epsilon),
        codes=(0, 1, 2, 3),
        epsilons=("1",),
    )
    with pytest.raises((LawViolatedError, CloisterError)):
        next(each for each in laws if each.name == law).verify()


def test_a_report_that_only_one_value_can_give_is_an_infinite_ratio() -> None:
    assert worst_ratio([{b"a": 1, b"b": 0}, {b"a": 1}]) is None  # type: ignore[dict-item]


STATED = ("likeliest_report", "plausibility_tests", "likelihood_ratio")
ALSO = ("poisoning_gains", "log_likelihoods")


@pytest.mark.parametrize("missing", [*STATED, *ALSO])
def test_a_protocol_that_does_not_state_its_law_cannot_be_written(missing: str) -> None:
    stated = {name: getattr(local.DirectEncoding, name) for name in (*STATED, *ALSO, "perturb") if name != missing}
    with pytest.raises(InternalError, match=f'"toy" does not state {missing}'):
        type("Toy", (FrequencyProtocol,), {"name": "toy", **stated})


def test_a_protocol_that_changes_what_the_device_does_states_its_law_anew() -> None:
    with pytest.raises(InternalError, match="does not state likelihood_ratio, likeliest_report, plausibility_tests"):
        type("Toy", (local.DirectEncoding,), {"name": "toy", "perturb": local.UnarySet.perturb})
    stated = {name: getattr(local.DirectEncoding, name) for name in (*STATED, "perturb")}
    assert type("Toy", (local.DirectEncoding,), {"name": "toy", **stated}).name == "toy"  # type: ignore[attr-defined]


def test_a_protocol_that_surveys_may_name_says_whether_its_reports_have_a_mean() -> None:
    stated = {name: getattr(local.SubsetSelection, name) for name in (*STATED, *ALSO, "perturb")}
    with pytest.raises(InternalError, match='"toy" does not state score_readings'):
        type("Toy", (local.SubsetSelection,), {"name": "toy", "fits_choices": True, **stated})


def test_what_is_said_about_a_name_is_not_inherited() -> None:
    toy: Any = type("Toy", (local.DirectEncoding,), {"name": "toy"})
    assert (local.DirectEncoding.fits_choices, local.DirectEncoding.in_browsers) == (True, True)
    assert (toy.fits_choices, toy.in_browsers) == (False, False)
