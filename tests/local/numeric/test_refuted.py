"""LDP-02: broken protocols for numbers are refuted, and those of cloister are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.local import DuchiVector, Piecewise
from cloister.testing import ExactReport, check_exactly
from cloister.testing.zoo import EXHIBITS, Exhibit
from tests.local.laws import law
from tests.local.numeric.helpers import mean_is

BY_NAME = {exhibit.name: exhibit for exhibit in EXHIBITS}
NUMERIC = ("duchi_even_dimension", "duchi_overlapping_halves", "piecewise_endpoint_mass")


@pytest.mark.statistical
@pytest.mark.parametrize("exhibit", [BY_NAME[name] for name in NUMERIC], ids=lambda exhibit: exhibit.name)
def test_ldp_02_the_broken_variants_are_refuted(exhibit: Exhibit) -> None:
    assert exhibit.examine(exhibit.broken).refuted
    exhibit.verify()


def test_ldp_02_the_true_epsilon_of_even_dimensions() -> None:
    found = [BY_NAME[name].examine(BY_NAME[name].broken) for name in NUMERIC[:2]]
    assert all(isinstance(report, ExactReport) for report in found)
    assert [round(report.tight_epsilon, 4) for report in found] == [2.0986, 1.3133]  # type: ignore[union-attr]


def test_ldp_02_ours_passes_the_check_that_refutes_theirs() -> None:
    exhibit = BY_NAME["duchi_even_dimension"]
    protocol = DuchiVector(bounds=[(-1, 1)] * 2, epsilon=1, steps=12)

    def device(point: tuple[Any, Any]) -> dict[bytes, Any]:
        return law(protocol, [int((coordinate + 1) * 6) for coordinate in point])

    report = check_exactly(device, exhibit.neighbors, epsilon=1)
    report.verify()
    assert report.tight_epsilon == pytest.approx(1, abs=1e-9)


@pytest.mark.statistical
def test_ldp_02_the_printed_piecewise_has_a_point_mass_and_a_biased_mean() -> None:
    printed: Any = BY_NAME["piecewise_endpoint_mass"].broken
    outputs = printed(1.0, 200_000)
    assert np.unique(outputs, return_counts=True)[1].max() > 30_000
    assert mean_is(outputs, 2.0617, outputs.var())
    assert not mean_is(outputs, 1.0, outputs.var())
    middle = printed(0.5, 200_000)
    assert mean_is(middle, 1.0309, middle.var())
    assert not mean_is(middle, 0.5, middle.var())


@pytest.mark.statistical
def test_ldp_02_ours_has_no_point_mass_and_no_bias() -> None:
    protocol = Piecewise(bounds=(-1, 1), epsilon=1)
    outputs = protocol.debias(protocol.randomize(np.ones(200_000)))
    assert np.unique(outputs, return_counts=True)[1].max() <= 4
    assert mean_is(outputs, 1.0, protocol.variance(1))
