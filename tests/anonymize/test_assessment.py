from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.assessment import assess
from cloister.errors import DataError, ParameterError, ParameterTypeError, SchemaError, UnknownColumnError
from tests.anonymize.people import people

ROWS = {
    "age": [31, 31, 36, 36, 44, 44, 44, 58],
    "town": ["a", "a", "a", "b", "c", "c", "d", "d"],
    "disease": ["flu", "flu", "none", "flu", "none", "flu", "none", "none"],
}
SCHEMA = cl.Schema(
    [
        cl.Column(name="age", kind="numeric", hierarchy=cl.Hierarchy.intervals((30, 59), widths=[10])),
        cl.Column(name="town", hierarchy=cl.Hierarchy.taxonomy({"north": ["a", "b"], "south": ["c", "d"]})),
        cl.Column(name="disease", role="sensitive"),
    ]
)


def _table(rows: dict[str, list[Any]] = ROWS, schema: cl.Schema | None = SCHEMA) -> cl.Table:
    return cl.open_table(pa.table(rows), schema=schema)


def test_a_raw_table_has_a_risk_and_no_utility() -> None:
    found = cl.assess(_table())
    assert found.utility is None
    assert found.risk.quasi_identifiers == ("age", "town")
    assert found.risk.models.k == 1
    assert found.risk.reidentification.unique == 4
    assert not found.guarantee.holds
    assert str(found) == "k = 1, 50% of 8 rows unique, risk at most 100% and 75% on average"


def test_the_summary_is_for_a_person() -> None:
    summary = dict(cl.assess(_table(), population=1000).summary())
    assert summary["attacker knows"] == "age, town"
    assert summary["unique rows"] == "4 (50%)"
    assert "right in 87.5% of rows (before: 50%)" in summary["disease"]
    assert "of 1,000 people unique" in summary["population"]
    assert "estimated" in summary["journalist"]
    assert summary["promise"].startswith("Nothing is promised")


def test_the_summary_says_what_else_was_counted() -> None:
    rows = {**ROWS, "who": ["1", "1", "3", "4", "5", "5", "6", "7"], "note": list("abcdefgh")}
    rows["age"] = [31] * 8
    rows["town"] = ["a"] * 8
    schema = SCHEMA.with_column(cl.Column(name="who", role="identifier", subject=True))
    table = _table(rows, schema.with_column(cl.Column(name="note", role="insensitive")))
    summary = dict(cl.assess(table, population=_table({"age": [31] * 9, "town": ["a"] * 9}, None)).summary())
    assert summary["k-anonymity"] == (
        "8 rows, 6 persons; 1 if all columns that are not sensitive are known; 9 people of the population"
    )
    assert summary["journalist"] == "11.1% at most, 11.1% on average (the population table)"


def test_values_are_ready_for_json() -> None:
    found = cl.assess(_table(), original=_table(), population=1000)
    values = json.loads(json.dumps(found.to_dict()))
    assert values["schema"] == "cloister.assessment/1"
    assert values["risk"]["population"]["population"] == 1000
    assert values["utility"]["losses"]["ncp"] == 0


def test_a_chart_is_drawn() -> None:
    assert "What the table gives away" in json.dumps(cl.assess(_table()).plot().to_dict())


def test_roles_may_be_stated_in_the_call() -> None:
    found = assess(_table(schema=None), quasi_identifiers=["town"], sensitive=["disease"])
    assert found.risk.models.k == 1
    assert found.risk.models.k_all_columns == 1
    other = assess(_table(), quasi_identifiers=["disease"], sensitive=[])
    assert (other.risk.models.k, other.risk.disclosure) == (4, ())
    assert other.risk.models.k_all_columns == 1


def test_a_release_is_compared_with_its_original() -> None:
    release = cl.anonymize(_table(), models=[cl.KAnonymity(k=2)], algorithm="mondrian")
    found = cl.assess(release)
    assert found.risk.models.k >= 2
    assert found.guarantee == release.guarantee
    assert found.utility is not None
    assert found.utility.losses.ncp == pytest.approx(release.regions.loss())
    assert found.utility.linkage is not None
    assert found.utility.linkage.rate <= 0.5
    assert ";" in str(found)
    assert "loss (NCP)" in dict(found.summary())


@pytest.mark.parametrize(
    ("algorithm", "values"),
    [("mondrian", "sets"), ("mondrian", "hierarchy"), ("optimal", "hierarchy"), ("mdav", "centers")],
)
def test_a_table_protected_elsewhere_is_read_back(algorithm: str, values: str) -> None:
    release = cl.anonymize(_table(), models=[cl.KAnonymity(k=3)], algorithm=algorithm, values=values)
    own = cl.assess(release).utility
    read = cl.assess(cl.open_table(release.table.to_arrow()), original=_table()).utility
    assert own is not None
    assert read is not None
    assert own.losses.discernibility == read.losses.discernibility
    if values != "centers":
        assert own.losses.ncp == pytest.approx(read.losses.ncp)
        assert own.marginals == pytest.approx(read.marginals)


def test_a_suppressed_class_is_told_apart_from_a_class_of_everything() -> None:
    shown = {"age": ["30-39"] * 4 + ["*"] * 4, "town": ["north"] * 4 + ["*"] * 4, "disease": ROWS["disease"]}
    found = cl.assess(_table(shown, None), quasi_identifiers=["age", "town"])
    assert (found.risk.suppressed, found.risk.reidentification.rows) == (4, 4)
    everything = {"age": ["*"] * 8, "town": ["*"] * 8, "disease": ROWS["disease"]}
    whole = cl.assess(_table(everything, None), quasi_identifiers=["age", "town"])
    assert (whole.risk.suppressed, whole.risk.models.k) == (0, 8)


def test_missing_values_are_a_class_of_their_own() -> None:
    rows = {"age": [31, None, None, 44], "town": ["a", None, None, "c"], "disease": ["flu"] * 4}
    found = cl.assess(_table(rows), original=_table(rows))
    assert (found.risk.suppressed, found.risk.reidentification.classes) == (0, 3)
    assert found.utility is not None
    assert found.utility.losses.ncp == 0


def test_people_who_fit_are_counted_in_a_population_table() -> None:
    population = _table({"age": [31, 31, 31, 36, 36, 44, 44, 44, 44, 58, 59], "town": list("aaaabcccddd")}, None)
    raw = cl.assess(_table(), population=population).risk
    assert raw.models.k_map == 1
    assert raw.reidentification.journalist_basis == "the population table"
    # Classes: (31, a) 2 of 3; (36, a) 1 of 1; (36, b) 1 of 1; (44, c) 2 of 3; (44, d) 1 of 1; (58, d) 1 of 1.
    assert raw.reidentification.journalist_average == pytest.approx((2 / 3 + 1 + 1 + 2 / 3 + 1 + 1) / 8)
    shown = {"age": ["[30, 40)"] * 4 + ["[40, 50)"] * 3 + ["58"], "town": ["north"] * 4 + ["south"] * 4}
    coarse = cl.assess(_table({**shown, "disease": ROWS["disease"]}, None), original=_table(), population=population)
    assert coarse.risk.reidentification.journalist_average == pytest.approx((4 / 5 + 3 / 4 + 1) / 8)


def test_values_that_nobody_in_the_population_has_fit_nobody() -> None:
    population = _table({"age": [31], "town": ["a"]}, None)
    assert cl.assess(_table(), population=population).risk.models.k_map == 0


def test_a_sensitive_column_that_left_its_hierarchy_is_counted_by_name() -> None:
    diseases = cl.Hierarchy.taxonomy({"ill": ["flu"], "well": ["none"]})
    schema = SCHEMA.with_hierarchy("disease", diseases)
    assert cl.assess(_table(schema=schema)).risk.models.sensitive[0].hierarchical is not None
    shown = {**ROWS, "disease": ["ill" if item == "flu" else "well" for item in ROWS["disease"]]}
    found = cl.assess(_table(shown, schema)).risk.models.sensitive[0]
    assert (found.distinct, found.hierarchical) == (1, None)


def test_persons_of_a_release_are_counted_though_their_column_is_dropped() -> None:
    rows = {**ROWS, "who": ["1", "2", "3", "4", "5", "5", "6", "7"]}
    schema = SCHEMA.with_column(cl.Column(name="who", role="identifier", subject=True))
    release = cl.anonymize(_table(rows, schema), models=[cl.KAnonymity(k=2, unit="who")], algorithm="mondrian")
    models = cl.assess(release).risk.models
    assert models.k_persons is not None
    assert 2 <= models.k_persons <= models.k


def test_a_release_is_held_against_the_k_that_it_was_asked_for() -> None:
    made = cl.anonymize(people(), models=[cl.KAnonymity(k=6), cl.PSensitivity("disease", p=2, k=4)])
    assert cl.assess(made).risk.reidentification.k == 6
    assert cl.assess(made, k=2).risk.reidentification.k == 2
    assert cl.assess(people()).risk.reidentification.k == 5


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match="open it first"):
        assess(ROWS)


def test_a_table_without_roles_is_refused() -> None:
    with pytest.raises(SchemaError, match="open it with a schema"):
        assess(_table(schema=None))
    with pytest.raises(SchemaError, match="name what an attacker may know"):
        assess(_table(), quasi_identifiers=[])
    with pytest.raises(SchemaError, match="put each column into one list"):
        assess(_table(), quasi_identifiers=["age"], sensitive=["age"])
    with pytest.raises(UnknownColumnError):
        assess(_table(), quasi_identifiers=["agee"])


def test_a_smaller_original_is_refused() -> None:
    small = _table({name: values[:3] for name, values in ROWS.items()})
    with pytest.raises(DataError, match="give the table that it was made from"):
        assess(_table(schema=None), original=small)


@pytest.mark.parametrize(
    "options", [{"k": 0}, {"threshold": 2}, {"population": 3}, {"confidence": 1, "population": 99}]
)
def test_odd_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        assess(_table(), **options)


def test_models_are_measured_when_they_are_asked_for() -> None:
    found = assess(_table(), models=[cl.KAnonymity(k=2), {"attribute": "disease", "alpha": "0.5", "k": 1}])
    assert [(item.is_satisfied, item.attained) for item in found.asked] == [(False, 1), (False, 1.0)]
    assert ("k-anonymity, k = 2 per row", "not satisfied; the worst class attains 1") in found.summary()
    written = json.loads(json.dumps(found.to_dict()))["asked"]
    assert [item["satisfied"] for item in written] == [False, False]
    assert "asked" not in assess(_table()).to_dict()


def test_models_about_what_is_not_there_are_refused() -> None:
    with pytest.raises(UnknownColumnError, match="age"):
        assess(_table(), models=[cl.LDiversity("age", l=2)])
    with pytest.raises(ParameterError, match="population"):
        assess(_table(), models=[cl.KMap(k=2)])
