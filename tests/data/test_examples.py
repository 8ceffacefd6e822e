from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml

from cloister.data import examples
from cloister.data.measures import Sum
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import ParameterError, ParameterTypeError


@pytest.fixture(scope="module")
def visits() -> pa.Table:
    return examples.hospital()


def test_the_hospital_has_many_rows_and_several_visits_per_patient(visits: pa.Table) -> None:
    per_patient = open_table(visits).frequencies(["patient_id"]).weights
    assert visits.num_rows >= 10_000
    assert len(per_patient) == 5000
    assert per_patient.max() == 8
    assert (per_patient > 1).mean() > 0.5


def test_the_hospital_repeats_itself_for_a_seed(visits: pa.Table) -> None:
    assert examples.hospital().equals(visits)
    assert not examples.hospital(seed=1).equals(visits)
    with pytest.raises((ParameterError, ParameterTypeError)):
        examples.hospital(patients=0)


def test_the_hospital_keeps_to_its_schema_file(visits: pa.Table) -> None:
    columns = yaml.safe_load(examples.HOSPITAL_SCHEMA.read_text())["columns"]
    assert list(columns) == visits.schema.names
    assert columns["patient_id"]["role"] == "identifier"
    for name, facts in columns.items():
        values = visits.column(name).drop_null()
        if "categories" in facts:
            assert set(values.unique().to_pylist()) == set(facts["categories"])
        if "bounds" in facts:
            ends = pc.min_max(values).as_py()
            assert facts["bounds"][0] <= ends["min"]
            assert ends["max"] <= facts["bounds"][1]
    assert "name" not in columns


def test_the_hospital_is_plausible(visits: pa.Table) -> None:
    table = open_table(visits)
    assert table.count("diagnosis = 'pregnancy'") == table.count(
        "diagnosis = 'pregnancy' AND sex = 'F' AND age BETWEEN 16 AND 46"
    )

    def share(where: str) -> float:
        return table.count(f"({where}) AND diagnosis = 'heart disease'") / table.count(where)

    assert share("smoker") > 1.3 * share("NOT smoker")
    assert share("age >= 60") > 1.5 * share("age < 30")
    assert 0 < table.count("smoker IS NULL") < 0.05 * visits.num_rows
    assert table.count("age < 16 AND smoker") == 0


def test_textbook_tables_have_the_printed_figures() -> None:
    salaries = examples.textbook("salaries").frequencies([], measures={"sum": Sum("salary", bounds=(0, 100_000))})
    assert (salaries.total, salaries.measures["sum"].values.tolist()) == (10, [33_000])
    amounts = examples.textbook("amounts").frequencies(["amount"], bins={"amount": [1000, 2000, 3000, 4000]})
    assert amounts.weights.tolist() == [5, 7, 4]
    assert examples.textbook("zip_and_age").frequencies(["zip"]).weights.tolist() == [1, 1, 1, 2]
    assert examples.textbook("two_classes").frequencies(["zip", "age"]).weights.tolist() == [2, 3]
    people = examples.textbook("four_people")
    assert people.count("answer = 'Y'") == 3
    assert people.count("answer = 'Y' AND name <> 'Frank'") == 2


def test_every_textbook_table_opens_and_others_are_named() -> None:
    assert all(examples.textbook(name).count() for name in examples.TEXTBOOK)
    with pytest.raises(ParameterError, match=re.escape('Did you mean "salaries"?')):
        examples.textbook("salary")


def test_the_hospital_opens_with_its_schema() -> None:
    table = examples.hospital_table(patients=50)
    assert table.schema.columns["sex"].categories == ("F", "M")
    assert table.frequencies(["sex"]).declared == (True,)
    assert table.schema.subject == "patient_id"
    assert Schema.infer(table).columns.keys() == table.schema.columns.keys()
