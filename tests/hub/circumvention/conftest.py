"""A hub with two datasets that differ in one row: somebody of whom an attacker wants to know."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hub_attacks import WITH, WITHOUT, dataset
from tests.support.hub_world import World, populated


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with populated(tmp_path_factory.mktemp("world")) as made:
        made.things["with"], made.things["without"] = dataset(made, WITH), dataset(made, WITHOUT)
        made.keep()
        yield made


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    yield shared
    shared.put_back()
