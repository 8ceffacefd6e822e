from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import linalg

from cloister.core.guarantees import PureDP
from cloister.errors import (
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
    UnknownColumnError,
    UnsafeMechanismError,
)
from cloister.local import LocalCategoricalNaiveBayes, LocalGaussianNaiveBayes, PublicProjection
from cloister.local.naive_bayes.projection import between_scatter, scatter
from cloister.testing.samplers import gaussian, uniform

COLUMNS = {"a": (-4, 4), "b": (-4, 4), "c": (-4, 4)}
LABELS = np.repeat([0, 1, 2], 200)


def rows() -> np.ndarray[Any, np.dtype[np.float64]]:
    found = gaussian(1.0, (600, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 0.4, 0.2], [0.0, 0.0, 0.7]])
    found[:, 0] += LABELS - 1.0
    return found


def discriminant(**changes: Any) -> PublicProjection:
    found = rows()
    arguments: dict[str, Any] = {"columns": COLUMNS, "classes": 3, "public": "made up"}
    return PublicProjection.discriminant(found, LABELS, **{**arguments, **changes})


def test_between_scatter_is_that_of_the_class_means_around_the_grand_mean() -> None:
    found = uniform((60, 3))
    labels = np.arange(60) % 3
    mean = found.mean(axis=0)
    parts = [found[labels == label] for label in range(3)]
    wanted = sum(len(part) * np.outer(part.mean(axis=0) - mean, part.mean(axis=0) - mean) for part in parts)
    assert between_scatter(found, labels, 3) == pytest.approx(wanted)
    misprinted = sum(len(part) * np.outer(part.mean(axis=0), part.mean(axis=0)) for part in parts) - 3 * 60 * np.outer(
        mean, mean
    )
    assert between_scatter(found, labels, 3) != pytest.approx(misprinted)
    assert np.linalg.matrix_rank(between_scatter(found, labels, 3), tol=1e-9) == 2


def test_scatter_is_that_around_the_mean() -> None:
    found = uniform((50, 4))
    assert scatter(found) == pytest.approx(49 * np.cov(found.T))


def test_discriminant_directions_solve_the_generalized_problem() -> None:
    found = rows()
    projection = PublicProjection.discriminant(found, LABELS, columns=COLUMNS, classes=3, public="made up")
    scaled = np.clip(found, -4, 4) / 4
    within = scatter(scaled) + 1e-3 * np.eye(3)
    values, vectors = linalg.eigh(between_scatter(scaled, LABELS, 3), within)
    for place in range(2):
        wanted = vectors[:, -1 - place] / np.linalg.norm(vectors[:, -1 - place])
        assert abs(wanted @ projection.directions[:, place]) == pytest.approx(1, abs=1e-6)
    assert values[0] == pytest.approx(0, abs=1e-8)


def test_principal_directions_are_the_singular_vectors() -> None:
    found = rows()
    projection = PublicProjection.principal(found, columns=COLUMNS, components=2, public="made up")
    scaled = np.clip(found, -4, 4) / 4
    _, _, vectors = np.linalg.svd(scaled - scaled.mean(axis=0))
    assert np.abs(np.diag(vectors[:2] @ projection.directions)) == pytest.approx([1, 1])


def test_components_of_the_fitted_rows_are_within_their_public_bounds() -> None:
    found = rows()
    projection = PublicProjection.principal(found, columns=COLUMNS, components=3, public="made up")
    limits = np.array(projection.limits)
    components = projection.transform(found)
    assert (components >= limits[:, 0] - 1e-12).all()
    assert (components <= limits[:, 1] + 1e-12).all()


def test_rows_may_be_frames_mappings_or_arrays() -> None:
    projection = discriminant()
    found = rows()
    frame = pd.DataFrame(found, columns=list("abc"))
    for other in (frame, {name: frame[name].tolist() for name in "cab"}, found.tolist()):
        assert projection.transform(other) == pytest.approx(projection.transform(found))


def test_nothing_is_fitted_on_rows_that_are_not_said_to_be_public() -> None:
    for changes in ({"public": None}, {"public": " "}, {"public": "x", "guarantee": PureDP(epsilon=1)}):
        with pytest.raises(UnsafeMechanismError, match="public="):
            discriminant(**changes)
    with pytest.raises(UnsafeMechanismError, match="unprotected release"):
        PublicProjection.principal(rows(), columns=COLUMNS, components=1)


def test_guarantees_repeat_where_the_projection_comes_from() -> None:
    told = LocalGaussianNaiveBayes(classes=3, epsilon=1, projection=discriminant(public="census of 1990")).design
    assert "public data (census of 1990)" in told.guarantee.explain()
    private = discriminant(public=None, guarantee=PureDP(epsilon=1))
    told = LocalCategoricalNaiveBayes(features=private.to_bins(4), classes=3, epsilon=1, projection=private).design
    assert "data released with epsilon = 1 per row" in told.guarantee.explain()
    assert told.guarantee.epsilon == 1


def test_a_bare_matrix_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match="PublicProjection.principal"):
        LocalGaussianNaiveBayes(classes=3, epsilon=1, projection=np.eye(3))  # type: ignore[arg-type]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match="components <= 3"):
        discriminant(components=4)
    with pytest.raises(ParameterError, match="rho"):
        discriminant(rho=0)
    with pytest.raises(ParameterTypeError, match="columns="):
        discriminant(columns={})
    with pytest.raises(OutsideDomainError, match="no answer"):
        discriminant().transform([[1.0, float("nan"), 2.0]])
    with pytest.raises(UnknownColumnError, match='"c"'):
        discriminant().transform({"a": [1], "b": [2]})
    with pytest.raises(ParameterError, match="fewer components"):
        PublicProjection.principal(np.ones((5, 3)), columns=COLUMNS, components=1, public="made up")
