"""A made-up population with six attributes that depend on each other as they do among people.

Half a million persons live in 22 regions whose sizes follow Zipf's law; large regions are younger and have more foreign
citizens. Age (in years) decides on marital status and on who is a pupil or retired; women and men choose occupations
with different frequencies; citizenships and occupations have long tails. About one person in ten is unique. The same
population comes out on every machine, and its uniqueness is counted, not assumed.
"""

from __future__ import annotations

import numpy as np

from cloister.core.random import RandomSource, SeededRandomSource, integers_below, permutation

PEOPLE = 500_000
REGIONS, CITIZENSHIPS, OCCUPATIONS = 22, 20, 12
NAMES = ("region", "age", "sex", "citizenship", "marital status", "occupation")
PUPIL, RETIRED, WITHOUT_WORK = 0, 1, 2
_UNIT = 2**32


def people(count: int = PEOPLE, *, seed: int = 11) -> np.ndarray:
    """Return one row of codes per person, in the order of ``NAMES``."""
    source = SeededRandomSource(seed)
    region = _draw(source, np.tile(_zipf(REGIONS, 0.9), (count, 1)))
    urban = 1 - region / REGIONS
    age = _ages(source, urban)
    sex = (uniform(source, count) < 0.49 + 0.25 * np.clip((age - 70) / 30, 0, 1)).astype(np.int64)
    foreign = uniform(source, count) < (0.04 + 0.2 * urban**3) * np.where(age < 60, 1.2, 0.4)
    citizenship = np.where(foreign, 1 + _draw(source, np.tile(_zipf(CITIZENSHIPS - 1, 1.1), (count, 1))), 0)
    marital = _draw(source, _marital_weights(age))
    return np.column_stack([region, age, sex, citizenship, marital, _occupations(source, age, sex)]).astype(np.int32)


def classes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct combinations of codes and how many rows have each."""
    key = np.zeros(len(codes), dtype=np.int64)
    for column in codes.T:
        key = key * (int(column.max()) + 1) + column
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return codes[first], counts


def uniqueness(codes: np.ndarray) -> float:
    """Return the share of persons with a combination of their own."""
    return float((classes(codes)[1] == 1).sum() / len(codes))


def sample(codes: np.ndarray, share: float, source: RandomSource) -> np.ndarray:
    """Return a random sample without replacement."""
    return codes[permutation(source, len(codes))[: round(share * len(codes))]]


def uniform(source: RandomSource, count: int) -> np.ndarray:
    """Return numbers between 0 and 1."""
    return (integers_below(source, _UNIT, count) + 0.5) / _UNIT


def _zipf(size: int, exponent: float) -> np.ndarray:
    return 1 / np.arange(1, size + 1) ** exponent


def _draw(source: RandomSource, weights: np.ndarray) -> np.ndarray:
    """Return one place per row, with chances in proportion to the weights."""
    ends = np.cumsum(weights, axis=1)
    return (uniform(source, len(ends))[:, None] * ends[:, -1:] > ends).sum(axis=1)


def _ages(source: RandomSource, urban: np.ndarray) -> np.ndarray:
    count = len(urban)
    middle, old = 70 * uniform(source, count), 40 + 45 * (uniform(source, count) + uniform(source, count)) / 2
    age = np.where(uniform(source, count) < 0.75, middle, old) - 5 * (urban - 0.5) * uniform(source, count)
    return np.clip(age, 0, 99).astype(np.int64)


def _marital_weights(age: np.ndarray) -> np.ndarray:
    """Return the weights of single, married, divorced and widowed."""
    married = 0.75 * np.clip((age - 20) / 20, 0, 1) * (1 - 0.6 * np.clip((age - 65) / 35, 0, 1))
    divorced = 0.15 * np.clip((age - 28) / 30, 0, 1)
    widowed = 0.7 * np.clip((age - 55) / 45, 0, 1) ** 2
    single = np.maximum(1 - married - divorced - widowed, 0.07)
    return np.column_stack([single, married, divorced, widowed])


def _occupations(source: RandomSource, age: np.ndarray, sex: np.ndarray) -> np.ndarray:
    lean = 2 * uniform(source, OCCUPATIONS) - 1
    weights = _zipf(OCCUPATIONS, 0.8) * np.exp(0.9 * lean * (2 * sex[:, None] - 1))
    work, chance = 3 + _draw(source, weights), uniform(source, len(age))
    work = np.where(chance < 0.12, WITHOUT_WORK, work)
    work = np.where((age < 16) | ((age < 24) & (chance < 0.5)), PUPIL, work)
    return np.where((age >= 67) | ((age >= 60) & (chance < 0.4)), RETIRED, work)
