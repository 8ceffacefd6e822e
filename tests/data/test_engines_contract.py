"""One contract for all engines: whatever holds the rows, the frequency tables are identical."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cloister.data.measures import CountPresent, Measure, Sum, SumOfSquares
from cloister.data.sources import open_table
from cloister.data.values import StorageType
from cloister.errors import ParameterError
from tests.support import engine_tables, reference
from tests.support.conditions import conditions

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines

INTEGER, REAL, BOOLEAN = StorageType.INTEGER, StorageType.REAL, StorageType.BOOLEAN
TEXT, DATE, TIMESTAMP = StorageType.TEXT, StorageType.DATE, StorageType.TIMESTAMP


@dataclass(frozen=True)
class Engine:
    open: engine_tables.Opener
    examples: int


@pytest.fixture(scope="module")
def engine(any_engine: engine_tables.NamedOpener) -> Engine:
    examples = {"postgres": 12, "spark": 4}
    return Engine(any_engine.open, examples.get(any_engine.name, 24))


NAMES = [
    "a",
    "A",
    'say "x"',
    "o'clock",
    "two words",
    "select",
    "größe",
    "a.b",
    "back\\slash",
    "per-cent%",
    "{b}",
    "`t`",
]
TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "a",
            "B",
            "b",
            "é",
            "e\u0301",
            "ß",
            "日本",
            "🙂",
            "?",
            "NA",
            "o'x",
            '"',
            "a\\b",
            "x\ny",
            "a,b",
            "Z",
            "%_",
        ]
    ),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=3),
)
VALUES: dict[StorageType, st.SearchStrategy[Any]] = {
    INTEGER: st.one_of(st.integers(-4, 4), st.sampled_from([2**62, -(2**63), 2**63 - 1, 10**15 + 1])),
    REAL: st.one_of(
        st.sampled_from([0.0, -0.0, 0.1, 0.3, 2.5, -2.5, 0.125, math.inf, -math.inf, math.nan, 1e300, -1e300, 5e-324]),
        st.floats(width=32),
    ),
    BOOLEAN: st.booleans(),
    TEXT: TEXTS,
    DATE: st.one_of(
        st.dates(dt.date(2020, 1, 1), dt.date(2020, 1, 5)), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
    ),
    TIMESTAMP: st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)).map(lambda item: item.replace(fold=0)),
}
LITERALS = VALUES | {
    REAL: st.one_of(st.sampled_from([0.0, -0.0, 0.1, 0.3, 2.5, 1e300]), st.floats(-100, 100, width=32)),
    INTEGER: st.one_of(st.integers(-4, 4), st.sampled_from([-0.5, 2.5, 2**63 - 1, -(2**63)])),
}
BINS: dict[StorageType, list[Any]] = {
    INTEGER: [-3, 0, 1.5, 4],
    REAL: [-math.inf, -2.5, 0, 0.1, 0.3, 10, math.inf],
    DATE: [dt.date(1999, 1, 1), dt.date(2020, 1, 3), dt.date(2020, 1, 4)],
    TIMESTAMP: [dt.datetime(1800, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1), dt.datetime(2100, 1, 1)],
}


@st.composite
def tables(draw: st.DrawFn) -> reference.Columns:
    names = draw(st.permutations(NAMES))[: len(StorageType)]
    length = draw(st.integers(0, 12))
    return {
        name: (storage, draw(st.lists(st.none() | VALUES[storage], min_size=length, max_size=length)))
        for name, storage in zip(names, StorageType, strict=True)
    }


@st.composite
def cases(draw: st.DrawFn) -> SimpleNamespace:
    data = draw(tables())
    columns = draw(st.lists(st.sampled_from(list(data)), unique=True, max_size=3))
    binnable = [name for name in columns if data[name][0] in BINS]
    chosen = draw(st.lists(st.sampled_from(binnable), unique=True)) if binnable else []
    return SimpleNamespace(
        data=data,
        columns=columns,
        where=draw(st.none() | conditions(data, LITERALS)),
        bins={name: BINS[data[name][0]] for name in chosen},
        measures=draw(measures(data)),
        missing=draw(st.sampled_from([(), ("?", "NA")])),
    )


@st.composite
def measures(draw: st.DrawFn, data: reference.Columns) -> dict[str, Measure]:
    integer, real = (next(name for name, (kind, _) in data.items() if kind is storage) for storage in (INTEGER, REAL))
    granularity = draw(st.sampled_from([0.25, 1, 2]))
    bounds = draw(st.sampled_from([(0, 3), (-2.5, 2.5), (1, 1000), (-(10**10), 10**10)]))
    possible: dict[str, Measure] = {
        "all": Sum(integer),
        "integer": Sum(integer, bounds=bounds, granularity=granularity),
        "real": Sum(real, bounds=bounds, granularity=granularity),
        "square": SumOfSquares(draw(st.sampled_from([integer, real])), bounds=bounds, granularity=granularity),
        "present": CountPresent(draw(st.sampled_from(list(data)))),
    }
    return {name: possible[name] for name in draw(st.lists(st.sampled_from(list(possible)), unique=True, max_size=3))}


def test_random_tables_match_the_reference(engine: Engine) -> None:
    @settings(max_examples=engine.examples, suppress_health_check=[HealthCheck.too_slow])
    @given(cases())
    def check(case: SimpleNamespace) -> None:
        table = engine.open(engine_tables.arrow_table(case.data), missing=case.missing)
        sql, keep = case.where or (None, lambda row: True)
        found = table.frequencies(case.columns, where=sql, bins=case.bins, measures=case.measures)
        expected = reference.frequencies(
            case.data, case.columns, keep=keep, bins=case.bins, measures=case.measures, missing=case.missing
        )
        assert found.codes.tolist() == expected.codes.tolist()
        assert repr(found.decoders) == repr(expected.decoders)
        assert found.weights.tolist() == expected.weights.tolist()
        for name, item in expected.measures.items():
            assert found.measures[name].values.tolist() == item.values.tolist()
        assert found.equals(expected)

    check()


def test_random_tables_come_back_whole_and_their_profiles_are_right(engine: Engine) -> None:
    @settings(max_examples=engine.examples // 4, suppress_health_check=[HealthCheck.too_slow])
    @given(tables())
    def check(data: reference.Columns) -> None:
        table = engine.open(engine_tables.arrow_table(data))
        assert table.columns == tuple(data)
        assert table.types == {name: storage for name, (storage, _) in data.items()}
        rows, profiles = table.to_arrow(), table.profiles()
        for position, (name, (_, values)) in enumerate(data.items()):
            cleaned = [reference.clean(item) for item in values]
            assert [reference.clean(item) for item in rows.column(position).to_pylist()] == cleaned
            profile = profiles[position]
            present = [item for item in cleaned if item is not None]
            assert (profile.name, profile.rows, profile.missing) == (name, len(values), len(values) - len(present))
            assert profile.distinct == len(set(present))
            assert (profile.minimum, profile.maximum) == (min(present, default=None), max(present, default=None))
            assert profile.common == tuple(sorted(set(present), key=lambda item: (-present.count(item), item)))

    check()


def sample() -> reference.Columns:
    return {
        "age": (INTEGER, [30, 41, None, 30, 58]),
        "cost": (REAL, [0.49999999999999994, math.inf, math.nan, -7.5, 12.25]),
        "name": (TEXT, ["a", "", "?", "Á", "z"]),
        "seen": (DATE, [dt.date(2020, 2, 29), None, dt.date(2021, 1, 1), dt.date(2020, 2, 29), dt.date(1999, 12, 31)]),
        "at": (
            TIMESTAMP,
            [dt.datetime(2020, 5, 1, 10, 30), None, None, dt.datetime(2020, 6, 1), dt.datetime(1969, 7, 20)],
        ),
        "smokes": (BOOLEAN, [True, False, None, True, False]),
    }


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("age > 30", 2),
        ("AGE = 30", 2),
        ("NOT age = 30", 2),
        ("smokes", 2),
        ("NOT smokes", 2),
        ("smokes IS NOT TRUE", 3),
        ("smokes IS FALSE", 2),
        ("seen = '2020-02-29'", 2),
        ("seen < DATE '2020-01-01'", 1),
        ("YEAR(seen) = 2020 AND MONTH(seen) = 2 AND DAY(seen) = 29", 2),
        ("EXTRACT(YEAR FROM at) = 1969", 1),
        ("at >= TIMESTAMP '2020-05-01 10:30:00'", 2),
        ("at > '2020-05-01'", 2),
        ("at > seen", 2),
        ("LENGTH(name) = 0", 1),
        ("LENGTH(name) = 1", 4),
        ("name LIKE '_'", 4),
        ("name LIKE '%z%'", 1),
        ("name < 'z'", 3),
        ("name > 'z'", 1),
        ("cost IS NULL", 1),
        ("cost > 1e300", 1),
        ("cost <> 12.25", 3),
        ("age < 99999999999999999999999", 4),
        ("(age) BETWEEN -1 AND 41.5", 3),
        ("name IN ('a', 'Á')", 2),
        ("TRUE", 5),
        ("FALSE", 0),
    ],
)
def test_conditions_mean_the_same(engine: Engine, where: str, count: int) -> None:
    assert _sample_table(engine).count(where) == count


_OPENED: dict[int, Any] = {}


def _sample_table(engine: Engine) -> Any:
    if id(engine) not in _OPENED:
        _OPENED[id(engine)] = engine.open(engine_tables.arrow_table(sample()))
    return _OPENED[id(engine)]


def test_sums_round_half_up_and_clamp_infinity(engine: Engine) -> None:
    measures = {
        "cost": Sum("cost", bounds=(-5, 100), granularity=0.25),
        "whole": Sum("cost", bounds=(0, 100)),
        "squares": SumOfSquares("cost", bounds=(-5, 100)),
        "large": SumOfSquares("cost", bounds=(-1_000_000, 1_000_000)),
        "present": CountPresent("cost"),
    }
    found = _sample_table(engine).frequencies([], measures=measures).measures
    assert found["cost"].values.tolist() == [2 + 400 - 20 + 49]
    assert found["cost"].exact() == [431 * found["cost"].unit]
    assert found["whole"].values.tolist() == [1 + 100 + 0 + 12]
    assert found["squares"].values.tolist() == [1 + 10000 + 25 + 144]
    assert found["large"].values.tolist() == [1 + 10**12 + 49 + 144]
    assert found["large"].values.dtype == object
    assert found["present"].values.tolist() == [4]


def test_declared_categories_fix_the_decoder_and_others_are_missing(engine: Engine) -> None:
    schema = SimpleNamespace(
        columns={
            "age": SimpleNamespace(categories=(58, 30, 7)),
            "name": SimpleNamespace(categories=("z", "a", "never")),
            "smokes": SimpleNamespace(categories=(True, False)),
            "seen": SimpleNamespace(categories=("2020-02-29", "1999-12-31")),
        }
    )
    table = engine.open(engine_tables.arrow_table(sample()), schema=schema)
    found = table.frequencies(["age", "name"])
    assert found.decoders == ((58, 30, 7, None), ("z", "a", "never", None))
    assert found.codes.tolist() == [[0, 0], [1, 1], [1, 3], [3, 3]]
    assert found.weights.tolist() == [1, 1, 1, 2]
    assert found.declared == (True, True)
    assert table.frequencies(["smokes", "seen"]).codes.tolist() == [[0, 0], [1, 1], [1, 2], [2, 2]]


def test_no_rows_give_no_groups_and_one_empty_total(engine: Engine) -> None:
    table = _sample_table(engine)
    measures = {"age": Sum("age", bounds=(0, 100))}
    assert len(table.frequencies(["age"], where="FALSE", measures=measures)) == 0
    total = table.frequencies([], where="FALSE", measures=measures)
    assert (total.weights.tolist(), total.measures["age"].values.tolist()) == ([0], [0])


@pytest.fixture(scope="module")
def adult_rows(shared_data: Path) -> pa.Table:
    return open_table(shared_data / "adult" / "adult.csv", missing=("?",)).to_arrow()


def test_dates_have_overflow_bins(engine: Engine) -> None:
    days = [dt.date(1900, 1, 1), dt.date(2024, 5, 1), dt.date(2025, 5, 1), dt.date(9000, 1, 1), None]
    moments = [None if day is None else dt.datetime.combine(day, dt.time(7)) for day in days]
    table = engine.open(pa.table({"day": days, "moment": moments}))
    for name, middle in (("day", dt.date(2025, 1, 1)), ("moment", dt.datetime(2025, 1, 1))):
        found = table.frequencies([name], bins={name: [-math.inf, middle, math.inf]})
        assert found.weights.tolist() == [2, 2, 1]
    with pytest.raises(ParameterError, match="smallest first"):
        table.frequencies(["day"], bins={"day": [math.inf, dt.date(2025, 1, 1)]})


def test_cdp_20_adult_facts(engine: Engine, adult_rows: pa.Table) -> None:
    table = engine.open(adult_rows)
    ages = table.frequencies(["age"])
    assert ages.total == 32561
    assert (ages.decoders[0][0], ages.decoders[0][-1]) == (17, 90)
    assert table.count("age > 50") == 6460
    assert table.count("44 <= age AND age < 55") == 6577
    binned = table.frequencies(["age"], bins={"age": [17, 44, 55, 91]})
    assert binned.weights.tolist()[1] == 6577
    local = open_table(adult_rows)
    options = {
        "where": "\"native-country\" = 'United-States' OR occupation IS NULL",
        "measures": {"hours": Sum("hours-per-week", bounds=(1, 60)), "gain": Sum("capital-gain")},
    }
    columns = ["occupation", "sex", "salary-class"]
    assert table.frequencies(columns, **options).equals(local.frequencies(columns, **options))
    assert np.array_equal(local.frequencies(columns).marginal(["sex"]).weights, table.frequencies(["sex"]).weights)
