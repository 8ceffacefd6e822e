from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import (
    CloisterError,
    DataWarning,
    MissingBoundsError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
    PrivacyParameterWarning,
    UnconfirmedSchemaError,
    UnknownColumnError,
)
from cloister.learn import PrivateGaussianNB
from cloister.learn._inputs import encode, read
from tests.learn import data

X = [[1.0, 5.0], [2.0, 6.0]]
FRAME = {"age": [20, 30, 40], "sex": ["F", "M", "F"]}


def plain(**options: Any) -> Any:
    return PrivateGaussianNB(**{"bounds": (0, 10), "classes": [0, 1], **options})


class Numbers(PrivateGaussianNB):
    """An estimator of which only the reading is used, for a numeric target."""

    target = "number"


class Codes(PrivateGaussianNB):
    """An estimator of which only the reading is used, for categories."""

    encodes = "codes"
    target = "none"


# Arrays and frames ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [X, np.array(X), np.array(X, dtype=np.float32), pd.DataFrame(X), pl.DataFrame(X)])
def test_arrays_and_frames_of_numbers_are_read(given: Any) -> None:
    given = given.transpose() if isinstance(given, pl.DataFrame) else given
    reading = read(plain(), given, [0, 1])
    rows = reading.rows()
    assert not reading.in_engine
    assert rows.features.tolist() == X
    assert rows.target is not None
    assert rows.target.tolist() == [0, 1]
    assert rows.weights.tolist() == [1, 1]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_of_numbers_and_texts_are_read_by_name(make: Any) -> None:
    frame = make({**FRAME, "other": [7, 8, 9]})
    reading = read(data.bayes(), frame, pd.Series(["no", "yes", "no"], name="sick"))
    rows = reading.rows()
    assert rows.features.tolist() == [[20, 1, 0], [30, 0, 1], [40, 1, 0]]
    assert reading.facts.encoding.columns == ("age", "sex")
    assert reading.facts.target.name == "sick"


def test_a_schema_describes_a_frame_and_its_target() -> None:
    model = PrivateGaussianNB(schema=data.schema())
    reading = read(model, pd.DataFrame(FRAME), pd.Series(["no", "yes", "no"], name="sick"))
    assert reading.facts.target.classes == ("no", "yes")
    assert reading.rows().features.shape == (3, 3)


def test_mixed_arrays_are_read_by_position() -> None:
    model = plain(bounds={"x0": (0, 110)}, domain={"x1": ["F", "M"]})
    rows = read(model, np.array([[20, "F"], [30, "M"]], dtype=object), [0, 1]).rows()
    assert rows.features.tolist() == [[20, 1, 0], [30, 0, 1]]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None])
def test_missing_and_infinite_numbers_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match="without missing or infinite"):
        read(plain(), [[1.0, bad], [2.0, 3.0]], [0, 1]).rows()
    frame = pd.DataFrame({"age": [20, bad], "sex": ["F", "M"]})
    with pytest.raises(ParameterError, match="public rule"):
        read(data.bayes(), frame, ["no", "yes"]).rows()


def test_values_outside_are_counted_and_said() -> None:
    with pytest.warns(DataWarning, match="Numbers outside of the public bounds are clipped: 3"):
        read(plain(), [[-1.0, 11.0], [5.0, 99.0]], [0, 1]).rows()
    frame = pd.DataFrame({"age": [20, 30], "sex": ["F", "secret-4711"]})
    with pytest.warns(DataWarning, match="count as none of the declared ones: 1") as caught:
        read(data.bayes(), frame, ["no", "yes"]).rows()
    assert "4711" not in str(caught[0].message)


def test_values_outside_are_counted_for_codes() -> None:
    with pytest.warns(DataWarning, match="none of the declared ones: 1"):
        read(Codes(domain=2), [[0, 1], [1, 7]], None).rows()


def test_codes_are_for_categories() -> None:
    assert read(Codes(domain=2), [[0, 1], [1, 1]], None).rows().features.tolist() == [[0, 1], [1, 1]]
    with pytest.raises(ParameterError, match="public bins"):
        read(Codes(bounds=(0, 1)), [[0, 1]], None)
    with pytest.raises(ParameterError, match='"age"'):
        read(Codes(bounds={"age": (0, 9)}, domain={"sex": ["F"]}), pd.DataFrame(FRAME), None)


@pytest.mark.parametrize(
    ("given", "labels", "fix"),
    [
        ([["secret-4711", 1.0]], [0], "table of numbers"),
        (np.array([["secret-4711", "x"]]), [0], "domain"),
        ([[1.0]], [0, 1], "one y for each row"),
        ([4711.0, 4711.0], [0, 1], "table of numbers"),
        (np.array(4711.0), [0], "table of numbers"),
        (np.array([[4711j]]), [0], "table of numbers"),
        ([[1.0], [2.0]], None, "fit\\(X, y\\)"),
        ([[1.0], [2.0]], [[0, 1], [1, 0]], "one value per row"),
        ([[1.0], [2.0]], [0, 4711], "every class that may occur"),
        ([[1.0], [2.0]], [0, None], "every class that may occur"),
        ([[1.0], [2.0]], [0.0, float("nan")], "every class that may occur"),
        (np.empty((0, 1)), [], "table of numbers"),
        (np.empty((2, 0)), [0, 1], "table of numbers"),
    ],
)
def test_odd_input_is_refused_without_quoting_it(given: Any, labels: Any, fix: str) -> None:
    with pytest.raises(CloisterError, match=fix) as caught:
        read(plain(), given, labels).rows()
    assert "4711" not in str(caught.value)


def test_texts_in_polars_frames_are_refused_without_quoting_them() -> None:
    with pytest.raises(CloisterError) as caught:
        read(plain(), pl.DataFrame({"a": ["secret-4711"]}), [0]).rows()
    assert "4711" not in str(caught.value)


def test_labels_outside_have_a_class_of_their_own() -> None:
    with pytest.raises(OutsideDomainError):
        read(plain(), X, [0, 2]).rows()


@pytest.mark.parametrize("classes", [[0], [0, 0], "01", 5, [0, "a"], [0, None], [0, float("nan")], []])
def test_classes_are_at_least_two_of_one_kind(classes: Any) -> None:
    with pytest.raises((ParameterError, ParameterTypeError), match="classes|class"):
        read(plain(classes=classes), X, [0, 1])


def test_missing_facts_are_refused() -> None:
    with pytest.raises(MissingBoundsError, match="classes"):
        read(plain(classes=None), X, [0, 1])
    with pytest.raises(MissingBoundsError, match="confirmed schema"):
        read(plain(bounds=None), X, [0, 1])
    with pytest.raises(ParameterError, match="for each column"):
        read(plain(bounds=([0], [1])), X, [0, 1])
    with pytest.raises(ParameterError, match="correct features"):
        read(data.bayes(features=["agee"]), pd.DataFrame(FRAME), ["no"] * 3)
    with pytest.raises(ParameterError, match="name some columns"):
        read(data.bayes(features=[]), data.patients(), "sick")


def test_persons_are_for_tables() -> None:
    for wrong in ({"unit": "patient"}, {"max_rows_per_unit": 2}):
        with pytest.raises(ParameterError, match="open_table"):
            read(plain(**wrong), X, [0, 1])


@pytest.mark.parametrize("bounds", [None, 5, "09", (0, 1, 2), [(0, 1), (2, 3)]])
def test_numeric_targets_have_public_bounds(bounds: Any) -> None:
    model = Numbers(bounds=(0, 10))
    model.target_bounds = bounds
    with pytest.raises((MissingBoundsError, ParameterTypeError), match="target_bounds=\\(0, 100\\)"):
        read(model, X, [1.0, 2.0])


def test_numeric_targets_are_read() -> None:
    model = Numbers(bounds=(0, 10))
    model.target_bounds = (0, 5)
    reading = read(model, X, [1, 2])
    assert reading.facts.target.bounds == (0.0, 5.0)
    assert reading.rows().target.tolist() == [1.0, 2.0]  # type: ignore[union-attr]  # there is a target
    for bad in (["secret-4711", "1"], [float("nan"), 1], [float("inf"), 1]):
        with pytest.raises(ParameterError) as caught:
            read(model, X, bad).rows()
        assert "4711" not in str(caught.value)


def test_numeric_targets_are_described_by_a_schema() -> None:
    model = Numbers(schema=data.schema(), features=["sex"])
    assert read(model, data.patients(), "age").facts.target.bounds == (0.0, 110.0)
    with pytest.raises(MissingBoundsError, match="classifier"):
        read(Numbers(schema=data.schema(), features=["age"]), data.patients(), "sex")


# Tables --------------------------------------------------------------------------------------------------------------


def test_tables_are_counted_in_their_engine() -> None:
    reading = read(data.bayes(), data.patients(age=[20, 20, 20, 50, 60, 70, 80, 90], sex=["F"] * 8), "sick")
    assert reading.in_engine
    rows = reading.rows()
    assert sorted(zip(rows.features[:, 0].tolist(), rows.target.tolist(), rows.weights.tolist(), strict=True)) == [  # type: ignore[union-attr]
        (20.0, 0, 3),
        (50.0, 1, 1),
        (60.0, 1, 1),
        (70.0, 1, 1),
    ]


def test_missing_and_undeclared_cells_of_a_table_are_encoded_as_that() -> None:
    rows = read(data.bayes(), data.patients(age=pa.array([None] * 8, pa.int64())), "sick").rows()
    assert set(rows.features[:, 0]) == {55.0}
    assert int(rows.weights.sum()) == 6
    assert rows.features[:, 1:].sum(axis=1).min() == 0


def test_a_schema_of_the_table_says_everything() -> None:
    table = data.patients().with_schema(data.schema())
    reading = read(PrivateGaussianNB(), table, "sick")
    assert reading.facts.encoding.columns == ("age", "sex")
    assert reading.facts.target.classes == ("no", "yes")


def test_guessed_schemas_are_refused() -> None:
    table = data.patients()
    with pytest.raises(UnconfirmedSchemaError, match="confirm"):
        read(PrivateGaussianNB(features=["age"], classes=["no", "yes"]), table.with_schema(Schema.infer(table)), "sick")


@pytest.mark.parametrize("target", [None, "sickk", ["no"] * 8, 5])
def test_tables_are_fitted_with_the_name_of_a_column(target: Any) -> None:
    with pytest.raises(ParameterTypeError, match='fit\\(table, "income"\\)'):
        read(data.bayes(), data.patients(), target)


def test_columns_of_a_table_are_checked_before_anybody_looks() -> None:
    table = data.patients()
    with pytest.raises(UnknownColumnError):
        read(data.bayes(features=["agee"]), table, "sick")
    with pytest.raises(ParameterError, match="take it out of features"):
        read(data.bayes(features=["age", "sick"], domain=None), table, "sick")
    with pytest.raises(ParameterTypeError, match="storage in the schema"):
        read(data.bayes(bounds={"age": (0, 1), "sex": (0, 1)}, domain=None), table, "sick")
    with pytest.raises(ParameterTypeError, match="as the column stores them"):
        read(data.bayes(domain={"age": ["old", "young"], "sex": ["F"]}, bounds=None), table, "sick")


def test_values_are_compared_as_the_column_stores_them() -> None:
    texts = open_table(pa.table({"x": ["1", "2", "3"], "y": ["0", "1", "1"]}))
    rows = read(plain(bounds=None, domain={"x": [1, 2]}), texts, "y").rows()
    assert sorted(rows.features.tolist()) == [[0, 0], [0, 1], [1, 0]]
    assert sorted(rows.target.tolist()) == [0, 1, 1]  # type: ignore[union-attr]  # there is a target
    wide = open_table(pa.table({"x": [2**60, 2**60 + 1], "y": [True, False]}))
    rows = read(plain(bounds=None, domain={"x": [2**60, 2**60 + 1, 0.5]}, classes=[False, True]), wide, "y").rows()
    assert sorted(rows.features.tolist()) == [[0, 1, 0], [1, 0, 0]]


def test_truth_values_may_be_numbers() -> None:
    table = open_table(pa.table({"x": [True, False, None], "y": [0, 1, 1]}))
    rows = read(plain(bounds={"x": (0, 1)}), table, "y").rows()
    assert sorted(rows.features[:, 0].tolist()) == [0.0, 0.5, 1.0]


def test_tables_without_rows_are_read() -> None:
    empty = open_table(pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.string())}))
    rows = read(plain(classes=["a", "b"]), empty, "y").rows()
    assert rows.features.shape == (0, 1)


def test_types_read_from_a_file_are_an_assumption(tmp_path: Any) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,0\n2,1\n")
    assert "types of columns" in read(plain(), open_table(str(path)), "y").facts.assumptions[0]
    assert read(data.bayes(), data.patients(), "sick").facts.assumptions == ()


def test_a_named_person_that_is_not_protected_is_said() -> None:
    described = data.schema().with_subject("patient")
    table = data.patients().with_schema(described)
    with pytest.warns(PrivacyParameterWarning, match='write unit="patient"'):
        read(PrivateGaussianNB(), table, "sick")


# Rows to predict -----------------------------------------------------------------------------------------------------


def test_rows_to_predict_are_encoded_alike_wherever_they_are() -> None:
    model = data.bayes().fit(data.patients(), "sick")
    table = data.patients()
    frame = table.to_pandas()[["sex", "patient", "age"]]
    assert encode(model, table).tolist() == encode(model, frame).tolist()
    assert encode(model, table).tolist() == encode(model, pl.DataFrame(frame)).tolist()


def test_rows_to_predict_must_have_the_columns() -> None:
    model = data.bayes(features=None).fit(data.patients(patient=["F"] * 8).with_schema(data.schema()), "sick")
    with pytest.raises(ParameterError, match='no column "sex"'):
        model.predict(pd.DataFrame({"age": [1]}))
    with pytest.raises(UnknownColumnError):
        model.predict(open_table(pa.table({"age": [1]})))
    with pytest.raises(ParameterTypeError):
        model.predict(open_table(pa.table({"age": ["1"], "sex": ["F"]})))
    fitted = plain(epsilon=5).fit(X * 9, [0, 1] * 9)
    with pytest.raises(ParameterError, match="2 features"):
        fitted.predict([[1.0]])
