"""Without a named algorithm the release loses least of all that was tried, and says what else would lose."""

from __future__ import annotations

import importlib
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize import _choice as choice, plan_release
from cloister.core.guarantees import Guarantee
from cloister.core.wordings import percent
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import LatticeTooLargeError, ParameterError, UnsatisfiableError
from tests.anonymize.people import SCHEMA, people

K3 = cl.KAnonymity(k=3)
DIVERSE = (K3, cl.LDiversity("disease", l=2))
CLOSE = (K3, cl.TCloseness("disease", t="0.6"))
TOWNS = {"north": {"coast": ["kiel", "emden"], "inland": ["celle", "uelzen"]}, "south": ["ulm", "lindau"]}
TRIED = {
    "k": ({}, "optimal"),
    "mondrian": ({"values": "hierarchy"}, "mondrian"),
    "clustering": ({"values": "hierarchy"}, "clustering"),
    "top_down": ({}, "top_down"),
    "local": ({"recoding": "local"}, "optimal"),
}


def sparse(rows: int = 60) -> Table:
    """Return a table in which full-domain recoding must give up a column, and recoding class by class need not."""
    towns = ("kiel", "emden", "celle", "uelzen", "ulm")
    cells = {
        "age": [20 + 7 * place * place % 40 for place in range(rows)],
        "town": ["lindau" if place == 0 else towns[place % 5] for place in range(rows)],
        "sex": ["f" if place % 3 else "m" for place in range(rows)],
        "disease": [("flu", "cold", "angina")[place * place % 7 % 3] for place in range(rows)],
    }
    schema = Schema(
        [
            Column(name="age", kind="numeric", hierarchy=Hierarchy.intervals((20, 59), widths=[10, 20])),
            Column(name="town", hierarchy=Hierarchy.taxonomy(TOWNS)),
            Column(name="sex", categories=("f", "m")),
            Column(name="disease", role="sensitive"),
        ]
    )
    return cl.open_table(pa.table(cells), schema=schema)


def loss(algorithm: str, models: tuple[Guarantee, ...], **settings: Any) -> float:
    return cl.anonymize(sparse(), models=models, algorithm=algorithm, **settings).ncp


@pytest.mark.parametrize("models", [(K3,), DIVERSE, CLOSE], ids=["k", "l", "t"])
def test_the_default_loses_no_more_than_any_algorithm_it_tried(models: tuple[Guarantee, ...]) -> None:
    release = cl.anonymize(sparse(), models=models)
    names = ["k", "mondrian", "clustering"] if models == (K3,) else ["k", "mondrian", "top_down", "local"]
    least = min(loss(TRIED[name][1], models, **TRIED[name][0]) for name in names)
    assert release.ncp == pytest.approx(least, abs=1e-12)
    assert release.ncp < loss("optimal", models)
    assert all(check.holds(release.classes).all() for check in release.checks)


def test_labels_of_local_recoding_are_those_of_the_hierarchies() -> None:
    release = cl.anonymize(sparse(), models=[K3])
    shown = release.table.to_arrow()
    names = {"*", "north", "south", "coast", "inland", "kiel", "emden", "celle", "uelzen", "ulm", "lindau"}
    assert release.algorithm != "optimal"
    assert set(shown.column("town").to_pylist()) <= names
    ages = {str(age) for age in range(20, 60)} | {"*", "[20, 40)", "[40, 60)"}
    assert set(shown.column("age").to_pylist()) <= ages | {f"[{low}, {low + 10})" for low in range(20, 60, 10)}


def test_one_line_says_what_was_chosen_and_what_else_would_lose() -> None:
    release = cl.anonymize(sparse(), models=[K3])
    full, sets = loss("optimal", (K3,)), loss("mondrian", (K3,), values="sets")
    some = loss("optimal", (K3,), suppression_limit="0.05")
    assert release.choice.startswith(
        f"Chosen for the least loss: clustering inside the hierarchies loses {percent(release.ncp)}"
    )
    assert f"full-domain recoding (optimal) {percent(full)}" in release.choice
    assert f"full-domain recoding (optimal) with 5% of the rows left out {percent(some)}" in release.choice
    assert f"sets and intervals (values: sets) {percent(sets)}" in release.choice
    assert "\n" not in release.choice
    assert ("choice", release.choice) in release.summary()
    assert release.to_dict()["choice"] == release.choice
    assert release.facts["considered"]["clustering"] == pytest.approx(release.ncp, abs=1e-4)
    assert choice.LOOKED in release.notes
    assert release.choice.split(":")[0] in release.report().to_markdown()


def test_other_models_say_that_clustering_was_not_tried() -> None:
    assert cl.anonymize(sparse(), models=DIVERSE).choice.endswith("clustering, which takes longer here, was not tried.")


def test_the_recipe_of_a_choice_makes_the_same_release_again() -> None:
    for models in ((K3,), DIVERSE):
        release = cl.anonymize(sparse(), models=models)
        again = cl.anonymize(sparse(), **release.settings)
        assert again.table.to_arrow().equals(release.table.to_arrow())
        assert again.choice == ""


def test_a_table_that_holds_already_is_left_as_it_is() -> None:
    release = cl.anonymize(people(age=[20] * 24, city=["kiel"] * 24), models=[K3])
    assert release.ncp == 0
    assert release.algorithm == "optimal"
    assert release.choice == (
        "Chosen for the least loss: full-domain recoding (optimal) inside the hierarchies loses 0% of the detail."
    )


def test_without_a_hierarchy_sets_are_shown_and_the_column_is_named() -> None:
    release = cl.anonymize(people(SCHEMA.with_hierarchy("city", None)), models=[K3])
    assert release.algorithm == "mondrian"
    assert release.regions.values == "sets"
    assert (
        release.choice == 'Sets of values and intervals are shown (mondrian), because there is no hierarchy for "city".'
    )


def test_what_was_asked_for_limits_what_is_tried() -> None:
    assert cl.anonymize(people(), models=[K3], values="sets").algorithm == "mondrian"
    assert cl.anonymize(people(), models=[K3], recoding="local").algorithm == "optimal"
    assert cl.anonymize(people(), models=[K3], loss="discernibility").algorithm == "optimal"
    assert cl.anonymize(people(), models=[K3], passes=1).algorithm == "clustering"
    with pytest.raises(ParameterError, match="no option"):
        cl.anonymize(people(), models=[K3], colour="red")
    with pytest.raises(ParameterError, match="use one of"):
        cl.anonymize(people(), models=[K3], values="pictures")


def test_what_cannot_be_tried_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("cloister.anonymize.algorithms.lattice.optimal")
    monkeypatch.setattr(module, "DEFAULT_NODE_LIMIT", 1)
    release = cl.anonymize(sparse(), models=[K3])
    assert "full-domain" not in release.choice
    with pytest.raises(LatticeTooLargeError):
        cl.anonymize(sparse(), models=[K3], recoding="full_domain")


def test_models_that_nothing_satisfies_are_refused() -> None:
    with pytest.raises(UnsatisfiableError):
        cl.anonymize(people(disease=["flu"] * 23 + ["cold"]), models=[cl.LDiversity("disease", l=2, kind="frequency")])


def test_two_rows_are_enough() -> None:
    table = cl.open_table(pa.table({"sex": ["f", "m"]}), schema=Schema([Column(name="sex", categories=("f", "m"))]))
    release = cl.anonymize(table, models=[cl.KAnonymity(k=2)])
    assert release.table.to_arrow().column("sex").to_pylist() == ["*", "*"]
    assert release.silent_columns == ("sex",)


def test_a_column_that_says_nothing_any_more_is_told_first() -> None:
    release = cl.anonymize(sparse(), models=[cl.KAnonymity(k=25)], algorithm="optimal")
    assert release.silent_columns
    sentence = f'"{release.silent_columns[0]}"'
    assert str(release).startswith(sentence)
    assert release.pitfalls[0].code == "silent_columns"
    assert release.to_dict()["silent_columns"] == list(release.silent_columns)
    report = release.report()
    assert report.verdict is not None
    assert report.verdict.text.startswith(release.silent_columns[0])
    assert cl.anonymize(sparse(), models=[K3]).silent_columns == ()


def test_a_plan_leaves_the_choice_open() -> None:
    assert plan_release(people(), models=[K3]).algorithm == "automatic"
    assert plan_release(people(), models=[K3], algorithm="top_down").algorithm == "top_down"
    assert plan_release(people(SCHEMA.with_hierarchy("city", None)), models=[K3]).algorithm == "mondrian"
