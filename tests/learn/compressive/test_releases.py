from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.errors import CloisterError, PrivacyParameterWarning, UnsafeMechanismError
from tests.learn.compressive import worked

ROWS = worked.normal(20, 6)


def projection(count: int, rows: np.ndarray = ROWS) -> Any:
    return cl.learn.RandomProjection(n_components=count).fit(rows)


@pytest.mark.parametrize("counts", [(3, 3), (2, 4), (3, 2, 1), (4, 4)])
def test_projections_that_span_the_features_give_every_row_away(counts: tuple[int, ...]) -> None:
    models = [projection(count) for count in counts]
    found = cl.learn.reconstruct_from_releases(models, [model.transform(ROWS) for model in models])
    assert np.abs(found - ROWS).max() < 1e-8


def test_learned_projections_give_rows_away_as_well() -> None:
    rows = ROWS * [1, 2, 3, 4, 5, 6] + 10
    models = [
        cl.learn.PrincipalComponents(n_components=4, scale="standard").fit(rows),
        cl.learn.DiscriminantComponents(n_components=4, rho=1, rho_prime=1).fit(rows[:15], np.arange(15) % 2),
    ]
    found = cl.learn.reconstruct_from_releases(models, [model.transform(rows) for model in models])
    assert np.abs(found - rows).max() < 1e-8


def test_fewer_directions_leave_something_open() -> None:
    models = [projection(2), projection(2)]
    found = cl.learn.reconstruct_from_releases(models, [model.transform(ROWS) for model in models])
    assert np.abs(found - ROWS).max() > 1e-3
    assert models[0].transform(found) == pytest.approx(models[0].transform(ROWS), abs=1e-9)


def test_another_projection_of_the_same_records_is_refused_and_not_noted() -> None:
    registry = cl.learn.ProjectionRegistry()
    registry.register(projection(3), ROWS, name="spring")
    with pytest.raises(UnsafeMechanismError, match="two projections of the same records.*exactly") as caught:
        registry.register(projection(3), ROWS[5:], name="summer")
    assert "rows that were not published before" in caught.value.fix
    assert '"spring"' in str(caught.value)
    assert registry.names == ("spring",)


def test_a_warning_says_how_much_is_fixed_together() -> None:
    registry = cl.learn.ProjectionRegistry(on_repeat="warn")
    registry.register(projection(2), ROWS, name="one")
    with pytest.warns(PrivacyParameterWarning, match="fix 4 of 6 directions"):
        registry.register(projection(2), ROWS, name="two")
    with pytest.warns(PrivacyParameterWarning, match="determine such rows exactly"):
        registry.register(projection(2), ROWS, name="three")
    assert registry.names == ("one", "two", "three")


def test_the_same_projection_and_other_rows_are_fine() -> None:
    registry, model = cl.learn.ProjectionRegistry(), projection(3)
    registry.register(model, ROWS, name="one")
    registry.register(model, ROWS, name="again")
    registry.register(projection(3), worked.normal(4, 6), name="others")
    assert len(registry.names) == 3


def test_a_projection_inside_of_an_earlier_one_adds_nothing() -> None:
    registry = cl.learn.ProjectionRegistry()
    registry.register(cl.learn.PrincipalComponents(n_components=4).fit(ROWS), ROWS, name="four")
    registry.register(cl.learn.PrincipalComponents(n_components=2).fit(ROWS), ROWS, name="two of them")
    assert len(registry.names) == 2


def test_people_are_recognized_by_identifiers_when_their_numbers_changed() -> None:
    registry, people = cl.learn.ProjectionRegistry(), [f"p{place}" for place in range(20)]
    registry.register(projection(2), ROWS, name="one", identifiers=people)
    with pytest.raises(UnsafeMechanismError, match="same records"):
        registry.register(projection(2), ROWS + 1, name="two", identifiers=people)
    registry.register(projection(2), ROWS + 1, name="strangers", identifiers=[f"q{place}" for place in range(20)])


def test_kernel_projections_of_the_same_records_are_refused() -> None:
    registry = cl.learn.ProjectionRegistry()
    registry.register(cl.learn.KernelPrincipalComponents(gamma=1).fit(ROWS), ROWS, name="one")
    with pytest.raises(UnsafeMechanismError, match="tell more than either"):
        registry.register(cl.learn.KernelPrincipalComponents(gamma=2).fit(ROWS), ROWS, name="two")


def test_a_registry_can_be_kept_and_holds_no_row() -> None:
    registry = cl.learn.ProjectionRegistry()
    registry.register(projection(3), ROWS, name="one")
    registry.register(cl.learn.KernelPrincipalComponents().fit(ROWS + 9), ROWS + 9, name="kernel")
    kept = cl.learn.ProjectionRegistry.from_dict(json.loads(json.dumps(registry.to_dict())))
    assert kept.names == ("one", "kernel")
    with pytest.raises(UnsafeMechanismError, match="same records"):
        kept.register(projection(3), ROWS, name="two")
    assert "key" not in repr(registry)
    other = cl.learn.ProjectionRegistry()
    other.register(projection(3), ROWS, name="one")
    assert set(other.to_dict()["releases"][0]["rows"]).isdisjoint(registry.to_dict()["releases"][0]["rows"])


def test_zero_with_a_sign_is_the_same_number() -> None:
    registry = cl.learn.ProjectionRegistry()
    registry.register(projection(2), np.zeros((1, 6)), name="one")
    with pytest.raises(UnsafeMechanismError, match="same records"):
        registry.register(projection(2), -np.zeros((1, 6)), name="two")


@pytest.mark.parametrize(
    "call",
    [
        lambda: cl.learn.ProjectionRegistry(on_repeat="odd"),
        lambda: cl.learn.ProjectionRegistry.from_dict({}),
        lambda: cl.learn.ProjectionRegistry.from_dict(3),
        lambda: cl.learn.ProjectionRegistry().register(projection(2), ROWS, name="a", identifiers=["b"]),
        lambda: cl.learn.ProjectionRegistry().register(projection(2), ROWS[:, :2], name="a"),
        lambda: cl.learn.ProjectionRegistry().register(projection(2), [["secret"] * 6], name="a"),
        lambda: cl.learn.reconstruct_from_releases([], []),
        lambda: cl.learn.reconstruct_from_releases([projection(2)], []),
        lambda: cl.learn.reconstruct_from_releases([cl.learn.KernelPrincipalComponents().fit(ROWS)], [ROWS]),
    ],
)
def test_odd_input_is_refused_with_a_fix(call: Any) -> None:
    with pytest.raises(CloisterError) as caught:
        call()
    assert caught.value.fix
    assert "secret" not in str(caught.value)
