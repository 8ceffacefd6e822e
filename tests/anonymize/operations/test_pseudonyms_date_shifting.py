from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from cloister.anonymize.operations import ShiftDates
from cloister.anonymize.operations.pseudonyms import _days
from cloister.errors import CloisterError, DataError
from cloister.testing import check_distribution, distributions
from tests.anonymize.operations.helpers import transformed

KEY = bytes(range(32))
days = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
rows = st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), days, st.none() | days), min_size=1, max_size=20)


def shift(columns: Any = ("a", "b"), **options: Any) -> ShiftDates:
    return ShiftDates(columns, **{"subject": "who", "key": KEY, "domain": "study", **options})


@given(rows, st.integers(1, 400))
def test_intervals_within_a_person_stay_and_shifts_are_bounded(table: list[Any], most: int) -> None:
    who, first, second = ([row[place] for row in table] for place in range(3))
    after = transformed(shift(most_days=most), who=who, a=pa.array(first, pa.date32()), b=pa.array(second, pa.date32()))
    moved = {}
    for person, old, new in zip(who, first, after["a"], strict=True):
        moved.setdefault(person, set()).add(new - old)
    for person, old, new in zip(who, second, after["b"], strict=True):
        assert (old is None) == (new is None)
        if old is not None:
            moved[person].add(new - old)
    for shifts in moved.values():
        assert len(shifts) == 1
        assert 1 <= abs(next(iter(shifts)).days) <= most


def test_times_keep_their_hour() -> None:
    moment = dt.datetime(2020, 5, 5, 13, 30, 5, 123456)
    after = transformed(shift("a"), who=[1], a=pa.array([moment], pa.timestamp("us")))["a"][0]
    assert after.time() == moment.time()
    assert after != moment


def test_key_and_domain_decide_the_shift() -> None:
    table = {"who": ["p"] * 1, "a": [dt.date(2020, 1, 1)]}
    first = transformed(shift("a", most_days=20_000), **table)
    assert transformed(shift("a", most_days=20_000), **table) == first
    assert transformed(shift("a", most_days=20_000, domain="x"), **table) != first
    assert transformed(shift("a", most_days=20_000, key=KEY[::-1]), **table) != first


@pytest.mark.statistical
def test_all_shifts_but_none_are_equally_likely() -> None:
    found = [_days(str(number), KEY, "study", 3) for number in range(50_000)]
    law = dict.fromkeys((-3, -2, -1, 1, 2, 3), 1 / 6)
    check_distribution(found, distributions.categorical(law))


def test_a_date_without_a_person_is_refused() -> None:
    table = {"who": pa.array([None, "p"]), "a": [dt.date(2020, 1, 1)] * 2}
    with pytest.raises(DataError, match='"who" IS NULL'):
        transformed(shift("a"), **table)


def test_only_dates_are_shifted_and_only_within_the_calendar() -> None:
    with pytest.raises(DataError, match="convert it to dates"):
        transformed(shift("a"), who=["p"], a=["2020-01-01"])
    people = list(range(100))
    for edge in (dt.date.min, dt.date.max):
        with pytest.raises(DataError, match="years 1 to 9999"):
            transformed(shift("a"), who=people, a=[edge] * len(people))
    assert transformed(shift("a"), who=["p"], a=pa.array([None], pa.date32()))["a"] == [None]


@pytest.mark.parametrize(
    "options", [{"most_days": 0}, {"most_days": 40_000}, {"key": b"x"}, {"domain": ""}, {"subject": ""}, {"subject": 5}]
)
def test_broken_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(CloisterError):
        shift(**options)


def test_the_release_is_labelled() -> None:
    table = pa.table({"who": ["p"], "a": [dt.date(2020, 1, 1)]})
    log = shift("a").run(table).log
    assert not log.truthful
    assert "intervals within a person are true" in log.caution
