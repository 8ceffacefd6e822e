from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.accounting.ledger import open_ledger
from cloister.anonymize.algorithms._base import Task
from cloister.anonymize.algorithms.mdav import mdav
from cloister.anonymize.models import check_of
from cloister.anonymize.regions import Values
from cloister.core.random import random_source
from cloister.data.columns import Column
from cloister.errors import CloisterError, ModelError, ParameterError, UnknownColumnError
from cloister.synth import AtMost, KAnonymousSynthesizer, SumOf, load, synthesizers
from cloister.synth.k_anonymous import allot
from tests.anonymize.tables import cells_of


def assessed(zips: list[str], ages: list[str], diseases: list[str] | None = None) -> Any:
    columns = {"zip": zips, "age": ages, **({} if diseases is None else {"disease": diseases})}
    roles = {name: {"role": "sensitive" if name == "disease" else "quasi", "kind": "nominal"} for name in columns}
    table = cl.open_table(pa.table(columns), schema=cl.Schema.from_dict({"columns": roles}))
    return cl.assess(table).risk


def test_syn_07_verdicts_on_small_tables() -> None:
    assert assessed(["33617", "33620", "33620", "33617", "33620"], ["24", "35", "35", "24", "35"]).models.k == 2
    assert assessed(["33617", "23620", "23622", "33617"], ["24", "41", "43", "29"]).models.k == 1
    assert assessed(["33617", "236**", "236**", "33617"], ["20-29", "40-49", "40-49", "20-29"]).models.k == 2
    outlier = assessed(["33617", "236**", "236**", "33617", "19352"], ["20-29", "40-49", "40-49", "20-29", "12"])
    assert outlier.models.k == 1
    diseases = ["Cancer", "Viral", "Heart", "Heart"]
    for zips, ages, k, distinct in (
        (["33617", "33617", "33620", "33620"], ["20-29", "20-29", "40-49", "40-49"], 2, 1),
        (["33***"] * 4, ["20-29", "20-29", "40-49", "40-49"], 2, 1),
        (["33***"] * 4, ["20-49"] * 4, 4, 3),
    ):
        found = assessed(zips, ages, diseases)
        (attained,) = found.models.sensitive
        assert (found.models.k, attained.distinct) == (k, distinct)


@pytest.mark.parametrize(("size", "above"), [(2, 1), (3, 3)])
def test_syn_08_recursive_diversity_of_three_two_one_holds_strictly_above_a_number(size: int, above: int) -> None:
    diseases = ["a"] * 3 + ["b"] * 2 + ["c"]
    (attained,) = assessed(["33***"] * 6, ["20-29"] * 6, diseases).models.sensitive
    assert attained.recursive[size] == above


def test_syn_09_mdav_on_seven_rows() -> None:
    cells = cells_of({"x": [1, 2, 3, 10, 11, 20, 22]}, [Column(name="x", kind="numeric")], quasi=["x"])
    task = Task(cells=cells, checks=(check_of(cl.KAnonymity(k=2)),), values=Values.CENTERS)
    sizes = sorted(Counter(np.repeat(*_lines(mdav(task).partition))).values())
    assert sizes == [2, 2, 3]


def _lines(partition: Any) -> tuple[Any, Any]:
    return partition.groups, partition.counts


# The synthesizer -----------------------------------------------------------------------------------------------------

SCHEMA = {
    "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 100]},
    "weight": {"role": "quasi", "kind": "numeric", "bounds": [30.0, 150.0]},
    "sex": {"role": "quasi", "kind": "nominal", "categories": ["F", "M"]},
    "born": {"role": "insensitive", "kind": "datetime", "bounds": ["1920-01-01", "2020-01-01"]},
    "disease": {"role": "sensitive", "kind": "nominal", "categories": ["flu", "cold", "none"]},
}
SECRET = 77.1234


def people(rows: int = 200) -> Any:
    place = np.arange(rows)
    weights = 60 + 20 * np.sin(place)
    weights[5] = SECRET
    columns = {
        "age": (20 + place % 50).tolist(),
        "weight": weights.tolist(),
        "sex": ["F" if item % 3 else "M" for item in place],
        "born": [dt.date(1950, 1, 1) + dt.timedelta(days=int(97 * item)) for item in place],
        "disease": [("flu", "cold", None)[item % 3] for item in place],
    }
    return cl.open_table(pa.table(columns), schema=cl.Schema.from_dict({"columns": SCHEMA}))


def counts_of(table: Any, names: tuple[str, ...] = ("age", "weight", "sex")) -> Counter[Any]:
    listing = table.to_arrow()
    return Counter(zip(*(listing[name].to_pylist() for name in names), strict=True))


@pytest.mark.parametrize("rows", [None, 5, 37, 199, 1000])
def test_every_sample_is_k_anonymous(rows: int | None) -> None:
    model = KAnonymousSynthesizer(k=5).fit(people())
    drawn = model.sample(rows)
    assert drawn.count() == (200 if rows is None else rows)
    assert min(counts_of(drawn).values()) >= 5
    assert drawn.columns == people().columns
    assert drawn.types == people().types
    assert set(drawn.to_arrow()["disease"].to_pylist()) <= {"flu", "cold", None}


def test_the_promise_says_what_it_is_not() -> None:
    model = KAnonymousSynthesizer(k=5).fit(people())
    text = model.guarantee_.explain()
    assert isinstance(model.guarantee_, cl.KAnonymity)
    assert model.guarantee_.holds
    for part in (
        "not differential privacy",
        "nothing was charged",
        "does not add up",
        "told of everybody",
        "age, weight",
    ):
        assert part in text
    assert model.steps_ == ()
    assert model.expected(people()) == ()


def test_exact_values_of_one_row_are_neither_in_the_model_nor_in_the_rows(tmp_path: Path) -> None:
    model = KAnonymousSynthesizer(k=5).fit(people())
    model.save(tmp_path / "model.cloister")
    assert str(SECRET) not in (tmp_path / "model.cloister").read_text("utf-8")
    again = load(tmp_path / "model.cloister")
    assert again.k == 5
    assert again.guarantee_ == model.guarantee_
    drawn = again.sample(500, random_state=2)
    assert drawn.to_arrow() == model.sample(500, random_state=2).to_arrow()
    assert SECRET not in drawn.to_arrow()["weight"].to_pylist()
    with pytest.raises(ModelError, match="damaged"):
        again._restore({**again._learned_state(), "sizes": np.array([2, 198])})


def test_quasi_identifiers_may_be_dates_and_missing() -> None:
    model = KAnonymousSynthesizer(k=4, quasi_identifiers=["born", "disease"]).fit(people())
    drawn = model.sample(200)
    assert min(counts_of(drawn, ("born", "disease")).values()) >= 4
    assert all(isinstance(item, dt.date) for item in drawn.to_arrow()["born"].to_pylist())
    only = KAnonymousSynthesizer(k=4, columns=["age"]).fit(people()).sample(40)
    assert only.columns == ("age",)


def test_conditions_choose_among_groups_and_keep_k() -> None:
    model = KAnonymousSynthesizer(k=5).fit(people())
    drawn = model.sample(60, conditions={"sex": "F", "age": (20, 45), "disease": ["flu", "cold"]})
    listing = drawn.to_arrow()
    assert set(listing["sex"].to_pylist()) == {"F"}
    assert max(listing["age"].to_pylist()) <= 45
    assert set(listing["disease"].to_pylist()) <= {"flu", "cold"}
    assert min(counts_of(drawn).values()) >= 5
    with pytest.raises(ParameterError, match="wider conditions"):
        model.sample(60, conditions={"age": (99, 100)})


@pytest.mark.parametrize(
    ("options", "error", "fix"),
    [
        ({"epsilon": 1}, ParameterError, "AdaptiveMarginals"),
        ({"delta": 0}, ParameterError, "AdaptiveMarginals"),
        ({"ledger": open_ledger("memory:"), "dataset": "x"}, ParameterError, "leave epsilon, delta and ledger out"),
        ({"k": 1}, ParameterError, "k"),
        ({"quasi_identifiers": []}, ParameterError, "quasi_identifiers="),
        ({"quasi_identifiers": ["zip"]}, UnknownColumnError, "age"),
        ({"unit": "age", "max_rows_per_unit": 2}, ParameterError, "max_rows_per_unit=1"),
        ({"constraints": AtMost("age", "weight")}, ParameterError, "AdaptiveMarginals"),
        ({"k": 500}, CloisterError, "k"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], error: type[Exception], fix: str) -> None:
    with pytest.raises(error, match=fix):
        KAnonymousSynthesizer(**options).fit(people())


def test_one_row_of_each_person_and_columns_that_follow() -> None:
    listing = people().to_arrow().select(["age", "weight", "disease"])
    total = pa.array(
        [
            first + second
            for first, second in zip(*(listing[name].to_pylist() for name in ("age", "weight")), strict=True)
        ]
    )
    persons = pa.array([place // 2 for place in range(len(listing))])
    schema = {name: SCHEMA[name] for name in ("age", "weight", "disease")}
    schema |= {"total": {"role": "quasi", "kind": "numeric"}, "person": {"role": "identifier"}}
    table = cl.open_table(
        listing.append_column("total", total).append_column("person", persons),
        schema=cl.Schema.from_dict({"columns": schema}),
    )
    model = KAnonymousSynthesizer(k=5, unit="person", constraints=SumOf("total", ["age", "weight"])).fit(table)
    drawn = model.sample()
    assert drawn.count() == 100
    assert min(counts_of(drawn, ("age", "weight", "total")).values()) >= 5
    page = model.report().to_markdown()
    assert "nothing was charged to a budget" in page


def test_too_small_a_sample_is_refused() -> None:
    model = KAnonymousSynthesizer(k=5).fit(people())
    assert model.sample(0).count() == 0
    with pytest.raises(ParameterError, match="at least 5 rows"):
        model.sample(4)
    assert synthesizers.get("k_anonymous") is KAnonymousSynthesizer


@given(
    weights=st.lists(st.just(0.0) | st.floats(0.01, 50), min_size=1, max_size=12).filter(any),
    k=st.integers(1, 6),
    more=st.integers(0, 300),
)
def test_groups_get_no_rows_or_at_least_k(weights: list[float], k: int, more: int) -> None:
    rows = allot(k + more, np.array(weights), k=k, source=random_source())
    assert rows.sum() == k + more
    assert all(many == 0 or (many >= k and weight > 0) for many, weight in zip(rows, weights, strict=True))


def test_as_many_rows_as_there_are_come_from_each_group_as_from_the_data() -> None:
    sizes = np.array([5.0, 7.0, 6.0, 9.0])
    assert allot(27, sizes, k=5, source=random_source()).tolist() == [5, 7, 6, 9]
