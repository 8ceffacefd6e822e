from __future__ import annotations

import math

import pytest

from cloister.core.random import ListedRandomSource
from cloister.errors import OutsideDomainError, ParameterError
from cloister.local import DirectEncoding


def words(*fractions: float) -> ListedRandomSource:
    return ListedRandomSource([int(fraction * 2**64) for fraction in fractions])


@pytest.mark.parametrize(("draws", "reported"), [((0.49,), 2), ((0.51, 0.0), 3), ((0.51, 0.34), 0), ((0.99, 0.99), 1)])
def test_parity_vectors(draws: tuple[float, ...], reported: int) -> None:
    protocol = DirectEncoding(domain=4, epsilon=math.log(3))
    assert protocol.randomize(2, random_state=words(*draws)).y == reported


def test_values_and_epsilons_out_of_range_are_refused() -> None:
    with pytest.raises(OutsideDomainError, match="no answer"):
        DirectEncoding(domain=["a", "b"], epsilon=1).randomize("c")
    for bad in (0, -1, 21, 1e-9):
        with pytest.raises(ParameterError, match="epsilon"):
            DirectEncoding(domain=["a", "b"], epsilon=bad)
