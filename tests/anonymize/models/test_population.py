"""What fits a released class in a population, against a loop over people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.anonymize import regions as regions_module
from cloister.anonymize._partition import whole
from cloister.anonymize._suppression import suppress_failing
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import check_of, classes_of, classes_of_cells
from cloister.anonymize.regions import Regions, Values
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.errors import SchemaError
from tests.anonymize.tables import attained, cells_of, coded, full_domain

AGES = (20, 21, 22, 23)
CITIES = ("n1", "n2", "s1")
TREE = Hierarchy.taxonomy({"north": ["n1", "n2"], "south": ["s1"]})
COLUMNS = [
    Column(name="age", kind="numeric", hierarchy=Hierarchy.intervals((20, 23), widths=[2])),
    Column(name="city", hierarchy=TREE),
]
people = st.lists(st.tuples(st.sampled_from((*AGES, None)), st.sampled_from((*CITIES, None))), min_size=1, max_size=12)


def _cells(sample: list[Any], population: list[Any]) -> CodedCells:
    """Return the cells of a sample; where anything is missing in the population it is in the sample too."""
    return replace(coded(sample, COLUMNS), population=coded(population, COLUMNS))


def _shown_by_hierarchy(members: set[Any], leaves: tuple[Any, ...], parents: dict[Any, Any]) -> Callable[[Any], bool]:
    if len(members) == 1:
        return members.__contains__
    above = {parents.get(member) for member in members}
    if len(above) == 1 and None not in members:
        return lambda value: value is not None and parents[value] in above
    return lambda value: True


def _shown_as_set(members: set[Any], leaves: tuple[Any, ...], parents: dict[Any, Any]) -> Callable[[Any], bool]:
    if not isinstance(leaves[0], int):
        return members.__contains__
    if len(members) > 1 and None in members:
        return lambda value: True
    if None in members:
        return lambda value: value is None
    return lambda value: value is not None and min(members) <= value <= max(members)


@given(population=people, data=st.data(), values=st.sampled_from([Values.HIERARCHY, Values.SETS]))
def test_the_population_that_fits_is_counted_as_by_hand(population: Any, data: Any, values: Values) -> None:
    sample = data.draw(st.lists(st.sampled_from(population), min_size=1, max_size=8))
    sample += [row for row in population if None in row]
    cells = _cells(sample, population)
    groups = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(cells), max_size=len(cells))))
    groups = np.unique(groups, return_inverse=True)[1]
    regions = Regions(partition=whole(cells, groups), values=values)
    shown = _shown_as_set if values is Values.SETS else _shown_by_hierarchy
    leaves, parents = (AGES, CITIES), ({a: a // 2 for a in AGES}, {c: c[0] for c in CITIES})
    expected = []
    for group in range(int(groups.max()) + 1):
        fits = []
        for place in range(2):
            codes = cells.codes[groups == group, place]
            members = {_value(cells, place, code) for code in codes}
            fits.append(shown(members, leaves[place], parents[place]))
        expected.append(sum(all(fit(value) for fit, value in zip(fits, row, strict=True)) for row in population))
    assert regions.population().tolist() == expected


def _value(cells: CodedCells, place: int, code: int) -> Any:
    leaf = cells.attributes[place].leaves[code]
    return int(leaf) if place == 0 and leaf is not None else leaf


def test_counting_in_blocks_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(age, city) for age in AGES for city in CITIES]
    cells = _cells(rows, rows * 3)
    regions = Regions(partition=full_domain(cells, (1, 0)))
    found = regions.population()
    monkeypatch.setattr(regions_module, "_BLOCK", 1)
    assert regions.population().tolist() == found.tolist() == [6] * 6


def test_k_map_counts_the_population_and_presence_its_share() -> None:
    cells = _cells([(20, "n1"), (22, "s1")], [(20, "n1"), (21, "n1"), (22, "s1"), (22, "s1"), (23, "s1"), (23, "s1")])
    classes = classes_of(full_domain(cells, (1, 0)))
    assert attained(cl.KMap(k=3), classes) == [2, 4]
    assert check_of(cl.KMap(k=3)).holds(classes).tolist() == [False, True]
    assert attained(cl.DeltaPresence(delta_max=1), classes) == [0.5, 0.25]
    assert check_of(cl.DeltaPresence(delta_max="0.4")).holds(classes).tolist() == [False, True]
    assert check_of(cl.DeltaPresence(delta_min="0.4", delta_max=1)).holds(classes).tolist() == [True, False]
    assert "delta_max >= 0.5" in check_of(cl.DeltaPresence(delta_max="0.1")).advice(classes)


def test_presence_with_a_smallest_share_is_not_monotone() -> None:
    assert check_of(cl.DeltaPresence(delta_max=1)).is_monotone
    assert not check_of(cl.DeltaPresence(delta_min="0.1", delta_max=1)).is_monotone


def test_classes_of_cells_count_the_population_too() -> None:
    rows = [(20, "n1"), (21, "n2"), (22, "s1")]
    cells = _cells(rows, rows * 2)
    classes = classes_of_cells(cells, np.array([0, 0, -1]), 1, overall={})
    assert classes.population().tolist() == [8 // 2]


def test_without_a_population_nobody_fits() -> None:
    cells = cells_of({"age": [20, 20]}, COLUMNS[:1], quasi=["age"])
    assert check_of(cl.KMap(k=1)).holds(classes_of(full_domain(cells, (0,)))).tolist() == [False]


def test_values_that_only_the_population_has_need_a_common_domain() -> None:
    with pytest.raises(SchemaError, match="covers? both|cover both"):
        cells_of({"city": ["n1"]}, quasi=["city"], population={"city": ["n1", "s1"]})


def test_whoever_fits_two_classes_is_as_likely_in_the_table_as_both_say() -> None:
    table = [(20, "n1"), (20, "n2"), (21, "n1"), (21, "n2")]
    cells = _cells(table, table * 2)
    apart = classes_of(whole(cells, np.array([0, 0, 1, 1])))
    crossing = classes_of(whole(cells, np.array([0, 1, 1, 1])))
    check = check_of(cl.DeltaPresence(delta_max="0.5"))
    assert check.holds(apart).all()
    assert check.holds(crossing).all()
    assert check.holds_together(apart).all()
    assert crossing.presence()[0].tolist() == [0.875, 0.875]
    assert not check.holds_together(crossing).any()
    assert check_of(cl.DeltaPresence(delta_max="0.875")).holds_together(crossing).all()


@pytest.mark.parametrize("values", [Values.HIERARCHY, Values.SETS])
def test_classes_that_together_tell_too_much_become_one(values: Values) -> None:
    table = [(20, "n1"), (20, "n2"), (21, "n1"), (21, "n2"), (22, "s1"), (23, "s1")]
    cells = _cells(table, table * 2)
    crossing = whole(cells, np.array([0, 1, 1, 0, 2, 2]))
    found = suppress_failing(crossing, [check_of(cl.DeltaPresence(delta_max="0.5"))], values=values, allowed=0)
    assert sorted(classes_of(found).rows.tolist()) == [2, 4]


def test_whoever_fits_no_class_is_surely_not_in_the_table() -> None:
    cells = _cells([(20, "n1"), (21, "n1")], [(20, "n1"), (21, "n1"), (22, "s1"), (23, "s1")])
    classes = classes_of(full_domain(cells, (1, 0)))
    check = check_of(cl.DeltaPresence(delta_min="0.1", delta_max=1))
    assert check.holds(classes).tolist() == [True]
    assert check.holds_together(classes).tolist() == [False]
    assert check_of(cl.DeltaPresence(delta_max=1)).holds_together(classes).tolist() == [True]
