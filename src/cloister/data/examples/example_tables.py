"""A generated hospital, and the small tables of textbooks and lectures, as data for tests and explanations.

The hospital has one row per visit, several visits per patient, with plausible dependencies. How it is made, patients
first. Sex is drawn evenly; year of birth makes ages from 0 to 99 with more people in the middle; two thirds of the
patients live in the five most common of twelve postal codes. Smokers are 25% of adults, more among men. A patient has
1 + geometric visits, at most 8, more with age.

Then visits. The day is uniform over three years. The diagnosis is drawn with weights that depend on age, sex and
smoking (heart disease and cancer rise with age, smoking doubles asthma and heart disease, fractures are frequent among
the young and the very old). The department follows from the diagnosis, except for one visit in ten that stays in
emergency care. The length of stay is exponential around a mean per diagnosis that grows with age; the cost is a fee
per department plus a daily rate, times a random factor, in cents. In 3% of visits smoking was not recorded, in 1% the
cost.

Everything derives from the seed, so the same call gives the same table.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.core.random import RandomSource, SeededRandomSource, integers_below
from cloister.core.validation import check_choice, check_count
from cloister.data.sources import open_table
from cloister.data.table import Table

__all__ = ["HOSPITAL_SCHEMA", "TEXTBOOK", "hospital", "hospital_table", "textbook"]


HOSPITAL_SCHEMA = Path(__file__).with_name("hospital.schema.yaml")
"""The schema file of the hospital table: roles, public bounds and categories."""

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]

_FIRST_DAY, _DAYS = np.datetime64("2023-01-01"), 1096
_LONGEST_STAY, _HIGHEST_COST, _MOST_VISITS = 60, 100_000.0, 8
_ZIPS = np.array(
    ["02138", "02139", "02140", "02141", "02142", "02143", "02144", "02145", "02446", "02452", "02453", "02472"]
)
_ZIP_WEIGHTS = np.array([16, 15, 13, 12, 11, 7, 6, 5, 5, 4, 3, 3], dtype=float)


class _Illness(NamedTuple):
    name: str
    department: str
    base: float
    per_decade: float
    smoking: float
    woman: float
    stay: float


_ILLNESSES = (
    _Illness("asthma", "pulmonology", 6, -0.3, 2.0, 1.1, 3),
    _Illness("cancer", "oncology", 0.5, 1.0, 1.6, 1.0, 9),
    _Illness("diabetes", "internal medicine", 2, 0.6, 1.2, 0.9, 4),
    _Illness("fracture", "surgery", 8, -0.4, 1.0, 0.9, 5),
    _Illness("heart disease", "cardiology", 0.5, 1.6, 2.0, 0.7, 7),
    _Illness("infection", "internal medicine", 7, 0.0, 1.1, 1.0, 4),
    _Illness("pregnancy", "obstetrics", 0, 0, 1.0, 0.0, 3),
    _Illness("stroke", "neurology", 0.1, 0.7, 1.5, 0.9, 11),
)
_EMERGENCY = "emergency"
_DEPARTMENTS = np.array([illness.department for illness in _ILLNESSES] + [_EMERGENCY])
_FEES = np.array([900.0, 4200, 1100, 3100, 3600, 1100, 2100, 3900, 700])
_DAILY = 640.0


class _Patients(NamedTuple):
    birth_year: _Integers
    is_woman: NDArray[np.bool_]
    zip: _Integers
    smokes: NDArray[np.bool_]
    visits: _Integers


def hospital(*, patients: int = 5000, seed: int = 2026) -> pa.Table:
    """Return the visits of a generated hospital; the default has more than 10,000 rows.

    >>> hospital(patients=100).num_rows > 200
    True
    """
    patients = check_count(patients, name="patients", at_least=1)
    source = SeededRandomSource(seed)
    people = _draw_patients(source, patients)
    return _draw_visits(source, people)


def hospital_table(*, patients: int = 5000, seed: int = 2026) -> Table:
    """Return the generated hospital, opened with its schema."""
    return open_table(hospital(patients=patients, seed=seed), schema=HOSPITAL_SCHEMA)


def _draw_patients(source: RandomSource, count: int) -> _Patients:
    age = np.floor(np.clip(46 + 24 * (_uniform(source, count, 3).sum(axis=1) - 1.5) / 0.5, 0, 96)).astype(np.int64)
    is_woman = _uniform(source, count) < 0.5
    smokes = (age >= 16) & (_uniform(source, count) < np.where(is_woman, 0.21, 0.29))
    more = 0.45 + 0.003 * age
    visits = 1 + np.floor(np.log1p(-_uniform(source, count)) / np.log(more)).astype(np.int64)
    return _Patients(
        birth_year=2023 - age,
        is_woman=is_woman,
        zip=_choose(source, np.broadcast_to(_ZIP_WEIGHTS, (count, len(_ZIPS)))),
        smokes=smokes,
        visits=np.minimum(visits, _MOST_VISITS),
    )


def _draw_visits(source: RandomSource, people: _Patients) -> pa.Table:
    patient = np.repeat(np.arange(len(people.visits)), people.visits)
    count = len(patient)
    day = _FIRST_DAY + integers_below(source, _DAYS, count)
    age = day.astype("datetime64[Y]").astype(np.int64) + 1970 - people.birth_year[patient]
    diagnosis = _choose(source, _illness_weights(age, people.is_woman[patient], people.smokes[patient]))
    department = np.where(_uniform(source, count) < 0.1, len(_ILLNESSES), diagnosis)
    mean_stay = np.array([illness.stay for illness in _ILLNESSES])[diagnosis] * (0.6 + 0.01 * age)
    stay = np.minimum(np.floor(-np.log1p(-_uniform(source, count)) * mean_stay).astype(np.int64), _LONGEST_STAY)
    factor = 0.6 + 0.8 * _uniform(source, count, 2).mean(axis=1)
    cost = np.minimum(np.round((_FEES[department] + _DAILY * stay) * factor, 2), _HIGHEST_COST)
    names = np.array([illness.name for illness in _ILLNESSES])
    return pa.table(
        {
            "patient_id": pa.array(patient + 100_001),
            "age": pa.array(age),
            "sex": pa.array(np.where(people.is_woman[patient], "F", "M")),
            "zip": pa.array(_ZIPS[people.zip[patient]]),
            "smoker": pa.array(people.smokes[patient], mask=_uniform(source, count) < 0.03),
            "admission": pa.array(day.astype("datetime64[D]")),
            "department": pa.array(_DEPARTMENTS[department]),
            "diagnosis": pa.array(names[diagnosis]),
            "length_of_stay": pa.array(stay),
            "cost": pa.array(cost, mask=_uniform(source, count) < 0.01),
        }
    )


def _illness_weights(age: _Integers, is_woman: NDArray[np.bool_], smokes: NDArray[np.bool_]) -> _Floats:
    decades = age / 10
    columns = []
    for illness in _ILLNESSES:
        weight = np.maximum(illness.base + illness.per_decade * decades, 0.05)
        weight = weight * np.where(smokes, illness.smoking, 1) * np.where(is_woman, illness.woman, 1)
        if illness.name == "pregnancy":
            weight = np.where(is_woman & (age >= 16) & (age <= 46), 9.0, 0.0)
        elif illness.name == "fracture":
            weight = weight + np.where(age >= 75, 6.0, 0.0)
        columns.append(weight)
    return np.stack(columns, axis=1)


def _uniform(source: RandomSource, *shape: int) -> _Floats:
    words = source.words(int(np.prod(shape))) >> np.uint64(11)
    uniform: _Floats = (words * 2.0**-53).astype(np.float64).reshape(shape)
    return uniform


def _choose(source: RandomSource, weights: _Floats) -> _Integers:
    """Return, per row of weights, the position drawn."""
    cumulative = np.cumsum(weights, axis=1)
    drawn = _uniform(source, len(weights)) * cumulative[:, -1]
    passed = (cumulative <= drawn[:, None]).sum(axis=1)
    position: _Integers = np.minimum(passed, weights.shape[1] - 1).astype(np.int64)
    return position


TEXTBOOK = {
    "zip_and_age": "five people by postal code and age: one must be suppressed for 2-anonymity",
    "two_classes": "five people in two equivalence classes, of two and of three",
    "four_people": "four named people, their age and a yes-or-no answer: neighbors by leaving one out",
    "salaries": "ten salaries with mean 3300, for the sensitivity of a mean",
    "amounts": "sixteen amounts for a histogram with the buckets 1000, 2000, 3000 and 4000: counts 5, 7 and 4",
}
"""What each table shows."""


def textbook(name: str) -> Table:
    """Open one of the small tables.

    >>> textbook("salaries")
    Table(salary: integer)
    """
    name = check_choice(name, name="name", allowed=tuple(TEXTBOOK))
    return open_table(Path(__file__).with_name(f"{name}.csv"))
