from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from cloister.core import exact
from cloister.errors import InternalError, OutsideDomainError
from cloister.local.draws import law_of
from cloister.local.naive_bayes._class_means import (
    ClassAndBit,
    ClassAndValue,
    ClassMeanProtocol,
    ClassVector,
    best_protocol,
    class_mean_protocols,
)
from cloister.testing import check_scale
from cloister.testing.distributions import discrete_laplace
from cloister.testing.local_laws import device_law, worst_ratio
from tests.local.collection.spread import assert_scatters

KINDS = list(class_mean_protocols.values())


@pytest.mark.parametrize("kind", [ClassAndBit, ClassAndValue])
@pytest.mark.parametrize(("classes", "epsilon"), [(2, "1/2"), (2, "2"), (3, "2"), (3, "6")])
def test_the_device_has_exactly_the_epsilon_asked_for(
    kind: type[ClassMeanProtocol], classes: int, epsilon: str
) -> None:
    protocol = kind(classes=classes, epsilon=epsilon, steps=2)
    laws = [device_law(protocol, code) for code in itertools.product(range(classes), range(-2, 3))]
    assert all(sum(law.values()) == 1 for law in laws)
    assert worst_ratio(laws) == protocol.likelihood_ratio
    low, high = exact.log_bounds(protocol.likelihood_ratio)
    assert low <= Fraction(epsilon)
    assert high >= Fraction(epsilon) - Fraction(1, 10**9)


@pytest.mark.parametrize("kind", [ClassAndBit, ClassAndValue])
def test_the_products_are_unbiased_by_their_exact_law(kind: type[ClassMeanProtocol]) -> None:
    protocol = kind(classes=3, epsilon=2, steps=2)

    def reading(code: tuple[int, int]) -> Callable[[Any], tuple[float, ...]]:
        def read(draws: Any) -> tuple[float, ...]:
            return tuple(protocol.products(protocol.perturb(np.array([code]), draws)).products.tolist())

        return read

    for label, step in itertools.product(range(3), range(-2, 3)):
        law = law_of(reading((label, step)))
        mean = sum(float(probability) * np.array(reading) for reading, probability in law.items())
        assert mean == pytest.approx([step / 2 if place == label else 0 for place in range(3)], abs=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("entry", [0, 1])
def test_every_entry_of_the_vector_has_laplace_noise_of_scale_two_over_epsilon(entry: int) -> None:
    protocol = ClassVector(classes=2, epsilon=2, steps=4)

    def draw(size: int) -> Any:
        rows = protocol.randomize([[0, 1.0]] * size).payload["y"][:, entry]
        return rows - (4 if entry == 0 else 0)

    check_scale(draw, discrete_laplace, scale=4.0)
    assert protocol.scale == 4


def test_two_vectors_are_never_further_apart_than_the_noise_hides() -> None:
    protocol = ClassVector(classes=3, epsilon=1, steps=4)
    vectors = []
    for label, number in itertools.product(range(3), np.linspace(-1, 1, 9)):
        vector = np.zeros(3, dtype=np.int64)
        vector[label] = protocol.code(np.array([label]), np.array([number]))[0, 1]
        vectors.append(vector)
    furthest = max(int(np.abs(one - other).sum()) for one in vectors for other in vectors)
    assert furthest == 2 * protocol.steps
    assert furthest / protocol.scale == protocol.epsilon


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_products_scatter_as_their_variances_say(kind: type[ClassMeanProtocol]) -> None:
    protocol = kind(classes=2, epsilon=2)
    # Numbers are fair signs of size sqrt(1/5), so that classes and squares are those of the typical variance.
    people = [[0, 0.2**0.5], [0, -(0.2**0.5)], [1, 0.2**0.5], [1, -(0.2**0.5)]]
    groups, size = 8000, 40
    reports = protocol.randomize(np.tile(people, (groups * size // 4, 1))).payload.reshape(groups, size)
    found = [protocol.products(rows).products[0] for rows in reports]
    sampled = 0.2 / 2
    noise = protocol.typical_variance(2, Fraction(2)) - sampled
    assert_scatters(found, (noise / size) ** 0.5)


def test_numbers_beyond_the_ends_are_clamped_and_foreign_ones_refused() -> None:
    protocol = ClassAndBit(classes=2, epsilon=1, steps=4)
    codes, single = protocol.encode([[0, 7.0], [1, -7.0]])
    assert codes.tolist() == [[0, 4], [1, -4]]
    assert not single
    with pytest.raises(OutsideDomainError, match="no answer"):
        protocol.randomize([[0, float("nan")]])
    with pytest.raises(OutsideDomainError, match="declare"):
        protocol.randomize([[2, 0.5]])


def test_noise_is_drawn_from_a_random_source_only() -> None:
    protocol = ClassVector(classes=2, epsilon=1)
    with pytest.raises(InternalError, match="random source"):
        law_of(lambda draws: protocol.perturb(np.array([[0, 1]]), draws).tobytes())


def test_the_best_way_depends_on_epsilon() -> None:
    assert [best_protocol(2, Fraction(epsilon)) for epsilon in (1, 2, 4, 5, 10)] == ["bit"] * 3 + ["value"] * 2


def test_variances_of_the_ways_are_as_published() -> None:
    epsilon = Fraction(2)
    assert ClassVector.typical_variance(2, epsilon) == pytest.approx(8 / 4 + 0.1)
    half = 1 / (np.exp(1) + 1)
    told = (half * (1 - half) ** 2 + (1 - half) * half**2 + (1 - half) * (1 - half) ** 2 + half * half**2) / 2
    wanted = (3.682103 + 0.2 * np.exp(0.5) / (np.exp(0.5) - 1)) * told / (1 - 2 * half) ** 2
    assert ClassAndValue.typical_variance(2, epsilon) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("kind", [partial(kind, classes=2) for kind in KINDS], ids=[kind.name for kind in KINDS])
def test_records_tell_protocols_apart(kind: Callable[..., ClassMeanProtocol]) -> None:
    assert kind(epsilon=1) == kind(epsilon=1)
    assert kind(epsilon=1) != kind(epsilon=2)
    assert kind(epsilon=1) != kind(epsilon=1, steps=8)
    assert repr(kind(epsilon=1)).endswith("(2 classes, epsilon=1)")
